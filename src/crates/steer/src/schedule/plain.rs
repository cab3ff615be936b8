//! Orders that go by page numbers alone: breadth-first, cycle and random.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Batching, CrawlFacts, CrawlState, ScoredPage, Strategy, StrategySpec, best_of};
use crate::Result;
use crate::rows::Row;

/// In the order in which pages became known. Pages that no link leads to, such as targets of weight 0, come last.
pub(super) const BREADTH_FIRST: StrategySpec = StrategySpec {
    name: "breadth-first",
    about: "in the order in which pages became known",
    without_rows: true,
    ..StrategySpec::of(|_| Box::new(BreadthFirst { first: 0 }))
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
    batching: Batching::Part(20),
    without_rows: true,
    ..StrategySpec::of(|parameters| Box::new(RandomOrder(parameters.seed)))
};

struct BreadthFirst {
    /// All pages below this one are read.
    first: u32,
}

impl Strategy for BreadthFirst {
    fn best(
        &mut self,
        crawl: &CrawlState,
        _facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        while self.first < crawl.pages() && crawl.is_read(self.first) {
            self.first += 1;
        }
        let open = |is_found: bool| {
            let pages = self.first..crawl.pages();
            pages.filter(move |&page| crawl.is_open(page) && crawl.is_found(page) == is_found)
        };
        let scored = open(true)
            .map(|page| (page, f64::from(page)))
            .chain(open(false).map(|page| (page, f64::from(page) + f64::from(crawl.pages()))))
            .map(|(page, place)| ScoredPage {
                page,
                score: -place,
            });
        Ok(scored.take(count).collect())
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

struct RandomOrder(u64);

impl Strategy for RandomOrder {
    fn best(
        &mut self,
        crawl: &CrawlState,
        _facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        let draw = xxh3_64_with_seed(&crawl.read().to_le_bytes(), self.0);
        let score = |page: u32| {
            let drawn = xxh3_64_with_seed(&page.to_le_bytes(), draw);
            (drawn >> 11) as f64 / (1u64 << 53) as f64
        };
        Ok(best_of(crawl, count, score))
    }
}
