//! Expiry: a ranking can leave out the links of pages that no fetch has reached for long, as if these pages were only
//! linked to.
//!
//! Ages count back from the latest time at which a page was reached, never from a clock: the same records give the same
//! ranking. Outliers far ahead of all other times are ignored for that: times of at most a tenth of the pages, or of
//! one page of at least three, that follow all earlier times by more than a year ([`FetchTimes::latest_believed`]).
//! Otherwise one record with a wrong date would leave out the links of all other pages. The time of a snapshot is the
//! latest accepted one, so everything that counts from it uses the same rule. A page whose fetches have no times never
//! expires. Failed fetches do not reach a page; answers that it had not changed do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::engine::{HistoryRow, HistoryView, rows_of_run};
use crate::model::Time;
use crate::rows::{Bits, Rows, Without};
use crate::store::View;

/// Links that a ranking leaves out because their pages were not fetched for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// Maximum age in seconds since a page was last reached.
    pub after: Time,
    /// Time before which expired pages were last reached.
    pub before: Time,
    /// Number of pages whose links are left out.
    pub pages: u64,
    /// Number of pages last reached at times so far ahead that ages do not count back from them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ahead: u64,
}

/// Tells serde to omit the default.
fn is_none(pages: &u64) -> bool {
    *pages == 0
}

/// Seconds of a year: a larger gap separates later times as outliers,
pub const YEAR: Time = 365 * 24 * 60 * 60;
/// if at most one page in this many has such a time,
const BELIEVED: u64 = 10;
/// or one page of at least this many: of two pages, either date may be wrong.
const SOME: u64 = 3;

/// Pages last reached within one year: their number and the range of times.
#[derive(Debug, Clone, Copy)]
struct Reached {
    pages: u64,
    first: Time,
    last: Time,
}

/// Times at which pages were last reached, by year.
#[derive(Debug, Clone, Default)]
pub struct FetchTimes(BTreeMap<Time, Reached>);

impl FetchTimes {
    /// Adds the time at which a page was last reached.
    pub fn add(&mut self, time: Time) {
        let of_one = Reached {
            pages: 1,
            first: time,
            last: time,
        };
        self.add_some(time.div_euclid(YEAR), of_one);
    }

    /// Adds the times of other pages.
    pub fn add_all(&mut self, others: &FetchTimes) {
        let others = others.0.iter();
        others.for_each(|(year, reached)| self.add_some(*year, *reached));
    }

    fn add_some(&mut self, year: Time, others: Reached) {
        let reached = self.0.entry(year).or_insert(Reached { pages: 0, ..others });
        reached.pages += others.pages;
        reached.first = reached.first.min(others.first);
        reached.last = reached.last.max(others.last);
    }

    /// Returns the latest time from which ages count back, and the number of pages with later times that are ignored.
    /// `latest` is the latest time of all records, including those that reached no page.
    pub fn latest_believed(&self, latest: Option<Time>) -> Option<(Time, u64)> {
        match self.latest_reached() {
            Some((reached, 0)) => {
                let near = latest.filter(|time| time.saturating_sub(reached) <= YEAR);
                Some((near.unwrap_or(reached), 0))
            }
            found => found.or(latest.map(|time| (time, 0))),
        }
    }

    fn latest_reached(&self) -> Option<(Time, u64)> {
        let all: u64 = self.0.values().map(|reached| reached.pages).sum();
        let most = (all / BELIEVED).max(u64::from(all >= SOME));
        let mut latest = (self.0.values().next_back()?.last, 0);
        let (mut ahead, mut first) = (0, None::<Time>);
        for reached in self.0.values().rev() {
            let gap = first.map_or(0, |first| first.saturating_sub(reached.last));
            if ahead > most {
                break;
            }
            if gap > YEAR {
                latest = (reached.last, ahead);
            }
            ahead += reached.pages;
            first = Some(reached.first);
        }
        Some(latest)
    }
}

/// Pages that expired, with the age and the time limit.
pub(super) struct Expiry {
    after: Time,
    before: Time,
    pages: Bits,
    ahead: u64,
}

impl Expiry {
    /// Finds the pages of a commit that were last reached more than `after` seconds before the latest time. Returns
    /// `None` if no record has a time, so that no page can expire.
    pub fn of(view: &View, after: Time) -> Result<Option<Expiry>> {
        let mut times = FetchTimes::default();
        each_page(view, &mut |_, reached| times.add(reached))?;
        // Without a time at which a page was reached, none can expire.
        let Some((latest, ahead)) = times.latest_believed(view.state().time) else {
            return Ok(None);
        };
        let before = latest.saturating_sub(after);
        let mut pages = Bits::new(view.state().totals.pages);
        each_page(view, &mut |page, reached| {
            if reached < before {
                pages.set(page);
            }
        })?;
        Ok(Some(Expiry {
            after,
            before,
            pages,
            ahead,
        }))
    }

    /// Returns the rows without those of expired pages.
    pub fn over<'r>(&'r self, rows: &'r dyn Rows) -> Result<Without<'r>> {
        Without::new(rows, &self.pages)
    }

    /// Describes the links that are left out.
    pub fn found(&self, rows: &Without<'_>) -> Expired {
        Expired {
            after: self.after,
            before: self.before,
            pages: rows.count,
            ahead: self.ahead,
        }
    }
}

/// Calls `take` with each page that was reached at a known time, and the latest such time.
fn each_page(view: &View, take: &mut dyn FnMut(u64, Time)) -> Result<()> {
    let mut rows = rows_of_run(HistoryView::rows(view, 0, 0)?).peekable();
    while let Some(row) = rows.next() {
        let row = row?;
        let mut reached = row.last_fetch;
        let is_same =
            |next: &Result<HistoryRow>| next.as_ref().map_or(true, |next| next.page == row.page);
        while let Some(next) = rows.next_if(is_same) {
            reached = reached.max(next?.last_fetch);
        }
        if let Some(reached) = reached {
            take(row.page, reached);
        }
    }
    Ok(())
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
        for (time, pages) in times {
            (0..*pages).for_each(|_| all.add(*time));
        }
        all.latest_reached()
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
        // One of few pages; of two, either may be wrong.
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
