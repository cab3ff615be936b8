//! Coverage: which share of what readers see has been crawled.

use std::collections::HashMap;

use serde::Serialize;

use crate::rank::coverage::{CoverageBounds, SeedFlow, seeds as first_pages};
use crate::rows::{Rows, Stop};
use crate::snapshot::Snapshot;
use crate::store::rows::KeptRows;
use crate::url::host;
use crate::{Error, Result};

/// Bounds on the share that was read of what readers who start at the seeds see.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Covered {
    /// Number of records read until the snapshot.
    pub records: u64,
    /// Number of known pages; in a shard, of its own pages.
    pub pages: u64,
    /// Number of pages read.
    pub read: u64,
    /// Number of pages at which readers start.
    pub seeds: u64,
    /// Number of these seeds that were read.
    pub seeds_read: u64,
    /// Probability that a reader follows a link.
    pub damping: f64,
    /// Proven lower bound on the share that was read.
    pub at_least: f64,
    /// Proven upper bound on the share that was read.
    pub at_most: f64,
}

/// Contribution of a host to the coverage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoveredHost {
    /// Name of the host.
    pub host: String,
    /// Number of its known pages.
    pub pages: u64,
    /// Number of its pages that were read.
    pub read: u64,
    /// Lower bound on the share, of all that readers see, that is pages of the host that were read.
    pub at_least: f64,
    /// Lower bound on the share, of all that readers see, that is pages of the host that were not read.
    pub unread: f64,
}

/// Pages at which readers start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Seeds {
    /// Pages that were read before any link to them was seen.
    #[default]
    Found,
    /// Given pages, all equally likely.
    Given {
        /// Seeds that the store knows.
        known: Vec<u32>,
        /// Number of seeds that the store does not know.
        unknown: u32,
    },
}

/// Position up to which a store's rows were read, in the order in which they were written.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RowPosition {
    /// Key of the store, and number of its row file.
    file: ([u64; 2], u64),
    /// Number of rows before the position, and their checksum.
    rows: u64,
    sum: u64,
}

impl RowPosition {
    /// Returns the position after the first rows of a snapshot.
    fn after(first: u64, snapshot: &Snapshot, rows: &KeptRows) -> Result<RowPosition> {
        Ok(RowPosition {
            file: (snapshot.key(), rows.kept().number),
            rows: first,
            sum: rows.sum_before(first)?,
        })
    }

    /// Returns whether the rows of a snapshot begin with those before the position.
    fn continues(self, snapshot: &Snapshot, rows: &KeptRows) -> Result<bool> {
        let has_all = self.rows <= rows.kept().rows;
        Ok(has_all && self == RowPosition::after(self.rows, snapshot, rows)?)
    }
}

/// Flow from the seeds over the links of a store, updated from snapshot to snapshot.
#[derive(Debug, Default)]
pub struct SeedCoverage {
    seeds: Seeds,
    flow: SeedFlow,
    /// Position in the rows up to which they are included in the flow.
    mark: Option<RowPosition>,
}

impl SeedCoverage {
    /// Creates the coverage of readers who start at these pages; no page counts as read yet.
    pub fn new(seeds: Seeds) -> SeedCoverage {
        SeedCoverage {
            seeds,
            ..SeedCoverage::default()
        }
    }

    /// Updates the flow to the rows of a snapshot, which must be the store's current one. Reads new rows only, if no
    /// earlier one changed.
    ///
    /// # Errors
    /// [`Error::Missing`] if no page was read or no links are kept; errors of reading the store.
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
        // An error in between leaves the flow incomplete, so the next update starts from nothing.
        let extends = match self.mark.take() {
            Some(mark) => {
                self.flow.seeds() == seeds
                    && mark.continues(snapshot, &rows)?
                    && rows.written_from(mark.rows, &mut |row| {
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
        self.mark = Some(RowPosition::after(rows.kept().rows, snapshot, &rows)?);
        Ok(self.covered(snapshot, bounds))
    }

    /// Returns the pages at which readers start.
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

    /// Estimates the lower bound after these pages have been read, too.
    pub fn with(&self, pages: impl Iterator<Item = u32>) -> f64 {
        self.flow
            .with(pages.map(|page| self.flow.waiting(page)).sum())
    }

    /// Returns the coverage by host, hosts with the most left to fetch first.
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
