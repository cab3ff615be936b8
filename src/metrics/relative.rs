//! The mean relative error in percent: 100/N * sum of |X_j - Imp_j| / Imp_j (Abiteboul, Preda,
//! Cobena, WWW 2003, section 4.2), over all pages and over the reference's top tenth (figure 3).
//!
//! It is undefined where the reference is 0: those pages are left out and counted. A page that
//! only the reference knows counts with an error of 100 %.

use std::cmp::Ordering;

use super::overlap::{by_rank, cut};
use super::scores::Row;
use super::sum::Sum;

#[derive(Debug)]
pub(super) struct Relative {
    /// The last row of the top tenth.
    last: Option<Row>,
    pub(super) all: Mean,
    pub(super) top: Mean,
    /// Pages whose reference is 0.
    pub(super) excluded: u64,
}

#[derive(Debug, Default)]
pub(super) struct Mean {
    sum: Sum,
    pub(super) pages: u64,
}

impl Relative {
    /// Finds the top tenth of the reference, rounded up. Reorders the rows.
    pub(super) fn new(reference: &mut [Row]) -> Relative {
        let positive = reference.iter().filter(|row| row.score > 0.0).count();
        Relative {
            last: cut(reference, positive.div_ceil(10)),
            all: Mean::default(),
            top: Mean::default(),
            excluded: 0,
        }
    }

    /// One page: both normalised scores, and the reference's row if there is one.
    pub(super) fn add(&mut self, left: f64, right: f64, reference: Option<&Row>) {
        let Some(row) = reference.filter(|_| right > 0.0) else {
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
}

impl Mean {
    fn add(&mut self, error: f64) {
        self.sum.add(error);
        self.pages += 1;
    }

    /// In percent. There is a page with a reference above 0 wherever scores can be normalised.
    pub(super) fn percent(&self) -> f64 {
        100.0 * self.sum.value() / self.pages as f64
    }
}
