//! Partial PageRank (Cho, Garcia-Molina, Page 1998; FICA's Algorithm 2): after every K pages read, PageRank
//! of the known graph puts the queue in order; pages found since stand behind it, in the order of finding.

use super::queue::Queue;
use super::settled::sweeps;
use super::surfer::settle;
use super::{Ask, Batching, Crawl, Names, Parameters, Scored, Strategy, StrategySpec};
use crate::Result;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "pagerank",
    about: "partial PageRank: that of the known graph, recomputed after every K pages",
    parameters: &["k", "damping"],
    batching: Batching::One,
    without_rows: false,
    by_cash: false,
    names: Names::Unseen,
    incremental: false,
    bytes_per_page_and_link: (40, 0),
    make: |parameters| {
        Box::new(PartialPageRank {
            parameters: parameters.clone(),
            damping: parameters.damping(),
            ranked: 0,
            queue: Queue::default(),
        })
    },
};

struct PartialPageRank {
    parameters: Parameters,
    damping: f64,
    /// Pages read when the queue was put in order last.
    ranked: u32,
    queue: Queue,
}

impl Strategy for PartialPageRank {
    fn found(&mut self, _crawl: &Crawl, page: u32, _by: Option<u32>) {
        // Less than any PageRank: that is never 0.
        self.queue.put(page, 0.0);
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let read = ask.crawl.read();
        if u64::from(read - self.ranked) >= self.parameters.k_of(ask.crawl) {
            self.ranked = read;
            let scores = settle(ask.crawl, ask.rows, self.damping, sweeps(self.damping))?;
            self.queue = Queue::default();
            for page in ask.crawl.all_open() {
                self.queue.put(page, scores[page as usize]);
            }
        }
        Ok(self.queue.best(ask.crawl, ask.count))
    }
}
