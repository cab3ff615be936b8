//! Kinds of windows: one trait, implemented in the other files of this folder.

use crate::engine::estimator::Estimator;
use crate::engine::mark::{self, CashMark};

use super::{RowContent, Span, WindowPolicy};

/// Function that converts a span to units of G.
pub type Length<'a> = &'a dyn Fn(Span) -> u128;

/// Kind of window.
pub trait Shape: Send + Sync {
    /// Returns the content of rows that it needs, if importance is read by `estimator`.
    fn kept(&self, _estimator: Estimator) -> RowContent {
        RowContent::Sums
    }

    /// Returns true if marks (copies of the cash cells) are used.
    fn uses_marks(&self, _estimator: Estimator) -> bool {
        false
    }

    /// Returns true if it selects the mark at which to begin.
    fn chooses(&self) -> bool {
        false
    }

    /// Returns its length, if it has one.
    fn span(&self) -> Option<Span> {
        None
    }

    /// Returns true if the window supports the estimator `received`: receipts are known since marks only.
    fn allows_received(&self) -> bool {
        true
    }

    /// Returns G at its start if it ends at `clock`; 0 if its start is not a value of G.
    fn start(&self, _clock: u128, _length: Length<'_>) -> u128 {
        0
    }

    /// Returns the number of pages and the interval of the clock to store with a measure; 0 for nothing.
    fn noted(&self, _pages: u64, _length: Length<'_>) -> (u64, u128) {
        (0, 0)
    }

    /// Returns the marks at which the window may begin; the best is taken. `marks` are oldest first and begin with the
    /// start of the stream, `start` is G at the window's start, and no mark before `oldest` is wanted. Empty if the
    /// window does not begin at marks.
    fn candidates<'m>(
        &self,
        _marks: &[&'m CashMark],
        _estimator: Estimator,
        _start: u128,
        _oldest: u128,
    ) -> Vec<&'m CashMark> {
        Vec::new()
    }

    /// Returns the index of the mark to drop when there are more than `limit`; `start` is G at the start of the window.
    fn superfluous(&self, marks: &[CashMark], limit: usize, _start: u128) -> Option<usize> {
        mark::superfluous(marks, limit)
    }

    /// Returns its length in turnovers, if it does not begin at a mark; `since` is the cash distributed since its
    /// start, and `supply` all cash.
    fn turnovers(&self, _since: u128, _supply: f64, _length: Length<'_>) -> Option<f64> {
        None
    }

    /// Returns true if a page's cash counts, as in the paper's whole history; such an estimate has no bound.
    fn counts_cash(&self) -> bool {
        false
    }

    /// Returns its textual form.
    fn form(&self) -> String;
}

/// Kind of window: its name, help and parser.
pub(super) struct WindowSpec {
    pub name: &'static str,
    /// Ways to write it, each with a short description.
    pub forms: &'static [(&'static str, &'static str)],
    /// Parses what follows the name and a colon, if anything does; `None` if that is not this kind of window.
    pub read: fn(Option<&str>) -> Option<Result<WindowPolicy, String>>,
}
