//! Greedy (OPIC, section 3.1): most cash first. A seed begins with a cash of 1, other pages with none; a
//! page that is read hands its cash on over its links, once.

use super::queue::Queue;
use super::{Ask, Batching, Crawl, Names, Scored, Strategy, StrategySpec};
use crate::Result;
use crate::rows::Row;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "greedy",
    about: "most cash first, as in OPIC; each page passes its cash on once",
    parameters: &["damping"],
    batching: Batching::One,
    without_rows: true,
    names: Names::Unseen,
    incremental: true,
    bytes_per_page_and_link: (40, 0),
    make: |parameters| {
        Box::new(Greedy {
            damping: parameters.damping(),
            queue: Queue::default(),
            links: 0,
        })
    },
};

struct Greedy {
    damping: f64,
    /// Scores are cash: of a page that was read, all that it ever had.
    queue: Queue,
    links: u64,
}

impl Strategy for Greedy {
    fn found(&mut self, _crawl: &Crawl, page: u32, by: Option<u32>) {
        self.queue.put(page, if by.is_none() { 1.0 } else { 0.0 });
    }

    fn read(&mut self, crawl: &Crawl, row: Row<'_>) {
        let cash = self.queue.score(row.page).unwrap_or(0.0);
        self.links += row.targets.len() as u64;
        for (target, part) in row.parts() {
            // What comes to a page after it was read is not handed on, but says what it is worth.
            let had = self.queue.score(target).unwrap_or(0.0);
            let has = had + self.damping * cash * part;
            if crawl.is_read(target) {
                self.queue.note(target, has)
            } else {
                self.queue.put(target, has)
            }
        }
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        Ok(self.queue.best(ask.crawl, ask.count))
    }

    fn links(&self) -> u64 {
        self.links
    }

    fn importance(&self, page: u32) -> Option<f64> {
        self.queue.score(page)
    }
}
