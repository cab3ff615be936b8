//! Seeds before all that an order chooses: those that were not read yet, in the order in which they are given.
//!
//! A crawl begins with them, and there need be neither a snapshot nor a store. What else is asked of a list (its length, its scope,
//! its limits a host and a domain, how long a page that failed is left alone) holds for them, too.

use super::next::{Limits, Source};
use super::{Candidate, NextOptions};
use crate::Result;
use crate::model::PageId;

/// Those that no store tells anything of.
pub(super) fn all(options: &NextOptions, limits: &mut Limits<'_>) -> Vec<Candidate> {
    let taken = options.seeds.iter().filter(|seed| limits.takes(&seed.name));
    let unknown = taken.map(|seed| Candidate::new(None, seed.name.clone(), 0.0, 0.0));
    unknown.take(options.count).collect()
}

/// Those that were not read as of a snapshot.
pub(super) fn unread(source: &Source<'_>, limits: &mut Limits<'_>) -> Result<Vec<Candidate>> {
    let NextOptions {
        seeds,
        count,
        exclude,
        ..
    } = source.options;
    let numbers: Vec<PageId> = seeds.iter().filter_map(|seed| seed.page).collect();
    let mut known = source.snapshot.pages_of(&numbers)?.into_iter();
    let mut chosen = Vec::new();
    for seed in seeds {
        let known = seed.page.and_then(|_| known.next());
        let is_open = known.is_none_or(|page| {
            page.fetches.visits == 0
                && page.fetches.last.is_none()
                && !exclude.contains(&page.page.0)
                && !source.is_failing(&page.fetches)
        });
        if chosen.len() < *count && is_open && limits.takes(&seed.name) {
            chosen.push(match &known {
                Some(page) => Candidate::of(page, seed.name.clone(), 0.0),
                None => Candidate::new(None, seed.name.clone(), 0.0, 0.0),
            });
        }
    }
    Ok(chosen)
}
