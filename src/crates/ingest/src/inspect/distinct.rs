//! Counts distinct names: exactly up to a limit, beyond it only that there are more.

use std::collections::HashSet;

use super::report::DistinctCount;
use crate::batch::{Batch, BatchEntry, What};
use crate::engine::Fingerprint;
use crate::formats::Format;

/// Names by their fingerprints, which are distinct except with a probability of 10^-26 or less.
pub(super) struct DistinctNames {
    known: HashSet<Fingerprint>,
    limit: usize,
    full: bool,
}

impl DistinctNames {
    pub fn new(limit: usize) -> DistinctNames {
        DistinctNames {
            known: HashSet::new(),
            limit,
            full: false,
        }
    }

    /// Returns whether the name was seen before, as far as known.
    pub fn add(&mut self, name: Fingerprint) -> bool {
        if self.known.len() < self.limit {
            return !self.known.insert(name);
        }
        let seen = self.known.contains(&name);
        self.full |= !seen;
        seen
    }

    /// Returns the memory in bytes after one more name: 17 bytes per slot of a table that is at most 7/8 full, and half
    /// as large again while it grows.
    pub fn bytes(&self) -> u64 {
        let full = self.known.len() == self.known.capacity() && self.known.len() < self.limit;
        let places = (self.known.capacity() as u64 * 8).div_ceil(7);
        17 * if full { 3 * places } else { places }
    }

    pub fn count(&self) -> DistinctCount {
        DistinctCount {
            count: self.known.len() as u64,
            at_least: self.full,
        }
    }
}

/// Most sources of an input that are remembered to see whether they come back.
pub(crate) const SOURCES: usize = 1_000_000;

/// Counts the groups of an input, in formats with a link per line, whose source had a group before.
pub(crate) struct GroupReturns {
    /// Sources so far; `None`: records of the format are no groups.
    sources: Option<DistinctNames>,
    /// Number of groups whose source came back, as far as sources are remembered.
    pub count: u64,
}

impl GroupReturns {
    pub fn new(format: Format, limit: usize) -> GroupReturns {
        let sources = format.is_grouped().then(|| DistinctNames::new(limit));
        GroupReturns { sources, count: 0 }
    }

    /// Adds an entry of a batch.
    pub fn add(&mut self, batch: &Batch, entry: &BatchEntry) {
        if let Some(sources) = &mut self.sources
            && entry.what == What::Visit
        {
            self.count += u64::from(sources.add(batch.fingerprints[entry.source as usize]));
        }
    }

    pub fn bytes(&self) -> u64 {
        self.sources.as_ref().map_or(0, DistinctNames::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::HashKey;

    #[test]
    fn exact_up_to_the_limit() {
        let fingerprints = HashKey([1, 2]).fingerprints();
        let mut names = DistinctNames::new(3);
        let mut add = |name: &str| (names.add(fingerprints.of(name.as_bytes())), names.count());
        let exactly = |count| DistinctCount {
            count,
            at_least: false,
        };
        assert_eq!(add("a"), (false, exactly(1)));
        assert_eq!(add("a"), (true, exactly(1)));
        assert_eq!(add("b"), (false, exactly(2)));
        assert_eq!(add("c"), (false, exactly(3)));
        assert_eq!(add("b"), (true, exactly(3)));
        let more = DistinctCount {
            count: 3,
            at_least: true,
        };
        assert_eq!(add("d"), (false, more));
        assert_eq!(add("c"), (true, more));
        // A table for three names has at least four slots.
        assert!((4 * 17..=200).contains(&names.bytes()), "{}", names.bytes());
    }
}
