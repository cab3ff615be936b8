//! Scores of all pages: the two estimators, certificates, the effort of a computation over links, and the state that a
//! settling ends with, from which a later one may start (`rank::settle`).

use serde::{Deserialize, Serialize};

use crate::Result;

cashrank_base::words! {
    /// Estimator of importance: one of a snapshot's two columns.
    Estimator {
        /// X; for a window of measures or an interpolation, the estimate of section 3.3.
        Distributed = "distributed",
        /// Y: the cash that the page received, in the window, as a share.
        Received = "received",
    }
}

impl Estimator {
    /// Returns (importance, distributed) of (received, distributed).
    pub fn read(self, (received, distributed): (f64, f64)) -> (f64, f64) {
        match self {
            Estimator::Received => (received, distributed),
            Estimator::Distributed => (distributed, distributed),
        }
    }
}

/// Certified accuracy of an estimate. Distances are L1, between vectors that sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// ||Y - X||_1, rounded up.
    pub residual_l1: f64,
    /// Error bound e for rounding to whole units.
    pub rounding_l1: f64,
    /// Bound on ||received - PageRank||_1; absent if 2 or more.
    pub received_l1: Option<f64>,
    /// Bound on ||distributed - PageRank||_1; absent if 2 or more, or for the paper's estimate with cash (`whole`).
    pub distributed_l1: Option<f64>,
}

impl Certificate {
    /// Returns the bound on the L1 error of importance as the estimator reads it; `None` if there is none.
    pub fn bound_l1(&self, estimator: Estimator) -> Option<f64> {
        match estimator {
            Estimator::Received => self.received_l1,
            Estimator::Distributed => self.distributed_l1,
        }
    }

    /// Returns true if no number is NaN or infinite.
    pub fn is_finite(&self) -> bool {
        let bounds = [self.received_l1, self.distributed_l1];
        let bounds = bounds.into_iter().flatten();
        bounds
            .chain([self.residual_l1, self.rounding_l1])
            .all(f64::is_finite)
    }
}

/// Computes the bounds from a residual and the rounding error, as derived in the head of `engine/estimate.rs`.
pub fn certify(damping: f64, residual: f64, rounding: f64) -> Certificate {
    let bound = |l1: f64| {
        let l1 = up((l1 + rounding) / (1.0 - damping));
        (l1 < 2.0).then_some(l1)
    };
    Certificate {
        residual_l1: residual,
        rounding_l1: rounding,
        received_l1: bound(damping * residual),
        distributed_l1: bound(residual),
    }
}

/// Returns `units / clock`, rounded up; infinity if `clock` is 0.
pub fn ratio_up(units: u128, clock: u128) -> f64 {
    if clock == 0 {
        return f64::INFINITY;
    }
    up(units as f64 / clock as f64)
}

/// Returns slightly more than `x`, to cover the rounding of a few operations and of the published values.
fn up(x: f64) -> f64 {
    x * (1.0 + 1e-14) + 1e-14
}

/// Effort of a computation over links.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Requested bound on the L1 error.
    pub until: f64,
    /// True if the bound was reached; false if time ran out or 64-bit numbers do not resolve more.
    pub reached: bool,
    /// Number of sweeps over the kept rows.
    pub sweeps: u64,
    /// Number of links over which something was passed on.
    pub links_touched: u64,
    /// Number of links in the rows.
    pub links: u64,
    /// True if it started from an earlier settled state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
}

pub trait Scores: Sync {
    /// Returns bounds on the error of the scores; `None` if nothing is known.
    fn certificate(&self) -> Option<Certificate>;
    fn effort(&self) -> Effort;
    /// Reads (received, distributed) of `len` pages from `first` on.
    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()>;
}

/// Unit of which importances are whole multiples: (units + `offset`)/`sum`, or 0 if that is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreUnits {
    pub offset: f64,
    pub sum: f64,
}

impl ScoreUnits {
    /// Returns the units of an importance; `None` if it is not a whole multiple.
    pub fn of(self, importance: f64) -> Option<i64> {
        let near = (importance * self.sum - self.offset).round();
        // Below this value, adding or subtracting 1 does not overflow.
        if near.is_nan() || near.abs() > (1u64 << 62) as f64 {
            return None;
        }
        let near = [0, -1, 1].map(|off| near as i64 + off);
        let is_same = |units: &i64| self.importance(*units).to_bits() == importance.to_bits();
        near.into_iter().find(is_same)
    }

    pub fn importance(self, units: i64) -> f64 {
        (units as f64 + self.offset).max(0.0) / self.sum
    }
}

/// Sums of a settled state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SettledTotals {
    pub pages: u64,
    /// Damping, in 1/2^32.
    pub damping: u64,
    /// Sum of X over all pages.
    pub sum: i128,
    /// T: units received by the virtual page.
    pub virtual_page: i128,
    /// F: bound on the additional rounding error of larger units.
    pub strayed: u128,
    pub effort: Effort,
}

/// Numbers of a settled state per page, in page order.
#[derive(Debug, Clone, Copy)]
pub struct SettledPages<'a> {
    /// X of each page.
    pub own: &'a [i64],
    /// D of each page.
    pub accounts: &'a [i64],
    /// Cost of a visit, which also tells whether the page has a row and links.
    pub costs: &'a [u8],
}

#[derive(Debug)]
pub struct SettledPagesMut<'a> {
    pub own: &'a mut [i64],
    pub accounts: &'a mut [i64],
    pub costs: &'a mut [u8],
}
