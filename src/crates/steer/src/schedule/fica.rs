//! FICA (Zareh Bidoki, Yazdani, Ghodsnia 2007), its Algorithm 1 to the letter:
//!
//! ```text
//! d_j = min over links i -> j of alpha log10(links of i) + (1 - alpha) d_i
//! alpha = exp(-beta floor(pages read / K)), the page just read counted
//! ```
//!
//! Nearest first; seeds are at 0. A page that was read keeps its distance; one in the queue whose distance decreases is
//! moved, and read once. beta is 0.1 by default. The paper's K, 250,000, is a 72nd of its 18 M pages; the default
//! follows the crawl likewise ([`StrategyParameters::k_of`]). The other learning rates that the paper compares are
//! available as parameters ([`super::Learning`]), and so is alpha = 1.

use super::queue::Queue;
use super::{Ask, Batching, CrawlState, ScoredPage, Strategy, StrategyParameters, StrategySpec};
use crate::Result;
use crate::rows::Row;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "fica",
    about: "least distance of FICA, which forgets where it came from",
    parameters: &["k", "beta", "learning"],
    batching: Batching::One,
    without_rows: false,
    by_cash: false,
    by_names: false,
    incremental: true,
    bytes_per_page_and_link: (40, 0),
    make: |parameters| {
        Box::new(Fica {
            parameters: parameters.clone(),
            queue: Queue::default(),
        })
    },
};

struct Fica {
    parameters: StrategyParameters,
    /// Queue with negated distances as scores.
    queue: Queue,
}

impl Strategy for Fica {
    fn found(&mut self, _crawl: &CrawlState, page: u32, by: Option<u32>) {
        if by.is_none() {
            self.queue.put(page, 0.0);
        }
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        let degree = row.degree();
        if degree == 0 {
            return;
        }
        let StrategyParameters { beta, learning, .. } = self.parameters;
        let turns = u64::from(crawl.read()) / self.parameters.k_of(crawl);
        let alpha = match turns {
            0 => 1.0,
            turns => learning.rate(beta * turns as f64),
        };
        let own = self.queue.score(row.page).unwrap_or(0.0);
        let score = -alpha * libm::log10(degree as f64) + (1.0 - alpha) * own;
        self.queue.raise(crawl, row.links(), score);
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        Ok(self.queue.best(ask.crawl, ask.count))
    }

    fn importance(&self, page: u32) -> Option<f64> {
        self.queue.score(page)
    }
}
