//! Breadth-first: in the order in which pages became known. Pages that no link leads to, such as targets of weight 0,
//! come last.

use super::{Ask, Batching, ScoredPage, Strategy, StrategySpec};
use crate::Result;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "breadth-first",
    about: "in the order in which pages became known",
    parameters: &[],
    batching: Batching::One,
    without_rows: true,
    by_cash: false,
    by_names: false,
    incremental: true,
    bytes_per_page_and_link: (0, 0),
    make: |_| Box::new(BreadthFirst { first: 0 }),
};

struct BreadthFirst {
    /// All pages below this one are read.
    first: u32,
}

impl Strategy for BreadthFirst {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        let crawl = ask.crawl;
        while self.first < crawl.pages() && crawl.is_read(self.first) {
            self.first += 1;
        }
        let open = |is_found: bool| {
            let pages = self.first..crawl.pages();
            pages.filter(move |&page| crawl.is_open(page) && crawl.is_found(page) == is_found)
        };
        let scored = open(true)
            .map(|page| (page, f64::from(page)))
            .chain(open(false).map(|page| (page, f64::from(page) + f64::from(crawl.pages()))))
            .map(|(page, place)| ScoredPage {
                page,
                score: -place,
            });
        Ok(scored.take(ask.count).collect())
    }
}
