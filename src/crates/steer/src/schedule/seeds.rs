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

/// Chooses the seeds that a list will begin with, from any number of them: those that were unread as of a snapshot,
/// each once, as far as the limits allow.
pub struct SeedChoice<'a> {
    options: &'a NextOptions,
    snapshot: Option<&'a Snapshot>,
    limits: ListLimits<'a>,
    names: HashSet<String>,
    /// Chosen seeds, with the snapshot's facts about them.
    chosen: Vec<(Seed, Option<SnapshotPage>)>,
}

impl<'a> SeedChoice<'a> {
    /// Returns an empty choice.
    pub fn new(options: &'a NextOptions, snapshot: Option<&'a Snapshot>) -> SeedChoice<'a> {
        SeedChoice {
            options,
            snapshot,
            limits: ListLimits::new(options, snapshot),
            names: HashSet::new(),
            chosen: Vec::new(),
        }
    }

    /// Continues with these seeds.
    pub fn add(&mut self, seeds: Vec<Seed>) -> Result<()> {
        if self.chosen.len() >= self.options.count {
            return Ok(());
        }
        let numbers: Vec<PageId> = seeds.iter().filter_map(|seed| seed.page).collect();
        let (mut known, mut now) = (Vec::new().into_iter(), None);
        if let Some(snapshot) = self.snapshot {
            known = snapshot.pages_of(&numbers)?.into_iter();
            now = self.options.now(snapshot);
        }
        for seed in seeds {
            let page = seed.page.and_then(|_| known.next());
            let is_open = page.is_none_or(|page| {
                page.fetches.visits == 0
                    && page.fetches.last.is_none()
                    && !self.options.exclude.get(page.page.0)
                    && !self.options.is_failing(now, &page.fetches)
            });
            if is_open
                && self.chosen.len() < self.options.count
                && !self.names.contains(&seed.name)
                && self.limits.takes(&seed.name)
            {
                self.names.insert(seed.name.clone());
                self.chosen.push((seed, page));
            }
        }
        Ok(())
    }

    /// Returns the chosen seeds.
    pub fn seeds(self) -> Vec<Seed> {
        self.chosen.into_iter().map(|(seed, _)| seed).collect()
    }
}

/// Returns the seeds that a list begins with, and what its limits leave for other pages.
pub(super) fn listed<'a>(
    options: &'a NextOptions,
    snapshot: Option<&'a Snapshot>,
) -> Result<(Vec<Candidate>, ListLimits<'a>)> {
    let mut choice = SeedChoice::new(options, snapshot);
    choice.add(options.seeds.clone())?;
    let candidate = |(seed, page): (Seed, Option<SnapshotPage>)| Candidate {
        page: page.map(|page| page.page),
        importance: page.map_or(0.0, |page| page.importance),
        fetches: page.map(|page| page.fetches).unwrap_or_default(),
        url: seed.name,
        ..Candidate::default()
    };
    let listed = choice.chosen.into_iter().map(candidate).collect();
    Ok((listed, choice.limits))
}
