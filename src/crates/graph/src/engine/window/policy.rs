//! Policies for keeping a page's measures: one trait, implemented in the other files of this folder.

use crate::engine::row::HistoryRow;

/// Policy by which runs are merged and read. Rows are of one page, oldest first.
pub trait Policy: Send + Sync {
    /// Returns true if measures need the clock.
    fn is_timed(&self) -> bool;

    /// Joins `next` into the preceding `row`. Returns false if both must be kept.
    fn join(&self, row: &mut HistoryRow, next: &HistoryRow) -> bool;

    /// Opens a state from a page's first measure. `_admitted` is (G, pages) at the page's admission.
    fn open(&self, measure: &HistoryRow, _admitted: (u128, u64)) -> HistoryRow {
        *measure
    }

    /// Drops those of `rows` that no window will need. `start` is G at the start of the window, which never moves back.
    fn forget(&self, _rows: &mut Vec<HistoryRow>, _start: u128) {}
}
