//! Partitions of a committed state that another process has: what the process that publishes it must know of them.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::View;
use super::all::PublishedPart;
use super::manifest::{Run, packed, unpacked};
use super::tables::{admissions_of, rows_of};
use super::view_parts::GhostLog;
use crate::Result;
use crate::engine::{Admissions, Blocks, HistoryView, Totals};

/// What a partition's commit says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PartSeen {
    /// What its pages are read with.
    pub published: PublishedPart,
    /// The sums of its ledger.
    pub totals: Totals,
    /// The runs of its history, and blocks of admissions.
    pub runs: Vec<Run>,
    pub admission_blocks: u64,
}

impl View {
    /// What this partition's commit says.
    pub(crate) fn seen(&self) -> PartSeen {
        PartSeen {
            published: self.published(),
            totals: *HistoryView::totals(self),
            runs: self.manifest.runs.clone(),
            admission_blocks: self.manifest.admission_blocks,
        }
    }

    /// What is asked of this partition, which has these ghosts.
    ///
    /// # Errors
    /// Those of reading it.
    pub(crate) fn answer(&self, asked: Asked, ghosts: &GhostLog) -> Result<Vec<u8>> {
        match asked {
            Asked::History(key) => packed(&self.reading.history_block(key)?),
            Asked::Admissions(block) => packed(&self.reading.admission_block(block)?),
            Asked::Cash { mark, page } => packed(&self.cash_chunk(mark, page)?),
            Asked::Waiting { first } => packed(&self.waiting(ghosts, first)?),
        }
    }
}

/// What is asked of a partition that another process has.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Asked {
    /// A block of a run of its history, as it is stored, if there is one: the run's number, and the block's.
    History((u64, u64)),
    /// A block of admissions, likewise.
    Admissions(u64),
    /// The chunk of its cash that has this page, or of one of its marks.
    Cash { mark: Option<u64>, page: u64 },
    /// What it has of the cash of pages of other partitions: of some of these, from this one on.
    Waiting { first: u64 },
}

/// Asks the process that has the partition of this number.
pub(crate) type Ask = Arc<dyn Fn(usize, Asked) -> Result<Vec<u8>> + Send + Sync>;

/// A run of such a partition.
pub(super) fn run_elsewhere<'v>(dir: &'v Path, ask: &'v Ask, part: usize, run: Run) -> Blocks<'v> {
    rows_of(dir, run, move |key| {
        unpacked(&ask(part, Asked::History(key))?)
    })
}

/// The admissions of such a partition, in so many blocks.
pub(super) fn admissions_elsewhere<'v>(
    dir: &'v Path,
    ask: &'v Ask,
    part: usize,
    blocks: u64,
) -> Admissions<'v> {
    admissions_of(dir, blocks, move |block| {
        unpacked(&ask(part, Asked::Admissions(block))?)
    })
}
