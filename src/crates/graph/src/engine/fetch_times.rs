//! Times of fetches, robust against a few wrong dates in the future.
//!
//! A record's date may be wrong by decades. Times more than a year after all others do not count as the latest time if
//! at most a tenth of the fetches have them, or one fetch of at least three.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Time;

/// Seconds of a year: times later than all others by more may be outliers.
pub const YEAR: Time = 365 * 24 * 60 * 60;
/// Reciprocal of the largest share of fetches whose times are outliers.
const BELIEVED: u64 = 10;
/// Number of fetches from which one may be an outlier: of two, either date may be wrong.
const SOME: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct YearOfFetches {
    fetches: u64,
    first: Time,
    last: Time,
}

/// Times of fetches by year: of all records with a time, or of the last fetch of each page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchTimes(BTreeMap<Time, YearOfFetches>);

impl FetchTimes {
    pub fn add(&mut self, time: Time) {
        self.add_some(time, 1);
    }

    pub fn add_some(&mut self, time: Time, fetches: u64) {
        let year = self.0.entry(time.div_euclid(YEAR));
        let of_year = year.or_insert(YearOfFetches {
            fetches: 0,
            first: time,
            last: time,
        });
        of_year.fetches = of_year.fetches.saturating_add(fetches);
        of_year.first = of_year.first.min(time);
        of_year.last = of_year.last.max(time);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the time from which ages count back, and the number of later fetches that are ignored. `latest` is the
    /// latest time of all records, including those that reached no page.
    pub fn latest_with(&self, latest: Option<Time>) -> Option<(Time, u64)> {
        match self.latest() {
            Some((reached, 0)) => {
                let near = latest.filter(|time| time.saturating_sub(reached) <= YEAR);
                Some((near.unwrap_or(reached), 0))
            }
            found => found.or(latest.map(|time| (time, 0))),
        }
    }

    /// Returns the latest accepted time, and the number of later fetches that are ignored.
    pub fn latest(&self) -> Option<(Time, u64)> {
        let all = self.0.values().map(|of_year| of_year.fetches);
        let all = all.fold(0, u64::saturating_add);
        let most = (all / BELIEVED).max(u64::from(all >= SOME));
        let mut latest = (self.0.values().next_back()?.last, 0);
        let (mut ahead, mut first) = (0, None::<Time>);
        for of_year in self.0.values().rev() {
            let gap = first.map_or(0, |first| first.saturating_sub(of_year.last));
            if ahead > most {
                break;
            }
            if gap > YEAR {
                latest = (of_year.last, ahead);
            }
            ahead = ahead.saturating_add(of_year.fetches);
            first = Some(of_year.first);
        }
        Some(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Time = 24 * 60 * 60;
    /// 2024-05-01, by `date -d 2024-05-01T00:00:00Z +%s`.
    const NOW: Time = 1_714_521_600;
    /// 2124-05-01, likewise.
    const WRONG: Time = 4_870_281_600;

    fn latest(times: &[(Time, u64)]) -> Option<(Time, u64)> {
        let mut all = FetchTimes::default();
        for (time, fetches) in times {
            all.add_some(*time, *fetches);
        }
        all.latest()
    }

    #[test]
    fn few_times_far_ahead_of_all_others_are_not_believed() {
        assert_eq!(latest(&[]), None);
        assert_eq!(latest(&[(NOW, 50), (WRONG, 1)]), Some((NOW, 1)));
        assert_eq!(latest(&[(WRONG, 5), (NOW, 50)]), Some((NOW, 5)));
        // Several wrong clocks, and times before 1970.
        let several = [(NOW, 50), (WRONG, 2), (2 * WRONG, 2), (-NOW, 1), (0, 1)];
        assert_eq!(latest(&several), Some((NOW, 4)));
        // A crawl continues, also after years; and an archive is read again from its start.
        assert_eq!(
            latest(&[(NOW, 50), (NOW + 300 * DAY, 1)]),
            Some((NOW + 300 * DAY, 0))
        );
        assert_eq!(
            latest(&[(NOW, 50), (NOW + 2000 * DAY, 6)]),
            Some((NOW + 2000 * DAY, 0))
        );
        // One of few; of two, either may be wrong.
        assert_eq!(latest(&[(NOW, 5), (WRONG, 1)]), Some((NOW, 1)));
        assert_eq!(latest(&[(NOW, 2), (WRONG, 1)]), Some((NOW, 1)));
        assert_eq!(latest(&[(NOW, 4), (WRONG, 2)]), Some((WRONG, 0)));
        assert_eq!(latest(&[(NOW, 1), (WRONG, 1)]), Some((WRONG, 0)));
        assert_eq!(
            latest(&[(Time::MIN, 20), (Time::MAX, 1)]),
            Some((Time::MIN, 1))
        );
    }
}
