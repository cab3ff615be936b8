//! Importance of pages by their links. A *measure* says what is computed, a *method* how PageRank is.
//!
//! Measures (PageRank, harmonic centrality, HITS, ...) are in [`measures`], a file and a line in its table for each. Methods
//! are a file and a line in [`METHODS`]: a method has a name, takes [`Options`] and a [`Teleport`], and gives [`Scores`]:
//! numbers of all pages, how sure they are (a bound on the error, or a residual), and what they took. The command that
//! ranks a file and the publishing of snapshots take any of them.

pub mod chosen;
pub mod computing;
pub mod coverage;
pub mod measures;
pub mod pagerank;
pub mod peers;
pub(crate) mod power;
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

/// How near to PageRank importance is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The bound on the L1 distance to end at.
    pub until: f64,
    /// Go on below `until`, down to [`FINEST`], while another sweep over all links takes it to no more than so many links
    /// in all: as near as is cheap. 0: end at `until`. A number of links and not a time, so that the same records give
    /// the same bytes on any machine.
    pub spare: u64,
}

/// Who spares no links ends at the bound.
impl From<f64> for Goal {
    fn from(until: f64) -> Goal {
        Goal { until, spare: 0 }
    }
}

/// To 0.01, and below while that takes about half a second.
impl Default for Goal {
    fn default() -> Goal {
        Goal {
            until: 0.01,
            spare: SPARE,
        }
    }
}

/// The bound below which nobody goes who was not asked to.
pub const FINEST: f64 = 1e-6;
/// Links that take about half a second.
const SPARE: u64 = 16_000_000;

/// Parameters of the computation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Damping in 1/2^32 ([`Config::damping_units`](crate::Config::damping_units)).
    pub damping: u64,
    /// Ends at this bound on the L1 distance to PageRank.
    pub until: f64,
    /// Where a method goes over links as far as it must: goes on below `until` while another sweep over all of them takes
    /// it to no more than so many links in all. See [`Goal::spare`].
    pub spare: u64,
    /// Ends, instead, once a step moves the scores by at most this much in L1.
    pub residual: Option<f64>,
    /// Half steps, where a method takes steps: the result is the same. See [`pagerank`].
    pub lazy: bool,
}

impl Options {
    /// To this bound.
    pub fn until(damping: u64, until: f64) -> Options {
        Options {
            damping,
            until,
            spare: 0,
            residual: None,
            lazy: false,
        }
    }

    /// Until a step moves the scores by at most `residual`.
    ///
    /// # Errors
    /// [`Error::Usage`]: not 0 <= `damping` < 1, or `residual` is no positive number.
    pub fn residual(damping: f64, residual: f64) -> Result<Options> {
        if !(residual > 0.0 && residual.is_finite()) {
            return Err(Error::Usage(format!(
                "residual {residual} is not a positive number"
            )));
        }
        let damping = checked_damping(damping)?;
        let mut options = Options::until(damping, 0.0);
        options.until = residual * options.damping() / (1.0 - options.damping());
        options.residual = Some(residual);
        Ok(options)
    }

    /// Damping as a number from 0 to 1. Exact: scaling by a power of two does not round.
    pub fn damping(&self) -> f64 {
        self.damping as f64 / 2f64.powi(32)
    }
}

type Compute =
    fn(&dyn Rows, &Options, &Teleport, &mut dyn Watch) -> Result<Option<Box<dyn Scores>>>;

/// A way to compute PageRank.
#[derive(Debug)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// How it computes it, in a line.
    pub about: &'static str,
    /// Bytes of memory that it takes for so many pages and links.
    pub bytes: fn(u64, u64) -> u64,
    compute: Compute,
}

/// All of them; the first is the usual one.
pub static METHODS: &[Method] = &[settle::METHOD, pagerank::METHOD, power::METHOD];

/// The one of this name.
///
/// # Errors
/// [`Error::Usage`]: there is none.
pub fn method(name: &str) -> Result<&'static Method> {
    let found = METHODS.iter().find(|method| method.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
        Error::Usage(format!(
            "no method {name:?}; there are: {}",
            names.join(", ")
        ))
    })
}

impl Method {
    /// Computes the PageRank of the pages of `rows`; `None`: there are none, or it was over before anything was known.
    ///
    /// # Errors
    /// Those of reading rows; [`Error::Usage`] if `teleport` has not a weight for each page.
    pub fn compute(
        &self,
        rows: &dyn Rows,
        options: &Options,
        teleport: &Teleport,
        watch: &mut dyn Watch,
    ) -> Result<Option<Box<dyn Scores>>> {
        (self.compute)(rows, options, teleport, watch)
    }
}

/// The least residual that numbers of 64 bits can tell from none: what a step rounds in a graph where each page has one
/// link at most (the sum in the head of [`pagerank`]). Of smaller ones nobody knows whether they were reached.
const RESOLUTION: f64 = 20.0 * f64::EPSILON / 2.0;

/// Scores in memory.
struct Computed {
    scores: Vec<f64>,
    certificate: Certificate,
    effort: Effort,
}

impl Computed {
    /// After so many sweeps over all links, the last of which moved the scores by `residual`.
    fn new(
        scores: Vec<f64>,
        rows: &dyn Rows,
        options: &Options,
        sweeps: u64,
        residual: f64,
    ) -> Computed {
        let damping = options.damping();
        let asked = options
            .residual
            .unwrap_or(options.until * (1.0 - damping) / damping);
        let reached = residual <= asked && asked >= RESOLUTION;
        Computed {
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

impl Scores for Computed {
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
