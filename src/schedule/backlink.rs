//! Back-link count (Cho, Garcia-Molina, Page 1998): most links seen first. The FICA paper
//! counts again only after every K pages (its Algorithm 2); here the count is always that of now.

use super::queue::Queue;
use super::{Ask, Crawl, Scored, Strategy, StrategySpec};
use crate::Result;
use crate::rows::Row;

pub(super) const SPEC: StrategySpec =
    StrategySpec::queued("backlink", "most links seen first", |_| {
        Box::new(BackLink::default())
    });

#[derive(Default)]
struct BackLink {
    queue: Queue,
}

impl Strategy for BackLink {
    fn found(&mut self, _crawl: &Crawl, page: u32, _by: Option<u32>) {
        self.queue.put(page, 0.0);
    }

    fn read(&mut self, _crawl: &Crawl, row: Row<'_>) {
        for target in row.links() {
            let links = self.queue.score(target).unwrap_or(0.0);
            self.queue.put(target, links + 1.0);
        }
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        Ok(self.queue.best(ask.crawl, ask.count))
    }
}
