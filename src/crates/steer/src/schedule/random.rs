//! Random (OPIC, section 3.1): any page with equal probability. The draw depends on the seed and on the number of pages
//! read, so repeated queries before a page is read give the same answer.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Ask, Batching, ScoredPage, Strategy, StrategySpec, best_of};
use crate::Result;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "random",
    about: "any page, with equal probability",
    parameters: &["seed"],
    batching: Batching::Part(20),
    without_rows: true,
    by_cash: false,
    by_names: false,
    incremental: true,
    bytes_per_page_and_link: (0, 0),
    make: |parameters| Box::new(RandomOrder(parameters.seed)),
};

struct RandomOrder(u64);

impl Strategy for RandomOrder {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        let draw = xxh3_64_with_seed(&ask.crawl.read().to_le_bytes(), self.0);
        let score = |page: u32| {
            let drawn = xxh3_64_with_seed(&page.to_le_bytes(), draw);
            (drawn >> 11) as f64 / (1u64 << 53) as f64
        };
        Ok(best_of(ask.crawl, ask.count, score))
    }
}
