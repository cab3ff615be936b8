//! L1NormDiffs of Algorithm 3: ||E_L (g z - y e)||_1 for many pairs of g and y and one z.
//!
//! z is a vector over the domain. The paper's term y is equal for all pages (equation 17), so that with t = y/g
//!
//! ```text
//! ||g z - y e||_1 = g N(t),    N(t) = sum over k of |z[k] - t|
//! ```
//!
//! **[`Exact`]**: z is sorted once, with prefix sums, and N(t) is one binary search: O(n log n + m log n) for m pages.
//! That is the algorithm "in O(l log l) that is not described" (section 5.2.1).
//!
//! **[`NormTable`]**, the paper's: the range of g is divided evenly into c values, the norm is computed for each of
//! them and for one y, and a page gets that of the nearest value: O(c n + m). If y differs between pages (a member
//! that was dangling no longer is, see [`Complement`](super::Complement)), ||g z - y e|| is (y/y0)
//! ||(g y0/y) z - y0 e||, and the table is looked up at g y0/y.

/// Method for computing the norms.
pub trait Norms {
    /// Returns ||g z - y e||_1 over the domain. g and y are above 0.
    fn norm(&self, g: f64, y: f64) -> f64;
}

/// Norms computed exactly.
#[derive(Debug, Clone)]
pub struct Exact {
    /// Values of z, ascending.
    sorted: Vec<f64>,
    /// Prefix sums: `sums[i]` is the sum of the first i.
    sums: Vec<f64>,
}

impl Exact {
    /// Returns the norms for one z.
    pub fn new(z: &[f64]) -> Exact {
        let mut sorted = z.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut sum = 0.0;
        let mut sums = vec![0.0];
        sums.extend(sorted.iter().map(|value| {
            sum += value;
            sum
        }));
        Exact { sorted, sums }
    }
}

impl Norms for Exact {
    fn norm(&self, g: f64, y: f64) -> f64 {
        let t = y / g;
        let below = self.sorted.partition_point(|&value| value < t);
        let above = self.sorted.len() - below;
        let all = self.sums[self.sorted.len()];
        let under = below as f64 * t - self.sums[below];
        let over = all - self.sums[below] - above as f64 * t;
        g * (under + over)
    }
}

/// Norms at evenly spaced values of g.
#[derive(Debug, Clone)]
pub struct NormTable {
    y: f64,
    from: f64,
    step: f64,
    norms: Vec<f64>,
}

impl NormTable {
    /// Returns a table for one z and the most common `y`, with `values` values of g over `range`.
    pub fn new(z: &[f64], y: f64, range: (f64, f64), values: usize) -> NormTable {
        let values = values.max(2);
        let step = (range.1 - range.0) / (values - 1) as f64;
        let norm = |at: usize| {
            let g = range.0 + step * at as f64;
            z.iter().map(|z| (g * z - y).abs()).sum()
        };
        NormTable {
            y,
            from: range.0,
            step,
            norms: (0..values).map(norm).collect(),
        }
    }
}

impl Norms for NormTable {
    fn norm(&self, g: f64, y: f64) -> f64 {
        let g = g * self.y / y;
        let at = if self.step > 0.0 {
            ((g - self.from) / self.step).round().max(0.0) as usize
        } else {
            0
        };
        self.norms[at.min(self.norms.len() - 1)] * y / self.y
    }
}
