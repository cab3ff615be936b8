//! Roll-ups: totals of a ranking of pages for each site.
//!
//! The importance of a site is the sum of that of its pages: the share of time that surfers spend there. If the ranking
//! of pages is within a bound of PageRank in L1, so are the sums: |sum x_i - sum p_i| over a site is at most the sum of
//! |x_i - p_i|. The greatest importance of each site is within the bound, too: it differs by at most the greatest
//! |x_i - p_i| of the site's pages. Sums are compensated, in the order of page numbers.

use std::borrow::Cow;

use crate::metrics::sum::CompensatedSum;
use crate::model::{Fetches, Page, PageId, PageState, SiteFacts, Time};

/// Totals over the pages of a site.
#[derive(Debug, Clone, Copy, Default)]
pub struct SiteTotal {
    sum: CompensatedSum,
    pub pages: u64,
    pub largest: f64,
    /// Page of greatest importance that is not gone, unless all are; on ties the first.
    pub best: PageId,
    /// Importance of the page `best`, and whether it is gone.
    best_of: (f64, bool),
    pub visits: u64,
    /// Last fetch of any page, in seconds since 1970.
    pub last_fetch: Option<Time>,
}

impl SiteTotal {
    /// Returns a row of a ranking of sites, with the site's name and totals.
    pub fn of<'n>(&self, row: Page<'_>, name: impl Into<Cow<'n, str>>) -> Page<'n> {
        Page {
            page: row.page,
            rank: row.rank,
            importance: row.importance,
            visits: self.visits,
            last_fetch: self.last_fetch,
            url: name.into(),
            site: Some(SiteFacts {
                pages: self.pages,
                ..SiteFacts::default()
            }),
            ..Page::default()
        }
    }

    pub fn importance(&self) -> f64 {
        self.sum.value()
    }

    /// Adds a page of the site.
    pub fn add(&mut self, page: PageId, importance: f64, fetches: &Fetches) {
        let is_gone = fetches.state() == Some(PageState::Gone);
        let (best, best_is_gone) = self.best_of;
        let is_best = if is_gone == best_is_gone {
            importance > best
        } else {
            best_is_gone
        };
        if self.pages == 0 || is_best {
            (self.best, self.best_of) = (page, (importance, is_gone));
        }
        if self.pages == 0 || importance > self.largest {
            self.largest = importance;
        }
        self.sum.add(importance);
        self.pages += 1;
        self.visits += fetches.visits;
        self.last_fetch = self.last_fetch.max(fetches.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::{Level, Sites};

    #[test]
    fn pages_of_a_site_are_added_up() {
        let names = [
            "http://a/1",
            "http://b/1",
            "http://a/2",
            "none",
            "http://a/3",
        ];
        let sites = Sites::of_names(Level::Host, None, names.map(str::as_bytes)).unwrap();
        let mut totals = vec![SiteTotal::default(); sites.len()];
        let pages = [
            (0.125, Some(5)),
            (0.5, None),
            (0.25, Some(9)),
            (0.0625, Some(99)),
            (0.25, None),
        ];
        for (page, (importance, last_fetch)) in (0..).map(PageId).zip(pages) {
            let fetches = Fetches {
                visits: page.0,
                last: last_fetch,
                ..Fetches::default()
            };
            if let Some(site) = sites.site(page.index()) {
                totals[site].add(page, importance, &fetches);
            }
        }
        let of = |total: &SiteTotal| {
            (
                total.importance(),
                total.pages,
                total.largest,
                total.best.0,
                total.visits,
            )
        };
        assert_eq!(of(&totals[0]), (0.625, 3, 0.25, 2, 6));
        assert_eq!(of(&totals[1]), (0.5, 1, 0.5, 1, 1));
        assert_eq!(
            (totals[0].last_fetch, totals[1].last_fetch),
            (Some(9), None)
        );
    }

    /// In any order, the best page is the most important of those that are not gone, or of all if all are. The largest
    /// importance is that of any page.
    #[test]
    fn the_best_page_is_not_gone() {
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            for (gone, best) in [
                ([true, false, false], 1),
                ([true, true, false], 2),
                ([true; 3], 0),
            ] {
                let mut total = SiteTotal::default();
                for page in order {
                    let fetches = Fetches {
                        visits: 1,
                        gone: Some(gone[page as usize]),
                        ..Fetches::default()
                    };
                    let importance = [0.5, 0.25, 0.125][page as usize];
                    total.add(PageId(page), importance, &fetches);
                }
                assert_eq!(
                    (total.best.0, total.largest),
                    (best, 0.5),
                    "{order:?} {gone:?}"
                );
            }
        }
    }
}
