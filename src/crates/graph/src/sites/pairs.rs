//! Sums weights of pairs of sites: sorts them in memory, or through temporary files.
//!
//! Pairs come in any order and repeat. They are collected up to a limit and sorted, and equal pairs are added up. If
//! that frees less than half of the memory, the pairs are moved to an external sorter. In the end all are added up once
//! more, into one file, which each sweep over the rows reads from its start.
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

/// Size of a pair in bytes, in memory and in files.
const BYTES: usize = size_of::<SitePair>();
/// Buffer size in pairs.
const BUFFER: usize = (1 << 20) / BYTES;

/// Weighted link between two sites: its [`key`] and its weight.
pub(super) type SitePair = [u64; 2];

fn key(from: u32, to: u32) -> u64 {
    u64::from(from) << 32 | u64::from(to)
}

/// Returns (from, to) of a pair.
pub(super) fn sites_of(pair: SitePair) -> (u32, u32) {
    ((pair[0] >> 32) as u32, pair[0] as u32)
}

/// Adds the weight of another pair of the same sites.
fn add_weight(sum: &mut SitePair, other: SitePair) -> Result<()> {
    // Rows require that weights sum to less than 2^63.
    let all = sum[1].checked_add(other[1]).filter(|&all| all < 1 << 63);
    sum[1] = all.ok_or_else(|| {
        Error::Unsupported("links from one site to another weigh 2^63 or more together".into())
    })?;
    Ok(())
}

/// Sorts and sums pairs.
pub(super) struct PairSorter {
    held: Vec<SitePair>,
    /// Maximum number of pairs in memory.
    room: usize,
    folder: Option<PathBuf>,
    spilled: Option<ExternalSorter>,
}

/// All pairs, summed and in order.
pub(super) enum SortedPairs {
    Memory(Vec<SitePair>),
    File(PairFile),
}

impl PairSorter {
    /// Returns a sorter that takes `bytes` bytes of memory. Pairs that do not fit are spilled to files in `folder`, whose
    /// external sorter has a quarter of the memory, or refused without one.
    pub fn new(bytes: u64, folder: Option<PathBuf>) -> PairSorter {
        let fit = bytes / BYTES as u64;
        let room = if folder.is_some() { fit / 4 * 3 } else { fit };
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        PairSorter {
            held: Vec::new(),
            room: room.max(2),
            folder,
            spilled: None,
        }
    }

    pub fn add(&mut self, from: u32, to: u32, weight: u64) -> Result<()> {
        if self.held.len() == self.room {
            self.sum()?;
            if self.held.len() > self.room / 2 {
                self.spill()?;
            }
        }
        self.held.push([key(from, to), weight]);
        Ok(())
    }

    /// Sorts the pairs in memory, and adds up equal ones.
    fn sum(&mut self) -> Result<()> {
        self.held.sort_unstable();
        let mut added = Ok(());
        self.held.dedup_by(|pair, sum| {
            let is_same = pair[0] == sum[0];
            if is_same && added.is_ok() {
                added = add_weight(sum, *pair);
            }
            is_same
        });
        added
    }

    /// Returns the folder of temporary files; without one the pairs exceed the memory.
    fn folder(&self) -> Result<&Path> {
        let held = (self.held.len() * BYTES) as u64;
        let pairs = self.held.len();
        let work = || format!("the links between sites, of which there are {pairs} or more,");
        match &self.folder {
            Some(folder) => Ok(folder),
            // More than fits is needed: the check always fails.
            None => check_room(
                Some(held),
                2 * held,
                work,
                "rank a coarser level, such as domains",
            )
            .and(Err(Error::internal(
                "pairs of sites have no temporary file",
            ))),
        }
    }

    /// Moves the pairs in memory to the external sorter.
    fn spill(&mut self) -> Result<()> {
        if self.spilled.is_none() {
            let memory = self.room / 3 * BYTES;
            self.spilled = Some(ExternalSorter::new(memory, self.folder()?));
        }
        if let Some(sorter) = &mut self.spilled {
            for [key, weight] in self.held.drain(..) {
                sorter.push(&key.to_be_bytes(), &weight.to_be_bytes())?;
            }
        }
        Ok(())
    }

    /// Returns all pairs, sorted.
    pub fn finish(mut self) -> Result<SortedPairs> {
        self.sum()?;
        if self.spilled.is_some() {
            self.spill()?;
        }
        let Some(sorter) = self.spilled.take() else {
            return Ok(SortedPairs::Memory(self.held));
        };
        self.held = Vec::new();
        let mut merged = PairFile::create(self.folder()?)?;
        let mut sums: Vec<SitePair> = Vec::with_capacity(BUFFER);
        for record in sorter.sorted()? {
            let (key, weight) = record?;
            let pair = [key, weight].map(|bytes| bytes.try_into().map_or(0, u64::from_be_bytes));
            match sums.last_mut() {
                Some(last) if last[0] == pair[0] => add_weight(last, pair)?,
                _ => {
                    if sums.len() == BUFFER {
                        merged.append(&mut sums)?;
                    }
                    sums.push(pair);
                }
            }
        }
        merged.append(&mut sums)?;
        Ok(SortedPairs::File(merged))
    }
}

/// Temporary file of sorted pairs, without a name.
pub(super) struct PairFile {
    path: PathBuf,
    file: File,
    /// Number of pairs.
    len: u64,
}

impl PairFile {
    fn create(folder: &Path) -> Result<PairFile> {
        let (path, file) = unnamed(&folder.join("cashrank-pairs"))?;
        Ok(PairFile { path, file, len: 0 })
    }

    /// Moves pairs to the end of the file.
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

    /// Calls `visit` with each pair.
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
            bytes in 0u64..3000,
        ) {
            let mut expected = BTreeMap::new();
            let folder = in_memory();
            let mut sorter = PairSorter::new(bytes, Some(folder.path().into()));
            for &(from, to, weight) in &pairs {
                *expected.entry(key(from, to)).or_insert(0) += weight;
                sorter.add(from, to, weight).unwrap();
            }
            let found = all(sorter.finish().unwrap());
            let found = found.iter().map(|pair| (pair[0], pair[1]));
            prop_assert!(found.eq(expected));
            prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a temporary file is left");
        }
    }

    #[test]
    fn without_a_place_for_files_it_is_refused() {
        let mut sorter = PairSorter::new(64, None);
        let add = |to| sorter.add(0, to, 1);
        let refused = (0..5).map(add).find_map(Result::err).unwrap();
        assert!(matches!(refused, Error::TooLarge { .. }));
    }

    #[test]
    fn weights_beyond_63_bits_are_refused() {
        let mut sorter = PairSorter::new(1000, None);
        for _ in 0..2 {
            sorter.add(0, 1, 1 << 62).unwrap();
        }
        assert!(sorter.finish().is_err());
    }
}
