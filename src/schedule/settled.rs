//! Settled importance: PageRank of the known graph, in which pages not read have no links.
//!
//! If a ranking was settled over the same rows, as a snapshot's is, it is taken, and no row is read. Otherwise it is computed,
//! again whenever it is asked for: with a focus, where nothing was settled, or to another damping, or only roughly.

use super::queue::Best;
use super::surfer::settle;
use super::{Ask, Batching, Names, Scored, SettledRanking, Strategy, StrategySpec, best_of};
use crate::Result;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "settled",
    about: "PageRank of the known graph",
    parameters: &["damping"],
    batching: Batching::Part(20),
    without_rows: false,
    names: Names::Unseen,
    incremental: true,
    bytes_per_page_and_link: (0, 0),
    make: |of| {
        Box::new(Settled {
            damping: of.damping(),
            links: 0,
        })
    },
};

/// What is left after the last sweep, at most: 0.85^30 and a little, less than 0.8 %; unless damping is so near 1 that it takes more
/// sweeps than [`SWEEPS`].
const LEFT: f64 = 0.007_65;
const SWEEPS: u32 = 300;

/// Sweeps from nothing.
pub(super) fn sweeps(damping: f64) -> u32 {
    let needed = LEFT.ln() / damping.ln();
    (needed.ceil() as u32).clamp(1, SWEEPS)
}

struct Settled {
    damping: f64,
    links: u64,
}

/// Returns whether a ranking is what sweeps would give: as near to PageRank, in L1, as they come.
pub(super) fn is_settled(ranking: &dyn SettledRanking, damping: f64) -> bool {
    (ranking.damping() - damping).abs() < 1e-6 && ranking.bound_l1() <= 2.0 * LEFT
}

impl Strategy for Settled {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let crawl = ask.crawl;
        if let Some(ranking) = ask.settled
            && is_settled(ranking, self.damping)
            && crawl.focus().shares().is_empty()
        {
            let mut best = Best::new(ask.count);
            ranking.each(&mut |page, importance| {
                if page < crawl.pages() && crawl.is_open(page) {
                    best.offer(page, importance);
                }
            })?;
            return Ok(best.sorted());
        }
        let scores = settle(crawl, ask.rows, self.damping, sweeps(self.damping))?;
        self.links += u64::from(sweeps(self.damping)) * ask.rows.links();
        Ok(best_of(crawl, ask.count, |page| scores[page as usize]))
    }

    fn links(&self) -> u64 {
        self.links
    }
}
