//! Sums of the weights of pairs of sites, sorted in memory or through a temporary file.
//!
//! Pairs come in any order and repeat. They are collected, and sorted and added up whenever the memory is full. If more
//! than half of it is still in use by then, the pairs are moved to an external sorter.

use std::path::Path;

use crate::disk::ExternalSorter;
use crate::{Error, Result};

/// Weighted link between two sites: from x 2^32 + to, and the weight.
pub(super) type SitePair = [u64; 2];

/// Memory per pair in bytes: the pair, half of that to sort it, and as much for the external sorter.
const PAIR_BYTES: u64 = 2 * size_of::<SitePair>() as u64;

/// Returns (from, to) of a pair.
pub(super) fn sites_of(pair: SitePair) -> (u32, u32) {
    ((pair[0] >> 32) as u32, pair[0] as u32)
}

/// Adds up the weights of a pair. Rows require that weights sum to less than 2^63.
fn sum(one: u64, other: u64) -> Result<u64> {
    let sum = one.checked_add(other).filter(|sum| *sum < 1 << 63);
    sum.ok_or_else(|| {
        let text = "links from one site to another weigh 2^63 or more together";
        Error::Unsupported(text.into())
    })
}

pub(super) struct PairSums {
    /// Pairs in memory, of which the first are sorted, each once.
    held: Vec<SitePair>,
    /// Number of pairs at which they are added up.
    room: usize,
    sorter: ExternalSorter,
    is_spilled: bool,
}

impl PairSums {
    /// Returns sums that take `memory` bytes; the rest is spilled to a file in `folder`.
    pub fn new(memory: u64, folder: &Path) -> PairSums {
        let room = ((memory / PAIR_BYTES) as usize).max(2);
        PairSums {
            // Only what is used takes memory.
            held: Vec::with_capacity(room),
            room,
            sorter: ExternalSorter::new(room * size_of::<SitePair>() / 2, folder),
            is_spilled: false,
        }
    }

    pub fn add(&mut self, from: u32, to: u32, weight: u64) -> Result<()> {
        if self.held.len() == self.room {
            self.sum()?;
            if self.held.len() > self.room / 2 {
                self.spill()?;
            }
        }
        self.held
            .push([u64::from(from) << 32 | u64::from(to), weight]);
        Ok(())
    }

    /// Sorts the pairs in memory, and adds up equal ones.
    fn sum(&mut self) -> Result<()> {
        // A stable sort is fast where a part is sorted already.
        self.held.sort_by_key(|pair| pair[0]);
        let mut failed = Ok(());
        self.held.dedup_by(|pair, first| {
            let is_same = pair[0] == first[0];
            if is_same {
                match sum(first[1], pair[1]) {
                    Ok(sum) => first[1] = sum,
                    Err(error) => failed = Err(error),
                }
            }
            is_same
        });
        failed
    }

    fn spill(&mut self) -> Result<()> {
        self.is_spilled = true;
        let sorter = &mut self.sorter;
        let mut pairs = self.held.drain(..);
        pairs.try_for_each(|[key, weight]| sorter.push(&key.to_be_bytes(), &weight.to_be_bytes()))
    }

    /// Calls `visit` with each pair, once, in ascending order.
    pub fn finish(mut self, visit: &mut dyn FnMut(SitePair) -> Result<()>) -> Result<()> {
        self.sum()?;
        if !self.is_spilled {
            return self.held.into_iter().try_for_each(visit);
        }
        self.spill()?;
        drop(self.held);
        let mut last: Option<SitePair> = None;
        for record in self.sorter.sorted()? {
            let (key, weight) = record?;
            let pair = [key, weight].map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes));
            match &mut last {
                Some(last) if last[0] == pair[0] => last[1] = sum(last[1], pair[1])?,
                last => last.replace(pair).map_or(Ok(()), &mut *visit)?,
            }
        }
        last.map_or(Ok(()), visit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use cashrank_base::folder::in_memory;
    use proptest::prelude::*;

    use super::*;

    fn all(sums: PairSums) -> Vec<((u32, u32), u64)> {
        let mut all = Vec::new();
        let found = sums.finish(&mut |pair| {
            all.push((sites_of(pair), pair[1]));
            Ok(())
        });
        found.unwrap();
        all
    }

    proptest! {
        /// The sums are those of a map, whatever fits into memory.
        #[test]
        fn sums_do_not_depend_on_the_room(
            pairs in prop::collection::vec((0u32..12, 0u32..12, 1u64..9), 0..300),
            bytes in 0u64..6000,
        ) {
            let mut expected = BTreeMap::new();
            let folder = in_memory();
            let mut sums = PairSums::new(bytes, folder.path());
            for &(from, to, weight) in &pairs {
                *expected.entry((from, to)).or_insert(0) += weight;
                sums.add(from, to, weight).unwrap();
            }
            prop_assert!(all(sums).into_iter().eq(expected));
            prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a temporary file is left");
        }
    }

    /// The sums are those of a map, however often they are added up meanwhile, and whether they are spilled.
    #[test]
    fn sums_are_those_of_a_map() {
        let folder = in_memory();
        // There are 97 x 101 different pairs.
        for (pairs, is_spilled) in [(1 << 15, false), (1 << 12, true)] {
            let mut sums = PairSums::new(pairs as u64 * PAIR_BYTES, folder.path());
            let mut expected = BTreeMap::new();
            for at in 0..200_000u32 {
                let (from, to) = (at * 7919 % 97, at * 31 % 101);
                let weight = u64::from(at % 5);
                sums.add(from, to, weight).unwrap();
                *expected.entry((from, to)).or_insert(0) += weight;
            }
            assert_eq!(sums.is_spilled, is_spilled);
            assert!(all(sums).into_iter().eq(expected));
        }
    }

    #[test]
    fn weights_beyond_63_bits_are_refused() {
        let folder = in_memory();
        for pairs in [2, 1 << 20] {
            let mut sums = PairSums::new(pairs * PAIR_BYTES, folder.path());
            let mut add = |to, weight| sums.add(0, to, weight);
            add(1, 1 << 62).unwrap();
            // They are added up in memory, or while spilled pairs are merged.
            let added = (2..6)
                .try_for_each(|to| add(to, 1))
                .and_then(|()| add(1, 1 << 62));
            let finished = added.and_then(|()| sums.finish(&mut |_| Ok(())));
            assert!(matches!(finished, Err(Error::Unsupported(_))));
        }
    }
}
