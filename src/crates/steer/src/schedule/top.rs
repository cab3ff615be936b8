//! Pages with their scores, and the best of them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Page and its score: higher is earlier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredPage {
    /// Number of the page.
    pub page: u32,
    /// Score, in the strategy's own measure; never NaN.
    pub score: f64,
}

impl Eq for ScoredPage {}

/// Compares by score, then by who was known first: the greatest is listed first.
impl Ord for ScoredPage {
    fn cmp(&self, other: &ScoredPage) -> Ordering {
        let score = self.score.total_cmp(&other.score);
        score.then(other.page.cmp(&self.page))
    }
}

impl PartialOrd for ScoredPage {
    fn partial_cmp(&self, other: &ScoredPage) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Top-k of the pages that were offered.
#[derive(Debug)]
pub struct PageTopK {
    count: usize,
    heap: BinaryHeap<Reverse<ScoredPage>>,
}

impl PageTopK {
    /// Returns an empty top-k of `count` pages.
    pub fn new(count: usize) -> PageTopK {
        PageTopK {
            count,
            heap: BinaryHeap::new(),
        }
    }

    /// Offers a page with its score.
    pub fn offer(&mut self, page: u32, score: f64) {
        // 0 and -0 count as equal.
        let score = score + 0.0;
        let offered = ScoredPage { page, score };
        if self.heap.len() < self.count {
            self.heap.push(Reverse(offered));
        } else if self.heap.peek().is_some_and(|worst| offered > worst.0) {
            self.heap.pop();
            self.heap.push(Reverse(offered));
        }
    }

    /// Returns the pages, best first.
    pub fn sorted(self) -> Vec<ScoredPage> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|Reverse(page)| page).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_of_equal_ones_the_first_known() {
        let scores = [
            0.0,
            f64::INFINITY,
            -2.5,
            1e-300,
            -0.0,
            2.5,
            f64::NEG_INFINITY,
            -1e-300,
            1.0,
        ];
        for count in 0..=10 {
            let mut best = PageTopK::new(count);
            (0..)
                .zip(scores)
                .for_each(|(page, score)| best.offer(page, score));
            let pages: Vec<u32> = best.sorted().iter().map(|of| of.page).collect();
            let all = [1, 5, 8, 3, 0, 4, 7, 2, 6];
            assert_eq!(pages, all[..count.min(9)]);
        }
    }
}
