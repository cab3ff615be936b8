//! Distances between two rankings, and the pages that [`moved`] from one to the other.
//!
//! [`compare`] takes two sets of `(name, score)`; the right one is the reference. Scores are normalised to sum 1 on
//! each side. Distances are over the union of the pages, with 0 for an absent one; Kendall's tau is over the
//! intersection; the sizes of both are reported.
//!
//! Names are hashed once, when they are collected ([`Scores`]), and joined by sorting: 24 bytes per page and side, and
//! 16 per common page; 64 bytes per page at the peak. Results don't depend on the order of pages. If pages of equal
//! score must be ordered (top k, rank-biased overlap, the top tenth), the names' hashes decide, the same on both sides.

mod certain;
mod count;
mod distance;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
pub mod kendall;
mod measure;
pub mod moved;
mod overlap;
pub mod rbo;
mod relative;
mod scores;
pub mod sum;

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;

use crate::{Error, Result};
use distance::NormSums;
use measure::{Measure, ScorePair, measures};
use overlap::Overlap;
use relative::Relative;
use scores::ScoreRow;

pub use certain::Positions;
pub use count::PageCounts;
pub use distance::NormDistances;
pub use kendall::OrderOfPairs;
pub use overlap::{Overlaps, TopK};
pub use rbo::RankBiased;
pub use relative::RelativeErrors;
pub use scores::{NameHash, Scores, read_each_score, read_scores};

/// Maximum bytes per page and side, while [`compare`] or [`moved_by_name`](moved::moved_by_name) joins them.
pub const JOINED_BYTES: u64 = 32;

measures! {
    /// Comparison of two rankings. Made by [`compare`]; printed as `key<TAB>value` lines or JSON. (A `top` line holds
    /// k, the pages in common and their share.)
    Comparison;
    /// Numbers of pages on each side and on both.
    pages: PageCounts, by PageCounts;
    /// L1, L2 and L-infinity distances.
    distance: NormDistances, by NormSums;
    /// Errors in percent of the reference.
    relative: RelativeErrors, by Relative;
    /// Kendall's tau of the common pages.
    order: OrderOfPairs, by kendall::KendallPairs;
    /// Overlap of the top k.
    overlap: Overlaps, by Overlap;
    /// Rank-biased overlap, in which the best ranks weigh most: see [`rbo`].
    biased: RankBiased, by RankBiased;
}

/// Compares two rankings; `right` is the reference. Fails with [`Error::Unsupported`] if a side is empty, has a name
/// twice, or its scores sum to 0 or overflow `f64`.
pub fn compare(left: Scores, right: Scores) -> Result<Comparison> {
    let mut left = ComparedSide::new("left", left)?;
    let mut right = ComparedSide::new("right", right)?;
    let mut measures = MeasureSet::begin(&mut left.rows, &mut right.rows);
    left.sort()?;
    right.sort()?;
    join(&left.rows, &right.rows, |l, r| {
        measures.page(&ScorePair {
            left: l,
            right: r,
            left_share: left.share(l),
            right_share: right.share(r),
        });
    });
    drop((left, right)); // Tau needs the room.
    Ok(measures.end())
}

/// One side of a comparison.
struct ComparedSide {
    name: &'static str,
    rows: Vec<ScoreRow>,
    total: f64,
}

impl ComparedSide {
    fn new(name: &'static str, scores: Scores) -> Result<ComparedSide> {
        let rows = scores.rows;
        if rows.is_empty() {
            return Err(Error::Unsupported(format!(
                "the {name} side holds no pages"
            )));
        }
        Ok(ComparedSide {
            name,
            rows,
            total: 0.0,
        })
    }

    /// Sorts by name before summing, so that the total doesn't depend on the order of input.
    fn sort(&mut self) -> Result<()> {
        let name = self.name;
        self.rows.sort_unstable_by_key(|row| row.name);
        if let Some(pair) = self.rows.windows(2).find(|w| w[0].name == w[1].name) {
            return Err(Error::Unsupported(format!(
                "the {name} side names a page twice, with scores {:?} and {:?}; keep one of them",
                pair[0].score, pair[1].score
            )));
        }
        let total = self.rows.iter().map(|row| row.score);
        self.total = total.collect::<sum::CompensatedSum>().value();
        if self.total == 0.0 || self.total.is_infinite() {
            return Err(Error::Unsupported(format!(
                "the scores of the {name} side sum to {}: they cannot be normalised",
                self.total
            )));
        }
        Ok(())
    }

    /// Returns the normalised score; 0 if absent.
    fn share(&self, row: Option<&ScoreRow>) -> f64 {
        row.map_or(0.0, |row| self.share_of(row.score))
    }

    fn share_of(&self, score: f64) -> f64 {
        score / self.total
    }
}

/// Calls `each` for every name on either side. Both are sorted by name, without repeats.
fn join(
    left: &[ScoreRow],
    right: &[ScoreRow],
    mut each: impl FnMut(Option<&ScoreRow>, Option<&ScoreRow>),
) {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (Some(l), Some(r)) => l.name.cmp(&r.name),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let l = if order.is_le() { left.next() } else { None };
        let r = if order.is_ge() { right.next() } else { None };
        each(l, r);
    }
}

#[cfg(test)]
mod tests;
