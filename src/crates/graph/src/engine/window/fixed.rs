//! `fixed:T`: the last T, by measures or since the mark nearest to its start. With `min=M`, at least M measures of
//! every page are kept (the paper's improved policy, section 3.3); with `groups=N`, consecutive measures are grouped.

use super::measures::{KeptMeasures, stretch};
use super::shape::{Length, Shape, WindowSpec};
use super::{RowContent, Span, WindowPolicy, measures};
use crate::engine::estimator::Estimator;
use crate::engine::mark::{self, CashMark};

pub(super) const WINDOW: WindowSpec = WindowSpec {
    name: "fixed",
    forms: &[
        ("fixed:T", "the last T"),
        (
            "fixed:T,min=M",
            "the last T, and at least M visits of every page",
        ),
        (
            "fixed:T,groups=N",
            "the last T, in about N groups of visits",
        ),
    ],
    read: |rest| rest.map(read),
};

fn read(length: &str) -> Result<WindowPolicy, String> {
    let (length, groups) = option(length, ",groups=")?;
    let (length, least) = option(length, ",min=")?;
    Ok(WindowPolicy::Fixed(FixedWindow {
        span: length.parse()?,
        least,
        groups,
    }))
}

/// Cuts the option of this name and its number off the end; returns 0 if it is not given.
fn option<'t>(text: &'t str, name: &str) -> Result<(&'t str, u32), String> {
    match text.split_once(name) {
        None => Ok((text, 0)),
        Some((before, number)) => Ok((before, measures(number)?)),
    }
}

/// Window of the last `span`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FixedWindow {
    /// Length of the window.
    pub span: Span,
    /// Minimum number of measures kept of every page (the paper's improved policy); 0 for none.
    pub least: u32,
    /// Approximate number of groups into which a page's consecutive measures are joined, exceeded at most twofold; 0
    /// for no groups.
    pub groups: u32,
}

impl Shape for FixedWindow {
    fn kept(&self, estimator: Estimator) -> RowContent {
        let least = self.least;
        match estimator {
            Estimator::Distributed => RowContent::Measures(KeptMeasures::Since { least }),
            Estimator::Received => RowContent::Sums,
        }
    }

    fn uses_marks(&self, estimator: Estimator) -> bool {
        estimator == Estimator::Received
    }

    fn span(&self) -> Option<Span> {
        Some(self.span)
    }

    fn allows_received(&self) -> bool {
        (self.least, self.groups) == (0, 0)
    }

    fn start(&self, clock: u128, length: Length<'_>) -> u128 {
        clock.saturating_sub(length(self.span))
    }

    fn noted(&self, _: u64, length: Length<'_>) -> (u64, u128) {
        match self.groups {
            0 => (0, 0),
            groups => (0, stretch(length(self.span), groups)),
        }
    }

    fn candidates<'m>(
        &self,
        marks: &[&'m CashMark],
        estimator: Estimator,
        start: u128,
        _: u128,
    ) -> Vec<&'m CashMark> {
        let off = |mark: &&&CashMark| mark.totals.clock.abs_diff(start);
        match estimator {
            Estimator::Received => marks.iter().min_by_key(off).copied().into_iter().collect(),
            Estimator::Distributed => Vec::new(),
        }
    }

    fn superfluous(&self, marks: &[CashMark], limit: usize, start: u128) -> Option<usize> {
        mark::superfluous_since(marks, limit, start)
    }

    fn turnovers(&self, since: u128, supply: f64, _: Length<'_>) -> Option<f64> {
        Some(since as f64 / supply)
    }

    fn form(&self) -> String {
        let mut form = format!("fixed:{}", self.span);
        for (name, number) in [("min", self.least), ("groups", self.groups)] {
            if number > 0 {
                form += &format!(",{name}={number}");
            }
        }
        form
    }
}
