//! Cycle (OPIC, section 3.1): pages in the order in which they became known, starting after the page read last and
//! wrapping around.

use super::{Ask, Batching, CrawlState, ScoredPage, Strategy, StrategySpec};
use crate::Result;
use crate::rows::Row;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "cycle",
    about: "in the order in which they became known, starting after the page read last",
    parameters: &[],
    batching: Batching::One,
    without_rows: false,
    by_cash: false,
    by_names: false,
    incremental: true,
    bytes_per_page_and_link: (0, 0),
    make: |_| Box::new(Cycle { next: 0 }),
};

struct Cycle {
    next: u32,
}

impl Strategy for Cycle {
    fn read(&mut self, _crawl: &CrawlState, row: Row<'_>) {
        self.next = row.page.saturating_add(1);
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        let crawl = ask.crawl;
        let from = self.next.min(crawl.pages());
        let all = (from..crawl.pages()).chain(0..from);
        let open = all.filter(|&page| crawl.is_open(page)).take(ask.count);
        let scored = open.enumerate().map(|(at, page)| ScoredPage {
            page,
            score: -(at as f64),
        });
        Ok(scored.collect())
    }
}
