//! State of a crawl, and the strategy that follows it row by row.

use super::{CrawlFacts, Focus, ScoredPage, Strategy};
use crate::Result;
use crate::rows::{Bits, Row};

/// Distance in rows at which memory is prefetched.
pub(super) const LATER: usize = 8;

/// State of a crawl, in a few bits per page. Pages are numbered in the order in which they became known.
#[derive(Debug, Default)]
pub struct CrawlState {
    pages: u32,
    /// Bitmap of the pages read: it fits the processor's cache, so that sweeps do not wait for memory.
    is_read: Bits,
    /// Bitmap of the pages found: seeds, and pages that a link of positive weight leads to.
    is_found: Bits,
    /// Bitmap of the unread pages that must not be listed.
    is_held: Bits,
    seeds: Vec<u32>,
    read: u32,
    focus: Focus,
}

impl CrawlState {
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Returns the number of pages read, including those found gone.
    pub fn read(&self) -> u32 {
        self.read
    }

    pub fn unread_share(&self) -> f64 {
        1.0 - f64::from(self.read) / f64::from(self.pages.max(1))
    }

    /// Returns the pages read before any link to them was seen, in that order.
    pub fn seeds(&self) -> &[u32] {
        &self.seeds
    }

    pub fn seed_pages(&self) -> Bits {
        let mut bits = Bits::new(self.pages.into());
        self.seeds
            .iter()
            .for_each(|&page| _ = bits.set(page.into()));
        bits
    }

    /// Returns whether a page is known, unread and not held back.
    pub fn is_open(&self, page: u32) -> bool {
        page < self.pages && !self.is_read(page) && !self.is_held.get(page.into())
    }

    pub fn is_read(&self, page: u32) -> bool {
        self.is_read.get(page.into())
    }

    pub fn read_pages(&self) -> &Bits {
        &self.is_read
    }

    /// Returns whether a page is a seed, or a link leads to it. Others are only targets of weight 0, or in no row.
    pub fn is_found(&self, page: u32) -> bool {
        self.is_found.get(page.into())
    }

    pub fn focus(&self) -> &Focus {
        &self.focus
    }

    /// Yields the open pages, in the order in which they became known.
    pub fn all_open(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.pages).filter(|&page| self.is_open(page))
    }

    fn know_below(&mut self, pages: u32) {
        if self.pages < pages {
            self.pages = pages;
            let bits = [&mut self.is_read, &mut self.is_found, &mut self.is_held];
            bits.into_iter().for_each(|bits| bits.grow(pages.into()));
        }
    }
}

pub struct CrawlHistory {
    crawl: CrawlState,
    strategy: Box<dyn Strategy>,
    /// True if the strategy is prepared, and nothing became known or was read since.
    is_prepared: bool,
}

impl CrawlHistory {
    pub fn new(strategy: Box<dyn Strategy>) -> CrawlHistory {
        CrawlHistory {
            crawl: CrawlState::default(),
            strategy,
            is_prepared: false,
        }
    }

    /// Sets the pages that the virtual page pays more, before any row is added.
    pub fn set_focus(&mut self, focus: Focus) {
        self.crawl.focus = focus;
    }

    pub fn crawl(&self) -> &CrawlState {
        &self.crawl
    }

    pub fn strategy(&self) -> &dyn Strategy {
        &*self.strategy
    }

    /// Adds adjacent rows, like [`CrawlHistory::row`].
    pub fn rows(&mut self, rows: &[Row<'_>]) {
        for (at, &row) in rows.iter().enumerate() {
            if let Some(later) = rows.get(at + LATER) {
                self.strategy.expect(later.page);
                later
                    .targets
                    .iter()
                    .for_each(|target| self.crawl.is_found.prefetch((*target).into()));
            }
            self.row(row);
        }
    }

    /// Adds the row of a page that was read. A second row of a page only adds the pages that it names.
    pub fn row(&mut self, row: Row<'_>) {
        let last = row
            .targets
            .iter()
            .fold(row.page, |last, &target| last.max(target));
        // Pages that became known in between have no row: they were fetched in vain, or other rows name them.
        self.known_below(last + 1);
        if self.crawl.is_found.set(row.page.into()) {
            self.crawl.seeds.push(row.page);
            self.strategy.found(&self.crawl, row.page, None);
        }
        let mut find = |target: u32| {
            if self.crawl.is_found.set(target.into()) {
                self.strategy.found(&self.crawl, target, Some(row.page));
            }
        };
        // Most rows have no weights.
        match row.weights {
            [] => row.targets.iter().copied().for_each(find),
            _ => row.links().for_each(&mut find),
        }
        if self.crawl.is_read.set(row.page.into()) {
            self.crawl.read += 1;
            self.strategy.read(&self.crawl, row);
        }
    }

    /// Makes all pages below `pages` known, even if no row names them.
    pub fn known_below(&mut self, pages: u32) {
        self.crawl.know_below(pages);
        self.is_prepared = false;
    }

    /// Excludes a known page from lists.
    pub fn hold(&mut self, page: u32) {
        if page < self.crawl.pages {
            self.crawl.is_held.set(page.into());
        }
    }

    /// Returns the best open pages, at most `count`; prepares the strategy unless nothing changed since.
    pub fn best(&mut self, facts: &CrawlFacts<'_>, count: usize) -> Result<Vec<ScoredPage>> {
        if !self.is_prepared {
            self.strategy.prepare(&self.crawl, facts)?;
            self.is_prepared = true;
        }
        self.strategy.best(&self.crawl, facts, count)
    }
}
