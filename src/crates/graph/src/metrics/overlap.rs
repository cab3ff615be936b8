//! Overlap of two top k.
//!
//! No rank is stored: a page is in the top k if it is not after the k-th row, and that row is found by selection in
//! linear time.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;

use super::measure::{Measure, ScorePair};
use super::scores::ScoreRow;

/// Overlaps of the two sides for several k.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overlaps {
    /// Overlaps for k = 10, 100, ... up to the shorter side.
    pub top: Vec<TopK>,
}

/// Overlap of the two sides' k best pages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TopK {
    /// Number of pages taken from each side.
    pub k: u64,
    /// Number of pages among the k best of both sides.
    pub common: u64,
    /// Ratio `common / k`.
    pub overlap: f64,
}

/// Compares by rank: higher scores first, ties in the order of the names' hashes.
pub(super) fn by_rank(a: &ScoreRow, b: &ScoreRow) -> Ordering {
    b.score.total_cmp(&a.score).then(a.name.cmp(&b.name))
}

/// Returns the row at rank `k`, counted from 1; `None` if there is none. Moves the `k` best to the front.
pub(super) fn cut(rows: &mut [ScoreRow], k: usize) -> Option<ScoreRow> {
    if k == 0 || k > rows.len() {
        return None;
    }
    Some(*rows.select_nth_unstable_by(k - 1, by_rank).1)
}

/// Returns the names of the `k` best rows (or of all, if there are fewer), best first.
pub(super) fn best(rows: &mut [ScoreRow], k: usize) -> Vec<[u64; 2]> {
    let k = k.min(rows.len());
    cut(rows, k);
    rows[..k].sort_unstable_by(by_rank);
    rows[..k].iter().map(|row| row.name).collect()
}

/// Counts overlaps for k = 10, 100, ... up to the shorter side.
#[derive(Debug)]
pub(super) struct Overlap(Vec<OverlapLevel>);

#[derive(Debug)]
struct OverlapLevel {
    k: u64,
    last_left: ScoreRow,
    last_right: ScoreRow,
    common: u64,
}

impl Measure for Overlap {
    type Found = Overlaps;

    /// Finds the k-th rows.
    fn begin(left: &mut [ScoreRow], right: &mut [ScoreRow]) -> Overlap {
        let powers = (1..).map_while(|exponent| 10usize.checked_pow(exponent));
        let shorter = left.len().min(right.len());
        let ks: Vec<usize> = powers.take_while(|&k| k <= shorter).collect();
        // From the largest k down: each selection works on the front that the previous one left.
        let (mut left, mut right) = (left, right);
        let mut levels = Vec::new();
        for &k in ks.iter().rev() {
            if let (Some(last_left), Some(last_right)) = (cut(left, k), cut(right, k)) {
                levels.push(OverlapLevel {
                    k: k as u64,
                    last_left,
                    last_right,
                    common: 0,
                });
            }
            (left, right) = (&mut left[..k], &mut right[..k]);
        }
        levels.reverse();
        Overlap(levels)
    }

    fn page(&mut self, pair: &ScorePair<'_>) {
        let (Some(left), Some(right)) = (pair.left, pair.right) else {
            return;
        };
        // Most pages are outside the largest k, and those inside one are inside all larger.
        for level in self.0.iter_mut().rev() {
            if by_rank(left, &level.last_left).is_gt() || by_rank(right, &level.last_right).is_gt()
            {
                break;
            }
            level.common += 1;
        }
    }

    fn end(self) -> Overlaps {
        let top = |level: OverlapLevel| TopK {
            k: level.k,
            common: level.common,
            overlap: level.common as f64 / level.k as f64,
        };
        Overlaps {
            top: self.0.into_iter().map(top).collect(),
        }
    }
}

impl fmt::Display for Overlaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |top: &TopK| writeln!(f, "top\t{}\t{}\t{:?}", top.k, top.common, top.overlap);
        self.top.iter().try_for_each(line)
    }
}
