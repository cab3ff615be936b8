//! Windows: the part of the history from which importance is computed (sections 3.2 and 3.3 of the paper).
//!
//! A window of *sums* begins at a retained mark, so that all a page distributed since is one number: `auto`, `whole`,
//! and `fixed` with the estimator `received`. A window of *measures* keeps each visit separately: `fixed` with
//! `distributed`, and `variable`. An *interpolation* keeps one number per page, which decays with time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ledger::{ENDOWMENT, Totals};
use super::row::RowPolicy;
use super::scores::Estimator;
use crate::model::{TIME_UNITS, Time, split_time};

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

pub const MEASURES_MAX: u32 = 1000;

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

    /// Returns G at the start of a window that ends now ([`Span::units`]); 0 if its start is not a value of G.
    pub(super) fn start(self, clock: u128, pages: u64, times: &TimeTable) -> u128 {
        match self {
            WindowPolicy::Fixed { span, .. } => {
                clock.saturating_sub(span.units(clock, pages, times))
            }
            _ => 0,
        }
    }

    /// Returns the marks at which the window may begin, if it begins at marks. `marks` are oldest first and begin with the
    /// start of the stream, `start` is G at the window's start, and marks before `oldest` are excluded.
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

    /// Returns the index of the mark to drop if one must go; `start` is G at the start of the window.
    pub(super) fn superfluous(self, marks: &[CashMark], start: u128) -> usize {
        match self {
            WindowPolicy::Fixed { .. } => superfluous_since(marks, start),
            _ => superfluous(marks),
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

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Span {
    /// Turnovers of the supply at the time: more than 0, at most a million.
    Turnovers(f64),
    /// Seconds of fetch time: 1 to a thousand years.
    Seconds(Time),
}

pub const TURNOVERS_MAX: f64 = 1e6;
pub const SECONDS_MAX: Time = 1000 * 365 * 86_400;

impl Span {
    /// Returns the length in units of G of a window that ends now, with `pages` pages known. `times` maps the time of
    /// its start to G.
    pub fn units(self, clock: u128, pages: u64, times: &TimeTable) -> u128 {
        match self {
            Span::Turnovers(turnovers) => {
                (turnovers * pages as f64 * ENDOWMENT as f64).min(f64::MAX) as u128
            }
            Span::Seconds(seconds) => clock - times.clock_before(seconds).min(clock),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Span::Turnovers(turnovers) => write!(f, "{turnovers}"),
            Span::Seconds(seconds) => {
                let whole = |(_, unit): &&(char, u32)| seconds % Time::from(*unit) == 0;
                let (letter, unit) = TIME_UNITS.iter().find(whole).unwrap_or(&('s', 1));
                write!(f, "{}{letter}", seconds / Time::from(*unit))
            }
        }
    }
}

cashrank_base::stored_as_text!(Span);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let refused = || {
            format!(
                "{text:?} is not a window length: turnovers above 0 and at most {TURNOVERS_MAX}, like 1.5 or \
                 1.5x, or fetch time, like 90d (s, m, h, d or w, at most 1000 years)"
            )
        };
        if let Some((number, unit)) = split_time(text) {
            let number: Option<Time> = number.parse().ok();
            let seconds = number.and_then(|number| number.checked_mul(unit.into()));
            let seconds = seconds.filter(|seconds| (1..=SECONDS_MAX).contains(seconds));
            return seconds.map(Span::Seconds).ok_or_else(refused);
        }
        match text.strip_suffix('x').unwrap_or(text).parse::<f64>() {
            Ok(turnovers) if turnovers > 0.0 && turnovers <= TURNOVERS_MAX => {
                Ok(Span::Turnovers(turnovers))
            }
            _ => Err(refused()),
        }
    }
}

const PARTS: Time = 64;
/// Largest forward jump of time, in seconds, that is accepted at once; a larger one must be confirmed by the next record.
const LEAP_MAX: Time = 365 * 24 * 60 * 60;

/// Table that maps times to G, as far back as a window in fetch time needs it, in at most 67 entries. The last entry
/// may be of an unconfirmed time, later than `now`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeTable {
    /// Latest accepted time.
    now: Time,
    /// First time of each part, with G just before; ascending.
    entries: Vec<(Time, u128)>,
}

impl TimeTable {
    /// Notes a record's time before it is applied. `clock` is G; `seconds` is the window's length.
    pub fn note(&mut self, time: Time, clock: u128, seconds: Time) {
        let part = seconds.div_euclid(PARTS) + Time::from(seconds % PARTS > 0);
        let is_new = |&(last, _): &(Time, u128)| time.div_euclid(part) > last.div_euclid(part);
        let leaps = |from: Time, to: Time| to.saturating_sub(from) > LEAP_MAX;
        if let Some(&(last, _)) = self.entries.last().filter(|(last, _)| *last > self.now) {
            if leaps(self.now, time) {
                self.now = last;
            } else {
                self.entries.pop();
            }
        }
        match self.entries[..] {
            // Records before the first time count as of that time.
            [] => {
                self.entries.push((time, 0));
                self.now = time;
            }
            // The first time was the wrong one.
            [(first, 0)] if leaps(time, first) => {
                self.entries[0].0 = time;
                self.now = time;
            }
            [.., last] if is_new(&last) => {
                self.entries.push((time, clock));
                if leaps(self.now, time) {
                    return;
                }
            }
            _ => {}
        }
        self.now = self.now.max(time);
        // One entry older than the window is needed.
        let old = self.now.saturating_sub(seconds);
        let older = self.entries.partition_point(|&(time, _)| time <= old);
        self.entries.drain(..older.saturating_sub(1));
    }

    /// Returns G `seconds` before the latest time, rounded to the part's first record; 0 before the first record.
    fn clock_before(&self, seconds: Time) -> u128 {
        let old = self.now.saturating_sub(seconds);
        let older = self.entries.partition_point(|&(time, _)| time <= old);
        older.checked_sub(1).map_or(0, |at| self.entries[at].1)
    }
}

/// Point in the stream at which windows can begin: the end of a round, or of a pass. The storage keeps a copy of the
/// ledger's cells under `number`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CashMark {
    /// Number of the mark, from 1; 0 is the start of the stream.
    pub number: u64,
    pub totals: Totals,
}

/// Returns the index of the mark to drop, never one of the newest two if there are more: the one whose neighbours' ages
/// are closest in proportion, so ages grow geometrically. `marks` are oldest first.
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
            if marks.len() > 6 {
                marks.remove(WindowPolicy::Auto.superfluous(&marks, 0));
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
    fn marks_since_a_start_are_evenly_spaced() {
        let (limit, length) = (6, 100u128);
        let window: WindowPolicy = "fixed:1".parse().unwrap();
        let mut marks: Vec<CashMark> = Vec::new();
        for round in 1..=2_000u64 {
            let mut mark = CashMark::default();
            mark.totals.clock = u128::from(round);
            marks.push(mark);
            let start = u128::from(round).saturating_sub(length);
            if marks.len() > limit {
                marks.remove(window.superfluous(&marks, start));
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

#[cfg(test)]
mod time_tests {
    use super::*;
    use proptest::prelude::*;

    /// One record far ahead of the others moves no window, wherever it comes; two consecutive ones do.
    #[test]
    fn a_time_far_ahead_needs_a_second() {
        const DAY: Time = 24 * 60 * 60;
        let noted = |days: &[Time]| {
            let mut table = TimeTable::default();
            for (clock, day) in (0..).zip(days) {
                table.note(day * DAY, clock, 90 * DAY);
            }
            table
        };
        let usual: Vec<Time> = (0..200).collect();
        let expected = noted(&usual).clock_before(90 * DAY);
        for at in [0, 1, 100, 199, 200] {
            let mut days = usual.clone();
            days.insert(at, 36_500);
            let found = noted(&days);
            assert_eq!(found.now, 199 * DAY, "{at}");
            let later = u128::from(at < 109);
            assert!(
                found.clock_before(90 * DAY).abs_diff(expected + later) <= 2,
                "{at}"
            );
        }
        let after_years = noted(&[&usual[..], &[2_000, 2_001]].concat());
        assert_eq!(after_years.now, 2_001 * DAY);
        assert!((197..=199).contains(&after_years.clock_before(90 * DAY)));
    }

    /// Regression: a time before the first one made the first entry look unconfirmed, and the window began at the second.
    #[test]
    fn a_time_before_the_first_moves_no_window() {
        let mut table = TimeTable::default();
        for (clock, time) in (0..).zip([101, 100, 102, 101, 103]) {
            table.note(time, clock, 1);
        }
        // The last second begins with the record of time 102, the third.
        assert_eq!((table.now, table.clock_before(1)), (103, 2));
    }

    proptest! {
        /// The window found is never shorter than requested, and longer at most by a part and the gap before it; the
        /// table stays short.
        #[test]
        fn a_time_ago_is_found_to_a_64th(
            steps in proptest::collection::vec((0i64..200, 1u32..100), 1..400),
            seconds in 1i64..5_000,
            from in prop_oneof![Just(0i64), any::<i64>().prop_map(|t| t / 2)],
        ) {
            let mut table = TimeTable::default();
            let (mut time, mut clock) = (from, 0u128);
            let mut all: Vec<(Time, u128)> = Vec::new();
            for (step, paid) in steps {
                time += step;
                table.note(time, clock, seconds);
                all.push((time, clock));
                clock += u128::from(paid);
                prop_assert!(table.entries.len() as Time <= PARTS + 2);
            }
            let found = table.clock_before(seconds);
            // G just before the first record inside the window.
            let exact = all.iter().find(|(at, _)| *at > time - seconds).map_or(0, |(_, clock)| *clock);
            prop_assert!(found <= exact);
            let part = (seconds + PARTS - 1) / PARTS;
            let earliest = all.iter().rev().find(|(at, _)| *at <= time - seconds - part);
            let in_its_part = |(at, _): &&(Time, u128)| {
                earliest.is_some_and(|(earliest, _)| at.div_euclid(part) == earliest.div_euclid(part))
            };
            let earliest = all.iter().find(in_its_part);
            prop_assert!(found >= earliest.map_or(0, |(_, clock)| *clock));
        }
    }
}
