//! Settled importance: PageRank of the known graph, in which unread pages have no links.
//!
//! If a ranking was settled over the same rows, as a snapshot's is, it is used without reading any row. Otherwise
//! importance is settled to a proven bound at each query: starting from the given ranking if it is of a window, of
//! another damping, or rough ([`settle_near`]), else from nothing. With a focus, which is a personalised teleport, all
//! pages are swept a fixed number of times.

use super::{CrawlFacts, CrawlState, SettledRanking, Strategy, StrategySpec};
use crate::Result;
use crate::engine::checked_damping;
use crate::rank::RankOptions;
use crate::rank::settle::{SettlingProgress, Watch, settle, settle_near};
use crate::rows::Rows;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "settled",
    about: "PageRank of the known graph",
    parameters: &["damping"],
    ..StrategySpec::of(|of| {
        Box::new(SettledOrder {
            damping: of.damping(),
            scores: Vec::new(),
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
    /// Importance of all pages.
    scores: Vec<f64>,
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
        let from_near = |ranking: SettledRanking<'_>| {
            settle_near(facts.rows, ranking.importances, &options, &mut watch)
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

/// Adds the scores that pages pass on over their links in a step of the power method; only pages for which `counts` is
/// true.
fn step(
    rows: &dyn Rows,
    damping: f64,
    counts: impl Fn(u32) -> bool,
    now: &[f64],
    next: &mut [f64],
) -> Result<()> {
    next.fill(0.0);
    rows.sweep(&mut |row| {
        if (row.page as usize) < now.len() && counts(row.page) {
            let handed = damping * now[row.page as usize];
            for (target, part) in row.parts() {
                if let Some(next) = next.get_mut(target as usize) {
                    *next += handed * part;
                }
            }
        }
        Ok(())
    })?;
    Ok(())
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
            _ if !crawl.focus().is_empty() => self.focused(crawl, facts)?,
            Some(ranking) => {
                let mut all = Vec::with_capacity(ranking.importances.pages() as usize);
                ranking.importances.each(&mut |share| all.push(share))?;
                all
            }
            None => self.settle(facts)?,
        };
        Ok(())
    }

    fn score(&self, _crawl: &CrawlState, _facts: &CrawlFacts<'_>, page: u32) -> Option<f64> {
        Some(self.scores.get(page as usize).copied().unwrap_or(0.0))
    }

    fn links(&self) -> u64 {
        self.links
    }
}
