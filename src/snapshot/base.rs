//! The settled base of a store ([`crate::store::base`]) as a start of settling, and what becomes of a settled state.
//!
//! A base is made where the stream of records says so: at the end of an ingest, at snapshots by number of records, and
//! by settling a store at rest. Other snapshots start from what is nearest, and leave the base as it is: so what is
//! published at such a place does not depend on how often somebody looked before.

use std::fmt;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use super::known::HeldKnown;
use super::settling::{Settle, Watching};
use crate::disk::Disk;
use crate::engine::{Effort, Scores, SettledPagesMut, SettledTotals};
use crate::rank::settle::{Base, BaseUse, Changed, Settled, Watch, settle_from, verify as holds};
use crate::rank::{Goal, Options};
use crate::rows::{RowVisitor, Stop};
use crate::store::base::{self, BaseFile, BaseHead, CommittedBase, OwedBase, OwedGoal};
use crate::store::rows::{HeldRows, KeptRows, Since};
use crate::store::{Depth, SettledBase, View};
use crate::threads::yield_to_others;
use crate::{Error, Result};

/// What becomes of the state that a settling ends with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Nothing.
    #[default]
    No,
    /// It is kept beside the run, for the next snapshot by time.
    Beside,
    /// It is the store's base, once the next commit names it.
    InStore,
    /// The store is at rest, and locked: a commit of its own names it, before the ranking is published. So a command that
    /// was killed between the two publishes it when it is run again.
    AtRest,
}

/// How a settling uses bases: by default it starts from the store's, and makes none.
#[derive(Debug, Clone, Default)]
pub struct BasePlan {
    pub(crate) keep: Keep,
    /// One that was kept beside the run.
    pub(crate) beside: Option<CommittedBase>,
    /// Who waits for the base: it is made before the ranking is published, and sent there if there is one.
    pub(crate) ahead: Option<Sender<CommittedBase>>,
    /// Rows that the snapshot before has read, and that the next one will.
    pub(crate) rows: Option<Arc<HeldRows>>,
    /// What the snapshot before has left of what is known of pages, and whether another one comes, to which it is left.
    pub(crate) known: Arc<HeldKnown>,
    pub(crate) leaves_known: bool,
    /// Disconnected when the snapshot before is published.
    pub(crate) after: Option<Receiver<()>>,
}

impl BasePlan {
    /// Returns whether the base comes before the ranking, which has what room is left of a disk.
    pub(super) fn comes_first(&self) -> bool {
        self.keep == Keep::AtRest || self.ahead.is_some()
    }

    /// Waits for the snapshot before.
    pub(super) fn await_turn(&self) {
        if let Some(after) = &self.after {
            let _ = after.recv();
        }
    }

    /// Gives the base to whoever waits for it. Then nobody waits for the ranking, and this thread yields to others.
    pub(super) fn give_ahead(&self, base: Option<CommittedBase>) {
        if let (Some(ahead), Some(base)) = (&self.ahead, base)
            && ahead.send(base).is_ok()
        {
            yield_to_others();
        }
    }
}

/// What is wrong with a base: the ranking is as it should be.
#[derive(Debug)]
#[non_exhaustive]
pub enum BaseWarning {
    /// The store's base could not be used: settling began with nothing.
    Unusable(Error),
    /// The next settling will not start from this one, for which the disk had no room.
    NotWritten(Error),
}

impl BaseWarning {
    /// Whether the disk had no room for it.
    pub(crate) fn is_of_room(&self) -> bool {
        matches!(self, BaseWarning::NotWritten(_))
    }
}

impl fmt::Display for BaseWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaseWarning::Unusable(error) => {
                let what = match error {
                    Error::Damaged { path, what } => format!("{}: damaged: {what}", path.display()),
                    other => other.to_string(),
                };
                write!(
                    f,
                    "{what}; importance was settled from the start instead, which takes longer"
                )
            }
            BaseWarning::NotWritten(error) => write!(
                f,
                "{error}; the ranking is published, but what the next one starts from is not written yet"
            ),
        }
    }
}

/// Settled states that a settling may start from.
struct Starting<'v> {
    /// Kept beside the run, if that is of use; it is tried first.
    beside: Option<Result<SettledBase>>,
    /// The store's, if it has one.
    stored: Option<Result<&'v SettledBase>>,
    /// Where the rows of the store's end in their file; `None`: in that which there is now.
    place: Option<(u64, u64)>,
    /// Records that were read until now.
    records: u64,
}

/// A base beside the latest rows.
struct Start<'v> {
    file: &'v BaseFile,
    rows: &'v KeptRows,
    since: Since,
    records: u64,
}

impl<'v> Start<'v> {
    /// Of a base whose rows end at `place`.
    fn new(
        base: &'v SettledBase,
        rows: &'v KeptRows,
        place: Option<(u64, u64)>,
        records: u64,
    ) -> Result<Start<'v>> {
        Ok(Start {
            file: &base.file,
            since: base.since(rows, place)?,
            rows,
            records,
        })
    }
}

impl Base for Start<'_> {
    fn totals(&self) -> &SettledTotals {
        &self.file.head.totals
    }

    fn own_effort(&self) -> Option<Effort> {
        let head = &self.file.head;
        (head.records == self.records).then_some(head.totals.effort)
    }

    fn changed(&self) -> Changed {
        Changed {
            rows: self.since.rows,
            links: self.since.links,
        }
    }

    fn load(&self, pages: SettledPagesMut<'_>) -> Result<()> {
        self.file.load(pages)
    }

    fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.since.old_rows(visit)
    }

    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.rows.new_rows(&self.since, visit)
    }
}

/// Settles rows from what is nearest, and says what was wrong with that: then from nothing.
fn settle(
    starting: &Starting<'_>,
    rows: &KeptRows,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, Option<BaseWarning>)> {
    let records = starting.records;
    // What is beside the run is of no other use: without it there is the store's.
    let beside = starting.beside.as_ref().and_then(|base| base.as_ref().ok());
    let beside = beside.and_then(|base| Start::new(base, rows, None, records).ok());
    let found = beside.map(Ok).or_else(|| {
        let base = starting.stored.as_ref()?;
        let base = base.as_ref().map_err(Error::again);
        Some(base.and_then(|base| Start::new(base, rows, starting.place, records)))
    });
    let (start, mut wrong) = match found.transpose() {
        Ok(start) => (start, None),
        Err(error) => (None, Some(error)),
    };
    let base = start.as_ref().map(|start| start as &dyn Base);
    let (settled, used) = settle_from(rows, options, base, watch)?;
    if let (BaseUse::Unusable(error), Some(start)) = (used, &start) {
        wrong = Some(of_base(start.file, error));
    }
    Ok((settled, wrong.map(BaseWarning::Unusable)))
}

/// Settles the rows of a commit.
pub(super) fn settle_latest(
    disk: &dyn Disk,
    view: &View,
    rows: &KeptRows,
    settle_by: &Settle,
    options: &Options,
    watch: &mut Watching<'_>,
) -> Result<(Option<Settled>, Option<BaseWarning>)> {
    let beside = settle_by.base.beside.as_ref();
    let starting = Starting {
        beside: beside.map(|named| view.open_beside(disk, named)),
        stored: view.base(),
        place: None,
        records: view.counters().records,
    };
    settle(&starting, rows, options, watch)
}

/// What is wrong with a base as an error that names it.
fn of_base(base: &BaseFile, error: Error) -> Error {
    match error {
        Error::Internal { what } => base.damaged(what),
        other => other,
    }
}

/// Checks that the base of a commit can be a start, without taking memory for its pages: all of its file, and that the rows
/// that changed since can be found.
///
/// # Errors
///
/// [`Error::Damaged`], and those of reading.
pub(crate) fn check(view: &View) -> Result<()> {
    let rows = view.rows()?;
    let Some(base) = view.base() else {
        return Ok(());
    };
    let start = Start::new(base?, &rows, None, view.counters().records)?;
    start.file.check()
}

/// Checks the base of a commit: all of its file, and that the rows that changed since can be found; deep, that it is what
/// it should be for the rows that it was settled over.
///
/// # Errors
///
/// [`Error::Damaged`], and those of reading.
pub(crate) fn verify(view: &View, depth: Depth) -> Result<()> {
    let Some(base) = view.base() else {
        return Ok(());
    };
    let base = base?;
    let latest = view.rows()?;
    let start = Start::new(base, &latest, None, view.counters().records)?;
    let checked = holds(&base.rows()?, &start, depth == Depth::Deep);
    checked.map_err(|error| of_base(&base.file, error))
}

/// Makes the base that a commit owes, of the rows that there were then, and says what was wrong with that before. `None`: there
/// can be none, or it was stopped. Lack of room is an error now: what comes after would start from another state, and have
/// other bytes, than with room.
///
/// # Errors
///
/// Those of reading rows, and of writing.
pub(crate) fn make_owed(
    disk: &dyn Disk,
    view: &View,
    owed: &OwedBase,
    settle_by: &Settle,
) -> Result<(Option<CommittedBase>, Option<BaseWarning>)> {
    if !settle_by.is_possible(view) {
        return Ok((None, None));
    }
    let options = if owed.number == view.generation() {
        settle_by.options_of(view)?
    } else {
        settle_by.options(view.settings())
    };
    let starting = Starting {
        beside: None,
        stored: owed.from.and_then(|_| view.base()),
        place: owed.from,
        records: owed.records,
    };
    let rows = view.rows_of(disk, owed)?;
    let mut watching = Watching::new(&settle_by.watcher, None);
    let (settled, unusable) = settle(&starting, &rows, &options, &mut watching)?;
    let settled = settled.filter(|_| !settle_by.watcher.is_stopped());
    let made = settled.map(|settled| write(disk, view, owed, &settled, false));
    match made.transpose()?.unwrap_or_default() {
        (_, Some(BaseWarning::NotWritten(full))) => Err(full),
        (made, _) => Ok((made, unusable)),
    }
}

/// Makes the base that a store at rest owes, which is locked ([`crate::store::open_view_to_publish`]), and says what was wrong
/// with the one before. The state with it: that of before where there can be none, or it was stopped.
///
/// # Errors
///
/// Those of reading rows, and of writing.
pub fn make_owed_at_rest(
    disk: &dyn Disk,
    view: View,
    settle: &Settle,
) -> Result<(View, Option<BaseWarning>)> {
    let Some((owed, goal)) = view.owed_base() else {
        return Ok((view, None));
    };
    let settle = Settle {
        goal: goal.map_or_else(Goal::default, Goal::from),
        expire: None,
        ..settle.clone()
    };
    let (made, unusable) = make_owed(disk, &view, &owed, &settle)?;
    let Some(made) = made else {
        return Ok((view, unusable));
    };
    Ok((view.with_owed_base(disk, made)?, unusable))
}

/// What a base of this commit is of; `None`: there are no rows. At rest the next commit names it, or owes it, and
/// its number is that: the base of the number of this one may be named already.
fn of_commit(view: &View, keep: Keep) -> Option<OwedBase> {
    let rows = *view.rows_retention().kept()?;
    Some(OwedBase {
        number: view.generation() + u64::from(keep == Keep::AtRest),
        pages: view.state().totals.pages,
        records: view.counters().records,
        rows,
        place: (rows.number, rows.rows),
        from: None,
    })
}

/// Writes what a settling of a commit came to, if it is to be kept.
pub(super) fn keep(
    disk: &dyn Disk,
    view: &View,
    settle: &Settle,
    settled: &Settled,
) -> Result<(Option<CommittedBase>, Option<BaseWarning>)> {
    let keep = settle.base.keep;
    if keep == Keep::No {
        return Ok((None, None));
    }
    let Some(of) = of_commit(view, keep) else {
        return Ok((None, None));
    };
    let (made, warning) = write(disk, view, &of, settled, keep == Keep::Beside)?;
    if keep != Keep::AtRest {
        return Ok((made, warning));
    }
    // What ended because time was up cannot be made again.
    let is_in_time = settle.time.is_none() || settled.effort().reached;
    match (made, &warning) {
        (Some(made), _) => view.name_base(disk, made)?,
        (None, Some(_)) if is_in_time => {
            let Options { until, spare, .. } = settle.options_of(view)?;
            view.owe_base(disk, of, OwedGoal { until, spare })?;
        }
        (None, _) => {}
    }
    Ok((made, warning))
}

/// Writes a settled state as a base, if it can be a start. A full disk leaves it out.
fn write(
    disk: &dyn Disk,
    view: &View,
    of: &OwedBase,
    settled: &Settled,
    beside: bool,
) -> Result<(Option<CommittedBase>, Option<BaseWarning>)> {
    let Some(totals) = settled.base_totals() else {
        return Ok((None, None));
    };
    let pages = settled.settled_pages();
    let pages = pages.ok_or_else(|| Error::internal("a base is of pages that are paid alike"))?;
    let head = BaseHead {
        number: of.number,
        records: of.records,
        totals,
    };
    match base::write(
        disk,
        view.dir(),
        view.identity(),
        head,
        pages,
        of.rows,
        beside,
    ) {
        Ok(made) => Ok((Some(made), None)),
        Err(full) if full.is_full() => Ok((None, Some(BaseWarning::NotWritten(full)))),
        Err(error) => Err(error),
    }
}
