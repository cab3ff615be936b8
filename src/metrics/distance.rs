//! L1 and L-infinity distance of two vectors, entry by entry.

use super::sum::Sum;

#[derive(Debug, Default)]
pub(super) struct Distance {
    sum: Sum,
    largest: f64,
}

impl Distance {
    pub(super) fn add(&mut self, left: f64, right: f64) {
        let difference = (left - right).abs();
        self.sum.add(difference);
        self.largest = self.largest.max(difference);
    }

    pub(super) fn l1(&self) -> f64 {
        self.sum.value()
    }

    pub(super) fn linf(&self) -> f64 {
        self.largest
    }
}
