//! L1, L2 and L-infinity distance of two vectors.

use std::fmt;

use serde::Serialize;

use super::measure::{Measure, ScorePair};
use super::scores::ScoreRow;
use super::sum::CompensatedSum;

/// Distances over the union of the pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NormDistances {
    /// Sum of the absolute differences, 0 to 2.
    pub l1: f64,
    /// Root of the sum of the squared differences.
    pub l2: f64,
    /// Largest absolute difference of a page.
    pub linf: f64,
}

#[derive(Debug, Default)]
pub(super) struct NormSums {
    sum: CompensatedSum,
    squares: CompensatedSum,
    largest: f64,
}

impl NormSums {
    pub(super) fn add(&mut self, left: f64, right: f64) {
        let difference = (left - right).abs();
        self.sum.add(difference);
        self.squares.add(difference * difference);
        self.largest = self.largest.max(difference);
    }

    pub(super) fn l1(&self) -> f64 {
        self.sum.value()
    }

    pub(super) fn l2(&self) -> f64 {
        self.squares.value().sqrt()
    }

    pub(super) fn linf(&self) -> f64 {
        self.largest
    }
}

impl Measure for NormSums {
    type Found = NormDistances;

    fn begin(_: &mut [ScoreRow], _: &mut [ScoreRow]) -> NormSums {
        NormSums::default()
    }

    fn page(&mut self, pair: &ScorePair<'_>) {
        self.add(pair.left_share, pair.right_share);
    }

    fn end(self) -> NormDistances {
        NormDistances {
            l1: self.l1(),
            l2: self.l2(),
            linf: self.linf(),
        }
    }
}

impl fmt::Display for NormDistances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "l1\t{:?}", self.l1)?;
        writeln!(f, "l2\t{:?}", self.l2)?;
        writeln!(f, "linf\t{:?}", self.linf)
    }
}
