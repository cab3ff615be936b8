//! Settled importance: PageRank of the known graph, in which pages not read have no links.
//!
//! If a ranking was settled over the same rows, as a snapshot's is, it is taken, and no row is read. Otherwise it is computed,
//! again whenever it is asked for: with a focus, where nothing was settled, or to another damping, or only roughly.

use super::queue::Best;
use super::surfer::{DAMPING, settle};
use super::{Ask, AtATime, Names, Registered, Scored, SettledRanking, Strategy, best_of};
use crate::Result;

pub(super) const REGISTERED: Registered = Registered {
    name: "settled",
    about: "PageRank of the known graph",
    parameters: &[],
    at_a_time: AtATime::Part(20),
    without_rows: false,
    names: Names::Unseen,
    goes_on: true,
    keeps: (0, 0),
    make: |_| Box::new(Settled { links: 0 }),
};

/// After so many sweeps 0.85^30 < 0.8 % is not settled.
pub(super) const SWEEPS: u32 = 30;
/// A ranking is taken that is certified to be as near to PageRank as so many sweeps from nothing are: an L1 distance of
/// 2 x 0.85^30.
const BOUND: f64 = 0.0153;

struct Settled {
    links: u64,
}

/// Whether a ranking is what sweeps would give.
pub(super) fn is_settled(ranking: &dyn SettledRanking) -> bool {
    (ranking.damping() - DAMPING).abs() < 1e-6 && ranking.bound_l1() <= BOUND
}

impl Strategy for Settled {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let crawl = ask.crawl;
        if let Some(ranking) = ask.settled
            && is_settled(ranking)
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
        let scores = settle(crawl, ask.rows, SWEEPS)?;
        self.links += u64::from(SWEEPS) * ask.rows.links();
        Ok(best_of(crawl, ask.count, |page| scores[page as usize]))
    }

    fn links(&self) -> u64 {
        self.links
    }
}
