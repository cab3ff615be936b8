//! Measures of importance: a function and an entry in [`MEASURES`] each.
//!
//! A measure is a function of the links of nodes ([`Rows`]), which are pages or sites, that gives every node a score.
//! The accuracy of the scores is part of the result ([`Accuracy`]): PageRank has a proven bound, HITS has a residual,
//! estimates have a standard error, and counts are exact.

mod harmonic;
mod hits;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::settle::{BYTES, SettlingProgress, Watch, settle_for};
use super::{RankOptions, Teleport};
use crate::engine::Config;
use crate::model::check_room;
use crate::rows::{PAGES_MAX, Rows};
use crate::{Error, Result};

#[derive(Debug, Clone)]
pub struct MeasureOptions {
    /// Share of importance that links pass on, 0 <= damping < 1.
    pub damping: f64,
    /// Bound, residual or change at which the computation ends, whichever the measure has.
    pub until: f64,
    pub teleport: Teleport,
    pub threads: usize,
    /// Maximum memory in bytes; `None` for no limit.
    pub memory: Option<u64>,
}

impl Default for MeasureOptions {
    fn default() -> MeasureOptions {
        MeasureOptions {
            damping: 0.85,
            until: 1e-6,
            teleport: Teleport::default(),
            threads: 1,
            memory: None,
        }
    }
}

impl MeasureOptions {
    /// Returns the damping in the engine's units.
    fn config(&self) -> Result<Config> {
        let mut config = Config::default();
        config.set_damping(self.damping)?;
        Ok(config)
    }
}

/// Accuracy of the scores of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Accuracy {
    /// Exact except for the rounding of sums.
    Exact,
    /// Proven bound on the L1 distance of the scores, which sum to 1, from exact ones.
    BoundL1(f64),
    /// Residual ||Lx/||Lx|| - x|| in L1 of the scores x, which sum to 1: the change by one more step.
    ResidualL1(f64),
    /// Standard error of each score, relative to it.
    StandardError(f64),
}

impl Accuracy {
    /// Returns the bound on the L1 error; `None` if none is proven.
    pub fn bound_l1(self) -> Option<f64> {
        match self {
            Accuracy::BoundL1(bound) => Some(bound).filter(|&bound| bound < 2.0),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct MeasureScores {
    /// Score of each node; larger is more important.
    pub scores: Vec<f64>,
    pub accuracy: Accuracy,
    /// True if `until` was reached; false if time ran out or 64-bit numbers resolve no more.
    pub reached: bool,
    pub sweeps: u64,
}

impl MeasureScores {
    /// Returns scores that one sweep computed exactly.
    fn exact(scores: Vec<f64>) -> MeasureScores {
        MeasureScores {
            scores,
            accuracy: Accuracy::Exact,
            reached: true,
            sweeps: 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreKind {
    /// Shares of a whole: they sum to 1, so their mean is known.
    Share,
    Count,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uses {
    Damping,
    Until,
    /// Requires [`MeasureOptions::teleport`].
    Teleport,
}

/// Computation of a measure of the nodes of `rows`.
struct Work<'a> {
    rows: &'a dyn Rows,
    options: &'a MeasureOptions,
    watch: &'a mut dyn Watch,
}

impl Work<'_> {
    fn swept(&mut self, sweeps: u64) {
        let links = self.rows.links();
        self.watch.swept(&SettlingProgress {
            sweeps,
            links_touched: sweeps * links,
            links,
            bound: None,
        });
    }
}

#[derive(Debug)]
pub struct MeasureSpec {
    pub name: &'static str,
    pub about: &'static str,
    pub scores: ScoreKind,
    pub uses: &'static [Uses],
    /// Function that returns the memory for nodes and links in bytes, including the scores.
    bytes: fn(u64, u64, &MeasureOptions) -> u64,
    compute: fn(&mut Work<'_>) -> Result<Option<MeasureScores>>,
}

/// Table of all measures; the first is the default.
pub static MEASURES: &[MeasureSpec] = &[
    MeasureSpec {
        name: "pagerank",
        about: "PageRank: where a surfer is who follows links, with a proven bound",
        scores: ScoreKind::Share,
        uses: &[Uses::Damping, Uses::Until],
        bytes: |nodes, _, _| nodes * (BYTES + 8),
        compute: |work| settled(&Teleport::default(), work),
    },
    MeasureSpec {
        name: "personalised",
        about: "PageRank of surfers who begin at chosen pages: topics, trust; with a proven bound",
        scores: ScoreKind::Share,
        uses: &[Uses::Damping, Uses::Until, Uses::Teleport],
        bytes: |nodes, _, _| nodes * (BYTES + 8 + 8),
        compute: |work| settled(&work.options.teleport, work),
    },
    MeasureSpec {
        name: "harmonic",
        about: "harmonic centrality: near to many; exact for small graphs, else with a standard error",
        scores: ScoreKind::Other,
        uses: &[],
        bytes: harmonic::bytes,
        compute: harmonic::harmonic,
    },
    MeasureSpec {
        name: "hits-authorities",
        about: "HITS: linked by good hubs; with a residual",
        scores: ScoreKind::Share,
        uses: &[Uses::Until],
        bytes: |nodes, _, _| 24 * nodes,
        compute: |work| hits::hits(work, false),
    },
    MeasureSpec {
        name: "hits-hubs",
        about: "HITS: links to good authorities, as lists of links do; with a residual",
        scores: ScoreKind::Share,
        uses: &[Uses::Until],
        bytes: |nodes, _, _| 24 * nodes,
        compute: |work| hits::hits(work, true),
    },
    MeasureSpec {
        name: "in-degree",
        about: "how many others link to it",
        scores: ScoreKind::Count,
        uses: &[],
        bytes: |nodes, _, _| 8 * nodes,
        compute: in_degree,
    },
    MeasureSpec {
        name: "out-degree",
        about: "to how many others it links",
        scores: ScoreKind::Count,
        uses: &[],
        bytes: |nodes, _, _| 8 * nodes,
        compute: out_degree,
    },
];

pub fn measure(name: &str) -> Result<&'static MeasureSpec> {
    let known = MEASURES.iter().find(|measure| measure.name == name);
    known.ok_or_else(|| {
        let names: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
        Error::Usage(format!(
            "no measure {name:?}; there are: {}",
            names.join(", ")
        ))
    })
}

impl MeasureSpec {
    pub fn has(&self, parameter: Uses) -> bool {
        self.uses.contains(&parameter)
    }

    /// Computes the measure, by a uniform teleport vector if it needs one and none is given. Returns `None` if it was
    /// stopped before anything was known. Fails with [`Error::Missing`] if there are no nodes; [`Error::Usage`] for an
    /// invalid parameter; [`Error::Unsupported`] if the measure is not defined for these links; [`Error::TooLarge`] if
    /// memory does not suffice.
    pub fn compute(
        &self,
        rows: &dyn Rows,
        options: &MeasureOptions,
        watch: &mut dyn Watch,
    ) -> Result<Option<MeasureScores>> {
        let nodes = rows.pages();
        if nodes == 0 {
            return Err(Error::Missing(format!(
                "nothing to rank by {}: there are no pages",
                self.name
            )));
        }
        if nodes > PAGES_MAX {
            return Err(Error::Unsupported(format!(
                "{nodes} pages: ranked by links are at most {PAGES_MAX}"
            )));
        }
        let need = (self.bytes)(nodes, rows.links(), options);
        let work = || format!("{} of {nodes} nodes and {} links", self.name, rows.links());
        check_room(
            options.memory,
            need,
            work,
            "rank a coarser level, such as hosts",
        )?;
        (self.compute)(&mut Work {
            rows,
            options,
            watch,
        })
    }
}

/// Settles PageRank, or personalised PageRank, in which the virtual page pays chosen nodes only:
///
/// ```text
/// x = d M x + (1 - d l(x)) t
/// ```
///
/// with damping d, M the links, each row's parts summing to 1, l(x) the mass on nodes that have links, and t the
/// teleport vector: 1/n everywhere, or the weights given, as a share of their sum. Topic-sensitive PageRank (T.
/// Haveliwala, WWW 2002) has the pages of a topic in t, TrustRank (Z. Gyongyi, H. Garcia-Molina, J. Pedersen,
/// VLDB 2004) pages that are trusted.
fn settled(teleport: &Teleport, work: &mut Work<'_>) -> Result<Option<MeasureScores>> {
    let options = work.options;
    let config = options.config()?;
    // The bound includes the rounding of the damping.
    let left = config.bound_for(options.until);
    let settling = RankOptions::until(config.damping_units(), left.unwrap_or(options.until));
    let settled = settle_for(work.rows, &settling, teleport, work.watch)?;
    Ok(settled.map(|settled| {
        let bound = settled.certificate.received_l1.unwrap_or(2.0);
        MeasureScores {
            scores: settled.importance(),
            accuracy: Accuracy::BoundL1(bound + config.damping_bound()),
            reached: settled.effort.reached && left.is_some(),
            sweeps: settled.effort.sweeps,
        }
    }))
}

/// Counts how many nodes link to each: the first estimate of importance (J. Cho, H. Garcia-Molina, L. Page, WWW 1998:
/// "back-link count"), and easy to forge. A link counts once, if it weighs anything.
fn in_degree(work: &mut Work<'_>) -> Result<Option<MeasureScores>> {
    let mut scores = vec![0.0; work.rows.pages() as usize];
    work.rows.sweep(&mut |row| {
        row.links().for_each(|to| scores[to as usize] += 1.0);
        Ok(())
    })?;
    Ok(Some(MeasureScores::exact(scores)))
}

/// Counts to how many nodes each links.
fn out_degree(work: &mut Work<'_>) -> Result<Option<MeasureScores>> {
    let mut scores = vec![0.0; work.rows.pages() as usize];
    work.rows.sweep(&mut |row| {
        scores[row.page as usize] = row.degree() as f64;
        Ok(())
    })?;
    Ok(Some(MeasureScores::exact(scores)))
}
