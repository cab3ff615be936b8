//! What to crawl next: crawl orders, of which one trait is used by `next`, by the live service and by the
//! simulator, so that what is simulated is what runs.
//!
//! A [`Strategy`] receives what happened in a crawl, one row after the other ([`History`]), and lists the
//! best pages among those known and not read yet. Its answer depends on that history alone: the same rows
//! in the same order give the same answer, whether they come from a simulated crawl or from a store's kept
//! rows. Pages found gone are never named again.
//!
//! One file a strategy, and one line in [`STRATEGIES`].

mod breadth_first;
mod choice;
mod circulating;
mod cycle;
mod distance;
mod fica;
mod focus;
mod follower;
mod forecast;
mod greedy;
mod history;
mod measure;
mod merged;
mod names;
mod near;
mod next;
mod pushes;
mod queue;
mod random;
mod refresh;
mod seeds;
mod settled;
mod surfer;
mod takers;
#[cfg(test)]
mod tests;
mod xyleme;

pub use choice::{Choice, Learning, Parameters};
pub use focus::{Focus, FocusRule, Focused};
pub(crate) use follower::Mark;
pub use follower::{Follower, next};
pub use history::{Crawl, Given, History, State};
pub use measure::{Distances, Measure};
pub use merged::next_of_shards;
pub use names::{NameOrder, NameOrderBuilder};
pub use next::{Candidate, Failures, MAX_FAILURES, NextOptions, RETRY_AFTER, Seed, Which};
pub use queue::best_of;
pub use refresh::{Looks, change_rate, gain};
pub(crate) use seeds::SeedChoice;

pub use takers::Taker;

use crate::Result;
use crate::rows::{Row, Rows};

/// A page and its score: more is earlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The page.
    pub page: u32,
    /// Its score, in the strategy's own measure.
    pub score: f64,
}

/// The input of a strategy for a list.
pub struct Ask<'a> {
    /// The crawl so far.
    pub crawl: &'a Crawl,
    /// Its rows, to be swept again.
    pub rows: &'a dyn Rows,
    /// Which pages stand near each other by their names; `None`: not known.
    pub names: Option<&'a NameOrder>,
    /// A ranking of these rows; `None`: there is none.
    pub settled: Option<&'a dyn SettledRanking>,
    /// What each page waits with by a store's ledger, for strategies that go by it ([`StrategySpec::by_cash`]).
    pub cash: Option<&'a [f64]>,
    /// How many pages are wanted.
    pub count: usize,
}

/// A ranking that was made before: PageRank of the known graph, in which pages without a row have no links, as near as its
/// bound says.
pub trait SettledRanking {
    /// Its damping.
    fn damping(&self) -> f64;

    /// The bound on its L1 error; infinite: there is none, and it is no more than a start.
    fn bound_l1(&self) -> f64;

    /// Calls `visit` with each page and its importance, in the order of pages; all are 1 together.
    ///
    /// # Errors
    /// Those of reading it.
    fn each(&self, visit: &mut dyn FnMut(u32, f64)) -> Result<()>;
}

/// A crawl order. It is called for every page when it becomes known, and for every row when it is read.
pub trait Strategy: Send {
    /// `page` was found, once: of a seed, a page that was read before any link to it was seen, `by` is `None`; else page
    /// `by` has the first link to it. A target of weight 0 becomes known, but is not found by that.
    fn found(&mut self, crawl: &Crawl, page: u32, by: Option<u32>) {
        let _ = (crawl, page, by);
    }

    /// A page was read, of which all targets are known. `crawl` counts it already.
    fn read(&mut self, crawl: &Crawl, row: Row<'_>) {
        let _ = (crawl, row);
    }

    /// After a page was read: goes over the rows where it is time to, if the strategy is kept up by that. When it is depends
    /// on the history alone. Who tells rows one by one and asks now and then calls it after each; who tells all and asks
    /// once need not.
    ///
    /// # Errors
    /// Those of sweeping the rows.
    fn keep_up(&mut self, crawl: &Crawl, rows: &dyn Rows) -> Result<()> {
        let _ = (crawl, rows);
        Ok(())
    }

    /// The best pages that are open ([`Crawl::is_open`]), best first; of equal ones the one known first.
    ///
    /// # Errors
    /// Those of sweeping the rows; what the strategy needs is not known.
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>>;

    /// How many links it went over so far, to hand something on over them.
    fn links(&self) -> u64 {
        0
    }

    /// The strategy's own estimate of a page's importance, if its order says less than that.
    fn importance(&self, page: u32) -> Option<f64> {
        let _ = page;
        None
    }
}

/// How many pages are worth asking a strategy for at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batching {
    /// One: it is up to date after every page, at a cost of a few links.
    One,
    /// A part of those read, this being its denominator: an answer goes over all pages, or all rows.
    Part(u32),
}

/// A strategy that can be asked for by name.
pub struct StrategySpec {
    /// Its name.
    pub name: &'static str,
    /// The order, in a line.
    pub about: &'static str,
    /// Names of its parameters.
    pub parameters: &'static [&'static str],
    /// How many pages are worth asking for at a time.
    pub batching: Batching,
    /// It can be asked of a store that keeps no rows.
    pub without_rows: bool,
    /// Its order is that of the ledger's cash, which pages that were read have, too.
    pub by_cash: bool,
    /// It goes by which pages stand near each other by their names.
    pub by_names: bool,
    /// Rows may be added between lists; lists are then the same as from all rows at once, up to the certified error.
    pub incremental: bool,
    /// Bytes of memory per page and per link.
    pub bytes_per_page_and_link: (u64, u64),
    make: fn(&Parameters) -> Box<dyn Strategy>,
}

impl StrategySpec {
    /// One that keeps its open pages in a [`queue::Queue`], and has no parameters.
    const fn queued(
        name: &'static str,
        about: &'static str,
        make: fn(&Parameters) -> Box<dyn Strategy>,
    ) -> StrategySpec {
        StrategySpec {
            name,
            about,
            parameters: &[],
            batching: Batching::One,
            without_rows: false,
            by_cash: false,
            by_names: false,
            incremental: true,
            bytes_per_page_and_link: (40, 0),
            make,
        }
    }
}

/// All strategies; the first is the default.
pub static STRATEGIES: &[StrategySpec] = &[
    forecast::SPEC,
    circulating::SPEC,
    greedy::SPEC,
    xyleme::SPEC,
    fica::SPEC,
    distance::SPEC,
    settled::SPEC,
    breadth_first::SPEC,
    cycle::SPEC,
    random::SPEC,
];
