//! Sums weights of pairs of sites: sorts them in memory, or through temporary files.
//!
//! Pairs come in any order and repeat. They are collected up to a limit and sorted, and equal pairs are added up. If
//! that frees less than half of the memory, the sorted pairs are spilled to a temporary file as a *run*. In the end the
//! runs are merged into one file, which each sweep over the rows reads from its start.
//!
//! ```text
//! temporary file   pair*        pair: from u32, to u32, weight u64, by (from, to), each once a file
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use crate::codec::varint::number;
use crate::disk::{Disk, DiskFile, recreate, temporary};
use crate::model::check_room;
use crate::{Error, Result};

/// Size of a pair in bytes, in memory and in files.
pub(super) const BYTES: usize = 16;
/// Buffer sizes in bytes: for the merged file, and for each run while it is merged.
const BUFFER: usize = 1 << 20;
const RUN_BUFFER: usize = 1 << 16;

/// Weighted link between two sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SitePair {
    pub from: u32,
    pub to: u32,
    pub weight: u64,
}

impl SitePair {
    fn key(&self) -> (u32, u32) {
        (self.from, self.to)
    }

    /// Adds the weight of another pair of the same sites.
    fn join(&mut self, other: &SitePair) -> Result<()> {
        let sum = self.weight.checked_add(other.weight);
        // Rows require that weights sum to less than 2^63.
        self.weight = sum.filter(|&sum| sum < 1 << 63).ok_or_else(|| {
            Error::Unsupported("links from one site to another weigh 2^63 or more together".into())
        })?;
        Ok(())
    }

    fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.from.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.to.to_le_bytes());
        bytes[8..].copy_from_slice(&self.weight.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> SitePair {
        SitePair {
            from: number(&bytes[..4]) as u32,
            to: number(&bytes[4..8]) as u32,
            weight: number(&bytes[8..BYTES]),
        }
    }
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

    pub fn add(&mut self, pair: SitePair) -> Result<()> {
        if self.held.len() == self.room {
            sum(&mut self.held)?;
            if self.held.len() > self.room / 2 {
                self.write_run()?;
            }
        }
        self.held.push(pair);
        Ok(())
    }

    fn write_run(&mut self) -> Result<()> {
        let Some((disk, path)) = &self.aside else {
            let held = (self.held.len() * BYTES) as u64;
            let work = || {
                format!(
                    "the links between sites, of which there are {} or more,",
                    self.held.len()
                )
            };
            let instead = "rank a coarser level, such as domains";
            // Pairs exceed the memory, which is why this is a run: the check always fails.
            check_room(Some(held), 2 * held, work, instead)?;
            return Ok(());
        };
        let path = numbered(path, self.runs.len());
        let mut run = PairFile::create(*disk, &path)?;
        for pair in self.held.drain(..) {
            run.push(pair)?;
        }
        run.flush()?;
        self.runs.push(run);
        Ok(())
    }

    /// Returns all pairs, ordered by (from, to).
    pub fn finish(mut self) -> Result<Sorted<'d>> {
        sum(&mut self.held)?;
        if self.runs.is_empty() {
            return Ok(Sorted::Memory(self.held));
        }
        self.write_run()?;
        self.held = Vec::new();
        let Some((disk, path)) = &self.aside else {
            return Err(Error::internal(
                "there are runs of pairs without a place for them",
            ));
        };
        let mut merged = PairFile::create(*disk, &numbered(path, self.runs.len()))?;
        let mut last: Option<SitePair> = None;
        merge(&self.runs, &mut |pair| {
            match &mut last {
                Some(last) if last.key() == pair.key() => last.join(&pair)?,
                _ => {
                    if let Some(whole) = last.replace(pair) {
                        merged.push(whole)?;
                    }
                }
            }
            Ok(())
        })?;
        last.into_iter().try_for_each(|pair| merged.push(pair))?;
        merged.flush()?;
        Ok(Sorted::File(merged))
    }
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}.tmp"));
    name.into()
}

/// Sorts pairs, and adds up equal ones.
fn sum(pairs: &mut Vec<SitePair>) -> Result<()> {
    pairs.sort_unstable();
    let mut kept = 0;
    for at in 1..pairs.len() {
        let pair = pairs[at];
        if pairs[kept].key() == pair.key() {
            pairs[kept].join(&pair)?;
        } else {
            kept += 1;
            pairs[kept] = pair;
        }
    }
    pairs.truncate(if pairs.is_empty() { 0 } else { kept + 1 });
    Ok(())
}

/// Calls `each` with the pairs of all runs in order.
fn merge(runs: &[PairFile<'_>], each: &mut dyn FnMut(SitePair) -> Result<()>) -> Result<()> {
    let mut readers: Vec<_> = runs.iter().map(|run| run.reader(RUN_BUFFER)).collect();
    let mut heads = BinaryHeap::new();
    for (at, reader) in readers.iter_mut().enumerate() {
        heads.extend(reader.next()?.map(|pair| Reverse((pair, at))));
    }
    while let Some(Reverse((pair, at))) = heads.pop() {
        each(pair)?;
        heads.extend(readers[at].next()?.map(|pair| Reverse((pair, at))));
    }
    Ok(())
}

/// Temporary file of sorted pairs, removed when it is dropped.
pub(super) struct PairFile<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Number of pairs in the file, and bytes waiting to be written.
    len: u64,
    waiting: Vec<u8>,
}

impl<'d> PairFile<'d> {
    fn create(disk: &'d dyn Disk, path: &Path) -> Result<PairFile<'d>> {
        let made = recreate(disk, path).map_err(Error::io(path, "create"));
        let file = made.map_err(temporary)?;
        Ok(PairFile {
            disk,
            path: path.into(),
            file,
            len: 0,
            waiting: Vec::with_capacity(BUFFER),
        })
    }

    fn push(&mut self, pair: SitePair) -> Result<()> {
        self.waiting.extend_from_slice(&pair.bytes());
        if self.waiting.len() >= BUFFER {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.file.write_at(&self.waiting, self.len * BYTES as u64);
        written.map_err(Error::io(&self.path, "write"))?;
        self.len += (self.waiting.len() / BYTES) as u64;
        self.waiting.clear();
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
            bytes: vec![0; buffer],
            at: 0,
            filled: 0,
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
    bytes: Vec<u8>,
    at: usize,
    filled: usize,
}

impl PairReader<'_> {
    pub fn next(&mut self) -> Result<Option<SitePair>> {
        if self.at == self.filled {
            let left = self.of.len - self.read;
            let pairs = left.min((self.bytes.len() / BYTES) as u64);
            (self.at, self.filled) = (0, pairs as usize * BYTES);
            let place = self.read * BYTES as u64;
            let read = self.of.file.read_at(&mut self.bytes[..self.filled], place);
            read.map_err(Error::reading(&self.of.path))?;
            self.read += pairs;
            if pairs == 0 {
                return Ok(None);
            }
        }
        let pair = SitePair::of(&self.bytes[self.at..self.at + BYTES]);
        self.at += BYTES;
        Ok(Some(pair))
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
                *expected.entry((from, to)).or_insert(0) += weight;
                sorter.add(SitePair { from, to, weight }).unwrap();
            }
            let found = all(sorter.finish().unwrap());
            let found = found.iter().map(|pair| (pair.key(), pair.weight));
            prop_assert!(found.eq(expected));
            prop_assert!(disk.paths().is_empty(), "a temporary file is left");
        }
    }

    #[test]
    fn without_a_place_for_files_it_is_refused() {
        let mut sorter = PairSorter::new(64, None);
        let add = |to| {
            sorter.add(SitePair {
                from: 0,
                to,
                weight: 1,
            })
        };
        let refused = (0..5).map(add).find_map(Result::err).unwrap();
        assert!(matches!(refused, Error::TooLarge { .. }));
    }

    #[test]
    fn weights_beyond_63_bits_are_refused() {
        let mut sorter = PairSorter::new(1000, None);
        for _ in 0..2 {
            let pair = SitePair {
                from: 0,
                to: 1,
                weight: 1 << 62,
            };
            sorter.add(pair).unwrap();
        }
        assert!(sorter.finish().is_err());
    }
}
