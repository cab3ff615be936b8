//! Coverage of a growing crawl by pushes: the bounds of [`cashrank_graph::rank::coverage`], updated with little work
//! per added page.
//!
//! Each of S seeds starts with (1 - d)/S. To *push* page i of the fetched pages is to add what waits at i to h_i, and to
//! pass on d times that over its row: to its targets or, if it has none, to the seeds. After any pushes h and what waits
//! at other pages are lower bounds; pushing to the end adds at most what waits at fetched pages divided by 1 - d. All
//! numbers are whole units, and every share is rounded down, so both bounds stay valid. What waits at a newly fetched
//! page is pushed next, and h is kept.

use cashrank::{Error, Result};
use cashrank_graph::engine::Shares;
use cashrank_graph::rank::coverage::CoverageBounds;
use cashrank_graph::rows::{Bits, Row, Rows};

/// Units of all seeds together, at most.
const SUPPLY: u64 = 1 << 62;
/// Pushing ends when it could add at most this much to the lower bound,
const EXACT: f64 = 1e-3;
/// or this part of the gap between the bounds.
const PART: f64 = 0.005;
/// Maximum number of sweeps at a time: enough for [`EXACT`] with damping 0.99.
const SWEEPS: u32 = 1000;

/// Flow from the seeds over the known rows.
#[derive(Debug, Default)]
pub struct SeedFlow {
    /// Damping in 1/2^32.
    damping: u64,
    seeds: Vec<u32>,
    /// Units of which a seed starts with the part 1 - d.
    unit: u64,
    /// h of each page: units that were pushed.
    own: Vec<u64>,
    /// Units that wait at each page.
    waiting: Vec<u64>,
    /// Bitmap of the pages that have a row.
    read: Bits,
    /// Units from pages without links, due to the seeds.
    pool: u64,
    links: u64,
}

impl SeedFlow {
    /// Creates a flow from these pages, which must be distinct.
    pub fn from(damping: u64, seeds: &[u32]) -> SeedFlow {
        let mut flow = SeedFlow {
            damping,
            seeds: seeds.into(),
            unit: SUPPLY / seeds.len().max(1) as u64,
            ..SeedFlow::default()
        };
        let start = flow.start();
        for &seed in seeds {
            flow.know(u64::from(seed) + 1);
            flow.waiting[seed as usize] = start;
        }
        flow
    }

    /// Returns the seeds, at which readers start.
    pub fn seeds(&self) -> &[u32] {
        &self.seeds
    }

    /// Returns the number of links over which something was passed on so far.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// Returns the share of all flow that reaches a page and ends there because it was not fetched.
    pub fn waiting(&self, page: u32) -> f64 {
        let waiting = self.waiting.get(page as usize).copied();
        self.part(waiting.unwrap_or(0).into())
    }

    /// Returns true if the page had a row at the last push.
    fn is_read(&self, page: u32) -> bool {
        self.read.get(page.into())
    }

    /// Pushes what waits at pages that have a row until little is left. Returns the bounds.
    ///
    /// # Errors
    /// Fails if a row names a page that does not exist.
    pub fn push(&mut self, rows: &dyn Rows) -> Result<CoverageBounds> {
        self.know(rows.pages());
        let mut least = 1;
        for _ in 0..SWEEPS {
            rows.sweep(&mut |row| Ok(self.visit(&row, least)?))?;
            self.pay_seeds();
            let (rest, pages) = self.rest();
            let now = self.coverage();
            let apart = (now.at_most - now.at_least).max(0.0);
            let gain = self.part(rest) / (1.0 - self.damping());
            if rest == 0 || gain <= (PART * apart).max(EXACT) {
                break;
            }
            // Pages with less than this hold at most half of what waits.
            least = (rest / (2 * u128::from(pages.max(1)))).max(1) as u64;
        }
        Ok(self.coverage())
    }

    fn coverage(&self) -> CoverageBounds {
        let own: u128 = self.own.iter().map(|&own| u128::from(own)).sum();
        let pages = (0u32..).zip(&self.waiting);
        let left = pages.filter(|&(page, _)| !self.is_read(page));
        let left: u128 = left.map(|(_, &waiting)| u128::from(waiting)).sum();
        // Bounds the rounding of sums and quotients of few steps.
        let rounding = 1e-12;
        CoverageBounds {
            at_least: (self.part(own) - rounding).max(0.0),
            at_most: (1.0 - self.part(left) + rounding).min(1.0),
        }
    }

    fn damping(&self) -> f64 {
        self.damping as f64 / 2f64.powi(32)
    }

    /// Returns units as a share of all.
    fn part(&self, units: u128) -> f64 {
        let all = u128::from(self.unit) * self.seeds.len() as u128;
        units as f64 / all.max(1) as f64
    }

    /// Returns the units a seed starts with, rounded down.
    fn start(&self) -> u64 {
        let handed_on = Shares::over(self.unit, self.damping, 1).at(1);
        self.unit.saturating_sub(handed_on + 1)
    }

    fn know(&mut self, pages: u64) {
        self.read.grow(pages);
        let pages = pages as usize;
        if self.own.len() < pages {
            self.own.resize(pages, 0);
            self.waiting.resize(pages, 0);
        }
    }

    fn visit(&mut self, row: &Row<'_>, least: u64) -> Result<()> {
        let page = row.page as usize;
        self.read.set(row.page.into());
        if self.waiting[page] < least {
            return Ok(());
        }
        let units = std::mem::take(&mut self.waiting[page]);
        self.own[page] += units;
        let all = row.total();
        if all == 0 {
            self.pool += Shares::over(units, self.damping, 1).at(1);
            return Ok(());
        }
        self.links += row.degree() as u64;
        let shares = Shares::over(units, self.damping, all);
        for (at, &target) in row.targets.iter().enumerate() {
            let weight = row.weights.get(at).copied().unwrap_or(1);
            let waiting = self.waiting.get_mut(target as usize).ok_or_else(|| {
                Error::internal(format!("a row names page {target}, which is not known"))
            })?;
            *waiting += shares.at(weight);
        }
        Ok(())
    }

    /// Pays the seeds what pages without links had.
    fn pay_seeds(&mut self) {
        let seeds = self.seeds.len().max(1) as u64;
        let each = self.pool / seeds;
        for &seed in &self.seeds {
            self.waiting[seed as usize] += each;
        }
        self.pool %= seeds;
    }

    /// Returns the units that wait at fetched pages, and the number of these pages.
    fn rest(&self) -> (u128, u64) {
        let pages = (0u32..).zip(&self.waiting);
        let waiting = pages.filter(|&(page, &waiting)| waiting > 0 && self.is_read(page));
        waiting.fold((0, 0), |(units, pages), (_, &more)| {
            (units + u128::from(more), pages + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use cashrank_graph::graph::{LatestRows, Links};
    use cashrank_graph::rank::coverage::SeedShares;

    use super::*;
    use crate::random::{Purpose, Random};

    /// A growing crawl has the same bounds as one evaluated once, up to the accuracy of pushing.
    #[test]
    fn a_flow_continues_as_pages_are_read() {
        for seed in 0..100 {
            let mut random = Random::new(seed, Purpose::Order);
            let mut rows = LatestRows::default();
            rows.grow(8);
            let mut flow = SeedFlow::from(7 << 29, &[0, 1]);
            for page in 0..8 {
                let mut targets: Vec<u32> = (0..random.below(4))
                    .map(|_| random.below(8) as u32)
                    .collect();
                targets.sort_unstable();
                targets.dedup();
                rows.set(page, false, Links::from(&targets[..]));
                let now = flow.push(&rows).unwrap();
                let exact = SeedShares::of(&rows, 7 << 29, &[0, 1]).unwrap().bounds;
                let apart = PART * (now.at_most - now.at_least) + EXACT + 1e-5;
                assert!(now.at_least <= exact.at_least + 1e-5, "{now:?} {exact:?}");
                assert!(exact.at_least - now.at_least <= apart, "{now:?} {exact:?}");
                assert!(
                    (exact.at_most - now.at_most).abs() <= apart,
                    "{now:?} {exact:?}"
                );
            }
        }
    }
}
