//! The settled base of a store ([`crate::store::base`]) as a start of settling, and what becomes of a settled state.
//!
//! A base is made where the stream of records says so: at the end of an ingest, at snapshots by number of records, and
//! by settling a store at rest. Other snapshots start from what is nearest, and leave the base as it is: so what is
//! published at such a place does not depend on how often somebody looked before.

use std::fmt;

use super::settling::Settle;
use crate::disk::Disk;
use crate::engine::{Effort, SettledPagesMut, SettledTotals};
use crate::rank::settle::{
    Base, BaseUse, Changed, Part, Settled, Watch, settle_from, verify as holds,
};
use crate::rank::{Options, Teleport};
use crate::rows::{RowVisitor, Stop};
use crate::store::base::{self, BaseFile, BaseHead, CommittedBase, OwedBase};
use crate::store::rows::{KeptRows, Since};
use crate::store::{Depth, SettledBase, View};
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

/// A store's base beside its latest rows.
struct Start<'v> {
    file: &'v BaseFile,
    rows: &'v KeptRows,
    since: Since,
    records: u64,
}

impl<'v> Start<'v> {
    /// Of these rows, after so many records. `place`: where the base's rows end in their file; `None`: in that there is now.
    fn of(
        base: &'v SettledBase,
        rows: &'v KeptRows,
        place: Option<(u64, u64)>,
        records: u64,
    ) -> Result<Start<'v>> {
        Ok(Start {
            file: &base.file,
            rows,
            since: base.since(rows, place)?,
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

/// Settles over the rows of a commit, from what is nearest; and says what was wrong with that.
pub(super) fn settle(
    disk: &dyn Disk,
    view: &View,
    rows: &KeptRows,
    plan: &BasePlan,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, Option<BaseWarning>)> {
    let records = view.counters().records;
    // What is beside the run is of no other use: without it there is the store's.
    let beside = plan.beside.as_ref();
    let beside = beside.and_then(|named| view.base_beside(disk, named).ok());
    let start = beside
        .as_ref()
        .and_then(|base| Start::of(base, rows, None, records).ok());
    let start = match start {
        Some(start) => Ok(Some(start)),
        None => stored(view, rows, None, records),
    };
    settle_at(rows, start, options, watch)
}

/// The store's base as a start: see [`Start::of`].
fn stored<'v>(
    view: &'v View,
    rows: &'v KeptRows,
    place: Option<(u64, u64)>,
    records: u64,
) -> Result<Option<Start<'v>>> {
    let base = view.base()?;
    base.map(|base| Start::of(base, rows, place, records))
        .transpose()
}

/// Settles from a start, or from nothing if there is none or it cannot be used, which is said.
fn settle_at(
    rows: &KeptRows,
    start: Result<Option<Start<'_>>>,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, Option<BaseWarning>)> {
    let (start, mut wrong) = match start {
        Ok(start) => (start, None),
        Err(error) => (None, Some(error)),
    };
    let base = start.as_ref().map(|start| [start as &dyn Base]);
    let base = base.as_ref().map(|base| &base[..]);
    let parts = [Part::whole(rows, &Teleport::default())];
    let (settled, used) = settle_from(&parts, options, base, 1, watch)?;
    if let (BaseUse::Unusable(error), Some(start)) = (used, &start) {
        wrong = Some(match error {
            Error::Internal { what } => start.file.damaged(what),
            other => other,
        });
    }
    Ok((settled, wrong.map(BaseWarning::Unusable)))
}

/// Checks that the base of a commit can be a start, without taking memory for its pages: all of its file, and that the rows
/// that changed since can be found.
///
/// # Errors
///
/// [`Error::Damaged`], and those of reading.
pub(crate) fn check(view: &View) -> Result<()> {
    let rows = view.rows()?;
    let start = stored(view, &rows, None, view.counters().records)?;
    start.map_or(Ok(()), |start| start.file.check())
}

/// Checks the base of a commit: all of its file, and that the rows that changed since can be found; deep, that it is what
/// it should be for the rows that it was settled over.
///
/// # Errors
///
/// [`Error::Damaged`], and those of reading.
pub(crate) fn verify(view: &View, depth: Depth) -> Result<()> {
    let Some(base) = view.base()? else {
        return Ok(());
    };
    let latest = view.rows()?;
    let start = Start::of(base, &latest, None, view.counters().records)?;
    let rows = base.rows()?;
    let parts = [Part::whole(&rows, &Teleport::default())];
    let checked = holds(&parts, &[&start], depth == Depth::Deep);
    checked.map_err(|error| match error {
        Error::Internal { what } => base.file.damaged(what),
        other => other,
    })
}

/// Makes the base that an earlier commit owes, of the rows that there were then, and says what was wrong on the way. `None`:
/// there can be none.
///
/// # Errors
///
/// Those of reading rows, and of writing.
pub(crate) fn make_owed(
    disk: &dyn Disk,
    view: &View,
    owed: &OwedBase,
    settle: &Settle,
) -> Result<(Option<CommittedBase>, Vec<BaseWarning>)> {
    if !settle.is_possible(view) {
        return Ok((None, Vec::new()));
    }
    let rows = view.rows_of(disk, owed)?;
    let start = match owed.from {
        Some(place) => stored(view, &rows, Some(place), owed.records),
        None => Ok(None),
    };
    let options = settle.options(view.settings());
    let (settled, unusable) = settle_at(&rows, start, &options, &mut ())?;
    let made = settled.map(|settled| write(disk, view, owed, &settled, false));
    let (made, unwritten) = made.transpose()?.unwrap_or_default();
    Ok((made, unusable.into_iter().chain(unwritten).collect()))
}

/// Writes what a settling of a commit came to, if it is to be kept.
pub(super) fn keep(
    disk: &dyn Disk,
    view: &View,
    plan: &BasePlan,
    settled: &Settled,
) -> Result<(Option<CommittedBase>, Option<BaseWarning>)> {
    let (Some(rows), true) = (view.rows_retention().kept(), plan.keep != Keep::No) else {
        return Ok((None, None));
    };
    let of = OwedBase {
        number: view.generation(),
        pages: settled.pages(),
        records: view.counters().records,
        rows: *rows,
        place: (rows.number, rows.rows),
        from: None,
    };
    let (made, warning) = write(disk, view, &of, settled, plan.keep == Keep::Beside)?;
    if let Some(made) = made.filter(|_| plan.keep == Keep::AtRest) {
        view.name_base(disk, made)?;
    }
    Ok((made, warning))
}

/// Writes a settled state of these rows as a base, if it can be a start. A full disk leaves it out.
fn write(
    disk: &dyn Disk,
    view: &View,
    of: &OwedBase,
    settled: &Settled,
    beside: bool,
) -> Result<(Option<CommittedBase>, Option<BaseWarning>)> {
    let Some((totals, pages)) = settled.as_base(0) else {
        return Ok((None, None));
    };
    let head = BaseHead {
        number: of.number,
        records: of.records,
        totals,
    };
    let (dir, store) = (view.dir(), view.identity());
    match base::write(disk, dir, store, head, pages, of.rows, beside) {
        Ok(made) => Ok((Some(made), None)),
        Err(error) if error.is_full() => Ok((None, Some(BaseWarning::NotWritten(error)))),
        Err(error) => Err(error),
    }
}
