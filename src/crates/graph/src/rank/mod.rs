//! Importance of pages by their links: PageRank, settled from rows wherever they are kept ([`settle`]) or exact in memory
//! ([`pagerank`]), each with a proven bound on the error, and other measures ([`measures`], one file and one line in its
//! table each).

pub mod chosen;
pub mod computing;
pub mod coverage;
#[cfg(any(test, feature = "testing"))]
#[path = "tests/elimination.rs"]
pub mod elimination;
pub mod measures;
pub mod pagerank;
pub mod peers;
pub mod settle;
mod teleport;
#[cfg(test)]
mod tests;

pub use teleport::Teleport;

/// Accuracy at which a computation ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Target bound on the L1 error.
    pub until: f64,
    /// Number of links up to which sweeps continue below `until`, down to [`FINEST`], as far as another sweep fits:
    /// accuracy that is cheap. 0 ends at `until`. A number of links instead of a time, so that the same records give
    /// the same bytes on any machine.
    pub spare: u64,
}

/// Ends at the bound, without further sweeps.
impl From<f64> for Goal {
    fn from(until: f64) -> Goal {
        Goal { until, spare: 0 }
    }
}

/// Ends at 0.01, or below while that takes about half a second.
impl Default for Goal {
    fn default() -> Goal {
        Goal {
            until: 0.01,
            spare: SPARE,
        }
    }
}

/// Bound below which computations continue only if requested.
pub const FINEST: f64 = 1e-6;
/// Number of links that take about half a second.
const SPARE: u64 = 16_000_000;

/// Parameters of the computation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankOptions {
    /// Damping in 1/2^32 ([`Config::damping_units`](crate::engine::Config::damping_units)).
    pub damping: u64,
    /// Target bound on the L1 distance to PageRank.
    pub until: f64,
    /// Bound at which a computation ends, having aimed at `until` first. It is lower if the published bound includes
    /// more ([`Config::bound_for`](crate::engine::Config::bound_for)), else the same.
    pub on_to: f64,
    /// Number of links up to which settling continues below `until`. See [`Goal::spare`].
    pub spare: u64,
}

impl RankOptions {
    /// Returns options with this target bound.
    pub fn until(damping: u64, until: f64) -> RankOptions {
        RankOptions {
            damping,
            until,
            on_to: until,
            spare: 0,
        }
    }

    /// Returns the damping as a number from 0 to 1. Exact: scaling by a power of two does not round.
    pub fn damping(&self) -> f64 {
        self.damping as f64 / 2f64.powi(32)
    }
}
