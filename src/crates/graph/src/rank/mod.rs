//! Importance of pages by their links: *measures* define what is computed, *methods* how PageRank is computed.
//!
//! Measures (PageRank, harmonic centrality, HITS, ...) are in [`measures`], one file and one line in its table each.
//! Methods are one file and one line in [`METHODS`] each: a method takes [`RankOptions`] and a [`Teleport`] and gives
//! [`Scores`], the numbers of all pages with their accuracy (a bound on the error, or a residual) and the effort. The
//! command that ranks a file and the publishing of snapshots take any of them.

pub mod chosen;
pub mod computing;
pub mod coverage;
#[cfg(any(test, feature = "testing"))]
#[path = "tests/elimination.rs"]
pub mod elimination;
pub mod measures;
pub mod pagerank;
pub mod peers;
pub mod power;
pub mod settle;
mod teleport;
#[cfg(test)]
mod tests;

pub use crate::engine::Scores;
use crate::engine::{Certificate, Effort, checked_damping};
use crate::rows::Rows;
use crate::{Error, Result};
use settle::Watch;
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
    /// Number of links up to which a method continues below `until`. See [`Goal::spare`].
    pub spare: u64,
    /// Ends instead once a step changes the scores by at most this much in L1.
    pub residual: Option<f64>,
    /// True to take half steps, if the method takes steps; the result is the same. See [`pagerank`].
    pub lazy: bool,
}

impl RankOptions {
    /// Returns options with this target bound.
    pub fn until(damping: u64, until: f64) -> RankOptions {
        RankOptions {
            damping,
            until,
            on_to: until,
            spare: 0,
            residual: None,
            lazy: false,
        }
    }

    /// Returns options that end once a step changes the scores by at most `residual`.
    pub fn residual(damping: f64, residual: f64) -> Result<RankOptions> {
        if !(residual > 0.0 && residual.is_finite()) {
            return Err(Error::Usage(format!(
                "residual {residual} is not a positive number"
            )));
        }
        let damping = checked_damping(damping)?;
        let mut options = RankOptions::until(damping, 0.0);
        options.until = residual * options.damping() / (1.0 - options.damping());
        options.on_to = options.until;
        options.residual = Some(residual);
        Ok(options)
    }

    /// Returns the damping as a number from 0 to 1. Exact: scaling by a power of two does not round.
    pub fn damping(&self) -> f64 {
        self.damping as f64 / 2f64.powi(32)
    }
}

type Compute =
    fn(&dyn Rows, &RankOptions, &Teleport, &mut dyn Watch) -> Result<Option<Box<dyn Scores>>>;

/// Method of computing PageRank.
#[derive(Debug)]
pub struct RankMethod {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Function that returns the memory for pages and links, in bytes.
    pub bytes: fn(u64, u64) -> u64,
    compute: Compute,
}

/// Table of all methods; the first is the default.
pub static METHODS: &[RankMethod] = &[settle::METHOD, pagerank::METHOD, power::METHOD];

pub fn method(name: &str) -> Result<&'static RankMethod> {
    let found = METHODS.iter().find(|method| method.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
        Error::Usage(format!(
            "no method {name:?}; there are: {}",
            names.join(", ")
        ))
    })
}

impl RankMethod {
    /// Computes the PageRank of the pages of `rows`; `None` if there are none or it was stopped before anything was
    /// known.
    ///
    /// # Errors
    /// [`Error::Usage`] if `teleport` does not have a weight for each page.
    pub fn compute(
        &self,
        rows: &dyn Rows,
        options: &RankOptions,
        teleport: &Teleport,
        watch: &mut dyn Watch,
    ) -> Result<Option<Box<dyn Scores>>> {
        (self.compute)(rows, options, teleport, watch)
    }
}

/// Smallest residual that 64-bit numbers can distinguish from 0: the rounding of a step in a graph where each page has
/// at most one link (the sum in the documentation of [`pagerank`]).
const RESOLUTION: f64 = 20.0 * f64::EPSILON / 2.0;

/// Scores in memory.
struct VecScores {
    scores: Vec<f64>,
    certificate: Certificate,
    effort: Effort,
}

impl VecScores {
    /// Returns scores after `sweeps` sweeps over all links, the last of which changed them by `residual`.
    fn new(
        scores: Vec<f64>,
        rows: &dyn Rows,
        options: &RankOptions,
        sweeps: u64,
        residual: f64,
    ) -> VecScores {
        let damping = options.damping();
        let asked = options
            .residual
            .unwrap_or(options.until * (1.0 - damping) / damping);
        let reached = residual <= asked && asked >= RESOLUTION;
        VecScores {
            scores,
            certificate: Certificate {
                residual_l1: residual,
                rounding_l1: 0.0,
                received_l1: None,
                distributed_l1: None,
            },
            effort: Effort {
                until: options.until,
                reached,
                sweeps,
                links_touched: sweeps * rows.links(),
                links: rows.links(),
                resumed: false,
            },
        }
    }
}

impl Scores for VecScores {
    fn certificate(&self) -> Option<Certificate> {
        Some(self.certificate)
    }

    fn effort(&self) -> Effort {
        self.effort
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
        out.clear();
        let scores = &self.scores[first as usize..][..len];
        out.extend(scores.iter().map(|&score| (score, score)));
        Ok(())
    }
}
