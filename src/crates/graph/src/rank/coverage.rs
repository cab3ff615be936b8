//! Coverage: bounds on the share of what readers see that was fetched, for readers who start at the seeds.
//!
//! Let x be the personalised PageRank of the whole web, fetched or not: a reader follows a link with probability d, and
//! otherwise, or at a page without links, starts again at a seed. C is the set of fetched pages, whose rows are known.
//! No row of another page is known, and yet x(C) is bounded from both sides (RankMass: J. Cho, U. Schonfeld, VLDB 2007,
//! for the lower one).
//!
//! **Flow.** Each of S seeds starts with (1 - d)/S. To *push* page i of C is to add what waits at i to h_i, and to pass
//! on d times that over its row: to its targets or, if it has none, to the seeds. r is what waits at pages of C, a is
//! what waits at other pages. Nothing is negative, and after any pushes
//!
//! ```text
//! x_i >= h_i for i in C          each push is a part of the walks that x counts, and no walk is counted twice
//! x_i >= a_i for all others      for the same reason
//! x(C) >= sum h,    x(C) = 1 - x(others) <= 1 - sum a
//! ```
//!
//! Pushing to the end adds at most r/(1 - d) to the sum of h. Then r = 0 and, if all seeds were fetched, `sum h = 1 -
//! sum a/(1 - d)`: the gap between the bounds depends only on what leaves C.
//!
//! **Rounding.** All numbers are whole units, and every share is rounded down, so less is counted than flows, and both
//! bounds stay valid. The loss is less than one unit per link and push, of 2^62 in total.
//!
//! **While a crawl grows**, what waits at a newly fetched page is pushed next, and h is kept. If a row changed, the
//! page has passed on over the old one, and the flow starts over.
//!
//! Uniform PageRank, where readers start at any page, has no such bounds: most of it starts at pages that were not
//! fetched.

use crate::engine::Shares;
use crate::rows::{Bits, Row, Rows};
use crate::{Error, Result};

/// Units of all seeds together, at most.
const SUPPLY: u64 = 1 << 62;
/// Pushing ends when it could add at most this much to the lower bound,
const EXACT: f64 = 1e-3;
/// or this part of the gap between the bounds.
const PART: f64 = 0.005;
/// Maximum number of sweeps at a time: enough for [`EXACT`] with damping 0.99.
const SWEEPS: u32 = 1000;

/// Bounds on the importance of the fetched pages for readers who start at the seeds; see the module documentation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoverageBounds {
    /// Lower bound on the share of what readers see that was fetched, from 0 to 1.
    pub at_least: f64,
    /// Upper bound on that share.
    pub at_most: f64,
}

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

    /// Returns a lower bound on the share of a page among all that readers see; 0 if it was not fetched.
    pub fn own(&self, page: u32) -> f64 {
        let own = self.own.get(page as usize).copied();
        self.part(own.unwrap_or(0).into())
    }

    /// Returns true if the page had a row at the last push.
    pub fn is_read(&self, page: u32) -> bool {
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

    pub fn coverage(&self) -> CoverageBounds {
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

    /// Estimates the lower bound after fetching pages at which `waiting` waits: what they pass on returns to fetched
    /// pages as often as what others have passed on so far.
    pub fn with(&self, waiting: f64) -> f64 {
        let CoverageBounds { at_least, at_most } = self.coverage();
        let left = if at_least > 0.0 {
            ((1.0 - at_most) / (self.damping() * at_least)).clamp(0.0, 1.0)
        } else {
            1.0
        };
        let gain = waiting / (1.0 - self.damping() * (1.0 - left));
        (at_least + gain).min(at_most)
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
        let all = row.weight();
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

/// Finds the seeds where none are given: the pages that were fetched, and not found gone, before any link to them was
/// seen.
///
/// Pages are numbered in the order of their first appearance, and rows lie in the order in which pages were last
/// fetched. So a page that was fetched once is a seed if no page with a smaller number links to it from an earlier row;
/// a page whose row comes later already found it known. The first state of a page in `reread`, which was fetched more
/// than once, is unknown: it counts as fetched before all others.
pub fn seeds(rows: &dyn Rows, reread: &Bits) -> Result<Vec<u32>> {
    let (mut found, mut linked) = (Bits::new(rows.pages()), Bits::new(rows.pages()));
    let mut gone = Bits::new(rows.pages());
    rows.sweep(&mut |row| {
        found.set(row.page.into());
        if row.gone {
            gone.set(row.page.into());
        }
        let from = reread.get(row.page.into());
        for target in row.links().filter(|&target| target > row.page) {
            let (target, to) = (u64::from(target), reread.get(target.into()));
            if from || to || !found.get(target) {
                linked.set(target);
            }
        }
        Ok(())
    })?;
    let is_seed = |page: &u32| {
        let page = u64::from(*page);
        found.get(page) && !gone.get(page) && !linked.get(page)
    };
    Ok((0..rows.pages() as u32).filter(is_seed).collect())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::graph::{LatestRows, Links};

    /// Number of pages of the generated webs.
    const PAGES: usize = 6;
    /// Damping 7/8, with which all is exact in small whole numbers.
    const DAMPING: u64 = 7 << 29;

    /// Rows of a whole web: distinct targets with weights.
    type Web = Vec<Vec<(u32, u64)>>;

    fn webs() -> impl Strategy<Value = Web> {
        let row = prop::collection::btree_map(0..PAGES as u32, 1u64..4, 0..4);
        vec(row.prop_map(|row| row.into_iter().collect()), PAGES)
    }

    /// Returns the rows of the fetched pages.
    fn read(web: &Web, is_read: &[bool]) -> LatestRows {
        let mut rows = LatestRows::default();
        rows.grow(PAGES as u64);
        for (page, row) in (0u32..).zip(web) {
            if is_read[page as usize] {
                let (targets, weights): (Vec<u32>, Vec<u64>) = row.iter().copied().unzip();
                let (targets, weights) = (&targets[..], &weights[..]);
                rows.set(page, false, Links { targets, weights });
            }
        }
        rows
    }

    /// Solves for x of the module documentation times a whole number, and returns that number: exact, by Bareiss
    /// elimination.
    ///
    /// With z_j = x_j S/W_j, where W_j is the total weight of the links of j, the equations are 8 W_i z_i - 7 sum over
    /// j of w_ji z_j = 1 for seeds, 0 for others.
    fn exact(web: &Web, seeds: &[u32]) -> (Vec<i128>, i128) {
        let jump: Vec<(u32, u64)> = seeds.iter().map(|&seed| (seed, 1)).collect();
        let rows: Vec<&Vec<(u32, u64)>> = web
            .iter()
            .map(|row| if row.is_empty() { &jump } else { row })
            .collect();
        let all: Vec<i128> = rows
            .iter()
            .map(|row| row.iter().map(|link| i128::from(link.1)).sum())
            .collect();
        let mut matrix = vec![vec![0i128; PAGES + 1]; PAGES];
        for (j, row) in rows.iter().enumerate() {
            matrix[j][j] += 8 * all[j];
            for &(target, weight) in *row {
                matrix[target as usize][j] -= 7 * i128::from(weight);
            }
        }
        for &seed in seeds {
            matrix[seed as usize][PAGES] = 1;
        }
        // Columns are dominated by their diagonal: no pivot is 0.
        let mut last = 1;
        for k in 0..PAGES {
            for i in (0..PAGES).filter(|&i| i != k) {
                let by = matrix[i][k];
                for j in 0..=PAGES {
                    matrix[i][j] = (matrix[i][j] * matrix[k][k] - by * matrix[k][j]) / last;
                }
            }
            last = matrix[k][k];
        }
        let solved = (0..PAGES).map(|i| matrix[i][PAGES] * all[i]);
        (solved.collect(), last * seeds.len() as i128)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_was_read_is_between_the_bounds(
            web in webs(),
            is_read in vec(any::<bool>(), PAGES),
            seeds in prop::sample::subsequence((0..PAGES as u32).collect::<Vec<_>>(), 1..=PAGES),
        ) {
            let (x, all) = exact(&web, &seeds);
            prop_assert_eq!(x.iter().sum::<i128>(), all);
            let mut flow = SeedFlow::from(DAMPING, &seeds);
            let now = flow.push(&read(&web, &is_read)).unwrap();
            let covered: i128 = (0..PAGES).filter(|&page| is_read[page]).map(|page| x[page]).sum();
            let units = |bound: f64| (bound * 2f64.powi(52)) as i128;
            prop_assert!(units(now.at_least) * all <= covered << 52, "{now:?}");
            prop_assert!((units(now.at_most) + 1) * all >= covered << 52, "{now:?}");
            // Each page by itself, fetched or not.
            for (page, exactly) in (0u32..).zip(&x) {
                let least = flow.own(page) + flow.waiting(page);
                prop_assert!(units(least - 1e-12) * all <= exactly << 52);
            }
            // Pushed to the end, sum h = 1 - a/(1 - d) if all seeds were fetched.
            if seeds.iter().all(|&seed| is_read[seed as usize]) {
                let end = 1.0 - 8.0 * (1.0 - now.at_most);
                let apart = now.at_most - now.at_least;
                prop_assert!(end - now.at_least <= PART * apart + EXACT + 1e-9, "{now:?}");
            }
        }

        /// A crawl fetches some pages in this order, and the first few of them again at the end: the seeds are found as
        /// fetched.
        #[test]
        fn seeds_were_read_before_any_link_to_them_was_seen(
            web in webs(),
            order in Just((0..PAGES as u32).collect::<Vec<_>>()).prop_shuffle(),
            crawled in 1..=PAGES,
            again in 0..3usize,
        ) {
            let (mut known, mut seeds) = (Vec::new(), Vec::new());
            let number = |known: &mut Vec<u32>, node: u32| {
                known.iter().position(|&of| of == node).unwrap_or_else(|| {
                    known.push(node);
                    known.len() - 1
                }) as u32
            };
            let mut rows = Vec::new();
            for &node in &order[..crawled] {
                let new = !known.contains(&node);
                let page = number(&mut known, node);
                if new {
                    seeds.push(page);
                }
                let row = web[node as usize].iter();
                let targets: Vec<u32> = row.map(|link| number(&mut known, link.0)).collect();
                rows.push((page, targets));
            }
            let again = again.min(rows.len());
            let mut reread = Bits::new(PAGES as u64);
            for (page, _) in &rows[..again] {
                reread.set((*page).into());
            }
            rows.rotate_left(again);
            let mut kept = LatestRows::default();
            kept.grow(known.len() as u64);
            for (page, targets) in &rows {
                kept.set(*page, false, Links { targets, weights: &[] });
            }
            let found = super::seeds(&kept, &reread).unwrap();
            if again == 0 {
                prop_assert_eq!(found, seeds);
            } else {
                prop_assert!(found.iter().all(|page| seeds.contains(page)), "{found:?} of {seeds:?}");
            }
        }

        /// A growing crawl has the same bounds as one evaluated once, up to the accuracy of pushing.
        #[test]
        fn a_flow_goes_on_as_pages_are_read(
            web in webs(),
            order in Just((0..PAGES).collect::<Vec<_>>()).prop_shuffle(),
            seeds in prop::sample::subsequence((0..PAGES as u32).collect::<Vec<_>>(), 1..=3),
        ) {
            let mut is_read = [false; PAGES];
            let mut flow = SeedFlow::from(DAMPING, &seeds);
            for &page in &order {
                is_read[page] = true;
                let now = flow.push(&read(&web, &is_read)).unwrap();
                let once = SeedFlow::from(DAMPING, &seeds).push(&read(&web, &is_read)).unwrap();
                let apart = PART * (now.at_most - now.at_least) + EXACT + 1e-9;
                prop_assert!((now.at_least - once.at_least).abs() <= 8.0 * apart, "{now:?} {once:?}");
                prop_assert!((now.at_most - once.at_most).abs() <= apart, "{now:?} {once:?}");
            }
            prop_assert!(flow.coverage().at_least > 0.999);
        }
    }

    #[test]
    fn nothing_read_covers_nothing() {
        let rows = LatestRows::default();
        let nothing = SeedFlow::from(DAMPING, &[]).push(&rows).unwrap();
        assert_eq!((nothing.at_least, nothing.at_most), (0.0, 1.0));
        let mut flow = SeedFlow::from(DAMPING, &[0, 3]);
        let now = flow.push(&rows).unwrap();
        // Readers spend an eighth of their time at the seeds, and may be anywhere for the rest.
        assert!(now.at_least == 0.0 && (now.at_most - 7.0 / 8.0).abs() < 1e-9);
    }
}
