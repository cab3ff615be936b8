//! Coverage: bounds on the share of what readers see that was fetched, for readers who start at the seeds.
//!
//! Let x be the personalised PageRank of the whole web, fetched or not: a reader follows a link with probability d, and
//! otherwise, or at a page without links, starts again at a seed. C is the set of fetched pages. Only their rows are
//! known, and yet x(C) is bounded from both sides (RankMass: J. Cho, U. Schonfeld, VLDB 2007, for the lower one).
//!
//! **Known walks.** Let M be the links of C, each row's parts summing to 1, t the seeds alike, and D the pages of C
//! without links. Then h on C and a on all other pages, the least solution of
//!
//! ```text
//! (h, a) = ((1 - d) + d h(D)) t + d M h
//! ```
//!
//! count the walks that begin at a seed and go on over known links. x satisfies this equation with further terms, none
//! of them negative, for what other pages pass on. So x >= h on C, and x >= a on all others. The sum of the equation
//! over all pages is h(C) + a(others) = (1 - d) + d h(C), hence
//!
//! ```text
//! h(C) <= x(C) = 1 - x(others) <= 1 - a(others) = d + (1 - d) h(C)
//! ```
//!
//! **Computation.** Let y be the PageRank of the known links, personalised to the seeds that are known pages, with
//! other pages taken to have no links; p the share of the seeds that are known; and l the sum of y over pages with
//! links. Then y = (1 - d l) t' + d M y with t' the known seeds, h and a are the same multiple of y on C and on other
//! known pages, and
//!
//! ```text
//! h = k y,     k = (1 - d) p/(1 - d p y(C) - d (1 - p) l)
//! ```
//!
//! y is settled with a certified bound in L1. h(C) grows with y(C) and l: both reduced by that bound give a lower bound
//! on h(C), and both increased by it an upper one.

use super::settle::{SettlingResult, settle_for};
use super::{RankOptions, Teleport};
use crate::Result;
use crate::metrics::sum::CompensatedSum;
use crate::rows::{Bits, Rows};

/// Bound to which y is settled, unless 64-bit numbers do not resolve it: each further digit takes some ten sweeps.
const EXACT: f64 = 1e-6;
/// Bound on the rounding of sums and quotients of few steps.
const ROUNDING: f64 = 1e-12;

/// Bounds on the importance of the fetched pages for readers who start at the seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoverageBounds {
    /// Lower bound on the share of what readers see that was fetched, from 0 to 1.
    pub at_least: f64,
    pub at_most: f64,
}

/// Shares of pages in what readers who start at the seeds see, as far as the known links tell.
pub struct SeedShares {
    pages: u64,
    /// y; `None` if no seed is a known page.
    settled: Option<SettlingResult>,
    /// k, rounded down.
    scale: f64,
    /// Pages that have a row.
    read: Bits,
    /// Bound by which a sum of [shares](SeedShares::share) may exceed what readers see of these pages.
    pub slack: f64,
    pub bounds: CoverageBounds,
}

impl SeedShares {
    /// Computes the shares for readers who start at these pages, which must be distinct; numbers beyond the known pages
    /// stand for unknown ones.
    pub fn of(rows: &dyn Rows, damping: u64, seeds: &[u32]) -> Result<SeedShares> {
        let pages = rows.pages();
        let mut starts = Bits::new(pages);
        let known = seeds.iter().filter(|seed| u64::from(**seed) < pages);
        known.for_each(|&seed| {
            starts.set(seed.into());
        });
        let (mut read, mut linked) = (Bits::new(pages), Bits::new(pages));
        rows.sweep(&mut |row| {
            read.set(row.page.into());
            if row.degree() > 0 {
                linked.set(row.page.into());
            }
            Ok(())
        })?;
        let d = RankOptions::until(damping, EXACT).damping();
        let known = starts.count() as f64;
        let settled = if known > 0.0 {
            // The rounding of links and payments: see `settle`.
            let units = rows.links() as f64 + known;
            let until = EXACT.max(units * 2f64.powi(-53) / (1.0 - d));
            let teleport = Teleport::new((0..pages).map(|page| u64::from(starts.get(page))))?;
            settle_for(
                rows,
                &RankOptions::until(damping, until),
                &teleport,
                &mut (),
            )?
        } else {
            None
        };
        let bound = |settled: &SettlingResult| settled.certificate.received_l1.unwrap_or(2.0);
        let error = settled.as_ref().map_or(0.0, bound) + ROUNDING;
        let sum = |of: &Bits| {
            let shares = (0..).zip(settled.iter().flat_map(SettlingResult::shares));
            let shares = shares.filter(|(page, _)| of.get(*page));
            CompensatedSum::of(shares.map(|(_, share)| share))
        };
        let (on_read, on_linked) = (sum(&read), sum(&linked));
        let part = known / seeds.len().max(1) as f64;
        let scale = |on_read: f64, on_linked: f64| {
            (1.0 - d) * part / (1.0 - d * part * on_read - d * (1.0 - part) * on_linked)
        };
        let low = [on_read, on_linked].map(|share| (share - error).max(0.0));
        let high = [on_read, on_linked].map(|share| (share + error).min(1.0));
        let most = scale(high[0], high[1]) * high[0];
        let at_most = if seeds.is_empty() {
            1.0
        } else {
            d + (1.0 - d) * most + ROUNDING
        };
        let scale = scale(low[0], low[1]);
        Ok(SeedShares {
            pages,
            settled,
            scale,
            read,
            slack: scale * error,
            bounds: CoverageBounds {
                at_least: (scale * low[0] - ROUNDING).max(0.0),
                at_most: at_most.min(1.0),
            },
        })
    }

    /// Returns the share of a page in what readers see, over known links only; 0 beyond the known pages. If the page was
    /// not fetched, all that reaches it ends there.
    pub fn share(&self, page: u32) -> f64 {
        let known = self
            .settled
            .as_ref()
            .filter(|_| u64::from(page) < self.pages);
        known.map_or(0.0, |settled| settled.share(page)) * self.scale
    }

    pub fn is_read(&self, page: u32) -> bool {
        self.read.get(page.into())
    }
}

/// Finds the seeds if none are given: the pages that were fetched, and not found gone, before any link to them was
/// seen.
///
/// Pages are numbered in the order of their first appearance, and rows lie in the order of last fetches. So a page that
/// was fetched once is a seed if no page with a smaller number links to it from an earlier row. Pages in `reread`, which
/// were fetched more than once, count as fetched before all others.
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
            let shares = SeedShares::of(&read(&web, &is_read), DAMPING, &seeds).unwrap();
            let now = shares.bounds;
            let covered: i128 = (0..PAGES).filter(|&page| is_read[page]).map(|page| x[page]).sum();
            let units = |bound: f64| (bound * 2f64.powi(52)) as i128;
            prop_assert!(units(now.at_least) * all <= covered << 52, "{now:?}");
            prop_assert!((units(now.at_most) + 1) * all >= covered << 52, "{now:?}");
            // Each page by itself, fetched or not.
            for (page, exactly) in (0u32..).zip(&x) {
                let least = (shares.share(page) - shares.slack).max(0.0);
                prop_assert!(units(least) * all <= exactly << 52);
            }
            // h(C) and a(others) by themselves.
            let known = |read: bool| -> f64 {
                let pages = (0u32..).zip(&is_read).filter(|(_, of)| **of == read);
                pages.map(|(page, _)| shares.share(page)).sum()
            };
            prop_assert!((known(true) - now.at_least).abs() <= 2e-5, "{now:?}");
            prop_assert!((1.0 - known(false) - now.at_most).abs() <= 2e-5, "{now:?}");
        }

        /// Seeds that are unknown count as pages that were not fetched.
        #[test]
        fn unknown_seeds_are_as_pages_not_read(
            web in webs(),
            is_read in vec(any::<bool>(), PAGES),
            unknown in 0..4u32,
        ) {
            let seeds: Vec<u32> = (0..2).chain(PAGES as u32..PAGES as u32 + unknown).collect();
            let rows = read(&web, &is_read);
            let found = SeedShares::of(&rows, DAMPING, &seeds).unwrap().bounds;
            let mut more = rows;
            more.grow((PAGES as u32 + unknown).into());
            let expected = SeedShares::of(&more, DAMPING, &seeds).unwrap().bounds;
            prop_assert!((found.at_least - expected.at_least).abs() < 2e-5, "{found:?} {expected:?}");
            prop_assert!((found.at_most - expected.at_most).abs() < 2e-5, "{found:?} {expected:?}");
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
    }

    /// Pages that have most pass it on among themselves here, while all importance decreases as fast.
    #[test]
    fn a_web_whose_importance_decreases_at_first_has_bounds() {
        let web: Web = vec![
            vec![(2, 1)],
            vec![(0, 1), (1, 1)],
            vec![(0, 1)],
            vec![],
            vec![(0, 3), (1, 3), (3, 2)],
            vec![],
        ];
        let is_read = [true, true, true, false, true, false];
        let (x, all) = exact(&web, &[4]);
        let covered: i128 = (0..PAGES)
            .filter(|&page| is_read[page])
            .map(|page| x[page])
            .sum();
        let bounds = SeedShares::of(&read(&web, &is_read), DAMPING, &[4])
            .unwrap()
            .bounds;
        let covered = covered as f64 / all as f64;
        assert!(bounds.at_least <= covered && covered <= bounds.at_most);
        assert!(bounds.at_least > covered - 0.2, "{bounds:?} {covered}");
    }

    #[test]
    fn pages_beyond_the_known_ones_have_no_share() {
        let mut rows = LatestRows::default();
        rows.grow(2);
        rows.set(0, false, Links::from(&[1][..]));
        let shares = SeedShares::of(&rows, DAMPING, &[0]).unwrap();
        assert_eq!(shares.share(7), 0.0);
    }

    #[test]
    fn nothing_read_covers_nothing() {
        let rows = LatestRows::default();
        let nothing = SeedShares::of(&rows, DAMPING, &[]).unwrap().bounds;
        assert_eq!((nothing.at_least, nothing.at_most), (0.0, 1.0));
        // Readers spend an eighth of their time at the seeds, and may be anywhere for the rest.
        let now = SeedShares::of(&rows, DAMPING, &[0, 3]).unwrap().bounds;
        assert!(now.at_least == 0.0 && (now.at_most - 7.0 / 8.0).abs() < 1e-9);
        let mut known = LatestRows::default();
        known.grow(4);
        let now = SeedShares::of(&known, DAMPING, &[0, 3]).unwrap().bounds;
        assert!(now.at_least == 0.0 && (now.at_most - 7.0 / 8.0).abs() < 1e-9);
    }
}
