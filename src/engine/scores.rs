//! Scores of all pages that were computed from their links, and what it took.

use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use crate::Result;

/// Work done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// The bound on the L1 error that was asked for.
    pub until: f64,
    /// Whether it was reached; if not, time was up, or numbers of 64 bits resolve no more.
    pub reached: bool,
    /// Sweeps over the kept rows.
    pub sweeps: u64,
    /// Links over which something was handed on.
    pub links_touched: u64,
    /// Links that the rows hold.
    pub links: u64,
    /// Whether it went on from what was settled before, so that what came to it are not these rows alone. Not told before version 3 of
    /// snapshots.
    #[serde(default, skip_serializing_if = "is_false")]
    pub resumed: bool,
}

/// For serde: says nothing of what is usual.
fn is_false(resumed: &bool) -> bool {
    !resumed
}

/// Scores of all pages.
pub trait Scores {
    /// How near they are to what they approximate; `None`: nothing is known of it.
    fn certificate(&self) -> Option<Certificate>;
    /// Work done.
    fn effort(&self) -> Effort;
    /// (received, distributed) of `len` pages from `first` on.
    ///
    /// # Errors
    /// Those of reading what does not lie in memory.
    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()>;
}

/// What importances are whole numbers of: (units + `offset`)/`sum`, or 0 where that is below. So they can be written in fewer bytes than
/// as `f64`, and read back bit by bit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreUnits {
    /// What every page has beside its units.
    pub offset: f64,
    /// Units of all pages.
    pub sum: f64,
}

impl ScoreUnits {
    /// The units of an importance; `None`: it is no whole number of them.
    pub fn of(self, importance: f64) -> Option<i64> {
        let near = (importance * self.sum - self.offset).round();
        // Below this, 1 more or less does not overflow.
        if near.is_nan() || near.abs() > (1u64 << 62) as f64 {
            return None;
        }
        let near = [0, -1, 1].map(|off| near as i64 + off);
        let is_same = |units: &i64| self.importance(*units).to_bits() == importance.to_bits();
        near.into_iter().find(is_same)
    }

    /// The importance of a number of units.
    pub fn importance(self, units: i64) -> f64 {
        (units as f64 + self.offset).max(0.0) / self.sum
    }
}
