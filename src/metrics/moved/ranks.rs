//! The ranks that a bound on a ranking's L1 error lets pages have.
//!
//! Let x be the importances, p the PageRanks, and |x - p| at most b in L1. The errors of two pages together are at most b, so every
//! page i with x_i > x_j + b is before page j, and every page with x_i < x_j - b behind it. The rank of j by PageRank is thus
//!
//! ```text
//! from 1 + #{i: x_i > x_j + b}      to #{i: x_i >= x_j - b}
//! ```
//!
//! Two rankings certainly differ in a page's rank if the two intervals do not overlap.

/// Counts the pages before and behind some, in a ranking with a bound.
///
/// Memory: 32 bytes for each page whose ranks are asked for.
#[derive(Debug)]
pub struct RankBounds {
    bound: f64,
    /// Importances, ascending: of how many pages is it above this one?
    limits: Vec<f64>,
    /// Pages above each limit, but not above the next.
    counts: Vec<u64>,
}

impl RankBounds {
    /// For the ranks of pages with these importances.
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

    /// Takes the importance of a page of the ranking. Each page comes once.
    pub fn add(&mut self, importance: f64) {
        let below = self.limits.partition_point(|&limit| limit < importance);
        if let Some(count) = below.checked_sub(1).and_then(|at| self.counts.get_mut(at)) {
            *count += 1;
        }
    }

    /// Ends counting.
    pub fn finish(mut self) -> RankBounds {
        let mut above = 0;
        for count in self.counts.iter_mut().rev() {
            above += *count;
            *count = above;
        }
        self
    }

    /// The least and the greatest rank of a page with this importance, which must be one of those that were given; `None`: it is not.
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

/// The limits above which pages are certainly before one with this importance, and not certainly behind it.
fn limits(importance: f64, bound: f64) -> [f64; 2] {
    [importance + bound, (importance - bound).next_down()]
}

/// The least and the greatest rank of a page with this importance; `above` says how many pages are above a limit.
pub(super) fn ranks(
    importance: f64,
    bound: f64,
    above: impl Fn(f64) -> Option<u64>,
) -> Option<[u64; 2]> {
    let [before, behind] = limits(importance, bound);
    Some([1 + above(before)?, above(behind)?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As the definition has it, on pages in hundredths, many of which tie.
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
