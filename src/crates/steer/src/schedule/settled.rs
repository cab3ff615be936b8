//! Settled importance: PageRank of the known graph, in which unread pages have no links.
//!
//! If a ranking was settled over the same rows, as a snapshot's is, it is used without reading any row. Otherwise
//! importance is settled to a proven bound at each query: starting from the given ranking if it is of a window, of
//! another damping, or rough ([`settle_near`]), else from nothing. With a focus, all pages are swept a fixed number of
//! times.

use super::queue::PageTopK;
use super::surfer;
use super::{Ask, Batching, ScoredPage, SettledRanking, Strategy, StrategySpec, best_of};
use crate::Result;
use crate::engine::checked_damping;
use crate::rank::RankOptions;
use crate::rank::settle::{SettlingProgress, Watch, settle, settle_near};

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "settled",
    about: "PageRank of the known graph",
    parameters: &["damping"],
    batching: Batching::Part(20),
    without_rows: false,
    by_cash: false,
    by_names: false,
    incremental: true,
    bytes_per_page_and_link: (0, 0),
    make: |of| {
        Box::new(SettledOrder {
            damping: of.damping(),
            links: 0,
        })
    },
};

/// Bound that is settled to. With a focus, the most that is left after the last sweep: about 0.85^30, unless damping is
/// so near 1 that this takes more than [`SWEEPS`] sweeps.
const LEFT: f64 = 0.007_65;
const SWEEPS: u32 = 300;

/// Returns the number of sweeps from nothing, with a focus.
pub(super) fn sweeps(damping: f64) -> u32 {
    let needed = LEFT.ln() / damping.ln();
    (needed.ceil() as u32).clamp(1, SWEEPS)
}

struct SettledOrder {
    damping: f64,
    links: u64,
}

/// Returns whether a ranking is as close to PageRank, in L1, as sweeps would come.
pub(super) fn is_settled(ranking: &dyn SettledRanking, damping: f64) -> bool {
    (ranking.damping() - damping).abs() < 1e-6 && ranking.bound_l1() <= 2.0 * LEFT
}

impl SettledOrder {
    /// Settles the importance of all pages.
    fn settle(&mut self, ask: &Ask<'_>) -> Result<Vec<f64>> {
        let options = RankOptions::until(checked_damping(self.damping)?, LEFT);
        let mut watch = AtMost {
            links: u64::from(SWEEPS) * ask.rows.links(),
            is_over: false,
        };
        let from_near = |ranking: &dyn SettledRanking| {
            let mut near = Vec::new();
            ranking.each(&mut |_, importance| near.push(importance))?;
            settle_near(ask.rows, &near, &options, &mut watch)
        };
        let settled = match ask.settled.map(from_near).transpose()?.flatten() {
            Some(settled) => Some(settled),
            None => settle(ask.rows, &options, &mut watch)?,
        };
        Ok(settled.map_or_else(Vec::new, |settled| {
            self.links += settled.progress.links_touched;
            settled.importance()
        }))
    }
}

/// Ends a settling once it has followed `links` links.
struct AtMost {
    links: u64,
    is_over: bool,
}

impl Watch for AtMost {
    fn swept(&mut self, progress: &SettlingProgress) {
        self.is_over = progress.links_touched > self.links;
    }

    fn is_over(&mut self) -> bool {
        self.is_over
    }
}

impl Strategy for SettledOrder {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        let crawl = ask.crawl;
        if let Some(ranking) = ask.settled
            && is_settled(ranking, self.damping)
            && crawl.focus().shares().is_empty()
        {
            let mut best = PageTopK::new(ask.count);
            ranking.each(&mut |page, importance| {
                if page < crawl.pages() && crawl.is_open(page) {
                    best.offer(page, importance);
                }
            })?;
            return Ok(best.sorted());
        }
        let scores = if crawl.focus().shares().is_empty() {
            self.settle(ask)?
        } else {
            let sweeps = sweeps(self.damping);
            self.links += u64::from(sweeps) * ask.rows.links();
            surfer::settle(crawl, ask.rows, self.damping, sweeps)?
        };
        Ok(best_of(crawl, ask.count, |page| {
            scores.get(page as usize).copied().unwrap_or(0.0)
        }))
    }

    fn links(&self) -> u64 {
        self.links
    }
}
