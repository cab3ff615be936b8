//! Policies for keeping a page's measures: one trait, whose types are in the files beside this.

use crate::engine::row::Row;

/// How the rows of a page are kept: runs are merged by it, and read by it. Rows are of one page,
/// oldest first.
pub(crate) trait Policy: Send + Sync {
    /// Returns whether measures need the clock.
    fn is_timed(&self) -> bool;

    /// Joins `next` into `row`, the one before. False: they are needed apart.
    fn join(&self, row: &mut Row, next: &Row) -> bool;

    /// Makes a state of a page's first measure. `admitted` is (G, pages) at the page's admission.
    fn open(&self, measure: &Row, _admitted: (u128, u64)) -> Row {
        *measure
    }

    /// Forgets the measures that no window will want again, of those in `rows`. `start` is G where
    /// the window begins, which never moves back.
    fn forget(&self, _rows: &mut Vec<Row>, _start: u128) {}
}
