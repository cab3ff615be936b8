//! L1, L2 and L-infinity distance of two vectors.

use std::fmt;

use serde::Serialize;

use super::measure::{Measure, Pair};
use super::scores::Row;
use super::sum::Sum;

/// Distances over the union of the pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distances {
    /// Sum of the absolute differences, 0 to 2.
    pub l1: f64,
    /// Root of the sum of the squared differences.
    pub l2: f64,
    /// Largest absolute difference of a page.
    pub linf: f64,
}

#[derive(Debug, Default)]
pub(super) struct Distance {
    sum: Sum,
    squares: Sum,
    largest: f64,
}

impl Distance {
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

impl Measure for Distance {
    type Found = Distances;

    fn begin(_: &mut [Row], _: &mut [Row]) -> Distance {
        Distance::default()
    }

    fn page(&mut self, pair: &Pair<'_>) {
        self.add(pair.left_share, pair.right_share);
    }

    fn end(self) -> Distances {
        Distances {
            l1: self.l1(),
            l2: self.l2(),
            linf: self.linf(),
        }
    }
}

impl fmt::Display for Distances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "l1\t{:?}", self.l1)?;
        writeln!(f, "l2\t{:?}", self.l2)?;
        writeln!(f, "linf\t{:?}", self.linf)
    }
}
