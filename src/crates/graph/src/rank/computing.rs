//! Computation of a measure of pages or sites from the links and names of pages: names determine the sites and the
//! chosen pages, links between sites are derived from those between pages, and the measure is computed from the links.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chosen::{ChosenList, ChosenPages};
use super::measures::{MeasureOptions, MeasureScores, MeasureSpec, Uses};
use super::settle::Watch;
use crate::rows::Rows;
use crate::rules::list::SkippedLines;
use crate::sites::{Level, SiteLinks, Sites, SitesBuilder, site_graph};
use crate::{Error, Result};

#[derive(Debug, Clone)]
pub struct Computing {
    pub measure: &'static MeasureSpec,
    pub level: Level,
    /// Parameters of the measure; the teleport vector comes from [`Computing::chosen`] instead.
    pub options: MeasureOptions,
    pub site_links: SiteLinks,
    /// Pages that the virtual page pays.
    pub chosen: Option<Arc<ChosenList>>,
}

/// Parameters of a computation, as far as its measure uses them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasureParameters {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_pages: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_links: Option<SiteLinks>,
}

/// Function that passes names to its argument, in the order of the pages' numbers.
pub type NamesVisit<'a> = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

#[derive(Debug)]
pub struct MeasureResult {
    pub measured: MeasureScores,
    pub links: u64,
    pub parameters: MeasureParameters,
    pub sites: Option<Sites>,
    pub skipped: SkippedLines,
}

impl Computing {
    pub fn new(measure: &'static MeasureSpec, level: Level) -> Computing {
        Computing {
            measure,
            level,
            options: MeasureOptions::default(),
            site_links: SiteLinks::default(),
            chosen: None,
        }
    }

    pub fn check(&self) -> Result<()> {
        let name = self.measure.name;
        let needs_pages = self.measure.has(Uses::Teleport);
        match &self.chosen {
            Some(_) if !needs_pages => Err(Error::Usage(format!(
                "{name} has no chosen pages: leave `teleport` out"
            ))),
            None if needs_pages => Err(Error::Usage(format!(
                "{name} needs a list of pages (`teleport`)"
            ))),
            _ => Ok(()),
        }
    }

    /// Computes the measure, with temporary files in `folder`; reading names takes `reading` bytes. Returns `None` if it
    /// was stopped before anything was known. Fails with [`Error::Unsupported`] if there are no sites, with
    /// [`Error::Missing`] if no page was chosen, and like [`MeasureSpec::compute`].
    pub fn compute(
        &self,
        rows: &dyn Rows,
        (names, reading): (&NamesVisit<'_>, u64),
        folder: &Path,
        watch: &mut dyn Watch,
    ) -> Result<Option<MeasureResult>> {
        self.check()?;
        let mut options = self.options.clone();
        let mut chosen = self.chosen.clone().map(ChosenPages::new);
        let builder = || SitesBuilder::new(self.level, options.memory, reading);
        let mut sites = (!self.level.is_page()).then(builder);
        if chosen.is_some() || sites.is_some() {
            names(&mut |name| {
                if let Some(chosen) = &mut chosen {
                    chosen.add(name);
                }
                sites.as_mut().map_or(Ok(()), |sites| sites.add(name))
            })?;
        }
        let sites = sites.map(SitesBuilder::build).transpose()?;
        let parameters = self.parameters(chosen.as_ref().map(|pages| pages.found));
        let mut skipped = SkippedLines::default();
        if let Some(chosen) = chosen {
            (options.teleport, skipped) = chosen.teleport(sites.as_ref())?;
        }
        let graph;
        let mut nodes = rows;
        if let Some(sites) = &sites {
            let left = |taken| options.memory.map(|memory| memory.saturating_sub(taken));
            graph = site_graph(rows, sites, self.site_links, left(sites.bytes()), folder)?;
            options.memory = left(sites.bytes() + graph.bytes());
            nodes = &graph;
        }
        let measured = self.measure.compute(nodes, &options, watch)?;
        let links = nodes.links();
        Ok(measured.map(|measured| MeasureResult {
            measured,
            links,
            parameters,
            sites,
            skipped,
        }))
    }

    fn parameters(&self, chosen_pages: Option<u64>) -> MeasureParameters {
        let used = |uses, value| self.measure.has(uses).then_some(value);
        MeasureParameters {
            damping: used(Uses::Damping, self.options.damping),
            until: used(Uses::Until, self.options.until),
            chosen_pages,
            site_links: (!self.level.is_page()).then_some(self.site_links),
        }
    }
}
