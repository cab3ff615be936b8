//! Crawl orders: what to crawl next. `next`, the live service and the simulator share one trait, so that simulations
//! show what a crawl does.
//!
//! A [`Strategy`] follows a crawl row by row ([`CrawlHistory`]) and scores the known unread pages. Scores depend on
//! that history and the [`CrawlFacts`] alone, so the same rows in the same order with the same ranking give the same
//! list, whether they come from a simulated crawl or from a store. Pages found gone are never listed again.
//!
//! Each strategy has its specification in its file, and a line in [`STRATEGIES`].

mod choice;
mod fica;
mod focus;
mod forecast;
mod history;
mod list;
mod merged;
mod names;
mod near;
mod next;
mod plain;
mod refresh;
mod settled;
mod takers;
#[cfg(test)]
mod tests;
mod xyleme;

pub use choice::Choice;
pub use focus::{Focus, FocusRule};
pub use history::{CrawlHistory, CrawlState};
pub use list::{next, next_of};
pub use merged::next_of_shards;
pub use names::{by_key, name_key};
pub(crate) use next::ListLimits;
pub use next::{
    Candidate, MAX_FAILURES, NextOptions, PageSelection, RETRY_AFTER, RetryPolicy, Seed,
};
pub use takers::Taker;

use std::cmp::Ordering;

use crate::Result;
use crate::metrics::BestItems;
use crate::rank::settle::Importances;
use crate::rows::{Row, Rows};

/// Page and its score: higher is earlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredPage {
    pub page: u32,
    /// Score, in the strategy's own measure; never NaN.
    pub score: f64,
}

impl ScoredPage {
    /// Returns a page with its score, in which 0 and -0 are equal.
    pub fn new(page: u32, score: f64) -> ScoredPage {
        let score = score + 0.0;
        ScoredPage { page, score }
    }

    /// Compares for a list: higher scores first, then lower page numbers.
    pub fn best_first(&self, other: &ScoredPage) -> Ordering {
        let score = other.score.total_cmp(&self.score);
        score.then(self.page.cmp(&other.page))
    }
}

/// Facts about a crawl besides its history.
#[derive(Clone, Copy)]
pub struct CrawlFacts<'a> {
    /// Rows that were added to the history, for further sweeps.
    pub rows: &'a dyn Rows,
    /// Numbers of all pages in the order of their names, for strategies that use this order ([`StrategySpec::by_names`]).
    pub names: Option<&'a [u32]>,
    /// Settled ranking of `rows`; `None` if there is none.
    pub ranking: Option<SettledRanking<'a>>,
}

impl<'a> CrawlFacts<'a> {
    /// Returns the facts if only the rows are known.
    pub fn of(rows: &'a dyn Rows) -> CrawlFacts<'a> {
        CrawlFacts {
            rows,
            names: None,
            ranking: None,
        }
    }
}

/// Earlier ranking: PageRank of the known graph, in which pages without a row have no links, within its bound.
#[derive(Clone, Copy)]
pub struct SettledRanking<'a> {
    pub damping: f64,
    /// Bound on the L1 error; infinite if unknown, so that the ranking is only a starting point.
    pub bound_l1: f64,
    pub importances: &'a dyn Importances,
}

/// Crawl order, called for every page when it becomes known, and for every row when it is read.
pub trait Strategy: Send {
    /// Notes that a page was found, once per page: `_by` is the page with the first link to it, or `None` for a seed, a
    /// page read before any link to it was seen. A target of weight 0 becomes known, but is not found by that.
    fn found(&mut self, _crawl: &CrawlState, _page: u32, _by: Option<u32>) {}

    /// Prefetches what [`Strategy::read`] takes from memory, some rows before.
    fn expect(&self, _page: u32) {}

    /// Notes that a page was read; all its targets are known, and `crawl` counts it as read.
    fn read(&mut self, _crawl: &CrawlState, _row: Row<'_>) {}

    /// Prepares the scores of all open pages, before [`Strategy::best`] and again once more was read. A list calls it
    /// while the names are sorted.
    fn prepare(&mut self, _crawl: &CrawlState, _facts: &CrawlFacts<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns the score of a page, never NaN, as of the last [`Strategy::prepare`]: higher is earlier. Pages without a
    /// score are not listed.
    fn score(&self, _crawl: &CrawlState, _page: u32) -> Option<f64> {
        None
    }

    /// Returns the best `count` open pages ([`CrawlState::is_open`]), best first; ties in the order in which pages
    /// became known. The default takes memory for twice as many pages.
    fn best(
        &mut self,
        crawl: &CrawlState,
        _facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        let mut best = BestItems::new(count);
        for page in crawl.all_open() {
            if let Some(score) = self.score(crawl, page) {
                best.add(ScoredPage::new(page, score), ScoredPage::best_first);
            }
        }
        Ok(best.finish(ScoredPage::best_first))
    }

    /// Returns the number of links followed so far to pass something on.
    fn links(&self) -> u64 {
        0
    }
}

pub struct StrategySpec {
    /// Name on the command line.
    pub name: &'static str,
    pub about: &'static str,
    pub parameters: &'static [&'static str],
    /// True if it works for a store without rows.
    pub without_rows: bool,
    /// True if lists order pages by the ledger's cash, which pages that were read have, too; its [`Strategy`] has no
    /// scores then.
    pub by_cash: bool,
    pub by_names: bool,
    make: fn(&Choice) -> Box<dyn Strategy>,
}

impl StrategySpec {
    /// Returns a strategy without a name, parameters, or facts that it uses.
    const fn of(make: fn(&Choice) -> Box<dyn Strategy>) -> StrategySpec {
        StrategySpec {
            name: "",
            about: "",
            parameters: &[],
            without_rows: false,
            by_cash: false,
            by_names: false,
            make,
        }
    }
}

/// All strategies; the first is the default.
pub static STRATEGIES: &[StrategySpec] = &[
    forecast::SPEC,
    plain::GREEDY,
    xyleme::SPEC,
    fica::SPEC,
    settled::SPEC,
    plain::BREADTH_FIRST,
    plain::CYCLE,
    plain::RANDOM,
];
