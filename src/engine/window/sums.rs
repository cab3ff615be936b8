//! Windows that begin at marks: all that a page distributed between two marks is one sum.

use super::policy::Policy;
use crate::engine::row::Row;

/// Policy that keeps one row per page.
pub(super) struct Sums;

impl Policy for Sums {
    fn is_timed(&self) -> bool {
        false
    }

    fn join(&self, row: &mut Row, next: &Row) -> bool {
        row.cash += next.cash;
        row.take_visits(next);
        true
    }
}
