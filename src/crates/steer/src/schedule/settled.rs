//! Settled importance: PageRank of the known graph, in which unread pages have no links.
//!
//! If a ranking was settled over the same rows, as a snapshot's is, it is used without reading any row. Otherwise
//! importance is settled to a proven bound at each query: starting from the given ranking if it is of a window, of
//! another damping, or rough ([`settle_near`]), else from nothing. With a focus, which is a personalised teleport, all
//! pages are swept a fixed number of times.

use super::queue::PageTopK;
use super::{
    Batching, CrawlFacts, CrawlState, ScoredPage, SettledRanking, Strategy, StrategySpec, best_of,
};
use crate::Result;
use crate::engine::checked_damping;
use crate::rank::RankOptions;
use crate::rank::power::step;
use crate::rank::settle::{SettlingProgress, Watch, settle, settle_near};

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "settled",
    about: "PageRank of the known graph",
    parameters: &["damping"],
    batching: Batching::Part(20),
    by_ranking: true,
    ..StrategySpec::of(|of| {
        Box::new(SettledOrder {
            damping: of.damping(),
            links: 0,
        })
    })
};

/// Bound that is settled to. With a focus, the most that is left after the last sweep: about 0.85^30, unless damping is
/// so near 1 that this takes more than [`SWEEPS`] sweeps.
const LEFT: f64 = 0.007_65;
const SWEEPS: u32 = 300;

struct SettledOrder {
    damping: f64,
    links: u64,
}

impl SettledOrder {
    /// Settles the importance of all pages.
    fn settle(&mut self, facts: &CrawlFacts<'_>) -> Result<Vec<f64>> {
        let options = RankOptions::until(checked_damping(self.damping)?, LEFT);
        let mut watch = AtMost {
            links: u64::from(SWEEPS) * facts.rows.links(),
            is_over: false,
        };
        let from_near = |ranking: &dyn SettledRanking| {
            let mut near = Vec::new();
            ranking.each(&mut |_, importance| near.push(importance))?;
            settle_near(facts.rows, &near, &options, &mut watch)
        };
        let settled = match facts.ranking.map(from_near).transpose()?.flatten() {
            Some(settled) => Some(settled),
            None => settle(facts.rows, &options, &mut watch)?,
        };
        Ok(settled.map_or_else(Vec::new, |settled| {
            self.links += settled.progress.links_touched;
            settled.importance()
        }))
    }

    /// Sweeps from nothing, with what the virtual page pays the pages of the focus.
    fn focused(&mut self, crawl: &CrawlState, facts: &CrawlFacts<'_>) -> Result<Vec<f64>> {
        let even = 1.0 / f64::from(crawl.pages().max(1));
        let pays = crawl.focus().payments(crawl, 1.0, |_| even);
        let mut now = vec![even; crawl.pages() as usize];
        let mut next = vec![0.0; now.len()];
        let sweeps = (LEFT.ln() / self.damping.ln()).ceil() as u32;
        for _ in 0..sweeps.clamp(1, SWEEPS) {
            let is_read = |page| crawl.is_read(page);
            step(facts.rows, self.damping, is_read, &now, &mut next)?;
            self.links += facts.rows.links();
            let rest = 1.0 - next.iter().sum::<f64>();
            (0..)
                .zip(&mut next)
                .for_each(|(page, next)| *next += rest * pays(page));
            std::mem::swap(&mut now, &mut next);
        }
        Ok(now)
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
    fn best(
        &mut self,
        crawl: &CrawlState,
        facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        let has_focus = !crawl.focus().shares().is_empty();
        // As close to PageRank, in L1, as sweeps would come.
        let is_settled = |ranking: &&dyn SettledRanking| {
            (ranking.damping() - self.damping).abs() < 1e-6 && ranking.bound_l1() <= 2.0 * LEFT
        };
        if let Some(ranking) = facts.ranking.filter(is_settled)
            && !has_focus
        {
            let mut best = PageTopK::new(count);
            ranking.each(&mut |page, importance| {
                if crawl.is_open(page) {
                    best.offer(page, importance);
                }
            })?;
            return Ok(best.sorted());
        }
        let scores = if has_focus {
            self.focused(crawl, facts)?
        } else {
            self.settle(facts)?
        };
        let score = |page: u32| scores.get(page as usize).copied().unwrap_or(0.0);
        Ok(best_of(crawl, count, score))
    }

    fn links(&self) -> u64 {
        self.links
    }
}
