//! How much of what readers see was crawled.

use std::collections::HashMap;

use serde::Serialize;

use crate::rank::coverage::{CoverageBounds, SeedFlow, seeds as first_pages};
use crate::rows::{Rows, Stop};
use crate::schedule::RowPosition;
use crate::snapshot::Snapshot;
use crate::url::host;
use crate::{Error, Result};

/// Of what readers who start at the seeds see, the share that was read, in bounds that are proven.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Covered {
    /// Records until then.
    pub records: u64,
    /// Pages known, of a shard its own.
    pub pages: u64,
    /// Pages read.
    pub read: u64,
    /// Pages at which readers start.
    pub seeds: u64,
    /// Of them, those that were read.
    pub seeds_read: u64,
    /// The probability that a reader follows a link.
    pub damping: f64,
    /// At least this share was read.
    pub at_least: f64,
    /// And at most this.
    pub at_most: f64,
}

/// The part of it that a host has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoveredHost {
    /// Its name.
    pub host: String,
    /// Pages of it that are known.
    pub pages: u64,
    /// Pages read.
    pub read: u64,
    /// At least this share of all that readers see is pages of it that were read.
    pub at_least: f64,
    /// And at least this is pages of it that were not.
    pub unread: f64,
}

/// Where readers start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Seeds {
    /// At the pages that were read before any link to them was seen.
    #[default]
    Found,
    /// At these pages, each as likely.
    Given {
        /// Those that the store knows.
        known: Vec<u32>,
        /// How many it does not know.
        unknown: u32,
    },
}

/// The flow from the seeds over the links of a store, updated from snapshot to snapshot.
#[derive(Debug, Default)]
pub struct SeedCoverage {
    seeds: Seeds,
    flow: SeedFlow,
    /// The rows over which it flowed.
    mark: Option<RowPosition>,
}

impl SeedCoverage {
    /// For readers who start at these pages; nothing was read yet.
    pub fn new(seeds: Seeds) -> SeedCoverage {
        SeedCoverage {
            seeds,
            ..SeedCoverage::default()
        }
    }

    /// Lets it flow over the rows as of a snapshot, the store's current one: over new rows only, if none of the others changed.
    ///
    /// # Errors
    /// [`Error::Missing`]: no page was read, or no links are kept; those of reading the store.
    pub fn update(&mut self, snapshot: &Snapshot) -> Result<Covered> {
        let rows = snapshot.rows()?;
        let damping = snapshot.info().settings.config.damping_units();
        let seeds = self.pages(snapshot, &rows)?;
        if seeds.is_empty() {
            let store = snapshot.store().display();
            return Err(Error::Missing(format!(
                "{store}: no page was read yet, so readers have nowhere to start"
            )));
        }
        // After an error in between, the flow is not complete: it begins from nothing.
        let extends = match self.mark.take() {
            Some(mark) => {
                self.flow.seeds() == seeds
                    && mark.continues(snapshot, &rows)?
                    && rows.written_from(mark.rows(), &mut |row| {
                        if self.flow.is_read(row.page) {
                            return Err(Stop::Enough);
                        }
                        Ok(())
                    })?
            }
            None => false,
        };
        if !extends {
            self.flow = SeedFlow::from(damping, &seeds);
        }
        let bounds = self.flow.push(&rows)?;
        self.mark = Some(RowPosition::of(snapshot, &rows)?);
        Ok(self.covered(snapshot, bounds))
    }

    /// The pages at which readers start.
    fn pages(&self, snapshot: &Snapshot, rows: &dyn Rows) -> Result<Vec<u32>> {
        let Seeds::Given { known, unknown } = &self.seeds else {
            return first_pages(rows, &snapshot.visited(2)?);
        };
        let mut seeds = known.clone();
        seeds.sort_unstable();
        seeds.dedup();
        let pages = rows.pages() as u32;
        seeds.extend(pages..pages.saturating_add(*unknown));
        Ok(seeds)
    }

    fn covered(&self, snapshot: &Snapshot, bounds: CoverageBounds) -> Covered {
        let info = snapshot.info();
        let seeds = self.flow.seeds();
        let read = |pages: &mut dyn Iterator<Item = u32>| {
            pages.filter(|&page| self.flow.is_read(page)).count() as u64
        };
        Covered {
            records: info.counters.records,
            pages: info.local_pages(),
            read: read(&mut (0..info.pages as u32)),
            seeds: seeds.len() as u64,
            seeds_read: read(&mut seeds.iter().copied()),
            damping: info.settings.config.damping_asked(),
            at_least: bounds.at_least,
            at_most: bounds.at_most,
        }
    }

    /// About what the lower bound becomes if these pages are read next.
    pub fn with(&self, pages: impl Iterator<Item = u32>) -> f64 {
        self.flow
            .with(pages.map(|page| self.flow.waiting(page)).sum())
    }

    /// Coverage by host, hosts with most left to fetch first.
    ///
    /// # Errors
    /// Those of reading names.
    pub fn hosts(&self, snapshot: &Snapshot) -> Result<Vec<CoveredHost>> {
        let mut hosts: HashMap<Vec<u8>, CoveredHost> = HashMap::new();
        let mut page = 0;
        snapshot.each_name(0..snapshot.info().pages, &mut |name| {
            if !snapshot.is_local(name) {
                page += 1;
                return;
            }
            let name = host(name);
            if !hosts.contains_key(name) {
                let new = CoveredHost {
                    host: String::from_utf8_lossy(name).into_owned(),
                    pages: 0,
                    read: 0,
                    at_least: 0.0,
                    unread: 0.0,
                };
                hosts.insert(name.to_vec(), new);
            }
            if let Some(host) = hosts.get_mut(name) {
                host.pages += 1;
                host.at_least += self.flow.own(page);
                if self.flow.is_read(page) {
                    host.read += 1;
                } else {
                    host.unread += self.flow.waiting(page);
                }
            }
            page += 1;
        })?;
        let mut hosts: Vec<CoveredHost> = hosts.into_values().collect();
        hosts.sort_by(|a, b| {
            let by_rest = b.unread.total_cmp(&a.unread);
            by_rest.then_with(|| a.host.cmp(&b.host))
        });
        Ok(hosts)
    }
}
