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

mod distance;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod kendall;
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
use overlap::Overlap;
use relative::Relative;
use scores::Row;

pub use overlap::TopK;
pub use scores::{NameHash, Scores, read_each_score, read_scores};

/// Bytes that a page of either side takes at most, while [`compare`] or
/// [`moved_by_name`](moved::moved_by_name) joins them.
pub const JOINED_BYTES: u64 = 32;

/// How two rankings compare. Made by [`compare`]; printed as `key<TAB>value` lines or JSON.
/// (A `top` line holds k, the pages in common and their share.)
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Pages of the left side.
    pub left_pages: u64,
    /// Pages of the right side, the reference.
    pub right_pages: u64,
    /// Pages on both sides.
    pub common_pages: u64,
    /// Pages on either side.
    pub union_pages: u64,
    /// Sum of the absolute differences over the union, 0 to 2.
    pub l1: f64,
    /// The largest absolute difference over the union.
    pub linf: f64,
    /// Mean of |left - right| / right in percent, over all pages whose reference is not 0.
    pub relative_error_percent: f64,
    /// The number of those pages.
    pub relative_error_pages: u64,
    /// The same mean over the tenth of them (rounded up) that the reference ranks highest.
    pub relative_error_top_tenth_percent: f64,
    /// The number of those pages.
    pub relative_error_top_tenth_pages: u64,
    /// Pages of the union left out of the relative errors: the reference is 0, or has no such page.
    pub reference_zero_pages: u64,
    /// Kendall's tau-b over the common pages, -1 to 1. `None`: undefined, since there are fewer than
    /// two or one side scores all of them alike.
    pub kendall_tau_b: Option<f64>,
    /// Overlap of the two top k, for k = 10, 100, ... up to the shorter side.
    pub top: Vec<TopK>,
    /// Extrapolated rank-biased overlap, 0 to 1; see [`rbo`].
    pub rank_biased_overlap: f64,
    /// Its parameter p.
    pub rank_biased_overlap_p: f64,
}

/// Compares two rankings; `right` is the reference.
///
/// # Errors
/// [`Error::Unsupported`] if a side is empty, has a name twice, or its scores sum to 0 or to
/// more than `f64` holds.
pub fn compare(left: Scores, right: Scores) -> Result<Comparison> {
    let mut left = Side::new("left", left)?;
    let mut right = Side::new("right", right)?;
    let mut overlap = Overlap::new(&mut left.rows, &mut right.rows);
    let mut relative = Relative::new(&mut right.rows);
    let rbo = rbo::extrapolated(
        &overlap::best(&mut left.rows, rbo::DEPTH),
        &overlap::best(&mut right.rows, rbo::DEPTH),
    );
    left.sort()?;
    right.sort()?;

    let mut distance = Distance::default();
    let mut common = Vec::new();
    let mut union_pages = 0;
    join(&left.rows, &right.rows, |l, r| {
        let (x, y) = (left.share(l), right.share(r));
        union_pages += 1;
        distance.add(x, y);
        relative.add(x, y, r);
        if let (Some(l), Some(r)) = (l, r) {
            overlap.add(l, r);
            common.push((l.score, r.score));
        }
    });
    let (left_pages, right_pages) = (left.rows.len() as u64, right.rows.len() as u64);
    drop((left, right)); // Tau needs the room.
    Ok(Comparison {
        left_pages,
        right_pages,
        common_pages: common.len() as u64,
        union_pages,
        l1: distance.l1(),
        linf: distance.linf(),
        relative_error_percent: relative.all.percent(),
        relative_error_pages: relative.all.pages,
        relative_error_top_tenth_percent: relative.top.percent(),
        relative_error_top_tenth_pages: relative.top.pages,
        reference_zero_pages: relative.excluded,
        kendall_tau_b: kendall::tau_b(common),
        top: overlap.finish(),
        rank_biased_overlap: rbo,
        rank_biased_overlap_p: rbo::P,
    })
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
        row.map_or(0.0, |row| row.score / self.total)
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

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "left_pages\t{}", self.left_pages)?;
        writeln!(f, "right_pages\t{}", self.right_pages)?;
        writeln!(f, "common_pages\t{}", self.common_pages)?;
        writeln!(f, "union_pages\t{}", self.union_pages)?;
        writeln!(f, "l1\t{:?}", self.l1)?;
        writeln!(f, "linf\t{:?}", self.linf)?;
        let (all, top) = (
            self.relative_error_percent,
            self.relative_error_top_tenth_percent,
        );
        writeln!(f, "relative_error_percent\t{all:?}")?;
        writeln!(f, "relative_error_pages\t{}", self.relative_error_pages)?;
        writeln!(f, "relative_error_top_tenth_percent\t{top:?}")?;
        let top_pages = self.relative_error_top_tenth_pages;
        writeln!(f, "relative_error_top_tenth_pages\t{top_pages}")?;
        writeln!(f, "reference_zero_pages\t{}", self.reference_zero_pages)?;
        match self.kendall_tau_b {
            Some(tau) => writeln!(f, "kendall_tau_b\t{tau:?}")?,
            None => writeln!(f, "kendall_tau_b\tundefined")?,
        }
        for top in &self.top {
            writeln!(f, "top\t{}\t{}\t{:?}", top.k, top.common, top.overlap)?;
        }
        writeln!(f, "rank_biased_overlap_p\t{:?}", self.rank_biased_overlap_p)?;
        writeln!(f, "rank_biased_overlap\t{:?}", self.rank_biased_overlap)
    }
}

#[cfg(test)]
mod tests;
