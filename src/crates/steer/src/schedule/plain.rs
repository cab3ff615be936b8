//! Orders that need no links: breadth-first, cycle, random and greedy.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{CrawlFacts, CrawlState, ScoredPage, Strategy, StrategySpec};
use crate::Result;
use crate::rows::Row;

/// In the order in which pages became known. Pages that no link leads to, such as targets of weight 0, come last.
pub(super) const BREADTH_FIRST: StrategySpec = StrategySpec {
    name: "breadth-first",
    about: "in the order in which pages became known",
    without_rows: true,
    ..StrategySpec::of(|_| Box::new(BreadthFirst))
};

/// OPIC, section 3.1: in the order in which pages became known, starting after the page read last and wrapping around.
pub(super) const CYCLE: StrategySpec = StrategySpec {
    name: "cycle",
    about: "in the order in which they became known, starting after the page read last",
    ..StrategySpec::of(|_| Box::new(Cycle { next: 0 }))
};

/// OPIC, section 3.1: any page with equal probability. The draw depends on the seed and on the number of pages read, so
/// repeated queries before a page is read give the same answer.
pub(super) const RANDOM: StrategySpec = StrategySpec {
    name: "random",
    about: "any page, with equal probability",
    parameters: &["seed"],
    without_rows: true,
    ..StrategySpec::of(|parameters| {
        Box::new(RandomOrder {
            seed: parameters.seed,
            draw: 0,
        })
    })
};

/// Greedy (OPIC, section 3.1): the page with the largest claim first. A page's claim is its cash in the store's ledger
/// plus what was recycled from it since its last visit ([`crate::engine::Ledger::end_round`]): the end of a round takes
/// the cash of a page that nobody fetches, but not its turn. Pages that were read have claims, too, and compete with
/// the others if both are requested.
pub(super) const GREEDY: StrategySpec = StrategySpec {
    name: "greedy",
    about: "most cash first, as in OPIC: cash and what was recycled since the last visit",
    without_rows: true,
    by_cash: true,
    ..StrategySpec::of(|_| Box::new(Greedy))
};

struct BreadthFirst;

impl Strategy for BreadthFirst {
    fn score(&self, crawl: &CrawlState, page: u32) -> Option<f64> {
        let later = if crawl.is_found(page) {
            0
        } else {
            crawl.pages()
        };
        Some(-f64::from(page) - f64::from(later))
    }
}

struct Cycle {
    next: u32,
}

impl Strategy for Cycle {
    fn read(&mut self, _crawl: &CrawlState, row: Row<'_>) {
        self.next = row.page.saturating_add(1);
    }

    fn best(
        &mut self,
        crawl: &CrawlState,
        _facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        let from = self.next.min(crawl.pages());
        let all = (from..crawl.pages()).chain(0..from);
        let open = all.filter(|&page| crawl.is_open(page)).take(count);
        let scored = open.enumerate().map(|(at, page)| ScoredPage {
            page,
            score: -(at as f64),
        });
        Ok(scored.collect())
    }
}

struct RandomOrder {
    seed: u64,
    /// Seed of the draws for the number of pages read.
    draw: u64,
}

impl Strategy for RandomOrder {
    fn prepare(&mut self, crawl: &CrawlState, _facts: &CrawlFacts<'_>) -> Result<()> {
        self.draw = xxh3_64_with_seed(&crawl.read().to_le_bytes(), self.seed);
        Ok(())
    }

    fn score(&self, _crawl: &CrawlState, page: u32) -> Option<f64> {
        let drawn = xxh3_64_with_seed(&page.to_le_bytes(), self.draw);
        Some((drawn >> 11) as f64 / (1u64 << 53) as f64)
    }
}

struct Greedy;

impl Strategy for Greedy {}
