//! Distances between two rankings, and the pages that [`moved`] from one to the other.
//!
//! [`compare`] takes two sets of `(name, score)`; the right one is the reference. Scores are normalised to sum 1 on
//! each side. Distances are over the union of the pages, with 0 for an absent one; Kendall's tau is over the
//! intersection; the sizes of both are reported.
//!
//! Names are hashed when they are collected ([`Scores`]) and joined by sorting: 24 bytes per page and side, and 16 per
//! common page; 64 bytes per page at the peak. Results do not depend on the order of pages: the names' hashes order
//! pages of equal score (top k, rank-biased overlap, the top tenth), the same on both sides.

mod certain;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
pub mod kendall;
pub mod moved;
pub mod rbo;
mod scores;
pub mod sum;

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;

use crate::{Error, Result};
use scores::ScoreRow;
use sum::{CompensatedSum, NormSums};

pub use crate::model::NameHash;
pub use certain::Positions;
#[cfg(any(test, feature = "testing"))]
pub use scores::read_scores;
pub use scores::{Scores, read_each_score};

/// Maximum bytes per page and side, while [`compare`] or [`moved_by_name`](moved::moved_by_name) joins them.
pub const JOINED_BYTES: u64 = 32;

/// Comparison of two rankings, of which the right one is the reference, printed as `key<TAB>value` lines or JSON. (A
/// `top` line holds k, the number of common pages and their share.)
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub left_pages: u64,
    /// Number of pages on the right side, the reference.
    pub right_pages: u64,
    pub common_pages: u64,
    pub union_pages: u64,
    /// Sum of the absolute differences over the union of the pages, 0 to 2.
    pub l1: f64,
    pub l2: f64,
    pub linf: f64,
    /// Mean of 100 |left - right| / right over all pages whose reference is not 0 (Abiteboul, Preda, Cobena, WWW 2003,
    /// section 4.2). A page that only the reference has counts with an error of 100 %.
    pub relative_error_percent: f64,
    pub relative_error_pages: u64,
    /// Mean like `relative_error_percent` over the tenth of its pages (rounded up) that the reference ranks highest
    /// (figure 3 of the same paper).
    pub relative_error_top_tenth_percent: f64,
    pub relative_error_top_tenth_pages: u64,
    /// Number of pages of the union left out of the relative errors: the reference is 0, or lacks the page.
    pub reference_zero_pages: u64,
    /// Kendall's tau-b over the common pages, -1 to 1; `None` if there are fewer than two, or a side gives all of them
    /// the same score.
    pub kendall_tau_b: Option<f64>,
    /// Overlaps for k = 10, 100, ... up to the shorter side.
    pub top: Vec<TopK>,
    /// Extrapolated rank-biased overlap, 0 to 1, in which the best ranks weigh most: see [`rbo`].
    pub rank_biased_overlap: f64,
    pub rank_biased_overlap_p: f64,
}

/// Overlap of the two sides' k best pages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TopK {
    pub k: u64,
    pub common: u64,
    pub overlap: f64,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: [(&str, &dyn fmt::Debug); 12] = [
            ("left_pages", &self.left_pages),
            ("right_pages", &self.right_pages),
            ("common_pages", &self.common_pages),
            ("union_pages", &self.union_pages),
            ("l1", &self.l1),
            ("l2", &self.l2),
            ("linf", &self.linf),
            ("relative_error_percent", &self.relative_error_percent),
            ("relative_error_pages", &self.relative_error_pages),
            (
                "relative_error_top_tenth_percent",
                &self.relative_error_top_tenth_percent,
            ),
            (
                "relative_error_top_tenth_pages",
                &self.relative_error_top_tenth_pages,
            ),
            ("reference_zero_pages", &self.reference_zero_pages),
        ];
        for (key, value) in lines {
            writeln!(f, "{key}\t{value:?}")?;
        }
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

/// Compares two rankings; `right` is the reference. Fails with [`Error::Unsupported`] if a side is empty, has a name
/// twice, or its scores sum to 0 or overflow `f64`.
pub fn compare(mut left: Scores, mut right: Scores) -> Result<Comparison> {
    let powers = (1..).map_while(|exponent| 10usize.checked_pow(exponent));
    let shorter = left.rows.len().min(right.rows.len());
    let ks: Vec<usize> = powers.take_while(|&k| k <= shorter).collect();
    for side in [&mut left, &mut right] {
        side.rows.sort_unstable_by(by_rank);
    }
    // No rank is stored: a page is in the top k if it is not after the k-th row.
    let last = [&left, &right].map(|side| -> Vec<ScoreRow> {
        let rows = ks.iter().map(|k| side.rows[k - 1]);
        rows.collect()
    });
    let level =
        |side: usize, row: &ScoreRow| last[side].partition_point(|last| by_rank(last, row).is_lt());
    // Common pages by the smallest k of which both sides have them.
    let mut common_by_k = vec![0; ks.len() + 1];
    let best = [&left, &right].map(|side| -> Vec<NameHash> {
        let best = side.rows.iter().take(rbo::DEPTH);
        best.map(|row| row.name).collect()
    });
    let positive = right.rows.iter().filter(|row| row.score > 0.0).count();
    let top_tenth = positive.div_ceil(10).checked_sub(1);
    let top_tenth = top_tenth.map(|last| right.rows[last]);
    let left = ComparedSide::of("left", left)?;
    let right = ComparedSide::of("right", right)?;
    let (left_pages, right_pages) = (left.rows.len() as u64, right.rows.len() as u64);
    let (mut norms, mut all, mut top) = (
        NormSums::default(),
        MeanError::default(),
        MeanError::default(),
    );
    let (mut union_pages, mut common) = (0, Vec::new());
    join(&left.rows, &right.rows, |l, r| {
        union_pages += 1;
        let (left_share, right_share) = (left.share(l), right.share(r));
        norms.add(left_share, right_share);
        if let Some(row) = r.filter(|_| right_share > 0.0) {
            let error = (left_share - right_share).abs() / right_share;
            all.add(error);
            if top_tenth.is_some_and(|last| by_rank(row, &last).is_le()) {
                top.add(error);
            }
        }
        if let (Some(l), Some(r)) = (l, r) {
            common.push((l.score, r.score));
            common_by_k[level(0, l).max(level(1, r))] += 1;
        }
    });
    drop((left, right)); // Tau needs the room.
    let [l1, l2, linf] = norms.finish();
    let mut common_pages = 0;
    let overlaps = ks.into_iter().zip(common_by_k).map(|(k, more)| {
        common_pages += more;
        TopK {
            k: k as u64,
            common: common_pages,
            overlap: common_pages as f64 / k as f64,
        }
    });
    Ok(Comparison {
        left_pages,
        right_pages,
        common_pages: common.len() as u64,
        union_pages,
        l1,
        l2,
        linf,
        relative_error_percent: all.percent(),
        relative_error_pages: all.pages,
        relative_error_top_tenth_percent: top.percent(),
        relative_error_top_tenth_pages: top.pages,
        reference_zero_pages: union_pages - all.pages,
        kendall_tau_b: kendall::tau_b(common),
        top: overlaps.collect(),
        rank_biased_overlap: rbo::extrapolated(&best[0], &best[1]),
        rank_biased_overlap_p: rbo::P,
    })
}

/// One side of a comparison: its rows by name, and their sum.
struct ComparedSide {
    rows: Vec<ScoreRow>,
    total: f64,
}

impl ComparedSide {
    /// Sorts by name before summing, so that the total does not depend on the order of input. `name` is the side's name
    /// in errors.
    fn of(name: &str, scores: Scores) -> Result<ComparedSide> {
        let mut rows = scores.rows;
        if rows.is_empty() {
            return Err(Error::Unsupported(format!(
                "the {name} side holds no pages"
            )));
        }
        rows.sort_unstable_by_key(|row| row.name);
        if let Some(pair) = rows.windows(2).find(|w| w[0].name == w[1].name) {
            return Err(Error::Unsupported(format!(
                "the {name} side names a page twice, with scores {:?} and {:?}; keep one of them",
                pair[0].score, pair[1].score
            )));
        }
        let total = CompensatedSum::of(rows.iter().map(|row| row.score));
        if total == 0.0 || total.is_infinite() {
            return Err(Error::Unsupported(format!(
                "the scores of the {name} side sum to {total}: they cannot be normalised"
            )));
        }
        Ok(ComparedSide { rows, total })
    }

    /// Returns the normalised score; 0 if absent.
    fn share(&self, row: Option<&ScoreRow>) -> f64 {
        row.map_or(0.0, |row| row.score / self.total)
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

#[derive(Default)]
struct MeanError {
    sum: CompensatedSum,
    pages: u64,
}

impl MeanError {
    fn add(&mut self, error: f64) {
        self.sum.add(error);
        self.pages += 1;
    }

    /// Returns the mean in percent. If scores can be normalised, some page has a positive reference.
    fn percent(&self) -> f64 {
        100.0 * self.sum.value() / self.pages as f64
    }
}

/// Compares by rank: higher scores first, ties in the order of the names' hashes.
fn by_rank(a: &ScoreRow, b: &ScoreRow) -> Ordering {
    b.score.total_cmp(&a.score).then(a.name.cmp(&b.name))
}

/// Top-k by an order, in memory for twice as many items.
#[derive(Debug, Clone)]
pub struct BestItems<T> {
    count: usize,
    pub added: u64,
    /// Items that may be among the best; once some were dropped, the last of the best is at `count - 1`.
    kept: Vec<T>,
}

impl<T> BestItems<T> {
    pub fn new(count: usize) -> BestItems<T> {
        BestItems {
            count,
            added: 0,
            kept: Vec::new(),
        }
    }

    /// Adds an item. `order` must be the same at every call, and total.
    pub fn add(&mut self, item: T, order: impl Fn(&T, &T) -> Ordering) {
        let has_dropped = self.added > self.kept.len() as u64;
        self.added += 1;
        let is_worse = |last: &T| has_dropped && order(last, &item).is_le();
        if self.count == 0 || self.kept.get(self.count - 1).is_some_and(is_worse) {
            return;
        }
        self.kept.push(item);
        if self.kept.len() >= self.count.saturating_mul(2) {
            self.kept.select_nth_unstable_by(self.count - 1, order);
            self.kept.truncate(self.count);
        }
    }

    pub fn finish(mut self, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
        self.kept.sort_unstable_by(order);
        self.kept.truncate(self.count);
        self.kept
    }
}

#[cfg(test)]
mod tests;
