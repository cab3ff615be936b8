//! Kinds of windows: one trait, whose types are in the files beside this.

use crate::engine::estimator::Estimator;
use crate::engine::mark::{self, Mark};

use super::{RowContent, Span, WindowPolicy};

/// How long a stretch of the history is, in units of G.
pub(crate) type Length<'a> = &'a dyn Fn(Span) -> u128;

/// A window of some kind.
pub(crate) trait Shape: Send + Sync {
    /// The content of rows that it needs, if importance is read by `estimator`.
    fn kept(&self, _estimator: Estimator) -> RowContent {
        RowContent::Sums
    }

    /// Returns whether marks (copies of the cash cells) are of use.
    fn uses_marks(&self, _estimator: Estimator) -> bool {
        false
    }

    /// Returns whether it chooses among marks where to begin.
    fn chooses(&self) -> bool {
        false
    }

    /// Its length, if it has one.
    fn span(&self) -> Option<Span> {
        None
    }

    /// Returns whether it can be read by what pages received: that is known since marks only.
    fn allows_received(&self) -> bool {
        true
    }

    /// G where it begins if it ends at `clock`; 0 if it has no such place.
    fn start(&self, _clock: u128, _length: Length<'_>) -> u128 {
        0
    }

    /// Pages known and a stretch of the clock to note with a measure; 0: nothing.
    fn noted(&self, _pages: u64, _length: Length<'_>) -> (u64, u128) {
        (0, 0)
    }

    /// Of the marks, oldest first, behind the start of the stream, those at which it may begin: the best is taken. `start`
    /// is where it begins, and no mark before `oldest` is wanted. None: it keeps what it is read from, and begins at no
    /// mark.
    fn candidates<'m>(
        &self,
        marks: &[&'m Mark],
        estimator: Estimator,
        start: u128,
        oldest: u128,
    ) -> Vec<&'m Mark>;

    /// The mark to give up, of more than `limit`; G is `start` where the window begins.
    fn superfluous(&self, marks: &[Mark], limit: usize, _start: u128) -> Option<usize> {
        mark::superfluous(marks, limit)
    }

    /// Turnovers that it spans, if it begins at no mark; `since` is how much was handed out since its start, and
    /// `supply` all there is.
    fn turnovers(&self, _since: u128, _supply: f64, _length: Length<'_>) -> Option<f64> {
        None
    }

    /// Returns whether a page's cash counts, as in the paper's whole history: then its estimate has no bound.
    fn counts_cash(&self) -> bool {
        false
    }

    /// How it is written.
    fn form(&self) -> String;
}

/// A kind of window: its name, help and parser.
pub(super) struct WindowSpec {
    pub name: &'static str,
    /// The ways to write it, and what each is, in a few words.
    pub forms: &'static [(&'static str, &'static str)],
    /// Reads what follows the name and a colon, if anything does; `None`: that is no such window.
    pub read: fn(Option<&str>) -> Option<Result<WindowPolicy, String>>,
}
