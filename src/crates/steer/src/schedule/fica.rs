//! FICA (Zareh Bidoki, Yazdani, Ghodsnia 2007), its Algorithm 1 to the letter, and its plain logarithmic distance:
//!
//! ```text
//! fica:      d_j = min over links i -> j of alpha log10(links of i) + (1 - alpha) d_i
//!            alpha = exp(-beta floor(pages read / K)), the page just read counted
//! distance:  d_j = min over links i -> j of log10(links of i) + d_i                          (equation 2)
//! ```
//!
//! Nearest first; seeds are at 0. A page that was read keeps its distance; one in the queue whose distance decreases is
//! moved, and read once. beta is 0.1 by default. The paper's K, 250,000, is a 72nd of its 18 M pages; the default
//! follows the crawl likewise ([`StrategyParameters::k_of`]). The other learning rates that the paper compares are
//! available as parameters ([`super::Learning`]), and so is alpha = 1.

use super::{CrawlFacts, CrawlState, Strategy, StrategyParameters, StrategySpec};
use crate::rows::Row;

pub(super) const FICA: StrategySpec = StrategySpec {
    name: "fica",
    about: "least distance of FICA, which forgets where it came from",
    parameters: &["k", "beta", "learning"],
    ..StrategySpec::of(|parameters| {
        Box::new(DistanceOrder {
            fica: Some(parameters.clone()),
            scores: Vec::new(),
        })
    })
};

pub(super) const DISTANCE: StrategySpec = StrategySpec {
    name: "distance",
    about: "least logarithmic distance from the seeds",
    ..StrategySpec::of(|_| {
        Box::new(DistanceOrder {
            fica: None,
            scores: Vec::new(),
        })
    })
};

struct DistanceOrder {
    /// Parameters of FICA; `None`: the plain distance.
    fica: Option<StrategyParameters>,
    /// Negated distance of each page; negative infinity without one.
    scores: Vec<f64>,
}

impl DistanceOrder {
    fn get(&self, page: u32) -> Option<f64> {
        let score = self.scores.get(page as usize).copied();
        score.filter(|score| score.is_finite())
    }

    /// Raises the score of a page to at least `score`.
    fn raise(&mut self, crawl: &CrawlState, page: u32, score: f64) {
        if self.scores.len() <= page as usize {
            let pages = crawl.pages() as usize;
            self.scores.resize(pages, f64::NEG_INFINITY);
        }
        let known = &mut self.scores[page as usize];
        *known = known.max(score);
    }
}

impl Strategy for DistanceOrder {
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
        let score = match &self.fica {
            None => own + link,
            Some(parameters) => {
                let alpha = match u64::from(crawl.read()) / parameters.k_of(crawl) {
                    0 => 1.0,
                    turns => parameters.learning.rate(parameters.beta * turns as f64),
                };
                alpha * link + (1.0 - alpha) * own
            }
        };
        for target in row.links().filter(|&target| !crawl.is_read(target)) {
            self.raise(crawl, target, score);
        }
    }

    fn score(&self, _crawl: &CrawlState, _facts: &CrawlFacts<'_>, page: u32) -> Option<f64> {
        self.get(page)
    }

    fn importance(&self, page: u32) -> Option<f64> {
        self.get(page)
    }
}
