//! Breadth-first: in the order in which pages became known.

use super::{Ask, Batching, Names, Scored, Strategy, StrategySpec};
use crate::Result;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "breadth-first",
    about: "in the order in which pages became known",
    parameters: &[],
    batching: Batching::One,
    without_rows: true,
    names: Names::Unseen,
    incremental: true,
    bytes_per_page_and_link: (0, 0),
    make: |_| Box::new(BreadthFirst { first: 0 }),
};

struct BreadthFirst {
    /// No page below is open.
    first: u32,
}

impl Strategy for BreadthFirst {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let crawl = ask.crawl;
        while self.first < crawl.pages() && crawl.is_read(self.first) {
            self.first += 1;
        }
        let open = (self.first..crawl.pages()).filter(|&page| crawl.is_open(page));
        let scored = open.map(|page| Scored {
            page,
            score: -f64::from(page),
        });
        Ok(scored.take(ask.count).collect())
    }
}
