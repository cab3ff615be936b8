//! Windows: the part of the history from which importance is computed (sections 3.2 and 3.3 of the paper).
//!
//! A window of *sums* begins at a retained mark, so that all a page distributed since is one number: `auto`, `whole`,
//! and `fixed` with the estimator `received`. A window of *measures* keeps each visit separately: `fixed` with
//! `distributed`, and `variable`. An *interpolation* keeps one number per page, which decays with time.

mod span;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ledger::Totals;
use super::row::RowPolicy;
use super::scores::Estimator;

pub use span::{Span, TimeTable};

/// Policy that selects the window a store keeps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum WindowPolicy {
    /// Window since the retained mark that gives the least certified residual.
    Auto,
    /// Everything since the start of the stream, including the cash that pages hold.
    Whole,
    /// Window of the last `span`, by measures or since the mark nearest to its start.
    Fixed {
        span: Span,
        /// Minimum number of measures kept of every page (the paper's improved policy); 0 for none.
        least: u32,
    },
    /// Last N measures of every page, 1 to [`MEASURES_MAX`].
    Variable(u32),
    /// One interpolated measure per page, for a window of this length.
    Interpolation(Span),
}

/// Largest number of measures per page that a policy may request.
pub const MEASURES_MAX: u32 = 1000;

/// Function that converts a span to units of G.
pub(super) type Length<'a> = &'a dyn Fn(Span) -> u128;

impl WindowPolicy {
    /// Ways to write a window, each with a short description.
    pub const FORMS: [(&'static str, &'static str); 6] = [
        ("auto", "since the mark that gives the best certificate"),
        ("whole", "all of it"),
        ("fixed:T", "the last T"),
        (
            "fixed:T,min=M",
            "the last T, and at least M visits of every page",
        ),
        ("variable:K", "the last K visits of each page"),
        (
            "interpolation:T",
            "about the last T, from one number per page",
        ),
    ];

    /// Returns the policy by which rows are kept if importance is read by `estimator`.
    pub fn rows(self, estimator: Estimator) -> RowPolicy {
        match (self, estimator) {
            (WindowPolicy::Fixed { least, .. }, Estimator::Distributed) => {
                RowPolicy::Since { least }
            }
            (WindowPolicy::Variable(last), _) => RowPolicy::Last(last),
            (WindowPolicy::Interpolation(span), _) => RowPolicy::Folded(span),
            _ => RowPolicy::Sums,
        }
    }

    /// Returns true if marks (copies of the cash cells) are used.
    pub fn uses_marks(self, estimator: Estimator) -> bool {
        match self {
            WindowPolicy::Auto => true,
            WindowPolicy::Fixed { .. } => estimator == Estimator::Received,
            _ => false,
        }
    }

    /// Returns the length of the window, if it has one.
    pub fn span(self) -> Option<Span> {
        match self {
            WindowPolicy::Fixed { span, .. } | WindowPolicy::Interpolation(span) => Some(span),
            _ => None,
        }
    }

    /// Returns true if the window supports `estimator`: receipts are known since marks only.
    pub fn allows(self, estimator: Estimator) -> bool {
        estimator == Estimator::Distributed
            || match self {
                WindowPolicy::Auto | WindowPolicy::Whole => true,
                WindowPolicy::Fixed { least, .. } => least == 0,
                WindowPolicy::Variable(_) | WindowPolicy::Interpolation(_) => false,
            }
    }

    /// Returns the default estimator: `received` if the window supports it.
    pub fn estimator(self) -> Estimator {
        if self.allows(Estimator::Received) {
            Estimator::Received
        } else {
            Estimator::Distributed
        }
    }

    /// Returns G at the start of a window that ends at `clock`; 0 if its start is not a value of G.
    pub(super) fn start(self, clock: u128, length: Length<'_>) -> u128 {
        match self {
            WindowPolicy::Fixed { span, .. } => clock.saturating_sub(length(span)),
            _ => 0,
        }
    }

    /// Returns the number of pages and the interval of the clock to store with a measure; 0 for nothing.
    pub(super) fn noted(self, pages: u64, length: Length<'_>) -> (u64, u128) {
        match self {
            WindowPolicy::Interpolation(span) => (pages, length(span)),
            _ => (0, 0),
        }
    }

    /// Returns the marks at which the window may begin; the best is taken. `marks` are oldest first and begin with the
    /// start of the stream, `start` is G at the window's start, and marks before `oldest` are excluded. Empty if the
    /// window does not begin at marks.
    pub(super) fn candidates<'m>(
        self,
        marks: &[&'m CashMark],
        estimator: Estimator,
        start: u128,
        oldest: u128,
    ) -> Vec<&'m CashMark> {
        match self {
            WindowPolicy::Auto => {
                // If all marks are too old, the newest is the best available.
                let old = marks.partition_point(|mark| mark.totals.clock < oldest);
                marks[old.min(marks.len().saturating_sub(1))..].to_vec()
            }
            WindowPolicy::Whole => marks[..1].to_vec(),
            WindowPolicy::Fixed { .. } if estimator == Estimator::Received => {
                let off = |mark: &&&CashMark| mark.totals.clock.abs_diff(start);
                marks.iter().min_by_key(off).copied().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the index of the mark to drop when there are more than `limit`; `start` is G at the start of the window.
    pub(super) fn superfluous(
        self,
        marks: &[CashMark],
        limit: usize,
        start: u128,
    ) -> Option<usize> {
        match self {
            _ if marks.len() <= limit => None,
            WindowPolicy::Fixed { .. } => Some(superfluous_since(marks, start)),
            _ => Some(superfluous(marks)),
        }
    }

    /// Returns the length in turnovers of a window that does not begin at a mark; `since` is the cash distributed since
    /// its start, and `supply` all cash.
    pub(super) fn turnovers(self, since: u128, supply: f64, length: Length<'_>) -> Option<f64> {
        match self {
            WindowPolicy::Fixed { .. } => Some(since as f64 / supply),
            WindowPolicy::Interpolation(Span::Turnovers(turnovers)) => Some(turnovers),
            WindowPolicy::Interpolation(span) => Some(length(span) as f64 / supply),
            _ => None,
        }
    }
}

impl fmt::Display for WindowPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowPolicy::Auto => f.write_str("auto"),
            WindowPolicy::Whole => f.write_str("whole"),
            WindowPolicy::Fixed { span, least: 0 } => write!(f, "fixed:{span}"),
            WindowPolicy::Fixed { span, least } => write!(f, "fixed:{span},min={least}"),
            WindowPolicy::Variable(last) => write!(f, "variable:{last}"),
            WindowPolicy::Interpolation(span) => write!(f, "interpolation:{span}"),
        }
    }
}

impl FromStr for WindowPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "auto" => Ok(WindowPolicy::Auto),
            None if text == "whole" => Ok(WindowPolicy::Whole),
            Some(("fixed", length)) => {
                let (length, least) = match length.split_once(",min=") {
                    None => (length, 0),
                    Some((length, least)) => (length, number(least)?),
                };
                let span = length.parse()?;
                Ok(WindowPolicy::Fixed { span, least })
            }
            Some(("variable", last)) => Ok(WindowPolicy::Variable(number(last)?)),
            Some(("interpolation", length)) => Ok(WindowPolicy::Interpolation(length.parse()?)),
            _ => {
                let forms = WindowPolicy::FORMS.map(|(form, _)| form).join(", ");
                Err(format!(
                    "unknown window {text:?}: {forms} (T in turnovers, like 1.5, or of fetch time, like 90d)"
                ))
            }
        }
    }
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=MEASURES_MAX) => Ok(number),
        _ => Err(format!(
            "{text:?} is not a number of measures: 1 to {MEASURES_MAX}"
        )),
    }
}

cashrank_base::stored_as_text!(WindowPolicy);

/// Point in the stream at which windows can begin: the end of a round, or of a pass. The storage keeps a copy of the
/// ledger's cells under `number`. The start of the stream is mark 0 and costs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CashMark {
    /// Number of the mark, from 1; 0 is the start of the stream.
    pub number: u64,
    pub totals: Totals,
}

/// Returns the index of the mark to drop, never one of the newest two if there are more; `marks` are oldest first and
/// end with the new one. The mark dropped is the one whose neighbours' ages are closest in proportion, so ages grow
/// geometrically.
fn superfluous(marks: &[CashMark]) -> usize {
    let now = marks.last().map_or(0, |newest| newest.totals.rounds);
    let age = |at: usize| u128::from(now - marks[at].totals.rounds);
    let ages = |at: usize| (at.checked_sub(1).map_or(now.into(), age), age(at + 1));
    let closer = |best: usize, at: usize| {
        let ((older, newer), (best_older, best_newer)) = (ages(at), ages(best));
        if older * best_newer < best_older * newer {
            at
        } else {
            best
        }
    };
    (0..marks.len().saturating_sub(2))
        .reduce(closer)
        .unwrap_or(0)
}

/// Returns the index of the mark to drop for a window that begins at the mark nearest to G = `start`. One mark before
/// `start` is kept, and the others are kept evenly spaced.
fn superfluous_since(marks: &[CashMark], start: u128) -> usize {
    let clock = |at: usize| marks[at].totals.clock;
    let before = marks.partition_point(|mark| mark.totals.clock <= start);
    if before > 1 {
        return before - 2;
    }
    // Gap between the neighbours if the mark is dropped.
    let apart = |&at: &usize| clock(at + 1) - at.checked_sub(1).map_or(0, clock);
    (0..marks.len() - 1).min_by_key(apart).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_written_as_it_is_read() {
        for text in [
            "auto",
            "whole",
            "fixed:1.5",
            "fixed:90d",
            "fixed:0.5,min=3",
            "fixed:90d,min=2",
            "variable:8",
            "interpolation:2",
            "interpolation:36h",
        ] {
            let policy: WindowPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
        }
        assert_eq!("fixed:1.5x".parse(), "fixed:1.5".parse::<WindowPolicy>());
        assert_eq!("fixed:7d".parse(), "fixed:1w".parse::<WindowPolicy>());
    }

    /// Help is right: each form, with a length and numbers filled in, parses as a window.
    #[test]
    fn every_form_is_a_window() {
        for (form, about) in WindowPolicy::FORMS {
            let text = form.replace('T', "1.5").replace(['M', 'K'], "2");
            let read: WindowPolicy = text.parse().unwrap();
            assert_eq!(read.to_string(), text, "{about}");
        }
    }

    #[test]
    fn what_is_no_window_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "unknown window"),
            ("fixed", "unknown window"),
            ("variable", "unknown window"),
            ("variable:0", "not a number of measures"),
            ("variable:-1", "not a number of measures"),
            ("variable:1001", "not a number of measures"),
            ("fixed:0", "not a window length"),
            ("fixed:-1", "not a window length"),
            ("fixed:NaN", "not a window length"),
            ("fixed:1e9", "not a window length"),
            ("fixed:0d", "not a window length"),
            ("fixed:1.5d", "not a window length"),
            ("fixed:9999999d", "not a window length"),
            ("fixed:1,min=0", "not a number of measures"),
            ("fixed:1,least=2", "not a window length"),
            ("interpolation:0", "not a window length"),
        ] {
            let error = text.parse::<WindowPolicy>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    /// After any number of rounds, the ages of neighbouring marks differ at most by a fixed factor.
    #[test]
    fn ages_grow_geometrically() {
        let mut marks: Vec<CashMark> = Vec::new();
        for round in 1..=5_000u64 {
            let mut mark = CashMark {
                number: round,
                ..CashMark::default()
            };
            mark.totals.rounds = round;
            marks.push(mark);
            if let Some(at) = WindowPolicy::Auto.superfluous(&marks, 6, 0) {
                marks.remove(at);
            }
            assert!(marks.len() <= 6);
            let ages: Vec<u64> = marks.iter().map(|m| round - m.totals.rounds).collect();
            if round >= 2 {
                assert_eq!(ages[ages.len() - 2..], [1, 0], "the newest two are kept");
            }
            // Six marks over R rounds: equal ratios would be R^(1/5); dropping one at a time stays within a factor of 8
            // of that.
            let even = (round as f64).powf(0.2);
            let mut older = round;
            for &age in &ages[..ages.len() - 1] {
                let ratio = older as f64 / age as f64;
                assert!(ratio <= 8.0 * even, "round {round}: ages {ages:?}");
                older = age;
            }
        }
    }

    /// With an evenly running clock, some mark is always within one gap of the window's start, and a gap is at most
    /// twice the even one.
    #[test]
    fn marks_since_a_start_are_evenly_apart() {
        let (limit, length) = (6, 100u128);
        let window: WindowPolicy = "fixed:1".parse().unwrap();
        let mut marks: Vec<CashMark> = Vec::new();
        for round in 1..=2_000u64 {
            let mut mark = CashMark::default();
            mark.totals.clock = u128::from(round);
            marks.push(mark);
            let start = u128::from(round).saturating_sub(length);
            if let Some(at) = window.superfluous(&marks, limit, start) {
                marks.remove(at);
            }
            assert!(marks.len() <= limit);
            assert_eq!(marks.last().unwrap().totals.clock, u128::from(round));
            let near = marks.iter().map(|mark| mark.totals.clock.abs_diff(start));
            let nearest = near.min().unwrap().min(start);
            assert!(
                nearest <= 2 * length / (limit as u128 - 2),
                "round {round}: {nearest}"
            );
        }
    }
}
