//! Rankings of pages by their links: a file and a line in [`RANKINGS`] for each way to compute them.
//!
//! All of these give PageRank, to the damping and for the virtual page that are asked for ([`Teleport`]), as [`Scores`] that say how
//! far they may be from it. Other measures of importance are in [`measures`].

pub mod coverage;
pub mod measures;
pub mod pagerank;
pub(crate) mod power;
pub mod settle;
mod teleport;
#[cfg(test)]
mod tests;

use crate::Result;
pub use crate::engine::Scores;
use crate::engine::{Certificate, Effort};
use crate::rows::Rows;
use settle::{Options, Watch};
pub use teleport::Teleport;

type Compute =
    fn(&dyn Rows, &Options, &Teleport, &mut dyn Watch) -> Result<Option<Box<dyn Scores>>>;

/// A way to rank pages.
pub struct RankingSpec {
    /// Its name.
    pub name: &'static str,
    /// How it ranks, in a line.
    pub about: &'static str,
    compute: Compute,
}

/// All of them; the first is the usual one.
pub static RANKINGS: &[RankingSpec] = &[settle::RANKING, pagerank::RANKING, power::RANKING];

impl RankingSpec {
    /// Ranks the pages of `rows`; `None`: there are none, or it was over before anything was known.
    ///
    /// # Errors
    /// Those of reading rows; [`Error::Usage`](crate::Error::Usage) if `teleport` has not a weight for each page.
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

/// Scores in memory.
struct Computed {
    scores: Vec<f64>,
    certificate: Certificate,
    effort: Effort,
}

/// After so many sweeps over all links, the last of which moved the scores by `residual_l1`.
fn computed(
    scores: Vec<f64>,
    rows: &dyn Rows,
    sweeps: u64,
    options: &Options,
    residual_l1: f64,
    bound: Option<f64>,
) -> Box<dyn Scores> {
    let damping = options.damping();
    let about = bound.unwrap_or(damping * residual_l1 / (1.0 - damping));
    Box::new(Computed {
        scores,
        certificate: Certificate {
            residual_l1,
            rounding_l1: 0.0,
            received_l1: bound,
            distributed_l1: None,
        },
        effort: Effort {
            until: options.until,
            reached: about <= options.until,
            sweeps,
            links_touched: sweeps * rows.links(),
            links: rows.links(),
        },
    })
}

impl Scores for Computed {
    fn certificate(&self) -> Certificate {
        self.certificate
    }

    fn effort(&self) -> Effort {
        self.effort
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) {
        out.clear();
        let scores = &self.scores[first as usize..][..len];
        out.extend(scores.iter().map(|&score| (score, score)));
    }
}
