//! Partitions of a committed state that another process has: what the process that publishes it must know of them.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::View;
use super::all::PublishedPart;
use super::manifest::Run;
use super::tables::rows_of;
use crate::Result;
use crate::engine::{Blocks, HistoryView, Totals};

/// What a partition's commit says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PartSeen {
    /// What its pages are read with.
    pub published: PublishedPart,
    /// The sums of its ledger.
    pub totals: Totals,
    /// The runs of its history.
    pub runs: Vec<Run>,
}

impl View {
    /// What this partition's commit says.
    pub(crate) fn seen(&self) -> PartSeen {
        PartSeen {
            published: self.published(),
            totals: *HistoryView::totals(self),
            runs: self.manifest.runs.clone(),
        }
    }

    /// A block of a run of its history, as it is stored; `None`: there is none.
    ///
    /// # Errors
    /// Those of reading it.
    pub(crate) fn history_block(&self, key: (u64, u64)) -> Result<Option<Vec<u8>>> {
        self.reading.history_block(key)
    }
}

/// Asks another process for a block of the history of a partition, which that has: the partition's number, its run, and the
/// block's number.
pub(crate) type AskHistory =
    Arc<dyn Fn(usize, (u64, u64)) -> Result<Option<Vec<u8>>> + Send + Sync>;

/// A run of such a partition.
pub(super) fn run_elsewhere<'v>(
    dir: &'v Path,
    ask: &'v AskHistory,
    part: usize,
    run: Run,
) -> Blocks<'v> {
    rows_of(dir, run, move |key| ask(part, key))
}
