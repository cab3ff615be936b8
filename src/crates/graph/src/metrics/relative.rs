//! Mean relative error in percent: 100/N * sum of |X_j - Imp_j| / Imp_j (Abiteboul, Preda, Cobena, WWW 2003, section
//! 4.2), over all pages and over the reference's top tenth (figure 3).
//!
//! It is undefined if the reference is 0: those pages are left out and counted. A page that only the reference has
//! counts with an error of 100 %.

use std::cmp::Ordering;
use std::fmt;

use serde::Serialize;

use super::measure::{Measure, ScorePair};
use super::overlap::{by_rank, cut};
use super::scores::ScoreRow;
use super::sum::CompensatedSum;

/// Relative errors, over all pages and over the reference's top tenth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelativeErrors {
    /// Mean of |left - right| / right in percent, over all pages whose reference is not 0.
    pub relative_error_percent: f64,
    /// Number of pages in `relative_error_percent`.
    pub relative_error_pages: u64,
    /// Mean of |left - right| / right in percent, over the tenth of these pages (rounded up) that the reference ranks
    /// highest.
    pub relative_error_top_tenth_percent: f64,
    /// Number of pages in `relative_error_top_tenth_percent`.
    pub relative_error_top_tenth_pages: u64,
    /// Number of pages of the union left out of the relative errors: the reference is 0, or lacks the page.
    pub reference_zero_pages: u64,
}

#[derive(Debug)]
pub(super) struct Relative {
    /// Last row of the top tenth.
    last: Option<ScoreRow>,
    all: MeanError,
    top: MeanError,
    /// Number of pages whose reference is 0.
    excluded: u64,
}

#[derive(Debug, Default)]
struct MeanError {
    sum: CompensatedSum,
    pages: u64,
}

impl Measure for Relative {
    type Found = RelativeErrors;

    /// Finds the top tenth of the reference, rounded up.
    fn begin(_: &mut [ScoreRow], reference: &mut [ScoreRow]) -> Relative {
        let positive = reference.iter().filter(|row| row.score > 0.0).count();
        Relative {
            last: cut(reference, positive.div_ceil(10)),
            all: MeanError::default(),
            top: MeanError::default(),
            excluded: 0,
        }
    }

    fn page(&mut self, pair: &ScorePair<'_>) {
        let (left, right) = (pair.left_share, pair.right_share);
        let Some(row) = pair.right.filter(|_| right > 0.0) else {
            self.excluded += 1;
            return;
        };
        let error = (left - right).abs() / right;
        self.all.add(error);
        if self
            .last
            .is_some_and(|last| by_rank(row, &last) != Ordering::Greater)
        {
            self.top.add(error);
        }
    }

    fn end(self) -> RelativeErrors {
        RelativeErrors {
            relative_error_percent: self.all.percent(),
            relative_error_pages: self.all.pages,
            relative_error_top_tenth_percent: self.top.percent(),
            relative_error_top_tenth_pages: self.top.pages,
            reference_zero_pages: self.excluded,
        }
    }
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

impl fmt::Display for RelativeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let top = self.relative_error_top_tenth_percent;
        let top_pages = self.relative_error_top_tenth_pages;
        writeln!(
            f,
            "relative_error_percent\t{:?}",
            self.relative_error_percent
        )?;
        writeln!(f, "relative_error_pages\t{}", self.relative_error_pages)?;
        writeln!(f, "relative_error_top_tenth_percent\t{top:?}")?;
        writeln!(f, "relative_error_top_tenth_pages\t{top_pages}")?;
        writeln!(f, "reference_zero_pages\t{}", self.reference_zero_pages)
    }
}
