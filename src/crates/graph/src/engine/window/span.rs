//! Length of a window, in turnovers of the supply or in fetch time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::engine::ledger::ENDOWMENT;
use crate::model::{TIME_UNITS, Time, split_time};

/// Length of a window.
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

/// Number of parts into which the time of a window is divided.
const PARTS: Time = 64;
/// Largest forward jump of time, in seconds, that is accepted at once. A larger one is accepted if the next record
/// confirms it; otherwise a single wrong date would end the window for all records before it.
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

#[cfg(test)]
mod tests {
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
