//! Column with the site of each page, and totals over the pages of each site.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Level;
use crate::metrics::sum::CompensatedSum;
use crate::model::{Fetches, Page, PageId, PageState, SiteFacts, Time, check_room};
use crate::{Error, Result};

/// Number in the column for a page without a site.
pub const NO_SITE: u32 = u32::MAX;
const LOOK_EVERY: usize = 1 << 14;
/// Memory per site during lookups by name, besides the name: twice the slots of a hash table, and the allocator's
/// overhead.
const SITE_BYTES: u64 = 96;

/// Sites with their names, and the site of each page.
#[derive(Debug, Default)]
pub struct Sites {
    /// For each page the number of its site, or [`NO_SITE`].
    pub(crate) column: Vec<u32>,
    /// Names of all sites, concatenated, and where each ends.
    text: String,
    ends: Vec<usize>,
    /// Number of pages without a site.
    pub without: u64,
}

/// Builds the column from the names of pages in the order of their numbers.
#[derive(Debug)]
pub struct SitesBuilder {
    level: Level,
    sites: Sites,
    numbers: HashMap<Box<[u8]>, u32>,
    memory: Option<u64>,
    taken: u64,
}

impl SitesBuilder {
    /// Returns a builder that takes at most `memory` bytes, of which other data take `taken`; `None` for no limit.
    pub fn new(level: Level, memory: Option<u64>, taken: u64) -> SitesBuilder {
        SitesBuilder {
            level,
            sites: Sites::default(),
            numbers: HashMap::new(),
            memory,
            taken,
        }
    }

    /// Adds the next page's name. Fails with [`Error::TooLarge`] beyond the memory, and with [`Error::Unsupported`] for
    /// 2^32 - 1 sites or more.
    pub fn add(&mut self, name: &[u8]) -> Result<()> {
        if self.sites.column.len().is_multiple_of(LOOK_EVERY) {
            self.check()?;
        }
        let number = match self.level.site(name) {
            None => {
                self.sites.without += 1;
                NO_SITE
            }
            Some(site) => match self.numbers.get(&*site) {
                Some(&number) => number,
                None => self.first(&site)?,
            },
        };
        self.sites.column.push(number);
        Ok(())
    }

    fn first(&mut self, site: &[u8]) -> Result<u32> {
        let sites = &mut self.sites;
        let number = u32::try_from(sites.ends.len())
            .ok()
            .filter(|&number| number != NO_SITE)
            .ok_or_else(|| Error::Unsupported(format!("more than {} sites", u64::from(NO_SITE))))?;
        sites.text.push_str(&String::from_utf8_lossy(site));
        sites.ends.push(sites.text.len());
        self.numbers.insert(site.into(), number);
        Ok(number)
    }

    fn check(&self) -> Result<()> {
        let text = 2 * self.sites.text.len() as u64;
        let sites = self.sites.bytes() + text;
        let need = self.taken + sites + self.numbers.len() as u64 * SITE_BYTES;
        let pages = self.sites.column.len();
        let work = || match pages {
            0 => "finding sites".into(),
            _ => format!("finding the sites of {pages} pages or more"),
        };
        check_room(
            self.memory,
            need,
            work,
            "rank a coarser level, such as domains",
        )
    }

    /// Returns the sites of all pages. Fails with [`Error::Unsupported`] if no name has a host.
    pub fn build(self) -> Result<Sites> {
        self.check()?;
        if self.sites.is_empty() {
            return Err(Error::Unsupported(format!(
                "none of the {} pages has a host in its name, so there are no {} to rank: URLs have one, opaque names do \
                 not",
                self.sites.column.len(),
                self.level.plural()
            )));
        }
        Ok(self.sites)
    }
}

impl Sites {
    /// Returns the sites of pages with these names, in the order of their numbers. Fails like [`SitesBuilder`].
    #[cfg(test)]
    pub fn of_names<'n>(
        level: Level,
        memory: Option<u64>,
        names: impl IntoIterator<Item = &'n [u8]>,
    ) -> Result<Sites> {
        let mut builder = SitesBuilder::new(level, memory, 0);
        names.into_iter().try_for_each(|name| builder.add(name))?;
        builder.build()
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn site(&self, page: usize) -> Option<usize> {
        let site = self.column.get(page).filter(|&&site| site != NO_SITE)?;
        Some(*site as usize)
    }

    pub fn name(&self, site: usize) -> &str {
        let start = site.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[site]]
    }

    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|site| self.name(site))
    }

    pub fn bytes(&self) -> u64 {
        4 * self.column.len() as u64 + self.text.len() as u64 + 8 * self.ends.len() as u64
    }
}

/// Totals of a ranking of pages over the pages of a site.
///
/// The importance of a site is the sum of that of its pages: the share of time that surfers spend there. If the ranking
/// of pages is within a bound of PageRank in L1, so are the sums: |sum x_i - sum p_i| over a site is at most the sum of
/// |x_i - p_i|. The greatest importance of each site is within the bound, too. Sums are compensated, in the order of
/// page numbers.
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
        let is_gone = fetches.state() == PageState::Gone;
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

    #[test]
    fn sites_are_numbered_as_they_appear() {
        let names = [
            "http://b.example/1",
            "opaque",
            "http://a.example/",
            "https://b.example:8/2",
        ];
        let names = names.map(str::as_bytes);
        let sites = Sites::of_names(Level::Host, None, names).unwrap();
        assert_eq!(sites.column, [0, NO_SITE, 1, 0]);
        assert!(sites.names().eq(["b.example", "a.example"]));
        assert_eq!(sites.without, 1);
        assert_eq!(
            (sites.site(1), sites.site(3), sites.site(9)),
            (None, Some(0), None)
        );
    }

    #[test]
    fn without_hosts_or_room_it_is_refused() {
        let none = Sites::of_names(Level::Domain, None, [&b"a"[..], b"b"]).unwrap_err();
        assert!(none.to_string().contains("none of the 2 pages has a host"));
        let names: Vec<String> = (0..LOOK_EVERY)
            .map(|n| format!("http://h{n}.example/"))
            .collect();
        let names = || names.iter().map(String::as_bytes);
        let small = Sites::of_names(Level::Host, Some(100_000), names()).unwrap_err();
        assert!(matches!(small, Error::TooLarge { .. }));
        assert!(small.to_string().contains("16384 pages or more needs"));
        // The reserved bytes leave no room.
        let mut beside = SitesBuilder::new(Level::Host, Some(1_000), 1_001);
        let none = beside.add(b"http://h.example/").unwrap_err();
        assert!(none.to_string().contains("finding sites needs"));
        Sites::of_names(Level::Host, Some(10_000_000), names()).unwrap();
    }
}

#[cfg(test)]
mod total_tests {
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
                        gone: gone[page as usize],
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
