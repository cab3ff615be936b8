//! Importance of pages by their links: PageRank, settled from rows wherever they are kept ([`settle`]) or exact in
//! memory ([`pagerank`]), each with a proven bound on the error, and other measures ([`measures`]).

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
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::graph::whole_numbers;
use crate::{Error, Result};

/// Accuracy at which a computation ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    pub until: f64,
    /// Number of links up to which sweeps continue below `until`, down to [`FINEST`], as far as another sweep fits:
    /// cheap additional accuracy. 0 ends at `until`. It is a number of links, not a time, so that the same records give
    /// the same bytes on any machine.
    pub spare: u64,
}

/// Ends at the bound, without further sweeps.
impl From<f64> for Goal {
    fn from(until: f64) -> Goal {
        Goal { until, spare: 0 }
    }
}

/// Ends at 0.01, or below if that takes about half a second at most.
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankOptions {
    /// Damping in 1/2^32 ([`Config::damping_units`](crate::engine::Config::damping_units)).
    pub damping: u64,
    /// Target bound on the L1 distance to PageRank.
    pub until: f64,
    /// Bound at which a computation ends, after it has reached `until`: lower if the published bound includes more
    /// ([`Config::bound_for`](crate::engine::Config::bound_for)), else the same.
    pub on_to: f64,
    /// Number of links up to which settling continues below `until`. See [`Goal::spare`].
    pub spare: u64,
}

impl RankOptions {
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

/// Distribution of what the virtual page pays: uniform by default, or by weights, as in personalised PageRank. Surfers
/// who do not follow a link, or are at a page without links, continue at these pages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Teleport {
    /// Weight of each page; empty for uniform.
    weights: Arc<[u64]>,
    sum: u64,
}

impl Teleport {
    /// Creates a vector from the weights of all pages. Fails with [`Error::Usage`] if the weights sum to 0 or to more
    /// than 2^32.
    pub fn of(weights: Vec<u32>) -> Result<Teleport> {
        let teleport = Teleport::new(weights.into_iter().map(u64::from))?;
        // Rounding down loses less than a unit for each unit of weight.
        if teleport.sum > 1 << 32 {
            return Err(Error::Usage(format!(
                "teleport weights are {} together: at most 2^32",
                teleport.sum
            )));
        }
        Ok(teleport)
    }

    /// Creates a vector like [`Teleport::new`] from finite weights of at least 0, rounded by [`whole_numbers`].
    pub fn of_floats(weights: &[f64]) -> Result<Teleport> {
        Teleport::new(whole_numbers(weights).into_iter())
    }

    /// Creates a vector from weights whose sum is at most 2^53. Settling gets no closer than 2^-58 per unit of the sum.
    /// Fails with [`Error::Usage`] if all weights are 0.
    pub fn new(weights: impl Iterator<Item = u64>) -> Result<Teleport> {
        let weights: Arc<[u64]> = weights.collect();
        let sum = weights.iter().sum();
        if sum == 0 {
            let text = "teleport weights are 0 together: at least one page needs some";
            return Err(Error::Usage(text.into()));
        }
        Ok(Teleport { weights, sum })
    }

    fn check(&self, pages: u64) -> Result<()> {
        let weights = self.weights.len() as u64;
        if self.is_uniform() || weights == pages {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "teleport weights of {weights} pages, where there are {pages}"
        )))
    }

    pub fn is_uniform(&self) -> bool {
        self.weights.is_empty()
    }

    pub fn sum(&self, pages: u64) -> u64 {
        if self.is_uniform() { pages } else { self.sum }
    }

    #[inline]
    fn weight(&self, page: usize) -> u64 {
        self.weights.get(page).copied().unwrap_or(1)
    }

    /// Returns the payment to each page, of `units` in total.
    fn shares(&self, units: f64, pages: usize) -> impl Iterator<Item = f64> + '_ {
        let (each, sum) = (units / pages as f64, self.sum as f64);
        (0..pages).map(move |page| match self.weights.get(page) {
            None => each,
            Some(&weight) => units * weight as f64 / sum,
        })
    }
}
