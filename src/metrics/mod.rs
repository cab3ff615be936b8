//! How far two rankings are apart, and what [`moved`] from one to the other.
//!
//! [`compare`] takes two sets of `(name, score)`; the right one is the reference. Scores are
//! normalised to sum 1 on each side. Distances run over the union of the pages, 0 where one is
//! absent; Kendall's tau over the intersection; the counts of both are reported.
//!
//! Names are hashed once, when they are collected ([`Scores`]), and joined by sorting: 24 bytes a page
//! and side, and 16 a common page; 64 bytes a page at the peak. Results don't depend on
//! the order in which pages came. Where an order among pages of equal score is needed (top k,
//! rank-biased overlap, the top tenth), it is that of the names' hashes, the same on both sides.

mod certain;
mod count;
mod distance;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod kendall;
mod measure;
pub mod moved;
mod overlap;
pub mod rbo;
mod relative;
mod scores;
pub(crate) mod sum;

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;

use crate::{Error, Result};
use distance::Distance;
use measure::{Measure, Pair, measures};
use overlap::Overlap;
use relative::Relative;
use scores::Row;

pub use certain::Positions;
pub use count::PageCounts;
pub use distance::Distances;
pub use kendall::OrderOfPairs;
pub use overlap::{Overlaps, TopK};
pub use rbo::RankBiased;
pub use relative::RelativeErrors;
pub use scores::{NameHash, Scores, read_each_score, read_scores};

/// Bytes that a page of either side takes at most, while [`compare`] or
/// [`moved_by_name`](moved::moved_by_name) joins them.
pub const JOINED_BYTES: u64 = 32;

measures! {
    /// How two rankings compare. Made by [`compare`]; printed as `key<TAB>value` lines or JSON.
    /// (A `top` line holds k, the pages in common and their share.)
    Comparison;
    /// How many pages there are.
    pages: PageCounts, by PageCounts;
    /// L1, L2 and L-infinity.
    distance: Distances, by Distance;
    /// In percent of the reference.
    relative: RelativeErrors, by Relative;
    /// Kendall's tau.
    order: OrderOfPairs, by kendall::Pairs;
    /// Of the top k.
    overlap: Overlaps, by Overlap;
    /// Of all ranks, the best above all: see [`rbo`].
    biased: RankBiased, by RankBiased;
}

/// Compares two rankings; `right` is the reference.
///
/// # Errors
/// [`Error::Unsupported`] if a side is empty, has a name twice, or its scores sum to 0 or to
/// more than `f64` holds.
pub fn compare(left: Scores, right: Scores) -> Result<Comparison> {
    let mut left = Side::new("left", left)?;
    let mut right = Side::new("right", right)?;
    let mut measures = Measures::begin(&mut left.rows, &mut right.rows);
    left.sort()?;
    right.sort()?;
    join(&left.rows, &right.rows, |l, r| {
        measures.page(&Pair {
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
struct Side {
    name: &'static str,
    rows: Vec<Row>,
    total: f64,
}

impl Side {
    fn new(name: &'static str, scores: Scores) -> Result<Side> {
        let rows = scores.rows;
        if rows.is_empty() {
            return Err(Error::Unsupported(format!(
                "the {name} side holds no pages"
            )));
        }
        Ok(Side {
            name,
            rows,
            total: 0.0,
        })
    }

    /// Sorts by name, and then sums: so the total doesn't depend on the order of input.
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
        self.total = total.collect::<sum::Sum>().value();
        if self.total == 0.0 || self.total.is_infinite() {
            return Err(Error::Unsupported(format!(
                "the scores of the {name} side sum to {}: they cannot be normalised",
                self.total
            )));
        }
        Ok(())
    }

    /// The normalised score; 0 where absent.
    fn share(&self, row: Option<&Row>) -> f64 {
        row.map_or(0.0, |row| self.share_of(row.score))
    }

    fn share_of(&self, score: f64) -> f64 {
        score / self.total
    }
}

/// Calls `each` for every name on either side. Both are sorted by name, without repeats.
fn join(left: &[Row], right: &[Row], mut each: impl FnMut(Option<&Row>, Option<&Row>)) {
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
