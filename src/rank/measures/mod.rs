//! Measures of importance: a file and a line in [`MEASURES`] for each.
//!
//! Each is a function of the links of nodes, which may be pages or sites ([`Rows`]), and gives every node a score. How sure the
//! scores are is part of the result ([`Accuracy`]): PageRank has a proven bound, eigenvectors have a residual, estimates
//! have a standard error, and counts are exact.

mod adjacency;
mod degrees;
mod eigenvector;
mod fica;
mod harmonic;
mod hits;
mod hyperball;
mod personalised;
mod salsa;
mod spam_mass;
#[cfg(test)]
mod tests;
mod undirected;

pub use harmonic::REGISTERS;
pub(super) use harmonic::check as check_registers;

use serde::{Deserialize, Serialize};

use super::Teleport;
use super::settle::{Progress, Watch};
use crate::engine::Config;
use crate::graph::{Graph, Growing, Links};
use crate::model::check_room;
use crate::rows::{PAGES_MAX, Rows};
use crate::{Error, Result};

/// Parameters beside the measure.
#[derive(Debug, Clone)]
pub struct MeasureOptions {
    /// Share of importance that links pass on, 0 or more and less than 1.
    pub damping: f64,
    /// Ends at this bound, residual or change, whichever the measure has.
    pub until: f64,
    /// Whom the virtual page pays; of spam mass: the trusted nodes; of FICA: those that distances are from.
    pub teleport: Teleport,
    /// What the trusted nodes of spam mass are paid of 1.
    pub gamma: f64,
    /// Registers of a counter, a power of 2; `None`: small graphs are computed exactly, others with [`REGISTERS`].
    pub registers: Option<u32>,
    /// Most threads.
    pub threads: usize,
    /// Most bytes of memory; `None`: any.
    pub memory: Option<u64>,
}

impl Default for MeasureOptions {
    fn default() -> MeasureOptions {
        MeasureOptions {
            damping: 0.85,
            until: 1e-6,
            teleport: Teleport::default(),
            gamma: 0.85,
            registers: None,
            threads: 1,
            memory: None,
        }
    }
}

impl MeasureOptions {
    /// The damping as the engine has it.
    fn config(&self) -> Result<Config> {
        let mut config = Config::default();
        config.set_damping(self.damping)?;
        Ok(config)
    }
}

/// How sure scores are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Accuracy {
    /// But for the rounding of sums.
    Exact,
    /// A proven bound on the L1 distance of the scores, which sum to 1, from exact ones.
    BoundL1(f64),
    /// Of spam mass: the bounds on the L1 errors of the two PageRanks that it compares.
    BoundsL1 {
        /// Of PageRank.
        pagerank: f64,
        /// Of that of the trusted nodes.
        trusted: f64,
    },
    /// ||Lx/||Lx|| - x|| in L1 of the scores x, which sum to 1: how far one more step would move them.
    ResidualL1(f64),
    /// Standard error of each score, as a share of it.
    StandardError(f64),
}

impl Accuracy {
    /// The bound on the L1 error; `None`: none is proven.
    pub fn bound_l1(self) -> Option<f64> {
        match self {
            Accuracy::BoundL1(bound) => Some(bound).filter(|&bound| bound < 2.0),
            _ => None,
        }
    }
}

/// The result of a measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// By node; more is more important.
    pub scores: Vec<f64>,
    /// How sure they are.
    pub accuracy: Accuracy,
    /// Whether `until` was reached; if not, time was up, or 64-bit numbers resolve no more.
    pub reached: bool,
    /// Sweeps over all rows.
    pub sweeps: u64,
}

/// A parameter that a measure may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uses {
    /// [`MeasureOptions::damping`].
    Damping,
    /// [`MeasureOptions::until`].
    Until,
    /// [`MeasureOptions::teleport`], which must be given.
    Teleport,
    /// [`MeasureOptions::teleport`], which may be given.
    Roots,
    /// [`MeasureOptions::gamma`].
    Gamma,
    /// [`MeasureOptions::registers`].
    Registers,
}

type Compute = fn(&dyn Rows, &MeasureOptions, &mut dyn Watch) -> Result<Option<Measured>>;

/// A measure of importance.
#[derive(Debug)]
pub struct MeasureSpec {
    /// Its name.
    pub name: &'static str,
    /// Its result, in a line.
    pub about: &'static str,
    /// The parameters that it has.
    pub uses: &'static [Uses],
    /// Bytes of memory for so many nodes and links, the scores among them.
    bytes: fn(u64, u64, &MeasureOptions) -> u64,
    compute: Compute,
}

/// All of them; the first is the usual one.
pub static MEASURES: &[MeasureSpec] = &[
    personalised::PAGERANK,
    personalised::PERSONALISED,
    spam_mass::MEASURE,
    harmonic::MEASURE,
    hits::AUTHORITIES,
    hits::HUBS,
    salsa::MEASURE,
    adjacency::MEASURE,
    undirected::MEASURE,
    degrees::IN_DEGREE,
    degrees::OUT_DEGREE,
    fica::MEASURE,
];

/// The measure of this name.
///
/// # Errors
/// [`Error::Usage`]: there is none.
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
    /// Returns whether it has this parameter.
    pub fn has(&self, parameter: Uses) -> bool {
        self.uses.contains(&parameter)
    }

    /// Computes it. `None`: it was over before anything was known.
    ///
    /// # Errors
    /// Those of reading rows; [`Error::Missing`]: there are no nodes; [`Error::Usage`]: a parameter makes no sense;
    /// [`Error::Unsupported`]: the measure is not defined for these links; [`Error::TooLarge`].
    pub fn compute(
        &self,
        rows: &dyn Rows,
        options: &MeasureOptions,
        watch: &mut dyn Watch,
    ) -> Result<Option<Measured>> {
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
        if self.has(Uses::Teleport) && options.teleport.is_uniform() {
            return Err(Error::Usage(format!(
                "{} needs pages that the virtual page pays (`teleport`)",
                self.name
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
        (self.compute)(rows, options, watch)
    }
}

/// Tells who watches that a sweep over all rows is complete.
fn swept(watch: &mut dyn Watch, rows: &dyn Rows, sweeps: u64) {
    watch.swept(&Progress {
        sweeps,
        links_touched: sweeps * rows.links(),
        links: rows.links(),
        bound: None,
    });
}

/// The links of all nodes in memory, without what they weigh: 8 bytes a link while it is made, then 4.
fn links(rows: &dyn Rows) -> Result<Graph> {
    let mut all = Growing::default();
    all.grow(rows.pages() as usize);
    let mut targets = Vec::new();
    rows.sweep(&mut |row| {
        targets.clear();
        targets.extend(row.parts().map(|(target, _)| target));
        all.set(
            row.page as usize,
            Links {
                targets: &targets,
                weights: &[],
            },
        );
        Ok(())
    })?;
    Ok(all.into_table())
}

/// The measure is not defined where there are no links.
fn no_links(name: &str) -> Error {
    Error::Unsupported(format!("there are no links, so {name} is not defined"))
}
