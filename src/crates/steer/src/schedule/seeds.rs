//! Seeds come before everything that an order chooses: the unread ones, in the given order.
//!
//! A crawl begins with seeds, without a snapshot or even a store. The limits of a list (its length, its scope, pages
//! per host and domain, the pause after a failure) apply to seeds, too.

use std::collections::HashSet;

use super::next::ListLimits;
use super::{Candidate, NextOptions, Seed};
use crate::Result;
use crate::model::PageId;
use crate::snapshot::{Snapshot, SnapshotPage};

/// Chooses the seeds that a list will begin with, each once, from any number of them.
pub struct SeedChoice<'a> {
    options: &'a NextOptions,
    snapshot: Option<&'a Snapshot>,
    limits: ListLimits<'a>,
    seeds: Vec<Seed>,
    names: HashSet<String>,
}

impl<'a> SeedChoice<'a> {
    /// Returns an empty choice.
    pub fn new(options: &'a NextOptions, snapshot: Option<&'a Snapshot>) -> SeedChoice<'a> {
        SeedChoice {
            options,
            snapshot,
            limits: ListLimits::new(options, snapshot),
            seeds: Vec::new(),
            names: HashSet::new(),
        }
    }

    /// Continues with these seeds.
    pub fn add(&mut self, seeds: Vec<Seed>) -> Result<()> {
        if self.seeds.len() >= self.options.count {
            return Ok(());
        }
        let open = opened(self.options, self.snapshot, seeds)?;
        for (seed, _) in open {
            if self.seeds.len() < self.options.count
                && !self.names.contains(&seed.name)
                && self.limits.takes(&seed.name)
            {
                self.names.insert(seed.name.clone());
                self.seeds.push(seed);
            }
        }
        Ok(())
    }

    /// Returns the chosen seeds.
    pub fn seeds(self) -> Vec<Seed> {
        self.seeds
    }
}

/// Returns the seeds that were unread as of a snapshot, with the snapshot's facts about them.
fn opened(
    options: &NextOptions,
    snapshot: Option<&Snapshot>,
    seeds: Vec<Seed>,
) -> Result<Vec<(Seed, Option<SnapshotPage>)>> {
    let Some(snapshot) = snapshot else {
        return Ok(seeds.into_iter().map(|seed| (seed, None)).collect());
    };
    let now = options.now(snapshot);
    let numbers: Vec<PageId> = seeds.iter().filter_map(|seed| seed.page).collect();
    let mut known = snapshot.pages_of(&numbers)?.into_iter();
    let found = seeds.into_iter().map(|seed| {
        let page = seed.page.and_then(|_| known.next());
        (seed, page)
    });
    let is_open = |(_, page): &(Seed, Option<SnapshotPage>)| {
        page.is_none_or(|page| {
            page.fetches.visits == 0
                && page.fetches.last.is_none()
                && !options.exclude.get(page.page.0)
                && !options.is_failing(now, &page.fetches)
        })
    };
    Ok(found.filter(is_open).collect())
}

/// Returns the seeds that a list begins with, as far as `limits` allow: those that were unread as of a snapshot.
pub(super) fn listed(
    options: &NextOptions,
    snapshot: Option<&Snapshot>,
    limits: &mut ListLimits<'_>,
) -> Result<Vec<Candidate>> {
    let mut chosen = Vec::new();
    for (seed, page) in opened(options, snapshot, options.seeds.clone())? {
        if chosen.len() < options.count && limits.takes(&seed.name) {
            chosen.push(match &page {
                Some(page) => Candidate::of(page, seed.name, 0.0),
                None => Candidate::new(None, seed.name, 0.0, 0.0),
            });
        }
    }
    Ok(chosen)
}
