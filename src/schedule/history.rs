//! The history of a crawl, passed to strategies row by row.

use super::{Ask, Focused, NameOrder, Scored, SettledRanking, Strategy};
use crate::Result;
use crate::rows::{Bits, Row, Rows};

/// The state of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is known, and was not read yet.
    Open,
    /// It is not to be named, though it was not read: it was handed out already, or is not wanted.
    Held,
    /// It was read, as the so-many-th page.
    Read(u32),
}

/// Numbers of pages read are below this.
const HELD: u32 = u32::MAX - 1;
const OPEN: u32 = u32::MAX;

/// A crawl so far, in 4 bytes and a bit a page. Pages are numbered in the order in which they became known.
#[derive(Debug, Default)]
pub struct Crawl {
    /// When each page was read; [`OPEN`], [`HELD`].
    read_at: Vec<u32>,
    /// A bit for each page that was read: so many fit into a processor's cache that whoever goes over links need not
    /// wait for memory.
    is_read: Bits,
    /// A bit for each page that was found: a seed, or a page that a link of some weight leads to.
    is_found: Bits,
    /// Pages that rows name: those that are known otherwise come behind them.
    named: u32,
    seeds: Vec<u32>,
    read: u32,
    held: u32,
    focus: Focused,
}

impl Crawl {
    /// Pages known.
    pub fn pages(&self) -> u32 {
        self.read_at.len() as u32
    }

    /// Pages read, those found gone included.
    pub fn read(&self) -> u32 {
        self.read
    }

    /// Pages read before any link to them was seen, in that order.
    pub fn seeds(&self) -> &[u32] {
        &self.seeds
    }

    /// The state of a page.
    pub fn state(&self, page: u32) -> State {
        match self.read_at[page as usize] {
            OPEN => State::Open,
            HELD => State::Held,
            at => State::Read(at),
        }
    }

    /// Returns whether a page is known, was not read and is not held back.
    pub fn is_open(&self, page: u32) -> bool {
        self.read_at[page as usize] == OPEN
    }

    /// Returns whether a page was read.
    pub fn is_read(&self, page: u32) -> bool {
        self.is_read.get(page.into())
    }

    /// Returns whether a page was found: it is a seed, or a link leads to it. Others are targets of weight 0 only, or known
    /// otherwise than from rows.
    pub fn is_found(&self, page: u32) -> bool {
        self.is_found.get(page.into())
    }

    /// A page is found now. False: it was before.
    fn find(&mut self, page: u32) -> bool {
        self.is_found.grow(u64::from(page) + 1);
        self.is_found.set(page.into())
    }

    /// Which pages receive extra cash.
    pub fn focus(&self) -> &Focused {
        &self.focus
    }

    /// Pages that can be named.
    pub fn open(&self) -> u32 {
        self.pages() - self.read - self.held
    }

    /// A page is read now. False: it was before.
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

    /// Pages that are open, in the order in which they became known.
    pub fn all_open(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.pages()).filter(|&page| self.is_open(page))
    }
}

/// What is known of a crawl beside its history ([`Ask`] has the meaning of each).
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The rows that were added to the history.
    pub rows: &'a dyn Rows,
    /// The order of names.
    pub names: Option<&'a NameOrder>,
    /// A ranking settled over these rows.
    pub settled: Option<&'a dyn SettledRanking>,
    /// What pages wait with.
    pub cash: Option<&'a [f64]>,
}

/// A crawl and the strategy that follows it.
pub struct History {
    crawl: Crawl,
    strategy: Box<dyn Strategy>,
}

impl History {
    /// Nothing is known yet.
    pub fn new(strategy: Box<dyn Strategy>) -> History {
        History {
            crawl: Crawl::default(),
            strategy,
        }
    }

    /// Has the virtual page pay some pages more, before any row is added.
    pub fn set_focus(&mut self, focus: Focused) {
        self.crawl.focus = focus;
    }

    /// The pages that are paid more, to add those that became known.
    pub(super) fn focus_mut(&mut self) -> &mut Focused {
        &mut self.crawl.focus
    }

    /// The crawl so far.
    pub fn crawl(&self) -> &Crawl {
        &self.crawl
    }

    /// The strategy.
    pub fn strategy(&self) -> &dyn Strategy {
        &*self.strategy
    }

    /// A page was read, once: whoever follows a crawl starts over when a page is read again. A second row of a page
    /// tells no more than which pages there are.
    pub fn row(&mut self, row: Row<'_>) {
        // What became known between has no row: it was asked for in vain, or other rows name it.
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

    /// As [`History::row`], with the strategy kept up to date ([`Strategy::keep_up`]). `rows` are those added so far,
    /// this one among them.
    ///
    /// # Errors
    /// Those of sweeping the rows.
    pub fn follow(&mut self, row: Row<'_>, rows: &dyn Rows) -> Result<()> {
        self.row(row);
        self.strategy.keep_up(&self.crawl, rows)
    }

    /// All pages below `pages` are known, though no row names them.
    pub fn known_below(&mut self, pages: u32) {
        let pages = pages.max(self.crawl.pages());
        self.crawl.read_at.resize(pages as usize, OPEN);
    }

    /// Forgets the pages that no row leads to, and holds none back any more: what was said of them by
    /// [`History::known_below`] and [`History::hold`] is to be repeated after more rows.
    pub fn reopen(&mut self) {
        let crawl = &mut self.crawl;
        crawl.read_at.truncate(crawl.named as usize);
        if crawl.held > 0 {
            let held = crawl.read_at.iter_mut().filter(|at| **at == HELD);
            held.for_each(|at| *at = OPEN);
            crawl.held = 0;
        }
    }

    /// A page is not to be named until it was read.
    pub fn hold(&mut self, page: u32) {
        if let Some(at) = self.crawl.read_at.get_mut(page as usize)
            && *at == OPEN
        {
            *at = HELD;
            self.crawl.held += 1;
        }
    }

    /// The best `count` pages to read next, best first. `rows` are those that were added to this history.
    ///
    /// # Errors
    /// Those of [`Strategy::best`].
    pub fn best(
        &mut self,
        rows: &dyn Rows,
        names: Option<&NameOrder>,
        count: usize,
    ) -> Result<Vec<Scored>> {
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

    /// As [`History::best`], with all that may be known of the crawl.
    ///
    /// # Errors
    /// Those of [`Strategy::best`].
    pub fn best_with(&mut self, given: Given<'_>, count: usize) -> Result<Vec<Scored>> {
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
