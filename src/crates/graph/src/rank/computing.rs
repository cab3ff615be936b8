//! Computation of a measure of pages or sites from the links and names of pages.
//!
//! 1. [`Computing::begin`] takes the names of all pages, and determines their sites and which of them were chosen.
//! 2. [`NamedNodes::compute`] takes their links, derives the links between sites, and computes the measure.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chosen::{ChosenList, ChosenPages};
use super::measures::{MeasureOptions, MeasureSpec, Measured, Uses, check_registers, measure};
use super::settle::Watch;
use crate::disk::Disk;
use crate::rows::Rows;
use crate::rules::list::SkippedLines;
use crate::sites::{
    Level, PAIR_BYTES, Pairing, SiteGraph, SiteLinks, Sites, SitesBuilder, pair_bytes_within,
};
use crate::{Error, Result};

/// Request for a computation: a measure, its level and its parameters.
#[derive(Debug, Clone)]
pub struct Computing {
    pub measure: &'static MeasureSpec,
    /// Level at which it is computed: pages or sites.
    pub level: Level,
    /// Parameters of the measure; the teleport vector comes from [`Computing::chosen`] instead.
    pub options: MeasureOptions,
    /// Weights of links between sites.
    pub site_links: SiteLinks,
    /// True if links inside a site count as well.
    pub inside: bool,
    /// Memory in bytes for sorting pairs of linked sites.
    pub pair_bytes: u64,
    /// Pages that the virtual page pays, or that are trusted.
    pub chosen: Option<Arc<ChosenList>>,
}

/// Parses `LEVEL:MEASURE`, with defaults for everything else. Measures that need a list of pages are refused.
impl FromStr for Computing {
    type Err = Error;

    fn from_str(text: &str) -> Result<Computing> {
        let (level, name) = text.rsplit_once(':').ok_or_else(|| {
            Error::Usage(format!(
                "{text:?}: a level and a measure, like host:harmonic"
            ))
        })?;
        let computing = Computing::new(measure(name)?, level.parse()?);
        computing.check()?;
        Ok(computing)
    }
}

/// Parameters of a computation, as far as its measure uses them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasureParameters {
    /// Damping of the walk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    /// Bound, residual or change at which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    /// Total teleport share of the trusted pages of spam mass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// Number of registers of a counter, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_pages: Option<u64>,
    /// Weights of links between sites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_links: Option<SiteLinks>,
    /// True if links inside a site count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<bool>,
}

/// Result of a computation.
#[derive(Debug, Clone)]
pub struct MeasureResult {
    /// Scores of the nodes, with their accuracy.
    pub measured: Measured,
    /// Number of links between the ranked nodes.
    pub links: u64,
    pub parameters: MeasureParameters,
    /// Lines of the list of chosen pages that were skipped.
    pub skipped: SkippedLines,
}

impl Computing {
    /// Returns a computation of this measure at this level with default parameters.
    pub fn new(measure: &'static MeasureSpec, level: Level) -> Computing {
        Computing {
            measure,
            level,
            options: MeasureOptions::default(),
            site_links: SiteLinks::default(),
            inside: false,
            pair_bytes: PAIR_BYTES,
            chosen: None,
        }
    }

    /// Checks the parameters before anything is read.
    pub fn check(&self) -> Result<()> {
        let name = self.measure.name;
        // Checked before the memory that registers take.
        self.options.registers.map_or(Ok(()), check_registers)?;
        let must = self.measure.has(Uses::Teleport);
        let may = must || self.measure.has(Uses::Roots);
        match &self.chosen {
            Some(_) if !may => Err(Error::Usage(format!(
                "{name} has no chosen pages: leave `teleport` out"
            ))),
            None if must => Err(Error::Usage(format!(
                "{name} needs a list of pages (`teleport`)"
            ))),
            _ => Ok(()),
        }
    }

    /// Begins with the names of pages, to be added in the order of their numbers.
    pub fn begin(&self) -> Result<Naming<'_>> {
        self.check()?;
        let sites = || SitesBuilder::new(self.level, self.options.memory);
        Ok(Naming {
            of: self,
            sites: (!self.level.is_page()).then(sites),
            chosen: self.chosen.clone().map(ChosenPages::new),
        })
    }

    pub fn needs_no_names(&self) -> bool {
        self.level.is_page() && self.chosen.is_none()
    }

    fn parameters(&self, chosen_pages: Option<u64>) -> MeasureParameters {
        let used = |uses, value| self.measure.has(uses).then_some(value);
        let of_sites = !self.level.is_page();
        MeasureParameters {
            damping: used(Uses::Damping, self.options.damping),
            until: used(Uses::Until, self.options.until),
            gamma: used(Uses::Gamma, self.options.gamma),
            registers: self
                .options
                .registers
                .filter(|_| self.measure.has(Uses::Registers)),
            chosen_pages,
            site_links: of_sites.then_some(self.site_links),
            inside: of_sites.then_some(self.inside),
        }
    }
}

/// First step of a computation: reads the names of pages.
pub struct Naming<'c> {
    of: &'c Computing,
    sites: Option<SitesBuilder>,
    chosen: Option<ChosenPages>,
}

impl<'c> Naming<'c> {
    /// Reserves `bytes` of the available memory for other uses.
    pub fn beside(mut self, bytes: u64) -> Naming<'c> {
        self.sites = self.sites.map(|sites| sites.beside(bytes));
        self
    }

    pub fn add(&mut self, name: &[u8]) -> Result<()> {
        if let Some(chosen) = &mut self.chosen {
            chosen.add(name);
        }
        self.sites.as_mut().map_or(Ok(()), |sites| sites.add(name))
    }

    /// Ends the names. Returns an error if there are no sites or no chosen pages.
    pub fn finish(self) -> Result<NamedNodes<'c>> {
        let sites = self.sites.map(SitesBuilder::build).transpose()?;
        let found = self.chosen.as_ref().map(ChosenPages::found);
        let mut options = self.of.options.clone();
        let mut skipped = SkippedLines::default();
        if let Some(chosen) = self.chosen {
            (options.teleport, skipped) = chosen.teleport(sites.as_ref())?;
        }
        Ok(NamedNodes {
            parameters: self.of.parameters(found),
            of: self.of,
            options,
            sites,
            skipped,
        })
    }
}

/// Second step of a computation: sites and chosen pages are known.
pub struct NamedNodes<'c> {
    of: &'c Computing,
    options: MeasureOptions,
    /// Sites of the pages, if sites are ranked.
    pub sites: Option<Sites>,
    parameters: MeasureParameters,
    skipped: SkippedLines,
}

impl NamedNodes<'_> {
    /// Computes the measure. Links between sites that exceed the memory are spilled to `aside`. Returns `None` if it
    /// was stopped before anything was known.
    pub fn compute(
        &self,
        rows: &dyn Rows,
        aside: Option<(&dyn Disk, PathBuf)>,
        watch: &mut dyn Watch,
    ) -> Result<Option<MeasureResult>> {
        let mut options = self.options.clone();
        let left = |taken| options.memory.map(|memory| memory.saturating_sub(taken));
        let graph;
        let (nodes, memory): (&dyn Rows, _) = match &self.sites {
            None => (rows, options.memory),
            Some(sites) => {
                let pairing = Pairing {
                    links: self.of.site_links,
                    inside: self.of.inside,
                    bytes: pair_bytes_within(self.of.pair_bytes, left(sites.bytes())),
                    aside,
                };
                graph = SiteGraph::of_rows(rows, sites, pairing)?;
                (&graph, left(sites.bytes() + graph.bytes()))
            }
        };
        options.memory = memory;
        let measured = self.of.measure.compute(nodes, &options, watch)?;
        Ok(measured.map(|measured| MeasureResult {
            measured,
            links: nodes.links(),
            parameters: self.parameters.clone(),
            skipped: self.skipped,
        }))
    }
}
