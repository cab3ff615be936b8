//! Sums of the weights of pairs of sites, sorted in memory or through temporary files.
//!
//! Pairs come in any order and repeat. They are collected, and sorted and added up whenever their number grew by a
//! quarter. If the memory does not suffice for that and more than half of it is in use, the pairs are moved to an
//! external sorter. At the end all are added up into one file, which each sweep over the rows reads from its start.
//!
//! ```text
//! temporary file   pair*        pair: (from x 2^32 + to) u64, weight u64, sorted, each once; of this machine's byte order
//! ```

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::{cast_slice, cast_slice_mut};

use crate::disk::{ExternalSorter, unnamed};
use crate::model::check_room;
use crate::{Error, Result};

/// Weighted link between two sites: from x 2^32 + to, and the weight.
pub(super) type SitePair = [u64; 2];

const BYTES: usize = size_of::<SitePair>();
/// Memory per pair in bytes: the pair, half of that to sort it, and as much for the external sorter, or for the
/// resulting link.
const PAIR_BYTES: u64 = 2 * BYTES as u64;
const BUFFER: usize = (1 << 20) / BYTES;
/// Smallest number of pairs that are collected before they are added up, if memory suffices.
const LEAST: usize = 1 << 12;

/// Returns (from, to) of a pair.
pub(super) fn sites_of(pair: SitePair) -> (u32, u32) {
    ((pair[0] >> 32) as u32, pair[0] as u32)
}

pub(super) struct PairSums {
    /// Pairs in memory, of which the first are sorted, each once.
    held: Vec<SitePair>,
    /// Number of pairs at which they are added up.
    room: usize,
    memory: Option<u64>,
    room_max: usize,
    folder: Option<PathBuf>,
    spilled: Option<ExternalSorter>,
}

pub(super) enum SortedPairs {
    Memory(Vec<SitePair>),
    File(PairFile),
}

impl PairSums {
    /// Returns sums that take `memory` bytes; the rest is spilled to files in `folder`, or refused without one.
    pub fn new(memory: Option<u64>, folder: Option<PathBuf>) -> PairSums {
        let fit = memory.map_or(u64::MAX, |memory| memory / PAIR_BYTES);
        PairSums {
            held: Vec::new(),
            room: 0,
            memory,
            room_max: usize::try_from(fit).unwrap_or(usize::MAX).max(2),
            folder,
            spilled: None,
        }
    }

    pub fn add(&mut self, from: u32, to: u32, weight: u64) -> Result<()> {
        if self.held.len() == self.room {
            self.sum()?;
            self.make_room()?;
        }
        self.held
            .push([u64::from(from) << 32 | u64::from(to), weight]);
        Ok(())
    }

    /// Sorts the pairs in memory, and adds up equal ones.
    fn sum(&mut self) -> Result<()> {
        // A stable sort is fast where a part is sorted already.
        self.held.sort_by_key(|pair| pair[0]);
        let mut fits = true;
        self.held.dedup_by(|pair, sum| {
            let is_same = pair[0] == sum[0];
            if is_same {
                // Rows require that weights sum to less than 2^63.
                sum[1] = sum[1].saturating_add(pair[1]);
                fits &= sum[1] < 1 << 63;
            }
            is_same
        });
        if fits {
            return Ok(());
        }
        let text = "links from one site to another weigh 2^63 or more together";
        Err(Error::Unsupported(text.into()))
    }

    /// Makes room for a quarter more, or moves the pairs to the external sorter.
    fn make_room(&mut self) -> Result<()> {
        let pairs = self.held.len();
        let wanted = pairs + (pairs / 4).max(LEAST);
        self.room = wanted.min(self.room_max);
        if wanted > self.room_max && pairs > self.room_max / 2 {
            if self.folder.is_none() {
                check_room(
                    self.memory,
                    wanted as u64 * PAIR_BYTES,
                    || format!("the links between sites, of which there are {pairs} or more,"),
                    "rank a coarser level, such as domains",
                )?;
            }
            self.spill()?;
        }
        self.held.reserve_exact(self.room - self.held.len());
        Ok(())
    }

    fn folder(&self) -> Result<&Path> {
        let folder = self.folder.as_deref();
        folder.ok_or_else(|| Error::internal("pairs of sites have no temporary file"))
    }

    fn spill(&mut self) -> Result<()> {
        if self.spilled.is_none() {
            let memory = self.room_max * BYTES / 2;
            self.spilled = Some(ExternalSorter::new(memory, self.folder()?));
        }
        if let Some(sorter) = &mut self.spilled {
            for [key, weight] in self.held.drain(..) {
                sorter.push(&key.to_be_bytes(), &weight.to_be_bytes())?;
            }
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<SortedPairs> {
        self.sum()?;
        if self.spilled.is_some() {
            self.spill()?;
        }
        let Some(sorter) = self.spilled.take() else {
            return Ok(SortedPairs::Memory(self.held));
        };
        self.held = Vec::with_capacity(BUFFER);
        let mut merged = PairFile::create(self.folder()?)?;
        for record in sorter.sorted()? {
            let (key, weight) = record?;
            if self.held.len() == BUFFER {
                self.sum()?;
                // Later pairs may be of the same sites as the last one.
                let last = self.held.pop();
                merged.append(&mut self.held)?;
                self.held.extend(last);
            }
            let pair = [key, weight].map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes));
            self.held.push(pair);
        }
        self.sum()?;
        merged.append(&mut self.held)?;
        Ok(SortedPairs::File(merged))
    }
}

/// Temporary file of sorted pairs, without a name.
pub(super) struct PairFile {
    path: PathBuf,
    file: File,
    len: u64,
}

impl PairFile {
    fn create(folder: &Path) -> Result<PairFile> {
        let (path, file) = unnamed(&folder.join("cashrank-pairs"))?;
        Ok(PairFile { path, file, len: 0 })
    }

    fn append(&mut self, pairs: &mut Vec<SitePair>) -> Result<()> {
        let written = self.file.write_all(cast_slice(pairs));
        written.map_err(Error::io(&self.path, "write"))?;
        self.len += pairs.len() as u64;
        pairs.clear();
        Ok(())
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn each<E: From<Error>>(
        &self,
        mut visit: impl FnMut(SitePair) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut pairs = vec![[0; 2]; BUFFER];
        for first in (0..self.len).step_by(BUFFER) {
            pairs.truncate((self.len - first) as usize);
            let read = self
                .file
                .read_exact_at(cast_slice_mut(&mut pairs), first * BYTES as u64);
            read.map_err(Error::reading(&self.path))?;
            pairs.iter().try_for_each(|&pair| visit(pair))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use cashrank_base::folder::in_memory;
    use proptest::prelude::*;

    use super::*;

    fn all(sorted: SortedPairs) -> Vec<SitePair> {
        match sorted {
            SortedPairs::Memory(pairs) => pairs,
            SortedPairs::File(file) => {
                let mut pairs = Vec::new();
                let each = file.each(|pair| {
                    pairs.push(pair);
                    Ok::<(), Error>(())
                });
                each.unwrap();
                pairs
            }
        }
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
            let mut sums = PairSums::new(Some(bytes), Some(folder.path().into()));
            for &(from, to, weight) in &pairs {
                *expected.entry((from, to)).or_insert(0) += weight;
                sums.add(from, to, weight).unwrap();
            }
            let found = all(sums.finish().unwrap());
            let found = found.iter().map(|pair| (sites_of(*pair), pair[1]));
            prop_assert!(found.eq(expected));
            prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a temporary file is left");
        }
    }

    /// The sums are those of a map, however often they are added up meanwhile, and whether they are spilled.
    #[test]
    fn sums_are_those_of_a_map() {
        let folder = in_memory();
        for memory in [None, Some(3 * LEAST as u64 * PAIR_BYTES)] {
            let mut sums = PairSums::new(memory, Some(folder.path().into()));
            let mut expected = BTreeMap::new();
            for at in 0..50 * LEAST as u32 {
                let (from, to) = (at * 7919 % 97, at * 31 % 101);
                let weight = u64::from(at % 5);
                sums.add(from, to, weight).unwrap();
                *expected.entry((from, to)).or_insert(0) += weight;
            }
            assert_eq!(sums.spilled.is_some(), memory.is_some());
            let found = all(sums.finish().unwrap());
            let found = found.iter().map(|pair| (sites_of(*pair), pair[1]));
            assert!(found.eq(expected));
        }
    }

    #[test]
    fn pairs_beyond_the_memory_are_refused() {
        for pairs in [0, 2 * LEAST] {
            let mut sums = PairSums::new(Some(pairs as u64 * PAIR_BYTES), None);
            let add = |to| sums.add(0, to, 1);
            let refused = (0..u32::MAX).map(add).find_map(Result::err).unwrap();
            assert!(matches!(refused, Error::TooLarge { .. }));
            assert!(sums.held.len() >= pairs / 2);
        }
    }

    #[test]
    fn weights_beyond_63_bits_are_refused() {
        let mut sums = PairSums::new(None, None);
        for _ in 0..2 {
            sums.add(0, 1, 1 << 62).unwrap();
        }
        assert!(sums.finish().is_err());
    }
}
