//! Retention of snapshots: which of them stay when a new one is published.
//!
//! A rule has up to four counts. Snapshots are grouped by the hour, day or month (in UTC) of their time, which is the
//! latest fetch time among their records; the newest snapshot of each group represents it.
//!
//! | count | what stays |
//! |---|---|
//! | `recent=N` | the newest N |
//! | `hourly=N`, `daily=N`, `monthly=N` | of each of the newest N hours, days, months that have snapshots, the newest one |
//!
//! A snapshot stays if any count keeps it. This depends only on the numbers and times of the snapshots, not on a clock
//! or on when older ones were removed. Groups are counted from the newest snapshot backwards, not by distance in time:
//! a time far ahead or behind adds one group and removes nothing else. A snapshot without a time is in no group.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use crate::model::{Time, utc};

/// Groups by name, and the number of trailing characters they ignore in a time by RFC 3339, `2014-03-25T12:12:25Z`.
const GROUPS: [(&str, usize); 3] = [("hourly", 7), ("daily", 10), ("monthly", 13)];
const RECENT: &str = "recent";
const ALL: usize = usize::MAX;

/// Rule for which snapshots stay, besides the current and pinned ones. Written like `recent=10,daily=30,monthly=all`; a
/// number N is short for `recent=N`, and 0 for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepSnapshots {
    recent: usize,
    groups: [usize; GROUPS.len()],
}

impl KeepSnapshots {
    /// Keeps all snapshots.
    pub const ALL: KeepSnapshots = KeepSnapshots::newest(ALL);
    /// Keeps the newest ten, one for each of the last 30 days that have one, and one for each month.
    pub const USUAL: KeepSnapshots = KeepSnapshots {
        recent: 10,
        groups: [0, 30, ALL],
    };

    /// Keeps the newest `recent` snapshots.
    pub const fn newest(recent: usize) -> KeepSnapshots {
        KeepSnapshots {
            recent,
            groups: [0; GROUPS.len()],
        }
    }

    /// Returns true if none is ever removed.
    pub fn is_all(self) -> bool {
        self.recent == ALL
    }

    /// Returns true if the rule depends on times.
    pub(super) fn needs_times(self) -> bool {
        self.groups != [0; GROUPS.len()]
    }

    /// Returns true if `count` snapshots stay, whatever their times.
    pub(super) fn keeps_any(self, count: usize) -> bool {
        count <= self.recent
    }

    /// Returns which snapshots stay, given their times, oldest first.
    pub(super) fn stay(self, times: &[Option<Time>]) -> Vec<bool> {
        let mut found = [(); GROUPS.len()].map(|()| HashSet::new());
        let mut stay = vec![false; times.len()];
        for (newer, (stay, time)) in stay.iter_mut().zip(times).rev().enumerate() {
            *stay = newer < self.recent;
            let Some(text) = time.and_then(utc) else {
                continue;
            };
            for (at, (_, ignored)) in GROUPS.iter().enumerate() {
                let group = text[..text.len().saturating_sub(*ignored)].to_owned();
                *stay |= found[at].insert(group) && found[at].len() <= self.groups[at];
            }
        }
        stay
    }
}

impl FromStr for KeepSnapshots {
    type Err = String;

    fn from_str(text: &str) -> Result<KeepSnapshots, String> {
        let wrong = || {
            format!(
                "{text:?}: a number of snapshots (0: all), or a list like recent=10,hourly=24,daily=30,monthly=all"
            )
        };
        if let Ok(recent) = text.parse() {
            let recent = if recent == 0 { ALL } else { recent };
            return Ok(KeepSnapshots::newest(recent));
        }
        let mut recent = None;
        let mut groups = [None; GROUPS.len()];
        for part in text.split(',') {
            let (name, count) = part.split_once('=').ok_or_else(wrong)?;
            let count = match count {
                "all" => ALL,
                count => count.parse().map_err(|_| wrong())?,
            };
            let named = GROUPS.iter().position(|(group, _)| *group == name);
            let place = match named {
                Some(at) => &mut groups[at],
                None if name == RECENT => &mut recent,
                None => return Err(wrong()),
            };
            if place.replace(count).is_some() {
                return Err(format!("{text:?}: {name} is there twice"));
            }
        }
        Ok(KeepSnapshots {
            recent: recent.unwrap_or(0),
            groups: groups.map(|count| count.unwrap_or(0)),
        })
    }
}

impl fmt::Display for KeepSnapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: usize| match count {
            ALL => "all".to_owned(),
            count => count.to_string(),
        };
        write!(f, "{RECENT}={}", count(self.recent))?;
        for ((name, _), &many) in GROUPS.iter().zip(&self.groups) {
            if many > 0 {
                write!(f, ",{name}={}", count(many))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Time = 3_600;
    const DAY: Time = 24 * HOUR;

    fn keep(text: &str) -> KeepSnapshots {
        text.parse().unwrap()
    }

    /// Returns the positions of the snapshots that stay.
    fn stay(text: &str, times: &[Option<Time>]) -> Vec<usize> {
        let stay = keep(text).stay(times).into_iter().enumerate();
        stay.filter(|(_, stay)| *stay).map(|(at, _)| at).collect()
    }

    #[test]
    fn rules_are_read_and_written() {
        assert_eq!(keep("0"), KeepSnapshots::ALL);
        assert_eq!(keep("recent=all"), KeepSnapshots::ALL);
        assert_eq!(keep("7"), keep("recent=7"));
        assert_eq!(keep("recent=10,daily=30,monthly=all"), KeepSnapshots::USUAL);
        for text in [
            "recent=10,hourly=24,daily=30,monthly=all",
            "recent=0,hourly=3",
        ] {
            assert_eq!(keep(text).to_string(), text);
            assert_eq!(keep(&keep(text).to_string()), keep(text));
        }
        for wrong in [
            "",
            "-1",
            "x",
            "daily",
            "daily=",
            "daily=x",
            "yearly=1",
            "recent=1,",
            "daily=1,daily=2",
        ] {
            assert!(wrong.parse::<KeepSnapshots>().is_err(), "{wrong}");
        }
    }

    /// A snapshot every six hours for three days: 0 to 11; the last of each day are 3, 7, 11.
    #[test]
    fn the_newest_of_each_group_stays() {
        let times: Vec<Option<Time>> = (0..12).map(|at| Some(at * 6 * HOUR)).collect();
        assert_eq!(stay("2", &times), [10, 11]);
        assert_eq!(stay("daily=all", &times), [3, 7, 11]);
        assert_eq!(stay("recent=2,daily=2", &times), [7, 10, 11]);
        assert_eq!(stay("hourly=3", &times), [9, 10, 11]);
        // 1970-01-31, 02-01, 02-28, 03-01.
        let months = [30, 31, 58, 59].map(|day| Some(day * DAY));
        assert_eq!(stay("monthly=all", &months), [0, 2, 3]);
        assert_eq!(stay("monthly=2", &months), [2, 3]);
    }

    #[test]
    fn times_that_go_back_jump_ahead_or_are_not_known_remove_little() {
        let day = |day: Time| Some(day * DAY);
        // Back into the past and on, and far ahead once.
        let times = [
            day(1),
            day(2),
            day(3),
            day(-9_999),
            day(4),
            day(99_999),
            day(5),
        ];
        assert_eq!(stay("daily=all", &times), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(stay("daily=3", &times), [4, 5, 6]);
        assert_eq!(
            stay("recent=1,daily=1", &[day(1), None, day(1), None]),
            [2, 3]
        );
        // Beyond what can be written.
        assert_eq!(
            stay("recent=1,daily=9", &[Some(Time::MAX), Some(Time::MIN)]),
            [1]
        );
    }

    proptest! {
        /// Removing after each snapshot leaves the same as removing once at the end, in whatever order times come.
        #[test]
        fn it_does_not_matter_when_they_are_removed(
            times in prop::collection::vec(prop::option::weighted(0.9, 0..40 * DAY), 0..60),
            recent in 0usize..5,
            hourly in 0usize..5,
            daily in 0usize..5,
            monthly in 0usize..3,
        ) {
            let rule = keep(&format!("recent={recent},hourly={hourly},daily={daily},monthly={monthly}"));
            let once: Vec<usize> = rule.stay(&times).into_iter().enumerate()
                .filter(|(_, stay)| *stay).map(|(at, _)| at).collect();
            let mut kept: Vec<usize> = Vec::new();
            for at in 0..times.len() {
                kept.push(at);
                let of: Vec<Option<Time>> = kept.iter().map(|&at| times[at]).collect();
                let stay = rule.stay(&of);
                kept = kept.into_iter().zip(stay).filter(|(_, stay)| *stay).map(|(at, _)| at).collect();
            }
            prop_assert_eq!(kept, once);
        }
    }
}
