//! Sites: pages grouped by host, by registered domain, or by host and the first folders of the path.
//!
//! A [`Level`] derives the site of a page from its name alone. [`Sites`] is a column with the site of every page, with
//! sites numbered in the order of their first pages. Sites are ranked in two ways:
//!
//! * a [`SiteTotal`] sums a ranking of pages over the pages of a site;
//! * a [`site_graph`] has the weighted links between sites ([`SiteLinks`]), which are ranked like links between pages.
//!
//! Memory: 4 bytes per page for the column, plus the sites, and 12 bytes per pair of linked sites, or 4 if all weigh the
//! same. Pairs are sorted in at most 256 MiB, the rest in a temporary file.

mod level;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use crate::codec::varint::be_number;
use crate::disk::ExternalSorter;
use crate::graph::Graph;
use crate::metrics::sum::CompensatedSum;
use crate::model::{Fetches, Page, PageId, PageState, SiteFacts, Time, check_room};
use crate::rows::Rows;
use crate::{Error, Result};

pub use level::Level;

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
    column: Vec<u32>,
    /// Names of all sites, concatenated, and where each ends.
    text: String,
    ends: Vec<usize>,
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

/// Maximum memory in which pairs of linked sites are sorted, in bytes.
const SORTING_BYTES: u64 = 256 << 20;

cashrank_base::words! {
    /// Weight of a link from one site to another. A link between pages counts as one whatever its weight, unless that
    /// is 0.
    #[derive(Default)]
    SiteLinks {
        /// Number of links from pages of the one site to pages of the other.
        #[default]
        Count = "count",
        /// One, however many links there are.
        Once = "once",
    }
}

impl SiteLinks {
    pub fn about(self) -> &'static str {
        match self {
            SiteLinks::Count => "the number of links between their pages",
            SiteLinks::Once => "one, however many links there are",
        }
    }
}

/// Derives the links between sites from those of pages: the row of a site has the sites that its pages link to,
/// ascending. Links inside a site do not count. Pages without a site, or beyond the column, are left out. Pairs of linked
/// sites that exceed a third of the memory, or 256 MiB, are sorted in a file in `folder`. Fails with
/// [`crate::Error::TooLarge`] if the links exceed the memory.
pub fn site_graph(
    rows: &dyn Rows,
    sites: &Sites,
    links: SiteLinks,
    memory: Option<u64>,
    folder: &Path,
) -> Result<Graph> {
    let third = memory.map_or(u64::MAX, |memory| memory / 3);
    let sorting = third.min(SORTING_BYTES);
    let mut sorter = ExternalSorter::new((sorting - sorting / 8) as usize, folder);
    let of = |page: u32| sites.column.get(page as usize).copied().unwrap_or(NO_SITE);
    // Neighbouring pages mostly link to the same sites: only distinct pairs of many rows are sorted.
    let most = (sorting / 64).min(1 << 20) as usize;
    let mut latest: Vec<u64> = Vec::new();
    let mut add = |latest: &mut Vec<u64>| {
        latest.sort_unstable();
        for same in latest.chunk_by(|a, b| a == b) {
            sorter.push(&same[0].to_be_bytes(), &(same.len() as u32).to_be_bytes())?;
        }
        latest.clear();
        Ok::<(), Error>(())
    };
    rows.sweep(&mut |row| {
        let from = of(row.page);
        if from != NO_SITE {
            let others = row
                .links()
                .map(of)
                .filter(|&to| to != NO_SITE && to != from);
            latest.extend(others.map(|to| u64::from(from) << 32 | u64::from(to)));
        }
        if latest.len() >= most {
            add(&mut latest)?;
        }
        Ok(())
    })?;
    add(&mut latest)?;
    let check = |table: &Graph| {
        check_room(
            memory,
            sorting + table.bytes(),
            || {
                let links = table.links();
                format!("the links between sites, of which there are {links} or more,")
            },
            "rank a coarser level, such as domains",
        )
    };
    let mut table = Graph::default();
    let put = |table: &mut Graph, pair: u64, sum: u64| {
        table.link(pair as u32, (links != SiteLinks::Once).then_some(sum));
    };
    let mut last: Option<(u64, u64)> = None;
    for record in sorter.sorted()? {
        let (pair, weight) = record?;
        let (pair, weight) = (be_number(&pair), be_number(&weight));
        match &mut last {
            Some((same, sum)) if *same == pair => *sum += weight,
            last => {
                if let Some((pair, sum)) = last.replace((pair, weight)) {
                    put(&mut table, pair, sum);
                }
                while table.nodes() < (pair >> 32) as usize {
                    table.end();
                    check(&table)?;
                }
            }
        }
    }
    if let Some((pair, sum)) = last {
        put(&mut table, pair, sum);
    }
    while table.nodes() < sites.len() {
        table.end();
    }
    check(&table)?;
    Ok(table)
}
