//! Coverage: the share of what readers see that was crawled.

use std::collections::HashMap;

use serde::Serialize;

use crate::rank::coverage::{SeedShares, seeds as first_pages};
use crate::snapshot::Snapshot;
use crate::url::host;
use crate::{Error, Result};

/// Bounds on the share that was read of what readers who start at the seeds see.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Covered {
    pub records: u64,
    /// Number of known pages; in a shard, of its own pages.
    pub pages: u64,
    pub read: u64,
    pub seeds: u64,
    pub seeds_read: u64,
    pub damping: f64,
    /// Proven lower bound on the share that was read.
    pub at_least: f64,
    /// Proven upper bound on the share that was read.
    pub at_most: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CoveredHost {
    pub host: String,
    pub pages: u64,
    pub read: u64,
    /// Lower bound on the share, of all that readers see, that is pages of the host that were read.
    pub at_least: f64,
    /// Lower bound on the share, of all that readers see, that is pages of the host that were not read.
    pub unread: f64,
}

/// Coverage of a snapshot, by what readers who start at the seeds see over its links.
pub struct SeedCoverage {
    shares: SeedShares,
    /// Bound by which the shares of some pages may exceed what readers see of them, at the damping that was requested.
    slack: f64,
    pub covered: Covered,
}

impl SeedCoverage {
    /// Computes the coverage of readers who start at these pages ([`seeds_of`](super::seeds_of)), all equally likely, or
    /// at those that were read before any link to them was seen; over the rows of a snapshot, which must be the store's
    /// current one. Fails with [`Error::Missing`] if no page was read or no links are kept.
    pub fn of(snapshot: &Snapshot, seeds: Option<Vec<u32>>) -> Result<SeedCoverage> {
        let rows = snapshot.rows()?;
        let damping = snapshot.info().settings.config.damping_units();
        let seeds = match seeds {
            Some(seeds) => seeds,
            None => first_pages(&rows, &snapshot.visited(2)?)?,
        };
        if seeds.is_empty() {
            let store = snapshot.store().display();
            return Err(Error::Missing(format!(
                "{store}: no page was read yet, so readers have nowhere to start"
            )));
        }
        let shares = SeedShares::of(&rows, damping, &seeds)?;
        let info = snapshot.info();
        let rounding = info.settings.config.damping_bound();
        let read = |pages: &mut dyn Iterator<Item = u32>| {
            pages.filter(|&page| shares.is_read(page)).count() as u64
        };
        let covered = Covered {
            records: info.counters.records,
            pages: info.local_pages(),
            read: read(&mut (0..info.pages as u32)),
            seeds: seeds.len() as u64,
            seeds_read: read(&mut seeds.iter().copied()),
            damping: info.settings.config.damping_asked(),
            at_least: (shares.bounds.at_least - rounding).max(0.0),
            at_most: (shares.bounds.at_most + rounding).min(1.0),
        };
        Ok(SeedCoverage {
            slack: shares.slack + rounding,
            shares,
            covered,
        })
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
            let host = match hosts.get_mut(name) {
                Some(host) => host,
                None => hosts.entry(name.to_vec()).or_default(),
            };
            host.pages += 1;
            if self.shares.is_read(page) {
                host.read += 1;
                host.at_least += self.shares.share(page);
            } else {
                host.unread += self.shares.share(page);
            }
            page += 1;
        })?;
        let hosts = hosts.into_iter().map(|(name, host)| CoveredHost {
            host: String::from_utf8_lossy(&name).into_owned(),
            at_least: (host.at_least - self.slack).max(0.0),
            unread: (host.unread - self.slack).max(0.0),
            ..host
        });
        let mut hosts: Vec<CoveredHost> = hosts.collect();
        hosts.sort_by(|a, b| {
            let by_rest = b.unread.total_cmp(&a.unread);
            by_rest.then_with(|| a.host.cmp(&b.host))
        });
        Ok(hosts)
    }
}
