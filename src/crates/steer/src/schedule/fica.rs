//! FICA (Zareh Bidoki, Yazdani, Ghodsnia 2007), its Algorithm 1 to the letter:
//!
//! ```text
//! d_j = min over links i -> j of alpha log10(links of i) + (1 - alpha) d_i
//! alpha = exp(-beta floor(pages read / K)), the page just read counted
//! ```
//!
//! Nearest first; seeds are at 0. A page that was read keeps its distance; one in the queue whose distance decreases is
//! moved, and read once. beta is 0.1 by default. The paper's K, 250,000, is a 72nd of its 18 M pages; the default
//! follows the crawl likewise ([`Choice::k_of`]). `cashrank-lab` has the other learning rates that the paper
//! compares.

use super::{Choice, CrawlState, Strategy, StrategySpec};
use crate::rows::Row;

pub(super) const SPEC: StrategySpec = StrategySpec {
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
