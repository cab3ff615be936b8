//! Number of first positions of a ranking that are certain.
//!
//! Let x be the importances, best first, p the PageRanks, and |x - p| at most the bound in L1. The errors of two pages
//! together are at most the bound, so if x_n - x_(n+1) is above the bound, p_i > p_j for every i up to n and every j
//! beyond: the first n pages are exactly the n of greatest PageRank, in some order. Only a page with an importance
//! above the bound can stand before such a gap, and there are fewer than 1/bound of them, as all importances sum to 1.
//!
//! [`Positions`] takes importances in any order. For each stretch as wide as the bound, within which no gap can lie, it
//! keeps the number of importances, the smallest and the greatest. Importances in k different stretches sum to at least
//! bound k (k - 1) / 2, so there are at most about sqrt(2/bound) stretches. A gap of just the bound that rounding puts
//! into a stretch is missed, and fewer positions are called certain.

use std::collections::BTreeMap;

use super::moved::is_certainly_above;

/// Counts the certain positions of a ranking.
#[derive(Debug)]
pub struct Positions {
    bound: f64,
    /// Greatest and smallest importance of each stretch, and number of pages.
    stretches: BTreeMap<u64, (f64, f64, u64)>,
}

impl Positions {
    pub fn new(bound: f64) -> Positions {
        Positions {
            bound,
            stretches: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, importance: f64) {
        let at = (importance / self.bound) as u64;
        let stretch = self.stretches.entry(at);
        let (greatest, least, pages) = stretch.or_insert((importance, importance, 0));
        *greatest = greatest.max(importance);
        *least = least.min(importance);
        *pages += 1;
    }

    /// Returns the greatest n below the number of pages for which the first n pages are the n of greatest PageRank.
    pub fn certain(&self) -> u64 {
        let (mut above, mut before, mut certain) = (None, 0, 0);
        for &(greatest, least, pages) in self.stretches.values().rev() {
            if above.is_some_and(|above| is_certainly_above(above, greatest, Some(self.bound))) {
                certain = before;
            }
            above = Some(least);
            before += pages;
        }
        certain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certain(importances: &[f64], bound: f64) -> u64 {
        let mut positions = Positions::new(bound);
        importances.iter().for_each(|&x| positions.add(x));
        positions.certain()
    }

    /// Importances 2^-1, 2^-2, ...: the gap after position n is 2^-(n+1), so with the bound 2^-k all n up to k - 2 are
    /// certain.
    #[test]
    fn of_halves_as_many_are_certain_as_their_gaps_say() {
        let halves: Vec<f64> = (1..60).map(|n| 0.5f64.powi(n)).collect();
        for k in 1..40 {
            let bound = 0.5f64.powi(k);
            let expected = u64::try_from(k - 2).unwrap_or(0);
            assert_eq!(certain(&halves, bound), expected, "2^-{k}");
            let backwards: Vec<f64> = halves.iter().rev().copied().collect();
            assert_eq!(certain(&backwards, bound), expected);
            // With a slightly smaller bound, the next gap is above it.
            assert_eq!(certain(&halves, bound * (1.0 - 1e-9)), k as u64 - 1);
        }
    }

    /// Compares with the definition, on every ranking of four pages in tenths.
    #[test]
    fn stretches_lose_no_gap() {
        let tenths = |n: u32| f64::from(n) / 10.0;
        for code in 0..10_000u32 {
            let mut x = [1000, 100, 10, 1].map(|unit| tenths(code / unit % 10));
            for bound in [0.05, 0.15, 0.25, 0.35, 0.75, 2.0] {
                let found = certain(&x, bound);
                x.sort_by(|a, b| b.total_cmp(a));
                let expected = (1..4).rev().find(|&n| x[n - 1] - x[n] > bound);
                assert_eq!(found, expected.unwrap_or(0) as u64, "{x:?}, {bound}");
            }
        }
    }

    #[test]
    fn no_position_is_certain_among_equal_or_no_pages() {
        assert_eq!(certain(&[], 0.1), 0);
        assert_eq!(certain(&[1.0], 0.1), 0);
        assert_eq!(certain(&[0.25; 4], 1e-12), 0);
    }
}
