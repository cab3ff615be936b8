//! The interpolation: one number a page, for a window of some length.

use super::policy::Policy;
use super::shape::{Length, Shape, WindowSpec};
use super::{RowContent, Span, WindowPolicy};
use crate::engine::estimator::Estimator;
use crate::engine::mark::Mark;
use crate::engine::row::Row;

pub(super) const WINDOW: WindowSpec = WindowSpec {
    name: "interpolation",
    forms: &[(
        "interpolation:T",
        "about the last T, from one number per page",
    )],
    read: |rest| rest.map(|length| Ok(WindowPolicy::Interpolation(length.parse()?))),
};

/// For a window of this length.
pub(super) struct Interpolation(pub Span);

impl Shape for Interpolation {
    fn kept(&self, _: Estimator) -> RowContent {
        RowContent::Folded(self.0)
    }

    fn span(&self) -> Option<Span> {
        Some(self.0)
    }

    fn allows_received(&self) -> bool {
        false
    }

    fn noted(&self, pages: u64, length: Length<'_>) -> (u64, u128) {
        (pages, length(self.0))
    }

    fn candidates<'m>(&self, _: &[&'m Mark], _: Estimator, _: u128, _: u128) -> Vec<&'m Mark> {
        Vec::new()
    }

    fn turnovers(&self, _: u128, supply: f64, length: Length<'_>) -> Option<f64> {
        Some(match self.0 {
            Span::Turnovers(turnovers) => turnovers,
            span => length(span) as f64 / supply,
        })
    }

    fn form(&self) -> String {
        format!("interpolation:{}", self.0)
    }
}

/// One state a page, which its measures are folded into, oldest first.
pub(super) struct Folding;

impl Policy for Folding {
    fn is_timed(&self) -> bool {
        true
    }

    fn join(&self, row: &mut Row, next: &Row) -> bool {
        // Measures wait for the state they will be folded into.
        if !row.folded {
            return false;
        }
        interpolate(row, next);
        true
    }

    fn open(&self, measure: &Row, (clock, pages): (u128, u64)) -> Row {
        let mut state = Row {
            page: measure.page,
            clock,
            pages,
            folded: true,
            ..Row::default()
        };
        interpolate(&mut state, measure);
        state
    }
}

/// Section 3.3, Interpolation: `H (T - (G - G_i)) / T + C` if `G - G_i < T`, else
/// `C T / (G - G_i)`. H is kept in whole units; the fraction of a unit is dropped. Before the first
/// measure H is the default history: T / pages, that of a page of mean importance, which is what its
/// endowment says.
/// A row without a measure (an unchanged page) moves the last fetch only.
fn interpolate(state: &mut Row, next: &Row) {
    state.take_visits(next);
    if next.clock == 0 {
        return;
    }
    let before = match state.span {
        0 => next.span / u128::from(next.pages.max(1)),
        _ => state.cash,
    };
    let span = next.span as f64;
    let gone_by = next.clock.saturating_sub(state.clock) as f64;
    state.cash = if gone_by < span {
        (before as f64 * ((span - gone_by) / span)) as u128 + next.cash
    } else {
        (next.cash as f64 * (span / gone_by)) as u128
    };
    state.clock = next.clock;
    state.pages = next.pages;
    state.span = next.span;
}
