//! Scores of all pages computed from their links, and the effort it took.

use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use crate::Result;

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
    /// True if it started from an earlier settled state, so its input was more than these rows. Not stored before
    /// version 3 of snapshots.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resumed: bool,
}

/// Tells serde to omit the default.
fn is_false(resumed: &bool) -> bool {
    !resumed
}

/// Scores of all pages.
pub trait Scores {
    /// Returns bounds on the error of the scores; `None` if nothing is known.
    fn certificate(&self) -> Option<Certificate>;
    /// Returns the effort that the computation took.
    fn effort(&self) -> Effort;
    /// Reads (received, distributed) of `len` pages from `first` on.
    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()>;
}

/// Unit of which importances are whole multiples: (units + `offset`)/`sum`, or 0 if that is negative. They can be
/// written in fewer bytes than as `f64` and read back bit by bit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreUnits {
    /// Offset that every page has in addition to its units.
    pub offset: f64,
    /// Sum of all pages, in units.
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

    /// Returns the importance of a number of units.
    pub fn importance(self, units: i64) -> f64 {
        (units as f64 + self.offset).max(0.0) / self.sum
    }
}
