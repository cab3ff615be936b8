//! Pages that rose and fell from one ranking to another, by how much, and with what certainty: the derivative of
//! importance (Abiteboul, Preda, Cobena, WWW 2003, section 5 names it and leaves it open).
//!
//! A page on both sides has changed by `right - left` of its importance. Pages are added one at a time
//! ([`MoveCollector::add`]); memory holds sums and, for each list, twice as many pages as are wanted.
//!
//! **Certainty.** Let x be a published vector and pi the PageRank it estimates, both of sum 1, with `||x - pi||_1 <=
//! b`. The differences x_i - pi_i sum to 0, so their positive and negative parts have equal sums, of at most b/2. Hence
//! for every single page
//!
//! ```text
//! |x_j - pi_j| <= b/2      and of two snapshots      |(x'_j - x_j) - (pi'_j - pi_j)| <= (b + b')/2
//! ```
//!
//! The right side is the [`margin`]. A change of more than the margin is *certain*: the PageRank of the snapshots' own
//! links changed, in that direction. The bounds exceed the rounding of published values many times over. Without both
//! bounds nothing is certain. Changes within the margin count as unchanged.
//!
//! **Dilution.** The importances of all pages sum to 1, so added pages reduce those of most others. A page that keeps
//! its ratio to the mean page, x_j n for n pages, changes by `x_j (n / n' - 1)`: its dilution. A page that changed is
//! *diluted* if its change is its dilution within the margin; without a margin, if they differ by no more than half of
//! the change. The diluted part of a change is the part between 0 and the dilution.
//!
//! **Order.** Pages that rose: largest change first, as [`By`] measures it; pages that fell: largest loss first. By
//! rank, a page whose rank rose while its importance fell, or the reverse, is in neither list. Ties: the larger change
//! of importance in that direction, then the better rank on the right, then the smaller key. New and missing pages: best
//! rank first, then the smaller key. Only the last digit of sums depends on the order in which pages are added.

use std::cmp::Ordering;

use serde::Serialize;

use super::BestItems;
use super::scores::ScoreRow;
use super::sum::{CompensatedSum, NormSums};
use super::{ComparedSide, Scores, join};
use crate::Result;
use crate::model::PageState;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Standing {
    /// Share of the importance of all pages, 0 to 1.
    pub importance: f64,
    /// 1 + number of pages of strictly greater importance.
    pub rank: u64,
}

/// Page that moved, or is new.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mover {
    /// Number of the page, or a hash of its name if the rankings were joined by names.
    #[serde(skip)]
    pub key: u128,
    /// URL, or the name in a crawl without URLs.
    pub url: String,
    /// Result of the page's fetches so far.
    pub state: Option<PageState>,
    /// Rank in the older snapshot; absent for a page that was not known.
    pub rank_before: Option<u64>,
    /// Rank in the newer snapshot; absent for a page that it lacks.
    pub rank: Option<u64>,
    pub importance_before: Option<f64>,
    pub importance: Option<f64>,
    /// True if PageRank itself changed in that direction: the importance changed by more than both bounds allow. Absent
    /// without bounds, and for a new page.
    pub certain: Option<bool>,
}

impl Mover {
    /// Returns the change of importance, -1 to 1; 0 counts for a ranking that lacks the page.
    pub fn change(&self) -> f64 {
        self.importance.unwrap_or(0.0) - self.importance_before.unwrap_or(0.0)
    }

    /// Returns the change divided by the importance before; `None` if that was 0, or the quotient overflows `f64`.
    pub fn relative(&self) -> Option<f64> {
        let relative = self.change() / self.importance_before.unwrap_or(0.0);
        relative.is_finite().then_some(relative)
    }

    /// Returns the number of ranks the page rose; negative if it fell. `None` for a page of one side only.
    pub fn rank_change(&self) -> Option<i64> {
        let (before, after) = self.rank_before.zip(self.rank)?;
        Some((before as i64).saturating_sub(after as i64))
    }

    /// Returns the size of the change; negative for a page that fell.
    fn size(&self, by: By) -> f64 {
        match by {
            By::Change => self.change(),
            By::Relative if self.change() == 0.0 => 0.0,
            // A rise from zero is larger than any number.
            By::Relative => self.relative().unwrap_or(f64::INFINITY),
            By::Rank => self.rank_change().unwrap_or(0) as f64,
        }
    }

    /// Compares pages of both sides by "Order" in the module's head, whether they rose or fell.
    pub fn by_size(by: By, a: &Mover, b: &Mover) -> Ordering {
        let largest = |a: f64, b: f64| b.abs().total_cmp(&a.abs());
        largest(a.size(by), b.size(by))
            .then(largest(a.change(), b.change()))
            .then(a.rank.cmp(&b.rank))
            .then(a.key.cmp(&b.key))
    }

    fn by_rank(a: &Mover, b: &Mover) -> Ordering {
        let rank = |page: &Mover| page.rank.or(page.rank_before);
        rank(a).cmp(&rank(b)).then(a.key.cmp(&b.key))
    }
}

cashrank_base::words! {
    /// Measure of a change's size.
    #[derive(Default)]
    By {
        Change = "change",
        /// Change divided by the earlier importance.
        #[default]
        Relative = "relative",
        Rank = "rank",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoveOptions {
    /// Maximum number of pages in each list.
    pub count: usize,
    pub by: By,
    /// Lists only pages of this rank or better on a side. Sums are over all pages.
    pub top: u64,
    /// Lists only those pages on both sides whose change is certain; none without bounds. Sums are over all pages.
    pub certain_only: bool,
}

impl Default for MoveOptions {
    fn default() -> MoveOptions {
        MoveOptions {
            count: 20,
            by: By::default(),
            top: MoveOptions::TOP,
            certain_only: false,
        }
    }
}

impl MoveOptions {
    /// Default of [`top`](MoveOptions::top): less important pages often change by a large part of their importance
    /// while importance as a whole hardly changes.
    pub const TOP: u64 = 1_000;
}

/// Returns whether the PageRank of a page is certainly above that of another in the same ranking: the errors of two
/// pages together are at most the bound on the L1 error.
pub fn is_certainly_above(importance: f64, other: f64, bound: Option<f64>) -> bool {
    bound.is_some_and(|bound| importance - other > bound)
}

/// Returns the greatest difference between the change of a page and that of its PageRank, from the two bounds on the L1
/// error; `None` if a bound is unknown.
pub fn margin(left_l1: Option<f64>, right_l1: Option<f64>) -> Option<f64> {
    Some((left_l1? + right_l1?) / 2.0)
}

/// Returns whether a page with this change counts as moved: it exceeds the margin, or without one is not 0.
pub fn is_moved(change: f64, margin: Option<f64>) -> bool {
    change != 0.0 && margin.is_none_or(|margin| change.abs() > margin)
}

/// Returns whether a change is dilution within the margin; without a margin, if they differ by no more than half of the
/// change. See "Dilution" in the module's head.
pub fn is_dilution(change: f64, dilution: f64, margin: Option<f64>) -> bool {
    (change - dilution).abs() <= margin.unwrap_or(change.abs() / 2.0)
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moves {
    pub summary: MoveSummary,
    /// Pages that rose, largest move first; and that fell.
    pub rose: Vec<Mover>,
    pub fell: Vec<Mover>,
    /// Pages on the right side only, best rank first; and on the left side only.
    pub new: Vec<Mover>,
    pub missing: Vec<Mover>,
}

/// Counts and sums over all pages.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MoveSummary {
    pub left_pages: u64,
    pub right_pages: u64,
    pub common_pages: u64,
    pub new_pages: u64,
    pub missing_pages: u64,
    /// Number of common pages whose importance rose, by more than the margin if there is one; and fell.
    pub rose_pages: u64,
    pub fell_pages: u64,
    /// Number of other common pages: importance is equal within the margin, or to the bit without one.
    pub unchanged_pages: u64,
    /// Number of pages that rose or fell by dilution alone. See "Dilution" in the module's head.
    pub diluted_pages: u64,
    pub same_rank_pages: u64,
    pub margin: Option<f64>,
    /// Sum of the absolute changes over all pages of either side, 0 to 2; an absent page counts as 0.
    pub l1: f64,
    /// Part of `l1` that is dilution of common pages.
    pub dilution_l1: f64,
    pub l2: f64,
    pub linf: f64,
}

/// Collects pages one at a time.
#[derive(Debug)]
pub struct MoveCollector {
    wanted: MoveOptions,
    /// Number of pages on the left side divided by that on the right.
    growth: f64,
    summary: MoveSummary,
    norms: NormSums,
    dilution: CompensatedSum,
    rose: BestItems<Mover>,
    fell: BestItems<Mover>,
    new: BestItems<Mover>,
    missing: BestItems<Mover>,
}

impl MoveCollector {
    /// Returns a collector for sides with these bounds on their L1 errors and these numbers of pages.
    pub fn new(
        wanted: MoveOptions,
        bounds: [Option<f64>; 2],
        [left, right]: [u64; 2],
    ) -> MoveCollector {
        let growth = left as f64 / right as f64;
        let [rose, fell, new, missing] = [(); 4].map(|()| BestItems::new(wanted.count));
        MoveCollector {
            wanted,
            // If a side has no pages, none is on both.
            growth: if growth.is_finite() { growth } else { 1.0 },
            summary: MoveSummary {
                margin: margin(bounds[0], bounds[1]),
                ..MoveSummary::default()
            },
            norms: NormSums::default(),
            dilution: CompensatedSum::default(),
            rose,
            fell,
            new,
            missing,
        }
    }

    /// Adds a page with its standing on each side that has it. Each page must be added once, with a key of its own;
    /// importances must not be negative or NaN.
    pub fn add(&mut self, key: u128, left: Option<Standing>, right: Option<Standing>) {
        let [before, after] = [left, right].map(|side| side.map_or(0.0, |side| side.importance));
        self.norms.add(before, after);
        let (change, summary) = (after - before, &mut self.summary);
        let margin = summary.margin;
        let has_moved = is_moved(change, margin);
        match (left, right) {
            (None, None) => return,
            (None, Some(_)) => summary.new_pages += 1,
            (Some(_), None) => summary.missing_pages += 1,
            (Some(left), Some(right)) => {
                summary.common_pages += 1;
                summary.same_rank_pages += u64::from(left.rank == right.rank);
                // The change that keeps the page's ratio to the mean page.
                let dilution = before * (self.growth - 1.0);
                let part = (dilution * change.signum()).clamp(0.0, change.abs());
                self.dilution.add(part);
                summary.rose_pages += u64::from(has_moved && change > 0.0);
                summary.fell_pages += u64::from(has_moved && change < 0.0);
                let is_diluted = has_moved && is_dilution(change, dilution, margin);
                summary.diluted_pages += u64::from(is_diluted);
            }
        }
        let mut sides = [left, right].into_iter().flatten();
        if sides.any(|side| side.rank <= self.wanted.top) {
            let is_common = left.is_some() && right.is_some();
            self.list(Mover {
                key,
                rank_before: left.map(|side| side.rank),
                rank: right.map(|side| side.rank),
                importance_before: left.map(|side| side.importance),
                importance: right.map(|side| side.importance),
                certain: margin.filter(|_| is_common).map(|_| has_moved),
                ..Mover::default()
            });
        }
    }

    fn list(&mut self, page: Mover) {
        let (by, change) = (self.wanted.by, page.change());
        let by_size = |a: &Mover, b: &Mover| Mover::by_size(by, a, b);
        match (page.rank_before, page.rank) {
            (None, _) => self.new.add(page, Mover::by_rank),
            (_, None) => self.missing.add(page, Mover::by_rank),
            _ if self.wanted.certain_only && page.certain != Some(true) => {}
            // If most pages are replaced by new ones, ranks of some that lose importance rise: these neither rose nor fell.
            _ if page.size(by) > 0.0 && change > 0.0 => self.rose.add(page, by_size),
            _ if page.size(by) < 0.0 && change < 0.0 => self.fell.add(page, by_size),
            _ => {}
        }
    }

    pub fn finish(self) -> Moves {
        let (by, found) = (self.wanted.by, self.summary);
        let [l1, l2, linf] = self.norms.finish();
        Moves {
            summary: MoveSummary {
                left_pages: found.common_pages + found.missing_pages,
                right_pages: found.common_pages + found.new_pages,
                unchanged_pages: found.common_pages - found.rose_pages - found.fell_pages,
                l1,
                l2,
                linf,
                dilution_l1: self.dilution.value(),
                ..found
            },
            rose: self.rose.finish(|a, b| Mover::by_size(by, a, b)),
            fell: self.fell.finish(|a, b| Mover::by_size(by, a, b)),
            new: self.new.finish(Mover::by_rank),
            missing: self.missing.finish(Mover::by_rank),
        }
    }
}

/// Computes the moves from `left` to `right`, in shares (scores divided by their sum), whose L1 errors have these
/// `bounds`. Keys are hashes of names. Fails like [`compare`](crate::metrics::compare).
pub fn moved_by_name(
    left: Scores,
    right: Scores,
    bounds: [Option<f64>; 2],
    wanted: MoveOptions,
) -> Result<Moves> {
    let sides = [
        ComparedSide::of("left", left)?,
        ComparedSide::of("right", right)?,
    ];
    let sorted = sides.each_ref().map(|side| {
        let mut scores: Vec<f64> = side.rows.iter().map(|row| row.score).collect();
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        scores
    });
    let standing = |side: usize, row: &ScoreRow| Standing {
        importance: row.score / sides[side].total,
        rank: 1 + sorted[side].partition_point(|&score| score > row.score) as u64,
    };
    let pages = sides.each_ref().map(|side| side.rows.len() as u64);
    let mut movers = MoveCollector::new(wanted, bounds, pages);
    join(&sides[0].rows, &sides[1].rows, |l, r| {
        if let Some(row) = l.or(r) {
            let (left, right) = (l.map(|row| standing(0, row)), r.map(|row| standing(1, row)));
            movers.add(row.name.into(), left, right);
        }
    });
    Ok(movers.finish())
}

#[cfg(test)]
mod tests;
