//! History of a crawl, passed to strategies row by row.

use super::{Ask, Focused, NameOrder, ScoredPage, SettledRanking, Strategy};
use crate::Result;
use crate::rows::{Bits, Row, Rows};

/// State of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrawlPageState {
    /// Known, but not read yet.
    Open,
    /// Unread, but not to be listed: it was handed out already, or is unwanted.
    Held,
    /// Read, with its position in the order of reading.
    Read(u32),
}

/// Positions of pages read are below this.
const HELD: u32 = u32::MAX - 1;
const OPEN: u32 = u32::MAX;

/// State of a crawl, in 4 bytes and a bit per page. Pages are numbered in the order in which they became known.
#[derive(Debug, Default)]
pub struct CrawlState {
    /// Position at which each page was read; [`OPEN`] or [`HELD`] if it was not.
    read_at: Vec<u32>,
    /// Bitmap of the pages read: small enough for the processor's cache, so that sweeps over links do not wait for
    /// memory.
    is_read: Bits,
    /// Bitmap of the pages found: seeds, and pages that a link of positive weight leads to.
    is_found: Bits,
    /// Number of pages that rows name; pages known from elsewhere follow them.
    named: u32,
    seeds: Vec<u32>,
    read: u32,
    held: u32,
    focus: Focused,
}

impl CrawlState {
    /// Returns the number of known pages.
    pub fn pages(&self) -> u32 {
        self.read_at.len() as u32
    }

    /// Returns the number of pages read, including those found gone.
    pub fn read(&self) -> u32 {
        self.read
    }

    /// Returns the pages read before any link to them was seen, in that order.
    pub fn seeds(&self) -> &[u32] {
        &self.seeds
    }

    /// Returns the state of a page.
    pub fn state(&self, page: u32) -> CrawlPageState {
        match self.read_at[page as usize] {
            OPEN => CrawlPageState::Open,
            HELD => CrawlPageState::Held,
            at => CrawlPageState::Read(at),
        }
    }

    /// Returns whether a page is known, unread and not held back.
    pub fn is_open(&self, page: u32) -> bool {
        self.read_at[page as usize] == OPEN
    }

    /// Returns whether a page was read.
    pub fn is_read(&self, page: u32) -> bool {
        self.is_read.get(page.into())
    }

    /// Returns whether a page was found: it is a seed, or a link leads to it. Others are only targets of weight 0, or
    /// known from elsewhere than rows.
    pub fn is_found(&self, page: u32) -> bool {
        self.is_found.get(page.into())
    }

    /// Marks a page as found; returns `false` if it was before.
    fn find(&mut self, page: u32) -> bool {
        self.is_found.grow(u64::from(page) + 1);
        self.is_found.set(page.into())
    }

    /// Returns the focus: which pages receive extra cash.
    pub fn focus(&self) -> &Focused {
        &self.focus
    }

    /// Returns the number of pages that can be listed.
    pub fn open(&self) -> u32 {
        self.pages() - self.read - self.held
    }

    /// Marks a page as read; returns `false` if it was before.
    fn begin_read(&mut self, page: u32) -> bool {
        let at = &mut self.read_at[page as usize];
        if *at < HELD {
            return false;
        }
        self.held -= u32::from(*at == HELD);
        *at = self.read;
        self.read += 1;
        self.is_read.grow(u64::from(page) + 1);
        self.is_read.set(page.into());
        true
    }

    /// Yields the open pages, in the order in which they became known.
    pub fn all_open(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.pages()).filter(|&page| self.is_open(page))
    }
}

/// Facts about a crawl besides its history; see [`Ask`].
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// Rows that were added to the history.
    pub rows: &'a dyn Rows,
    pub names: Option<&'a NameOrder>,
    /// Ranking settled over these rows.
    pub settled: Option<&'a dyn SettledRanking>,
    /// Cash that each page waits with.
    pub cash: Option<&'a [f64]>,
}

/// Crawl, and the strategy that follows it.
pub struct CrawlHistory {
    crawl: CrawlState,
    strategy: Box<dyn Strategy>,
}

impl CrawlHistory {
    /// Returns a history without any pages.
    pub fn new(strategy: Box<dyn Strategy>) -> CrawlHistory {
        CrawlHistory {
            crawl: CrawlState::default(),
            strategy,
        }
    }

    /// Sets the pages that the virtual page pays more, before any row is added.
    pub fn set_focus(&mut self, focus: Focused) {
        self.crawl.focus = focus;
    }

    /// Returns the focus, to add pages that became known.
    pub(super) fn focus_mut(&mut self) -> &mut Focused {
        &mut self.crawl.focus
    }

    /// Returns the state of the crawl.
    pub fn crawl(&self) -> &CrawlState {
        &self.crawl
    }

    pub fn strategy(&self) -> &dyn Strategy {
        &*self.strategy
    }

    /// Adds the row of a page that was read. Each page must be read only once: a caller whose pages are read again
    /// starts over. A second row of a page only adds the pages that it names.
    pub fn row(&mut self, row: Row<'_>) {
        // Pages that became known in between have no row: they were fetched in vain, or other rows name them.
        self.known_below(row.page + 1);
        if self.crawl.find(row.page) {
            self.crawl.seeds.push(row.page);
            self.strategy.found(&self.crawl, row.page, None);
        }
        if let Some(&last) = row.targets.iter().max() {
            self.known_below(last + 1);
        }
        for target in row.links() {
            if self.crawl.find(target) {
                self.strategy.found(&self.crawl, target, Some(row.page));
            }
        }
        self.crawl.named = self.crawl.pages();
        if self.crawl.begin_read(row.page) {
            self.strategy.read(&self.crawl, row);
        }
    }

    /// Adds a row like [`CrawlHistory::row`] and keeps the strategy up to date ([`Strategy::keep_up`]). `rows` are
    /// those added so far, including this one.
    pub fn follow(&mut self, row: Row<'_>, rows: &dyn Rows) -> Result<()> {
        self.row(row);
        self.strategy.keep_up(&self.crawl, rows)
    }

    /// Makes all pages below `pages` known, even if no row names them.
    pub fn known_below(&mut self, pages: u32) {
        let pages = pages.max(self.crawl.pages());
        self.crawl.read_at.resize(pages as usize, OPEN);
    }

    /// Forgets the pages that no row names, and releases held ones: [`CrawlHistory::known_below`] and
    /// [`CrawlHistory::hold`] must be repeated after further rows.
    pub fn reopen(&mut self) {
        let crawl = &mut self.crawl;
        crawl.read_at.truncate(crawl.named as usize);
        if crawl.held > 0 {
            let held = crawl.read_at.iter_mut().filter(|at| **at == HELD);
            held.for_each(|at| *at = OPEN);
            crawl.held = 0;
        }
    }

    /// Holds a page back until it is read.
    pub fn hold(&mut self, page: u32) {
        if let Some(at) = self.crawl.read_at.get_mut(page as usize)
            && *at == OPEN
        {
            *at = HELD;
            self.crawl.held += 1;
        }
    }

    /// Returns the best `count` pages to read next, best first. `rows` are those that were added to this history.
    pub fn best(
        &mut self,
        rows: &dyn Rows,
        names: Option<&NameOrder>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        self.best_with(
            Given {
                rows,
                names,
                settled: None,
                cash: None,
            },
            count,
        )
    }

    /// Returns the best pages like [`CrawlHistory::best`], using all given facts about the crawl.
    pub fn best_with(&mut self, given: Given<'_>, count: usize) -> Result<Vec<ScoredPage>> {
        let Given {
            rows,
            names,
            settled,
            cash,
        } = given;
        let ask = Ask {
            crawl: &self.crawl,
            rows,
            names,
            settled,
            cash,
            count,
        };
        self.strategy.best(&ask)
    }
}
