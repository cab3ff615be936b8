//! Compensated sum (Neumaier's variant of Kahan's): the error is about one rounding of the result, however many terms.
//! The same terms in the same order give the same bits.

#[derive(Debug, Clone, Copy, Default)]
pub struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    /// Returns the sum of terms, in this order.
    pub fn of(terms: impl IntoIterator<Item = f64>) -> f64 {
        let mut sum = CompensatedSum::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum.value()
    }

    pub fn add(&mut self, term: f64) {
        let sum = self.sum + term;
        // The smaller of the two loses digits, which are kept here.
        self.lost += if self.sum.abs() >= term.abs() {
            (self.sum - sum) + term
        } else {
            (term - sum) + self.sum
        };
        self.sum = sum;
    }

    /// Returns the sum; infinite once it overflowed `f64`.
    pub fn value(self) -> f64 {
        if self.sum.is_finite() {
            self.sum + self.lost
        } else {
            self.sum
        }
    }
}

/// Sums of the L1, L2 and L-infinity distance of two vectors.
#[derive(Debug, Default)]
pub(super) struct NormSums {
    sum: CompensatedSum,
    squares: CompensatedSum,
    largest: f64,
}

impl NormSums {
    pub fn add(&mut self, left: f64, right: f64) {
        let difference = (left - right).abs();
        self.sum.add(difference);
        self.squares.add(difference * difference);
        self.largest = self.largest.max(difference);
    }

    /// Returns the L1, L2 and L-infinity distance.
    pub fn finish(self) -> [f64; 3] {
        [self.sum.value(), self.squares.value().sqrt(), self.largest]
    }
}

#[cfg(test)]
mod tests {
    use super::CompensatedSum;

    #[test]
    fn keeps_what_a_plain_sum_loses() {
        // Neumaier's example: exactly 2, where a plain sum gives 0.
        let sum = CompensatedSum::of([1.0, 1e100, 1.0, -1e100]);
        assert_eq!(sum, 2.0);
        // 0.1 is 0.1000000000000000055...: ten million of them are 1e6 to within half a unit.
        let sum = CompensatedSum::of(std::iter::repeat_n(0.1, 10_000_000));
        assert_eq!(sum, 1e6);
    }

    #[test]
    fn overflow_is_infinite() {
        let sum = CompensatedSum::of([f64::MAX, f64::MAX]);
        assert_eq!(sum, f64::INFINITY);
    }
}
