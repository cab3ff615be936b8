//! Plain logarithmic distance (FICA, equation 2): d_j = min over links i -> j of d_i + log10(links of i), nearest
//! first; seeds are at 0.

use super::queue::Queue;
use super::{Ask, CrawlState, ScoredPage, Strategy, StrategySpec};
use crate::Result;
use crate::rows::Row;

pub(super) const SPEC: StrategySpec = StrategySpec::queued(
    "distance",
    "least logarithmic distance from the seeds",
    |_| Box::new(LogDistanceOrder::default()),
);

#[derive(Default)]
struct LogDistanceOrder {
    queue: Queue,
}

impl Strategy for LogDistanceOrder {
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
        let own = self.queue.score(row.page).unwrap_or(0.0);
        let score = own - libm::log10(degree as f64);
        self.queue.raise(crawl, row.links(), score);
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        Ok(self.queue.best(ask.crawl, ask.count))
    }

    fn importance(&self, page: u32) -> Option<f64> {
        self.queue.score(page)
    }
}
