//! Sums weights of pairs of sites: sorts them in memory, or through temporary files.
//!
//! Pairs come in any order and repeat. They are collected up to a limit and sorted, and equal pairs are added up. If
//! that frees less than half of the memory, the sorted pairs are spilled to a temporary file as a *run*. In the end the
//! runs are merged into one file, which each sweep over the rows reads from its start.
//!
//! ```text
//! temporary file   pair*        pair: (from x 2^32 + to) u64, weight u64, sorted, each once a file; of this machine's byte order
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::path::PathBuf;

use bytemuck::{cast_slice, cast_slice_mut};

use crate::disk::{Disk, DiskFile, recreate, temporary};
use crate::model::check_room;
use crate::{Error, Result};

/// Size of a pair in bytes, in memory and in files.
const BYTES: usize = size_of::<SitePair>();
/// Buffer sizes in pairs: for the merged file, and for each run while it is merged.
const BUFFER: usize = (1 << 20) / BYTES;
const RUN_BUFFER: usize = (1 << 16) / BYTES;

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

/// Location of temporary files: a disk, and the beginning of their names.
pub(super) type Aside<'d> = (&'d dyn Disk, PathBuf);

/// Sorts and sums pairs.
pub(super) struct PairSorter<'d> {
    held: Vec<SitePair>,
    /// Maximum number of pairs in memory.
    room: usize,
    aside: Option<Aside<'d>>,
    runs: Vec<PairFile<'d>>,
}

/// All pairs, summed and in order.
pub(super) enum Sorted<'d> {
    Memory(Vec<SitePair>),
    File(PairFile<'d>),
}

impl<'d> PairSorter<'d> {
    /// Returns a sorter that holds at most `bytes` bytes of pairs in memory; if they do not fit they are spilled to
    /// temporary files, or refused without `aside`.
    pub fn new(bytes: u64, aside: Option<Aside<'d>>) -> PairSorter<'d> {
        let room = usize::try_from(bytes / BYTES as u64).unwrap_or(usize::MAX);
        PairSorter {
            held: Vec::new(),
            room: room.max(2),
            aside,
            runs: Vec::new(),
        }
    }

    pub fn add(&mut self, from: u32, to: u32, weight: u64) -> Result<()> {
        if self.held.len() == self.room {
            self.sum()?;
            if self.held.len() > self.room / 2 {
                self.write_run()?;
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

    /// Creates the next temporary file.
    fn create(&self) -> Result<PairFile<'d>> {
        let Some((disk, path)) = &self.aside else {
            let held = (self.held.len() * BYTES) as u64;
            let work = || {
                format!(
                    "the links between sites, of which there are {} or more,",
                    self.held.len()
                )
            };
            // Pairs exceed the memory, which is why a file is needed: the check always fails.
            check_room(
                Some(held),
                2 * held,
                work,
                "rank a coarser level, such as domains",
            )?;
            return Err(Error::internal("pairs of sites have no temporary file"));
        };
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.tmp", self.runs.len()));
        PairFile::create(*disk, name.into())
    }

    fn write_run(&mut self) -> Result<()> {
        let mut run = self.create()?;
        run.append(&mut self.held)?;
        self.runs.push(run);
        Ok(())
    }

    /// Returns all pairs, sorted.
    pub fn finish(mut self) -> Result<Sorted<'d>> {
        self.sum()?;
        if self.runs.is_empty() {
            return Ok(Sorted::Memory(self.held));
        }
        self.write_run()?;
        self.held = Vec::new();
        let mut merged = self.create()?;
        let mut readers: Vec<_> = self.runs.iter().map(|run| run.reader(RUN_BUFFER)).collect();
        let mut heads = BinaryHeap::new();
        for (at, reader) in readers.iter_mut().enumerate() {
            heads.extend(reader.next()?.map(|pair| Reverse((pair, at))));
        }
        let mut sums: Vec<SitePair> = Vec::with_capacity(BUFFER);
        while let Some(Reverse((pair, at))) = heads.pop() {
            match sums.last_mut() {
                Some(last) if last[0] == pair[0] => add_weight(last, pair)?,
                _ => {
                    if sums.len() == BUFFER {
                        merged.append(&mut sums)?;
                    }
                    sums.push(pair);
                }
            }
            heads.extend(readers[at].next()?.map(|pair| Reverse((pair, at))));
        }
        merged.append(&mut sums)?;
        Ok(Sorted::File(merged))
    }
}

/// Temporary file of sorted pairs, removed when it is dropped.
pub(super) struct PairFile<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Number of pairs.
    len: u64,
}

impl<'d> PairFile<'d> {
    fn create(disk: &'d dyn Disk, path: PathBuf) -> Result<PairFile<'d>> {
        let made = recreate(disk, &path).map_err(Error::io(&path, "create"));
        Ok(PairFile {
            disk,
            file: made.map_err(temporary)?,
            path,
            len: 0,
        })
    }

    /// Moves pairs to the end of the file.
    fn append(&mut self, pairs: &mut Vec<SitePair>) -> Result<()> {
        let written = self
            .file
            .write_at(cast_slice(pairs), self.len * BYTES as u64);
        written.map_err(Error::io(&self.path, "write"))?;
        self.len += pairs.len() as u64;
        pairs.clear();
        Ok(())
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads the pairs from the start.
    pub fn pairs(&self) -> PairReader<'_> {
        self.reader(BUFFER)
    }

    fn reader(&self, buffer: usize) -> PairReader<'_> {
        PairReader {
            of: self,
            read: 0,
            pairs: vec![[0; 2]; buffer],
            at: 0..0,
        }
    }
}

impl Drop for PairFile<'_> {
    fn drop(&mut self) {
        // If this fails, the file is removed when the store is opened next.
        let _ = self.disk.remove(&self.path);
    }
}

pub(super) struct PairReader<'f> {
    of: &'f PairFile<'f>,
    /// Number of pairs read into the buffer so far.
    read: u64,
    pairs: Vec<SitePair>,
    /// Pairs of the buffer that are left.
    at: Range<usize>,
}

impl PairReader<'_> {
    pub fn next(&mut self) -> Result<Option<SitePair>> {
        if self.at.is_empty() {
            let left = (self.of.len - self.read).min(self.pairs.len() as u64);
            self.at = 0..left as usize;
            let into = cast_slice_mut(&mut self.pairs[..left as usize]);
            let read = self.of.file.read_at(into, self.read * BYTES as u64);
            read.map_err(Error::reading(&self.of.path))?;
            self.read += left;
        }
        Ok(self.at.next().map(|at| self.pairs[at]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::fuzz::memory::Memory;

    fn all(sorted: Sorted<'_>) -> Vec<SitePair> {
        match sorted {
            Sorted::Memory(pairs) => pairs,
            Sorted::File(file) => {
                let mut reader = file.pairs();
                std::iter::from_fn(|| reader.next().unwrap()).collect()
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
            let disk = Memory::default();
            let mut sorter = PairSorter::new(bytes, Some((&disk, "links".into())));
            for &(from, to, weight) in &pairs {
                *expected.entry(key(from, to)).or_insert(0) += weight;
                sorter.add(from, to, weight).unwrap();
            }
            let found = all(sorter.finish().unwrap());
            let found = found.iter().map(|pair| (pair[0], pair[1]));
            prop_assert!(found.eq(expected));
            prop_assert!(disk.paths().is_empty(), "a temporary file is left");
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
