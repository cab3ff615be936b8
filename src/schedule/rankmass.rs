//! RankMass, windowed (J. Cho, U. Schonfeld, VLDB 2007): first the pages at which most of what readers from the seeds do waits,
//! because they were not read. What was read is certified ([`crate::rank::coverage`]).
//!
//! The paper's crawler has what waits handed on at once; the windowed one, after so many pages. Here it is when it is asked.

use super::{Ask, Batching, Names, Scored, Strategy, StrategySpec, best_of};
use crate::Result;
use crate::engine::damping_units;
use crate::rank::coverage::Flow;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "rankmass",
    about: "RankMass: most of what readers who start at the seeds are known to see of it",
    parameters: &["damping"],
    batching: Batching::Part(20),
    without_rows: false,
    by_cash: false,
    names: Names::Unseen,
    incremental: true,
    bytes_per_page_and_link: (17, 0),
    make: |of| {
        Box::new(RankMass {
            damping: damping_units(of.damping()),
            flow: Flow::default(),
        })
    },
};

struct RankMass {
    damping: u64,
    flow: Flow,
}

impl Strategy for RankMass {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let seeds = ask.crawl.seeds();
        if self.flow.seeds() != seeds {
            self.flow = Flow::from(self.damping, seeds);
        }
        self.flow.push(ask.rows)?;
        Ok(best_of(ask.crawl, ask.count, |page| {
            self.flow.waiting(page)
        }))
    }

    fn links(&self) -> u64 {
        self.flow.links()
    }
}
