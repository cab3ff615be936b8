//! Settling from a store's warm start ([`crate::store::warm`]), and writing the next one.
//!
//! A ranking at a point that the stream of records determines writes the warm start: at the end of an ingest, at every
//! N records, and by settling a store at rest. It starts from the previous one, or from nothing. A ranking by the clock
//! starts from the warm start or from the last published ranking, and writes nothing: so what is published at a point
//! determined by the stream does not depend on rankings by the clock.

use std::fmt;
use std::sync::Arc;

use super::file::SnapshotColumns;
use super::known::HeldKnown;
use super::settling::{SettleSettings, Watching};
use super::{Latest, SnapshotColumn};
use crate::disk::Disk;
use crate::engine::{Effort, SettledPagesMut, SettledTotals};
use crate::rank::RankOptions;
use crate::rank::settle::{self, Changed, Importances, SettlingResult, StartState, settle_near};
use crate::rows::{RowVisitor, Stop};
use crate::store::rows::{KeptRows, RowsDiff};
use crate::store::warm::{self, WarmFile, WarmHead, WarmStart};
use crate::store::{SNAPSHOTS, View};
use crate::{Error, Result};

/// Start of a settling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartFrom {
    /// The warm start if it fits, else nothing.
    #[default]
    Warm,
    /// The warm start if it fits, else the last published ranking.
    Published,
    /// Nothing, ignoring earlier rankings.
    Nothing,
}

/// Memory that the rankings of a run pass on to each other.
#[derive(Debug, Clone, Default)]
pub struct Handover {
    /// Cached facts about pages, and whether another ranking follows for which to keep them.
    pub known: Arc<HeldKnown>,
    pub leaves_known: bool,
}

/// Problem with a warm start that does not affect the ranking.
#[derive(Debug)]
#[non_exhaustive]
pub enum WarmWarning {
    /// The warm start was unusable: settling started from nothing.
    Unusable(Error),
    /// The warm start could not be written: the next settling starts from an earlier one, or from nothing.
    NotWritten(Error),
}

impl fmt::Display for WarmWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WarmWarning::Unusable(error) => {
                let what = match error {
                    Error::Damaged { path, what } => format!("{}: damaged: {what}", path.display()),
                    other => other.to_string(),
                };
                write!(
                    f,
                    "{what}; importance was settled from the start instead, which takes longer"
                )
            }
            WarmWarning::NotWritten(error) => {
                write!(f, "{error}; the next ranking takes longer")
            }
        }
    }
}

/// Warm start together with the latest rows.
struct WarmStartState<'v> {
    file: &'v WarmFile,
    rows: &'v KeptRows,
    since: RowsDiff,
    records: u64,
}

impl StartState for WarmStartState<'_> {
    fn totals(&self) -> &SettledTotals {
        &self.file.info().totals
    }

    fn own_effort(&self) -> Option<Effort> {
        let head = self.file.info();
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

/// The importances of a published ranking.
impl Importances for SnapshotColumns {
    fn pages(&self) -> u64 {
        self.info().pages
    }

    fn each(&self, visit: &mut dyn FnMut(f64)) -> Result<()> {
        self.each_value(SnapshotColumn::Importance, |_, bits| {
            visit(f64::from_bits(bits));
        })
    }
}

/// Settles the rows of a commit. Adds what was wrong with the warm start, if anything was.
pub(super) fn settle_latest(
    disk: &dyn Disk,
    view: &View,
    rows: &KeptRows,
    (start, options): (StartFrom, &RankOptions),
    watch: &mut Watching<'_>,
    warnings: &mut Vec<WarmWarning>,
) -> Result<Option<SettlingResult>> {
    let warm = view.warm().filter(|_| start != StartFrom::Nothing);
    match warm.map(|warm| from_warm(warm?, view, rows, options, watch)) {
        Some(Ok(Some(settled))) => return Ok(Some(settled)),
        Some(Err(error)) => warnings.push(WarmWarning::Unusable(error)),
        Some(Ok(None)) | None => {}
    }
    if start == StartFrom::Published
        // An unreadable ranking is not used.
        && let Ok(Some(latest)) = Latest::read(disk, view.dir())
        && let path = view.dir().join(SNAPSHOTS).join(latest.snapshot)
        && let Ok(published) = SnapshotColumns::open(disk, &path)
        && let Ok(Some(settled)) = settle_near(rows, &published, options, watch)
    {
        return Ok(Some(settled));
    }
    settle::settle(rows, options, watch)
}

fn from_warm(
    warm: &WarmStart,
    view: &View,
    rows: &KeptRows,
    options: &RankOptions,
    watch: &mut Watching<'_>,
) -> Result<Option<SettlingResult>> {
    let start = WarmStartState {
        file: &warm.file,
        since: warm.since(rows)?,
        rows,
        records: view.counters().records,
    };
    let settled = settle::settle_from(rows, options, &start, watch);
    settled.map_err(|error| match error {
        Error::Internal { what } => warm.file.damaged(what),
        other => other,
    })
}

/// Writes the warm start that results from settling a commit, if there is one. Returns whether it did; adds the error if
/// it could not be written.
pub(super) fn write(
    disk: &dyn Disk,
    view: &View,
    settled: &SettlingResult,
    warnings: &mut Vec<WarmWarning>,
) -> Result<bool> {
    let kept = view.rows_retention().kept();
    let Some((rows, totals)) = kept.zip(settled.state_totals()) else {
        return Ok(false);
    };
    let pages = settled.settled_pages();
    let pages = pages.ok_or_else(|| Error::internal("pages are not paid alike"))?;
    let written = view.last_block().and_then(|last_block| {
        let of = (view.identity(), view.counters().records);
        let head = WarmHead::new(of, *rows, last_block, totals);
        warm::write(disk, view.dir(), &head, pages)
    });
    let is_written = written.is_ok();
    warnings.extend(written.err().map(WarmWarning::NotWritten));
    Ok(is_written)
}

impl SettleSettings {
    /// Returns true if the settled state can start from and become a warm start: it uses all links.
    pub fn may_be_warm(&self) -> bool {
        self.expire.is_none()
    }
}
