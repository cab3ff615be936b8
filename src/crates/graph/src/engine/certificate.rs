//! Bounds on the distance between an estimate and PageRank, computed as derived in [`super::estimate`].

use serde::{Deserialize, Serialize};

/// Certified accuracy of an estimate. Distances are L1, between vectors that sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// ||Y - X||_1, rounded up.
    pub residual_l1: f64,
    /// Error bound e for rounding to whole units.
    pub rounding_l1: f64,
    /// Bound on ||received - PageRank||_1; absent if 2 or more.
    pub received_l1: Option<f64>,
    /// Bound on ||distributed - PageRank||_1; absent if 2 or more, or for the paper's estimate
    /// with cash (`whole`).
    pub distributed_l1: Option<f64>,
}

impl Certificate {
    /// Returns true if no number is NaN or infinite.
    pub fn is_finite(&self) -> bool {
        let bounds = [self.received_l1, self.distributed_l1];
        let bounds = bounds.into_iter().flatten();
        bounds
            .chain([self.residual_l1, self.rounding_l1])
            .all(f64::is_finite)
    }
}

/// Computes the bounds from a residual and the rounding error.
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

/// Returns slightly more than `x`, to cover the rounding of a few operations and of the published values: each is off
/// by at most 2^-53 of itself, and they sum to 1.
fn up(x: f64) -> f64 {
    x * (1.0 + 1e-14) + 1e-14
}
