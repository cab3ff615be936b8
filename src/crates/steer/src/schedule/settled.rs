//! Settled importance: PageRank of the known graph, in which unread pages have no links.
//!
//! If a ranking was settled over the same rows, as a snapshot's is, it is used without reading any row. Otherwise
//! importance is settled to a proven bound at each query: starting from the given ranking if it is of a window, of
//! another damping, or rough ([`settle_near`]), else from nothing. A focus is a personalised teleport, with which
//! importance is always settled from nothing.

use super::{CrawlFacts, CrawlState, SettledRanking, Strategy, StrategySpec};
use crate::Result;
use crate::engine::checked_damping;
use crate::rank::settle::{SettlingProgress, Watch, settle, settle_for, settle_near};
use crate::rank::{Goal, RankOptions, Teleport};
use crate::rows::Rows;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "settled",
    about: "PageRank of the known graph",
    parameters: &["damping"],
    ..StrategySpec::of(|of| {
        Box::new(SettledOrder {
            damping: of.damping(),
            ..SettledOrder::default()
        })
    })
};

/// Bound that is settled to: about 0.85^30, unless damping is so near 1 that this takes more than [`SWEEPS`] sweeps.
const LEFT: f64 = 0.007_65;
const SWEEPS: u32 = 300;

#[derive(Default)]
struct SettledOrder {
    damping: f64,
    scores: Vec<f64>,
    links: u64,
}

impl SettledOrder {
    fn settle(&mut self, crawl: &CrawlState, facts: &CrawlFacts<'_>) -> Result<Vec<f64>> {
        let (rows, is_plain) = (facts.rows, crawl.focus().is_empty());
        let options = RankOptions {
            // With a focus there is no ranking to start from: cheap further sweeps add accuracy instead.
            spare: if is_plain { 0 } else { Goal::default().spare },
            ..RankOptions::until(checked_damping(self.damping)?, LEFT)
        };
        let mut watch = AtMost {
            links: u64::from(SWEEPS) * rows.links(),
            is_over: false,
        };
        let near = match facts.ranking.filter(|_| is_plain) {
            Some(ranking) => settle_near(rows, ranking.importances, &options, &mut watch)?,
            None => None,
        };
        let settled = match near {
            None if is_plain || rows.pages() == 0 => settle(rows, &options, &mut watch)?,
            None => settle_for(rows, &options, &teleport(crawl, rows)?, &mut watch)?,
            near => near,
        };
        Ok(settled.map_or_else(Vec::new, |settled| {
            self.links += settled.effort.links_touched;
            settled.importance()
        }))
    }
}

/// Returns what the virtual page pays each page, by the focus, in units of which an even payment has 2^10 or more.
fn teleport(crawl: &CrawlState, rows: &dyn Rows) -> Result<Teleport> {
    let even = 1.0 / rows.pages().max(1) as f64;
    let pays = crawl.focus().payments(crawl.pages(), 1.0, move |_| even);
    let all = (rows.pages() << 10).next_power_of_two().max(1 << 31) as f64;
    Teleport::new((0..rows.pages() as u32).map(|page| (pays(page) * all).round() as u64))
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
    fn prepare(&mut self, crawl: &CrawlState, facts: &CrawlFacts<'_>) -> Result<()> {
        // As close to PageRank, in L1, as sweeps would come.
        let is_settled = |ranking: &SettledRanking<'_>| {
            (ranking.damping - self.damping).abs() < 1e-6 && ranking.bound_l1 <= 2.0 * LEFT
        };
        self.scores = match facts.ranking.filter(is_settled) {
            Some(ranking) if crawl.focus().is_empty() => {
                let mut all = Vec::with_capacity(ranking.importances.pages() as usize);
                ranking.importances.each(&mut |share| all.push(share))?;
                all
            }
            _ => self.settle(crawl, facts)?,
        };
        Ok(())
    }

    fn score(&self, _crawl: &CrawlState, page: u32) -> Option<f64> {
        Some(self.scores.get(page as usize).copied().unwrap_or(0.0))
    }

    fn links(&self) -> u64 {
        self.links
    }
}
