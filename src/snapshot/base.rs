//! The settled base of a store ([`crate::store::base`]) as a start of settling, and what becomes of a settled state.
//!
//! A base is made where the stream of records says so: at the end of an ingest, at snapshots by number of records, and
//! by settling a store at rest. Other snapshots start from what is nearest, and leave the base as it is: so what is
//! published at such a place does not depend on how often somebody looked before.
//!
//! Of a store with partitions each has its own, beside its rows; all of them together are one base, which one commit names.

use std::fmt;
use std::path::PathBuf;

use super::settling::Settle;
use crate::disk::Disk;
use crate::engine::{Effort, SettledPages, SettledPagesMut, SettledTotals};
use crate::rank::settle::{
    Base, BaseUse, Changed, Part, Settled, Watch, settle_from, verify as holds,
};
use crate::rank::{Options, Teleport};
use crate::rows::{RowVisitor, Stop};
use crate::store::base::{self, BaseFile, BaseHead, CommittedBase, OwedBase};
use crate::store::rows::{KeptRows, Since};
use crate::store::{Depth, PARTITIONS, RowBlock, SettledBase, View};
use crate::threads::dealt;
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

/// A block's base beside its latest rows.
struct Start<'v> {
    file: &'v BaseFile,
    /// Of all blocks.
    totals: SettledTotals,
    rows: &'v KeptRows,
    since: Since,
    records: u64,
}

/// The bases of all blocks as starts, of these rows, after so many records. `places`: where each base's rows end in their
/// file; `None`: in that there is now.
fn starts<'v>(
    bases: &[&'v SettledBase],
    blocks: &'v [RowBlock],
    places: Option<&[(u64, u64)]>,
    records: u64,
    threads: usize,
) -> Result<Vec<Start<'v>>> {
    let own = |(base, block): (&&SettledBase, &RowBlock)| {
        let pages = base.file.head.totals.pages;
        pages - block.ghosts_of_first(pages)
    };
    let pages = bases.iter().zip(blocks).map(own).sum();
    let mut pairs: Vec<_> = bases.iter().zip(blocks).collect();
    let start = |at: usize, (base, block): &mut (&&'v SettledBase, &'v RowBlock)| {
        let place = places.and_then(|places| places.get(at).copied());
        Ok(Start {
            file: &base.file,
            totals: SettledTotals {
                pages,
                ..base.file.head.totals
            },
            rows: &block.rows,
            since: base.since(&block.rows, place)?,
            records,
        })
    };
    dealt(threads, &mut pairs, start).into_iter().collect()
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
        ghosts: block.ghosts.clone(),
        ..Part::whole(&block.rows, &Teleport::default())
    });
    parts.collect()
}

/// Settles over the rows of a commit, from what is nearest; and says what was wrong with that.
pub(super) fn settle(
    disk: &dyn Disk,
    view: &View,
    blocks: &[RowBlock],
    settle: &Settle,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, Option<BaseWarning>)> {
    let records = view.counters().records;
    let threads = settle.threads;
    // What is beside the run is of no other use: without it there is the store's.
    let beside = settle.base.beside.as_ref();
    let beside = beside.and_then(|named| view.bases_beside(disk, named).ok());
    let start = beside.as_ref().and_then(|bases| {
        let bases: Vec<&SettledBase> = bases.iter().collect();
        starts(&bases, blocks, None, records, threads).ok()
    });
    let start = match start {
        Some(start) => Ok(Some(start)),
        None => stored(view, blocks, None, records, threads),
    };
    settle_at(view, blocks, start, options, threads, watch)
}

/// The store's base as a start: see [`starts`].
fn stored<'v>(
    view: &'v View,
    blocks: &'v [RowBlock],
    places: Option<&[(u64, u64)]>,
    records: u64,
    threads: usize,
) -> Result<Option<Vec<Start<'v>>>> {
    let bases = view.bases()?;
    bases
        .map(|bases| starts(&bases, blocks, places, records, threads))
        .transpose()
}

/// Settles from a start, or from nothing if there is none or it cannot be used, which is said.
fn settle_at(
    view: &View,
    blocks: &[RowBlock],
    starts: Result<Option<Vec<Start<'_>>>>,
    options: &Options,
    threads: usize,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, Option<BaseWarning>)> {
    let (starts, mut wrong) = match starts {
        Ok(starts) => (starts, None),
        Err(error) => (None, Some(error)),
    };
    let bases = starts.as_ref().map(|starts| {
        let bases = starts.iter().map(|start| start as &dyn Base);
        bases.collect::<Vec<_>>()
    });
    let (settled, used) = settle_from(&parts(blocks), options, bases.as_deref(), threads, watch)?;
    if let (BaseUse::Unusable(error), Some(starts)) = (used, &starts) {
        let files: Vec<&BaseFile> = starts.iter().map(|start| start.file).collect();
        wrong = Some(of_bases(view, &files, error));
    }
    Ok((settled, wrong.map(BaseWarning::Unusable)))
}

/// What is wrong with bases as an error that names them: of several, where they are.
fn of_bases(view: &View, bases: &[&BaseFile], error: Error) -> Error {
    match (error, bases) {
        (Error::Internal { what }, [base]) => base.damaged(what),
        (Error::Internal { what }, _) => {
            let what = format!("of the settled bases in it: {what}");
            Error::damaged(view.dir().join(PARTITIONS), what)
        }
        (other, _) => other,
    }
}

/// Checks that the base of a commit can be a start, without taking memory for its pages: all of its file, and that the rows
/// that changed since can be found.
///
/// # Errors
///
/// [`Error::Damaged`], and those of reading.
pub(crate) fn check(view: &View) -> Result<()> {
    let blocks = view.blocks()?.blocks;
    let starts = stored(view, &blocks, None, view.counters().records, 1)?;
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
    let starts = starts(&bases, &latest, None, view.counters().records, 1)?;
    let starts: Vec<&dyn Base> = starts.iter().map(|start| start as &dyn Base).collect();
    let blocks = view.blocks_of_bases(&bases)?;
    let checked = holds(&parts(&blocks), &starts, depth == Depth::Deep);
    checked.map_err(|error| {
        let files: Vec<&BaseFile> = bases.iter().map(|base| &base.file).collect();
        of_bases(view, &files, error)
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
    owed: &[OwedBase],
    settle: &Settle,
) -> Result<(Option<Vec<CommittedBase>>, Vec<BaseWarning>)> {
    if !settle.is_possible(view) {
        return Ok((None, Vec::new()));
    }
    let blocks = view.blocks_of(disk, owed)?;
    let from: Option<Vec<(u64, u64)>> = owed.iter().map(|owed| owed.from).collect();
    let records = owed.first().map_or(0, |owed| owed.records);
    let start = match &from {
        Some(places) => stored(view, &blocks, Some(places), records, settle.threads),
        None => Ok(None),
    };
    let options = settle.options(view.settings());
    let (settled, unusable) = settle_at(view, &blocks, start, &options, settle.threads, &mut ())?;
    let made = settled.map(|settled| write(disk, view, owed, &settled, settle.threads, false));
    let (made, unwritten) = made.transpose()?.unwrap_or_default();
    Ok((made, unusable.into_iter().chain(unwritten).collect()))
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
    let of = |block: &View| {
        let rows = *block.rows_retention().kept()?;
        Some(OwedBase {
            number: view.generation(),
            pages: block.state().totals.pages,
            records: view.counters().records,
            rows,
            place: (rows.number, rows.rows),
            from: None,
        })
    };
    let Some(of) = view
        .settled_views()
        .iter()
        .map(of)
        .collect::<Option<Vec<_>>>()
    else {
        return Ok((None, None));
    };
    let (made, warning) = write(
        disk,
        view,
        &of,
        settled,
        settle.threads,
        keep == Keep::Beside,
    )?;
    if let Some(made) = made.as_ref().filter(|_| keep == Keep::AtRest) {
        view.name_bases(disk, made)?;
    }
    Ok((made, warning))
}

/// One block's base that is to be written.
struct Unwritten<'a> {
    dir: PathBuf,
    store: u64,
    head: BaseHead,
    pages: SettledPages<'a>,
}

/// Writes a settled state of these rows as a base, if it can be a start: one for each block. A full disk leaves all out.
fn write(
    disk: &dyn Disk,
    view: &View,
    of: &[OwedBase],
    settled: &Settled,
    threads: usize,
    beside: bool,
) -> Result<(Option<Vec<CommittedBase>>, Option<BaseWarning>)> {
    let block = |(at, (block, of)): (usize, (&View, &OwedBase))| {
        let (totals, pages) = settled.as_base(at)?;
        let own = pages.own.len() as u64;
        Some(Unwritten {
            dir: block.dir().into(),
            store: block.identity(),
            head: BaseHead {
                number: of.number,
                records: of.records,
                totals: SettledTotals {
                    pages: own,
                    ..totals
                },
            },
            pages,
        })
    };
    let blocks = view.settled_views().iter().zip(of).enumerate().map(block);
    let Some(mut blocks) = blocks.collect::<Option<Vec<_>>>() else {
        return Ok((None, None));
    };
    let written = dealt(threads, &mut blocks, |at, block| {
        let (dir, rows) = (&block.dir, of[at].rows);
        base::write(
            disk,
            dir,
            block.store,
            block.head,
            block.pages,
            rows,
            beside,
        )
    });
    let written = written.into_iter().collect::<Result<Vec<_>>>();
    if written.is_err() {
        // One without the others is of no use.
        for block in &blocks {
            base::discard(disk, &block.dir, block.head.number, beside);
        }
    }
    match written {
        Ok(made) => Ok((Some(made), None)),
        Err(error) if error.is_full() => Ok((None, Some(BaseWarning::NotWritten(error)))),
        Err(error) => Err(error),
    }
}
