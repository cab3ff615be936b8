//! Orders that keep little or nothing of the pages: breadth-first, cycle, random, greedy and FICA.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Choice, CrawlFacts, CrawlState, ScoredPage, Strategy, StrategySpec};
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
    ..StrategySpec::of(|of| Box::new(RandomOrder { seed: of.seed }))
};

/// Greedy (OPIC, section 3.1): the page with the largest claim first. A page's claim is its cash in the store's ledger
/// plus what was recycled from it since its last visit ([`crate::engine::Ledger::end_round`]). Pages that were read have
/// claims, too, and compete with the others if both are requested.
pub(super) const GREEDY: StrategySpec = StrategySpec {
    name: "greedy",
    about: "most cash first, as in OPIC: cash and what was recycled since the last visit",
    without_rows: true,
    by_cash: true,
    ..StrategySpec::of(|_| Box::new(Greedy))
};

/// FICA (Zareh Bidoki, Yazdani, Ghodsnia 2007), its Algorithm 1 to the letter:
///
/// ```text
/// d_j = min over links i -> j of alpha log10(links of i) + (1 - alpha) d_i
/// alpha = exp(-beta floor(pages read / K)), the page just read counted
/// ```
///
/// Nearest first; seeds are at 0. A page that was read keeps its distance; one in the queue whose distance decreases is
/// moved, and read once. [`Choice::k_of`] has the default of K. `cashrank-lab` has the paper's other learning rates.
pub(super) const FICA: StrategySpec = StrategySpec {
    name: "fica",
    about: "least distance of FICA, which forgets where it came from",
    parameters: &["k", "beta"],
    ..StrategySpec::of(|choice| {
        Box::new(Fica {
            choice: choice.clone(),
            scores: Vec::new(),
        })
    })
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
}

impl Strategy for RandomOrder {
    fn score(&self, crawl: &CrawlState, page: u32) -> Option<f64> {
        let seed = xxh3_64_with_seed(&crawl.read().to_le_bytes(), self.seed);
        let drawn = xxh3_64_with_seed(&page.to_le_bytes(), seed);
        Some((drawn >> 11) as f64 / (1u64 << 53) as f64)
    }
}

struct Greedy;

impl Strategy for Greedy {}

struct Fica {
    choice: Choice,
    /// Negated distance of each page; negative infinity without one.
    scores: Vec<f64>,
}

impl Fica {
    fn get(&self, page: u32) -> Option<f64> {
        let score = self.scores.get(page as usize).copied();
        score.filter(|score| score.is_finite())
    }

    fn raise(&mut self, crawl: &CrawlState, page: u32, score: f64) {
        if self.scores.len() <= page as usize {
            let pages = crawl.pages() as usize;
            self.scores.resize(pages, f64::NEG_INFINITY);
        }
        let known = &mut self.scores[page as usize];
        *known = known.max(score);
    }
}

impl Strategy for Fica {
    fn found(&mut self, crawl: &CrawlState, page: u32, by: Option<u32>) {
        if by.is_none() {
            self.raise(crawl, page, 0.0);
        }
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        let degree = row.degree();
        if degree == 0 {
            return;
        }
        let link = -libm::log10(degree as f64);
        let own = self.get(row.page).unwrap_or(0.0);
        let turns = u64::from(crawl.read()) / self.choice.k_of(crawl);
        let alpha = libm::exp(-self.choice.beta * turns as f64);
        let score = alpha * link + (1.0 - alpha) * own;
        for target in row.links().filter(|&target| !crawl.is_read(target)) {
            self.raise(crawl, target, score);
        }
    }

    fn score(&self, _crawl: &CrawlState, page: u32) -> Option<f64> {
        self.get(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::CrawlHistory;

    /// Returns the distances after a crawl in which 0 links to 1, 2, 3; 1 to 4 and 2. Nothing links to 5.
    fn distances(strategy: &str) -> Vec<Option<f64>> {
        let choice: Choice = strategy.parse().unwrap();
        let mut history = CrawlHistory::new(choice.strategy());
        history.row(Row::new(0, &[1, 2, 3]));
        history.row(Row::new(1, &[4, 2]));
        let crawl = history.crawl();
        let score = |page| history.strategy().score(crawl, page);
        (0..6).map(|page| Some(0.0 - score(page)?)).collect()
    }

    /// Works out equation 3 by hand.
    #[test]
    fn distances_are_those_of_the_equation() {
        let (two, three) = (2f64.log10(), 3f64.log10());
        // With K = 1, alpha is exp(-0.1) at the first page and exp(-0.2) at the second.
        let (first, second) = ((-0.1f64).exp(), (-0.2f64).exp());
        let one = first * three;
        let four = second * two + (1.0 - second) * one;
        let found = distances("fica:k=1");
        for (page, expected) in [(0, 0.0), (1, one), (2, one.min(four)), (3, one), (4, four)] {
            assert!((found[page].unwrap() - expected).abs() < 1e-15, "{page}");
        }
        assert_eq!(found[5], None);
    }
}
