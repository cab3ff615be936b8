//! Crawl orders: what to crawl next. `next`, the live service and the simulator share one trait, so that simulations
//! show what a crawl does.
//!
//! A [`Strategy`] follows a crawl row by row ([`CrawlHistory`]) and scores the known unread pages. Scores depend on that
//! history and the [`CrawlFacts`] alone. Each strategy has its specification in its file, and a line in [`STRATEGIES`].

mod focus;
mod forecast;
mod history;
mod list;
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

pub use focus::{Focus, FocusRule};
pub use history::{CrawlHistory, CrawlState};
pub use list::{next, next_of};
pub use names::by_name;
pub(crate) use next::ListLimits;
pub use next::{Candidate, MAX_FAILURES, NextOptions, PageSelection, Seed, next_of_shards};
pub use takers::Taker;

use std::cmp::Ordering;
use std::ops::RangeInclusive;
use std::str::FromStr;

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

pub trait Strategy: Send {
    /// Notes that a page was found, once per page: `_by` is the page with the first link to it, or `None` for a seed, a
    /// page read before any link to it was seen. A target of weight 0 becomes known, but is not found by that.
    fn found(&mut self, _crawl: &CrawlState, _page: u32, _by: Option<u32>) {}

    /// Prefetches what [`Strategy::read`] takes from memory, some rows before.
    fn expect(&self, _page: u32) {}

    /// Notes that a page was read; all its targets are known, and `crawl` counts it as read.
    fn read(&mut self, _crawl: &CrawlState, _row: Row<'_>) {}

    /// Prepares the scores of all open pages, before [`Strategy::best`] and again once more was read.
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
    plain::FICA,
    settled::SPEC,
    plain::BREADTH_FIRST,
    plain::CYCLE,
    plain::RANDOM,
];

/// Default of K: the known pages divided by this.
const K_PARTS: u64 = 72;

/// Strategy with its parameters, of which each strategy uses its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Position of the strategy in [`STRATEGIES`].
    strategy: usize,
    /// Number of pages after which FICA's clock advances; `None`: see [`Choice::k_of`].
    pub k: Option<u64>,
    /// Speed at which FICA's learning rate falls.
    pub beta: f64,
    /// Share of a page's cash that its links pass on; `None`: the store's, or 0.85.
    damping: Option<f64>,
    /// Share of the virtual page's payments that goes to unread pages.
    pub discovery: f64,
    /// Exponent of the unseen share near a page by name.
    pub unseen: f64,
    pub seed: u64,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice {
            strategy: 0,
            k: None,
            beta: 0.1,
            damping: None,
            discovery: 0.5,
            unseen: forecast::UNSEEN,
            seed: 1,
        }
    }
}

impl Choice {
    pub fn spec(&self) -> &'static StrategySpec {
        &STRATEGIES[self.strategy]
    }

    pub fn strategy(&self) -> Box<dyn Strategy> {
        (self.spec().make)(self)
    }

    /// Returns K for a crawl: the number chosen, or a 72nd of the known pages, as the FICA paper has 250,000 for 18 M.
    pub fn k_of(&self, crawl: &CrawlState) -> u64 {
        self.k.unwrap_or(u64::from(crawl.pages()) / K_PARTS).max(1)
    }

    pub fn damping(&self) -> f64 {
        self.damping.unwrap_or(0.85)
    }

    /// Sets the store's damping unless one was chosen.
    pub fn of_store(mut self, damping: f64) -> Choice {
        self.damping.get_or_insert(damping);
        self
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let spec = self.spec();
        if !spec.parameters.contains(&name) {
            let known = match spec.parameters {
                [] => "none".into(),
                known => known.join(", "),
            };
            return Err(format!(
                "{}: unknown parameter {name:?}; it has {known}",
                spec.name
            ));
        }
        let wrong = |what: &str| format!("{name}={value}: {what}");
        let within = |range: RangeInclusive<f64>, what: &str| {
            let number = value.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| wrong(what))
        };
        let share = || within(0.0..=1.0, "a share between 0 and 1");
        match name {
            "k" => {
                let k = value.parse().ok().filter(|&k: &u64| k > 0);
                self.k = Some(k.ok_or_else(|| wrong("a number of pages, at least 1"))?);
            }
            "beta" => self.beta = within(0.0..=f64::MAX, "a number, 0 or more")?,
            "unseen" => self.unseen = within(0.0..=8.0, "a number between 0 and 8")?,
            "damping" => self.damping = Some(share()?),
            "discovery" => self.discovery = share()?,
            _ => self.seed = value.parse().map_err(|_| wrong("a whole number"))?,
        }
        Ok(())
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let named = STRATEGIES.iter().position(|spec| spec.name == name);
        let strategy = named.ok_or_else(|| {
            let names: Vec<&str> = STRATEGIES.iter().map(|spec| spec.name).collect();
            format!("unknown strategy {name:?}: one of {}", names.join(", "))
        })?;
        let mut choice = Choice {
            strategy,
            ..Choice::default()
        };
        for parameter in parameters.split(',').filter(|text| !text.is_empty()) {
            let (name, value) = parameter
                .split_once('=')
                .ok_or_else(|| format!("{parameter:?}: a parameter is written NAME=VALUE"))?;
            choice.set(name, value)?;
        }
        Ok(choice)
    }
}
