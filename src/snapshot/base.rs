//! The settled base of a store ([`crate::store::base`]) as a start of settling, and what becomes of a settled state.
//!
//! A base is made where the stream of records says so: at the end of an ingest, at snapshots by number of records, and
//! by settling a store at rest. Other snapshots start from what is nearest, and leave the base as it is: so what is
//! published at such a place does not depend on how often somebody looked before.
//!
//! Of a store with partitions each has its own, beside its rows; all of them together are one base, which one commit names.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use super::known::HeldKnown;
use super::settling::{Settle, Watching};
use super::shares;
use crate::disk::Disk;
use crate::engine::{Effort, Scores, SettledPagesMut, SettledTotals};
use crate::rank::settle::{
    Base, BaseUse, Changed, Part, Settled, Watch, Workers, settle_from, verify as holds,
};
use crate::rank::{Goal, Options, Teleport};
use crate::rows::{Ghosts, RowVisitor, Stop};
use crate::store::base::{self, BaseFile, BaseHead, CommittedBase, OwedBase, OwedGoal};
use crate::store::rows::{CommittedRows, HeldRows, KeptRows, Since};
use crate::store::{Depth, PARTITIONS, RowBlock, SettledBase, View};
use crate::threads::{dealt, yield_to_others};
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
    /// One that was kept beside the run: of each block.
    pub(crate) beside: Option<Vec<CommittedBase>>,
    /// Who waits for the base: it is made before the ranking is published, and sent there if there is one.
    pub(crate) ahead: Option<Sender<Vec<CommittedBase>>>,
    /// Rows that the snapshot before has read, and that the next one will: of a store without partitions.
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
    pub(super) fn give_ahead(&self, base: Option<&Vec<CommittedBase>>) {
        if let (Some(ahead), Some(base)) = (&self.ahead, base)
            && ahead.send(base.clone()).is_ok()
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

/// Settled states that a settling may start from, of the blocks of this process.
pub(super) struct Starting<'v> {
    /// Kept beside the run, if that is of use; it is tried first.
    pub beside: Option<Result<Vec<SettledBase>>>,
    /// The store's, if it has any.
    pub stored: Result<Option<Vec<&'v SettledBase>>>,
    /// Where the rows of the store's end in their files; `None`: in those that there are now.
    pub places: Option<Vec<(u64, u64)>>,
    /// Records that were read until now.
    pub records: u64,
}

/// A block's base beside its latest rows.
struct Start<'v> {
    file: &'v BaseFile,
    /// Of all blocks.
    totals: SettledTotals,
    rows: &'v KeptRows,
    since: Since,
    records: u64,
}

/// The bases of blocks as starts, unless a process has none for its own. What is wrong with them in one process is wrong in
/// all.
fn starts<'v>(
    bases: Result<Option<Vec<&'v SettledBase>>>,
    blocks: &'v [RowBlock],
    (places, records): (Option<&[(u64, u64)]>, u64),
    workers: &Workers,
) -> Result<Result<Option<Vec<Start<'v>>>>> {
    let bases = match workers.peers.agree(bases)? {
        Ok(Some(bases)) => bases,
        Ok(None) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    let own = |(base, block): (&&SettledBase, &RowBlock)| {
        let pages = base.file.head.totals.pages;
        Ok(pages.saturating_sub(block.ghosts.of_first(pages)?.count()))
    };
    let pages = bases.iter().zip(blocks).map(own).sum::<Result<u64>>();
    let pages = match workers.peers.agree(pages)? {
        Ok(pages) => pages,
        Err(error) => return Ok(Err(error)),
    };
    let mut pages = [i128::from(pages)];
    workers.peers.sum(&mut pages)?;
    let mut pairs: Vec<_> = bases.iter().zip(blocks).collect();
    let start = |at: usize, (base, block): &mut (&&'v SettledBase, &'v RowBlock)| {
        let place = places.and_then(|places| places.get(at).copied());
        Ok(Start {
            file: &base.file,
            totals: SettledTotals {
                pages: pages[0] as u64,
                ..base.file.head.totals
            },
            rows: &block.rows,
            since: base.since(&block.rows, place)?,
            records,
        })
    };
    let starts = workers
        .peers
        .agree(dealt(workers.threads, &mut pairs, start))?;
    Ok(starts.map(Some))
}

impl Base for Start<'_> {
    fn totals(&self) -> &SettledTotals {
        &self.totals
    }

    fn pages(&self) -> u64 {
        self.file.head.totals.pages
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

/// Blocks of rows as settling takes them.
pub(super) fn parts(blocks: &[RowBlock]) -> Vec<Part<'_>> {
    let parts = blocks.iter().map(|block| Part {
        ghosts: &block.ghosts,
        ..Part::whole(&block.rows, &Teleport::default())
    });
    parts.collect()
}

/// Settles blocks of the store in `dir` from what is nearest, and says what was wrong with that: then from nothing.
pub(super) fn settle(
    dir: &Path,
    starting: Starting<'_>,
    blocks: &[RowBlock],
    options: &Options,
    workers: &Workers,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, Option<BaseWarning>)> {
    let records = starting.records;
    // What is beside the run is of no other use: without it there is the store's.
    let beside = match &starting.beside {
        None => Ok(None),
        Some(Ok(bases)) => Ok(Some(bases.iter().collect())),
        Some(Err(error)) => Err(error.again()),
    };
    let mut found = starts(beside, blocks, (None, records), workers)?;
    if !matches!(found, Ok(Some(_))) {
        let places = starting.places.as_deref();
        found = starts(starting.stored, blocks, (places, records), workers)?;
    }
    let (starts, mut wrong) = match found {
        Ok(starts) => (starts, None),
        Err(error) => (None, Some(error)),
    };
    let bases = starts.as_ref().map(|starts| {
        let bases = starts.iter().map(|start| start as &dyn Base);
        bases.collect::<Vec<_>>()
    });
    let parts = &parts(blocks);
    let (settled, used) = settle_from(parts, options, bases.as_deref(), workers, watch)?;
    if let (BaseUse::Unusable(error), Some(starts)) = (used, &starts) {
        let files: Vec<&BaseFile> = starts.iter().map(|start| start.file).collect();
        wrong = Some(of_bases(dir, &files, error));
    }
    Ok((settled, wrong.map(BaseWarning::Unusable)))
}

/// What is wrong with bases as an error that names them: of several, where they are.
fn of_bases(dir: &Path, bases: &[&BaseFile], error: Error) -> Error {
    match (error, bases) {
        (Error::Internal { what }, [base]) => base.damaged(what),
        (Error::Internal { what }, _) => {
            let what = format!("of the settled bases in it: {what}");
            Error::damaged(dir.join(PARTITIONS), what)
        }
        (other, _) => other,
    }
}

/// Some blocks of a state, by this process alone.
fn starts_of<'v>(
    view: &'v View,
    has: &dyn Fn(usize) -> bool,
    blocks: &'v [RowBlock],
) -> Result<Option<Vec<Start<'v>>>> {
    let of = (None, view.counters().records);
    starts(view.some_bases(has), blocks, of, &Workers::threads(1))?
}

/// Checks that the base of a commit can be a start, as far as some of its blocks go, and without taking memory for its pages:
/// all of its files, and that the rows that changed since can be found.
///
/// # Errors
///
/// [`Error::Damaged`], and those of reading.
pub(crate) fn check(view: &View, has: &dyn Fn(usize) -> bool) -> Result<()> {
    let blocks = view.some_blocks(has)?.blocks;
    let starts = starts_of(view, has, &blocks)?;
    starts
        .iter()
        .flatten()
        .try_for_each(|start| start.file.check())
}

/// Checks the base of a commit: all of its file, and that the rows that changed since can be found; deep, that it is what
/// it should be for the rows that it was settled over.
///
/// # Errors
///
/// [`Error::Damaged`], and those of reading.
pub(crate) fn verify(view: &View, depth: Depth) -> Result<()> {
    let Some(bases) = view.bases()? else {
        return Ok(());
    };
    let latest = view.blocks()?.blocks;
    let starts = starts_of(view, &|_| true, &latest)?.unwrap_or_default();
    let starts: Vec<&dyn Base> = starts.iter().map(|start| start as &dyn Base).collect();
    let blocks = view.blocks_of_bases(&bases)?;
    let checked = holds(&parts(&blocks), &starts, depth == Depth::Deep);
    checked.map_err(|error| {
        let files: Vec<&BaseFile> = bases.iter().map(|base| &base.file).collect();
        of_bases(view.dir(), &files, error)
    })
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
    owed: &[OwedBase],
    settle: &Settle,
) -> Result<(Option<Vec<CommittedBase>>, Option<BaseWarning>)> {
    if !settle.is_possible(view) {
        return Ok((None, None));
    }
    let workers = &settle.workers_in_turns(disk, view)?;
    let is_latest = owed.iter().all(|owed| owed.number == view.generation());
    let options = if is_latest {
        settle.options_of(view)?
    } else {
        settle.options(view.settings())
    };
    let mut watching = Watching::new(&settle.watcher, None);
    let settled = shares::settle_owed(disk, view, owed, (&options, workers), &mut watching)?;
    let (settled, unusable) = settled;
    let settled = settled.filter(|_| !settle.watcher.is_stopped());
    let made = settled.map(|settled| {
        shares::announce_base(workers, owed, false)?;
        write(
            disk,
            &homes(view, workers),
            &own_of(owed, workers),
            &settled,
            workers,
            false,
        )
    });
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
    let Some((owed, goal)) = view.owed_bases() else {
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
    let view = view.with_owed_bases(disk, &made)?;
    shares::announce_named(&settle.workers())?;
    Ok((view, unusable))
}

/// Of what there is for all blocks, that for the blocks of this process.
pub(super) fn own_of<T: Copy>(all: &[T], workers: &Workers) -> Vec<T> {
    workers.peers.own(all).copied().collect()
}

/// Where the base of a block is kept.
#[derive(Clone)]
pub(super) struct BlockHome {
    pub dir: PathBuf,
    /// Of the store, or partition, in it.
    pub identity: u64,
}

/// Those of the blocks of this process.
fn homes(view: &View, workers: &Workers) -> Vec<BlockHome> {
    let homes = view.homes(&|block| workers.peers.has(block)).into_iter();
    homes
        .map(|(dir, identity)| BlockHome { dir, identity })
        .collect()
}

/// What a base of this commit is of, for each block; `None`: there are no rows. At rest the next commit names it, or owes it, and
/// its number is that: the base of the number of this one may be named already.
fn of_commit(view: &View, keep: Keep) -> Option<Vec<OwedBase>> {
    let of = |(pages, rows): (u64, CommittedRows)| OwedBase {
        number: view.generation() + u64::from(keep == Keep::AtRest),
        pages,
        records: view.counters().records,
        rows,
        place: (rows.number, rows.rows),
        from: None,
    };
    Some(view.settled_rows()?.into_iter().map(of).collect())
}

/// Writes what a settling of a commit came to, if it is to be kept.
pub(super) fn keep(
    disk: &dyn Disk,
    view: &View,
    settle: &Settle,
    settled: &Settled,
) -> Result<(Option<Vec<CommittedBase>>, Option<BaseWarning>)> {
    let keep = settle.base.keep;
    if keep == Keep::No {
        return Ok((None, None));
    }
    let Some(of) = of_commit(view, keep) else {
        return Ok((None, None));
    };
    let (workers, beside) = (&settle.workers(), keep == Keep::Beside);
    shares::announce_base(workers, &of, beside)?;
    let (homes, own) = (homes(view, workers), own_of(&of, workers));
    let (made, warning) = write(disk, &homes, &own, settled, workers, beside)?;
    if keep != Keep::AtRest {
        return Ok((made, warning));
    }
    // What ended because time was up cannot be made again.
    let is_in_time = settle.time.is_none() || settled.effort().reached;
    match (&made, &warning) {
        (Some(made), _) => {
            view.name_bases(disk, made)?;
            shares::announce_named(workers)?;
        }
        (None, Some(_)) if is_in_time => {
            let Options { until, spare, .. } = settle.options_of(view)?;
            view.owe_bases(disk, &of, OwedGoal { until, spare })?;
        }
        (None, _) => {}
    }
    Ok((made, warning))
}

/// Writes a settled state as a base, if it can be a start: one for each block, by the process that has it, which knows where,
/// and of which rows. A full disk leaves all out. What there is of all blocks.
pub(super) fn write(
    disk: &dyn Disk,
    homes: &[BlockHome],
    of: &[OwedBase],
    settled: &Settled,
    workers: &Workers,
    beside: bool,
) -> Result<(Option<Vec<CommittedBase>>, Option<BaseWarning>)> {
    let Some(totals) = settled.base_totals() else {
        return Ok((None, None));
    };
    let written = settled.as_bases(workers.threads, |at, pages| {
        let (home, of) = (&homes[at], &of[at]);
        let head = BaseHead {
            number: of.number,
            records: of.records,
            totals: SettledTotals {
                pages: pages.own.len() as u64,
                ..totals
            },
        };
        base::write(disk, &home.dir, home.identity, head, pages, of.rows, beside)
    });
    let all = workers.peers.share(written, Error::is_full);
    if !matches!(all, Ok(Ok(_))) {
        // One without the others is of no use.
        for (home, of) in homes.iter().zip(of) {
            base::discard(disk, &home.dir, of.number, beside);
        }
    }
    match all? {
        Ok(made) => Ok((Some(made), None)),
        Err(full) => Ok((None, Some(BaseWarning::NotWritten(full)))),
    }
}
