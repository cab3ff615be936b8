//! A measure of pages or sites, from the links and the names of pages, wherever these are kept.
//!
//! 1. [`Computing::begin`] takes the names of all pages, and finds their sites and which of them were chosen.
//! 2. [`Named::compute`] takes their links, makes those between sites of them, and computes the measure.

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::chosen::{Chosen, ChosenPages};
use super::measures::{MeasureOptions, MeasureSpec, Measured, Uses, check_registers, measure};
use super::settle::Watch;
use crate::disk::Disk;
use crate::rows::Rows;
use crate::sites::{
    Level, PAIR_BYTES, Pairing, SiteGraph, SiteLinks, Sites, SitesBuilder, pair_bytes_within,
};
use crate::{Error, Result};

/// What to compute of which level.
#[derive(Debug, Clone)]
pub struct Computing {
    /// The measure.
    pub measure: &'static MeasureSpec,
    /// Of pages or sites.
    pub level: Level,
    /// Its parameters, but for the teleport vector, which is of [`Computing::chosen`].
    pub options: MeasureOptions,
    /// What links between sites weigh.
    pub site_links: SiteLinks,
    /// Links inside a site count as well.
    pub inside: bool,
    /// Bytes of memory in which pairs of linked sites are sorted.
    pub pair_bytes: u64,
    /// The pages that the virtual page pays, or that are trusted.
    pub chosen: Option<Chosen>,
}

/// `LEVEL:MEASURE`, all else as usual. Measures that need a list of pages are refused.
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

/// What a measure was computed with, as far as it uses it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Damping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    /// The bound, residual or change to end at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    /// What the trusted pages of spam mass are paid of 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// Registers of a counter, if their number was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Pages that were chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_pages: Option<u64>,
    /// What links between sites weigh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_links: Option<SiteLinks>,
    /// Whether links inside a site count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<bool>,
}

/// What was computed.
#[derive(Debug, Clone)]
pub struct Computed {
    /// The scores.
    pub measured: Measured,
    /// Links between what is ranked.
    pub links: u64,
    /// What it was computed with.
    pub parameters: Parameters,
}

impl Computing {
    /// This measure of this level, all else as usual.
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

    /// Refuses what makes no sense, before anything is read.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check(&self) -> Result<()> {
        let name = self.measure.name;
        // Before there is talk of the memory that they take.
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
    ///
    /// # Errors
    /// As of [`Computing::check`].
    pub fn begin(&self) -> Result<Naming<'_>> {
        self.check()?;
        let sites = || SitesBuilder::new(self.level, self.options.memory);
        Ok(Naming {
            of: self,
            sites: (!self.level.is_page()).then(sites),
            chosen: self.chosen.clone().map(ChosenPages::new),
        })
    }

    /// Whether names are of no use.
    pub fn needs_no_names(&self) -> bool {
        self.level.is_page() && self.chosen.is_none()
    }

    fn parameters(&self, chosen_pages: Option<u64>) -> Parameters {
        let used = |uses, value| self.measure.has(uses).then_some(value);
        let of_sites = !self.level.is_page();
        Parameters {
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

/// The names of pages are being read.
pub struct Naming<'c> {
    of: &'c Computing,
    sites: Option<SitesBuilder>,
    chosen: Option<ChosenPages>,
}

impl<'c> Naming<'c> {
    /// In a memory that so many bytes of are for other things.
    pub fn beside(mut self, bytes: u64) -> Naming<'c> {
        self.sites = self.sites.map(|sites| sites.beside(bytes));
        self
    }

    /// The next page's name.
    ///
    /// # Errors
    /// As of [`SitesBuilder::add`].
    pub fn add(&mut self, name: &[u8]) -> Result<()> {
        if let Some(chosen) = &mut self.chosen {
            chosen.add(name);
        }
        self.sites.as_mut().map_or(Ok(()), |sites| sites.add(name))
    }

    /// All names were added.
    ///
    /// # Errors
    /// There are no sites, or no pages that were chosen.
    pub fn finish(self) -> Result<Named<'c>> {
        let sites = self.sites.map(SitesBuilder::build).transpose()?;
        let found = self.chosen.as_ref().map(ChosenPages::found);
        let mut options = self.of.options.clone();
        if let Some(chosen) = self.chosen {
            options.teleport = chosen.teleport(sites.as_ref())?;
        }
        Ok(Named {
            parameters: self.of.parameters(found),
            of: self.of,
            options,
            sites,
        })
    }
}

/// Sites and chosen pages are known.
pub struct Named<'c> {
    of: &'c Computing,
    options: MeasureOptions,
    /// The sites of pages, if these are ranked.
    pub sites: Option<Sites>,
    parameters: Parameters,
}

impl Named<'_> {
    /// Computes the measure. Links between sites that do not fit go `aside`. `None`: it was over before anything was known.
    ///
    /// # Errors
    /// Those of reading rows, of [`SiteGraph::of_rows`], and of [`MeasureSpec::compute`].
    pub fn compute(
        &self,
        rows: &dyn Rows,
        aside: Option<(&dyn Disk, PathBuf)>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Computed>> {
        let Some(sites) = &self.sites else {
            return self.measure(rows, 0, watch);
        };
        let memory = self.options.memory;
        let left = memory.map(|memory| memory.saturating_sub(sites.bytes()));
        let pairing = Pairing {
            links: self.of.site_links,
            inside: self.of.inside,
            bytes: pair_bytes_within(self.of.pair_bytes, left),
            aside,
        };
        let graph = SiteGraph::of_rows(rows, sites, pairing)?;
        self.measure(&graph, sites.bytes() + graph.bytes(), watch)
    }

    /// Of rows of pages or sites. So many bytes of memory are taken.
    fn measure(
        &self,
        rows: &dyn Rows,
        taken: u64,
        watch: &mut dyn Watch,
    ) -> Result<Option<Computed>> {
        let mut options = self.options.clone();
        options.memory = options.memory.map(|memory| memory.saturating_sub(taken));
        let measured = self.of.measure.compute(rows, &options, watch)?;
        Ok(measured.map(|measured| Computed {
            measured,
            links: rows.links(),
            parameters: self.parameters.clone(),
        }))
    }
}
