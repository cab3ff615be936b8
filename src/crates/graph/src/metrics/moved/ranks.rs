//! Intervals of ranks that a bound on a ranking's L1 error permits.
//!
//! Let x be the importances, p the PageRanks, and |x - p| at most b in L1. The errors of two pages together are at most
//! b, so every page i with x_i > x_j + b is before page j, and every page with x_i < x_j - b after it. So the rank of
//! j by PageRank is
//!
//! ```text
//! from 1 + #{i: x_i > x_j + b}      to #{i: x_i >= x_j - b}
//! ```
//!
//! Two rankings certainly differ in a page's rank if the two intervals do not overlap.

use super::Standing;
use crate::metrics::ComparedSide;
use crate::metrics::scores::ScoreRow;

/// Computes rank intervals of given pages by one pass over a ranking, in 32 bytes per given page.
#[derive(Debug)]
pub struct RankBounds {
    bound: f64,
    /// Importances at which pages are counted, ascending.
    limits: Vec<f64>,
    /// Number of pages above each limit, but not above the next.
    counts: Vec<u64>,
}

impl RankBounds {
    pub fn new(bound: f64, importances: impl IntoIterator<Item = f64>) -> RankBounds {
        let limits = importances
            .into_iter()
            .flat_map(|importance| limits(importance, bound));
        let mut limits: Vec<f64> = limits.collect();
        limits.sort_unstable_by(f64::total_cmp);
        limits.dedup();
        RankBounds {
            bound,
            counts: vec![0; limits.len()],
            limits,
        }
    }

    /// Adds the importance of a page of the ranking. Each page must be added once.
    pub fn add(&mut self, importance: f64) {
        let below = self.limits.partition_point(|&limit| limit < importance);
        if let Some(count) = below.checked_sub(1).and_then(|at| self.counts.get_mut(at)) {
            *count += 1;
        }
    }

    /// Ends counting, and makes the counts cumulative.
    pub fn finish(mut self) -> RankBounds {
        let mut above = 0;
        for count in self.counts.iter_mut().rev() {
            above += *count;
            *count = above;
        }
        self
    }

    /// Returns the smallest and the greatest rank at this importance; `None` unless it was given to
    /// [`RankBounds::new`].
    pub fn of(&self, importance: f64) -> Option<[u64; 2]> {
        let above = |limit: f64| {
            let at = self
                .limits
                .binary_search_by(|other| other.total_cmp(&limit));
            at.ok().map(|at| self.counts[at])
        };
        ranks(importance, self.bound, above)
    }
}

/// Returns the standing of a page of a side, whose scores are `sorted` in descending order; `bound` is that on the L1
/// error of its shares.
pub(super) fn standing(
    side: &ComparedSide,
    sorted: &[f64],
    bound: Option<f64>,
    row: &ScoreRow,
) -> Standing {
    let importance = side.share_of(row.score);
    let above = |limit: f64| {
        let is_above = |&score: &f64| side.share_of(score) > limit;
        Some(sorted.partition_point(is_above) as u64)
    };
    Standing {
        importance,
        rank: 1 + sorted.partition_point(|&score| score > row.score) as u64,
        ranks: bound.and_then(|bound| ranks(importance, bound, above)),
    }
}

/// Returns the limits above which pages are certainly before one with this importance, and not certainly after it.
fn limits(importance: f64, bound: f64) -> [f64; 2] {
    [importance + bound, (importance - bound).next_down()]
}

/// Returns the smallest and the greatest rank of a page with this importance; `above` counts the pages above a limit.
fn ranks(importance: f64, bound: f64, above: impl Fn(f64) -> Option<u64>) -> Option<[u64; 2]> {
    let [before, behind] = limits(importance, bound);
    Some([1 + above(before)?, above(behind)?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with the definition, on multiples of 1/128, many of which tie.
        #[test]
        fn ranks_are_those_of_the_definition(pages in proptest::collection::vec(0u32..20, 1..40), bound in 0u32..8) {
            let x: Vec<f64> = pages.iter().map(|&n| f64::from(n) / 128.0).collect();
            let bound = f64::from(bound) / 128.0;
            let mut found = RankBounds::new(bound, x.iter().copied());
            x.iter().for_each(|&importance| found.add(importance));
            let found = found.finish();
            for &page in &x {
                let before = x.iter().filter(|&&other| other > page + bound).count() as u64;
                let behind = x.iter().filter(|&&other| other < page - bound).count();
                prop_assert_eq!(found.of(page), Some([before + 1, (x.len() - behind) as u64]));
            }
        }
    }

    #[test]
    fn pages_that_tie_share_their_ranks() {
        let mut found = RankBounds::new(1e-9, [0.25, 0.5]);
        [0.25, 0.25, 0.5].into_iter().for_each(|x| found.add(x));
        let found = found.finish();
        assert_eq!(
            (found.of(0.5), found.of(0.25)),
            (Some([1, 1]), Some([2, 3]))
        );
        assert_eq!(found.of(0.1), None);
    }
}
