//! Windows that begin at marks: all that a page distributed between two marks is one sum.

use super::policy::Policy;
use crate::engine::row::HistoryRow;

/// Policy that keeps one row per page.
pub(super) struct SumsPolicy;

impl Policy for SumsPolicy {
    fn is_timed(&self) -> bool {
        false
    }

    fn join(&self, row: &mut HistoryRow, next: &HistoryRow) -> bool {
        row.cash += next.cash;
        row.take_visits(next);
        true
    }
}
