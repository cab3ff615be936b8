//! External sorter: sorts more records than fit in memory.
//!
//! Records, a key and a value of bytes, are returned in the order of their keys, and of insertion for equal keys. When
//! memory is full, a sorted run is spilled to one compressed file without a name, and the runs are merged; more runs than
//! fit in memory are first merged into longer ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zstd::stream::{read::Decoder, write::Encoder};

use super::unnamed;
use crate::{Error, Result};

/// Size of the buffers for reading a run and for its decompressed data, minimum and maximum, in bytes.
const READ_BYTES: Range<usize> = 1 << 15..1 << 19;
/// Compression of runs: the fastest level, with a window small enough for hundreds of runs at a time.
const LEVEL: i32 = 1;
const WINDOW_LOG: u32 = 17;
/// Memory for decompressing a run besides its buffers, in bytes.
const UNPACKING: usize = 1 << 18;
/// Minimum memory for reading a run, in bytes.
const RUN_BYTES: usize = UNPACKING + 2 * READ_BYTES.start;

pub type Record = (Vec<u8>, Vec<u8>);

pub type Sorted = Box<dyn Iterator<Item = Result<Record>> + Send>;

pub struct ExternalSorter {
    /// Keys and values of the records in memory, one after the other.
    bytes: Vec<u8>,
    records: Vec<RecordSpan>,
    /// Memory for records in bytes.
    most: usize,
    folder: PathBuf,
    spilled: Option<SpilledRuns>,
}

#[derive(Clone, Copy)]
struct RecordSpan {
    start: usize,
    key: u32,
    value: u32,
}

struct SpilledRuns {
    file: File,
    path: PathBuf,
    runs: Vec<Range<u64>>,
}

impl ExternalSorter {
    /// Creates a sorter with `most` bytes of memory, which spills to a file in `folder`.
    pub fn new(most: usize, folder: &Path) -> ExternalSorter {
        ExternalSorter {
            bytes: Vec::new(),
            records: Vec::new(),
            most,
            folder: folder.to_owned(),
            spilled: None,
        }
    }

    /// Adds a record, whose key and value must be smaller than 4 GiB.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let len = |bytes: &[u8]| {
            u32::try_from(bytes.len())
                .map_err(|_| Error::Unsupported("a record of 4 GiB cannot be sorted".into()))
        };
        self.records.push(RecordSpan {
            start: self.bytes.len(),
            key: len(key)?,
            value: len(value)?,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        // Buffers that grow by doubling may have twice the size in use.
        if self.bytes.len() + self.records.len() * size_of::<RecordSpan>() >= self.most / 2 {
            self.spill()?;
        }
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |of: &RecordSpan| &bytes[of.start..][..of.key as usize];
        self.records
            .sort_unstable_by(|one, other| (key(one), one.start).cmp(&(key(other), other.start)));
    }

    fn record(&self, at: usize) -> (&[u8], &[u8]) {
        let RecordSpan { start, key, value } = self.records[at];
        self.bytes[start..][..key as usize + value as usize].split_at(key as usize)
    }

    /// Writes the records in memory to the file, sorted. Their memory is reused for the next run.
    fn spill(&mut self) -> Result<()> {
        self.sort();
        let spilled = self.spilled.take();
        let mut spilled = spilled.map_or_else(|| SpilledRuns::new(&self.folder), Ok)?;
        let written = spilled.write((0..self.records.len()).map(|at| Ok(self.record(at))));
        self.spilled = Some(spilled);
        written?;
        self.bytes.clear();
        self.records.clear();
        Ok(())
    }

    pub fn sorted(mut self) -> Result<Sorted> {
        if self.spilled.is_some() && !self.records.is_empty() {
            self.spill()?;
        }
        let Some(spilled) = self.spilled.take() else {
            self.sort();
            return Ok(Box::new((0..self.records.len()).map(move |at| {
                let (key, value) = self.record(at);
                Ok((key.to_vec(), value.to_vec()))
            })));
        };
        (self.bytes, self.records) = (Vec::new(), Vec::new());
        let spilled = spilled.narrowed(self.most, &self.folder)?;
        let file = Arc::new(spilled.file);
        let runs = SorterMerge::new(&file, &spilled.path, &spilled.runs, self.most)?;
        Ok(Box::new(runs))
    }
}

impl SpilledRuns {
    fn new(folder: &Path) -> Result<SpilledRuns> {
        let (path, file) = unnamed(&folder.join("cashrank-sort"))?;
        Ok(SpilledRuns {
            file,
            path,
            runs: Vec::new(),
        })
    }

    fn write<B: AsRef<[u8]>>(
        &mut self,
        records: impl Iterator<Item = Result<(B, B)>>,
    ) -> Result<()> {
        let failed = || Error::io(&self.path, "write");
        let start = self.file.stream_position().map_err(failed())?;
        let file = BufWriter::with_capacity(READ_BYTES.end, &self.file);
        let mut out = Encoder::new(file, LEVEL).map_err(failed())?;
        out.window_log(WINDOW_LOG).map_err(failed())?;
        let mut put = |key: &[u8], value: &[u8]| {
            out.write_all(&(key.len() as u32).to_le_bytes())?;
            out.write_all(&(value.len() as u32).to_le_bytes())?;
            out.write_all(key)?;
            out.write_all(value)
        };
        for record in records {
            let (key, value) = record?;
            put(key.as_ref(), value.as_ref()).map_err(failed())?;
        }
        let ended = out.finish().and_then(|mut file| file.flush());
        ended.map_err(failed())?;
        let end = self.file.stream_position().map_err(failed())?;
        self.runs.push(start..end);
        Ok(())
    }

    /// Merges runs until their number can be merged in `most` bytes.
    fn narrowed(mut self, most: usize, folder: &Path) -> Result<SpilledRuns> {
        let at_once = (most / RUN_BYTES).max(2);
        while self.runs.len() > at_once {
            let mut longer = SpilledRuns::new(folder)?;
            let file = Arc::new(self.file);
            for runs in self.runs.chunks(at_once) {
                longer.write(SorterMerge::new(&file, &self.path, runs, most)?)?;
            }
            self = longer;
        }
        Ok(self)
    }
}

struct FilePart {
    file: Arc<File>,
    at: Range<u64>,
}

impl Read for FilePart {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = (self.at.end - self.at.start).min(into.len() as u64) as usize;
        let read =
            std::os::unix::fs::FileExt::read_at(&*self.file, &mut into[..left], self.at.start)?;
        self.at.start += read as u64;
        Ok(read)
    }
}

type Unpacked = BufReader<Decoder<'static, BufReader<FilePart>>>;

/// Next record of a run: its key, the run's number, its value.
type Next = Reverse<(Vec<u8>, usize, Vec<u8>)>;

/// Merges runs by a heap of their next records; equal keys by run.
struct SorterMerge {
    runs: Vec<Unpacked>,
    next: BinaryHeap<Next>,
    path: PathBuf,
}

impl SorterMerge {
    /// Begins to merge runs of a file, if possible in `most` bytes.
    fn new(file: &Arc<File>, path: &Path, runs: &[Range<u64>], most: usize) -> Result<SorterMerge> {
        let room = (most / runs.len().max(1)).saturating_sub(UNPACKING) / 2;
        let room = room.clamp(READ_BYTES.start, READ_BYTES.end);
        let unpack = |at: &Range<u64>| {
            let (file, at) = (file.clone(), at.clone());
            let part = BufReader::with_capacity(room, FilePart { file, at });
            let decoder = Decoder::with_buffer(part).map_err(Error::io(path, "read"))?;
            Ok(BufReader::with_capacity(room, decoder))
        };
        let mut merge = SorterMerge {
            runs: runs.iter().map(unpack).collect::<Result<_>>()?,
            next: BinaryHeap::new(),
            path: path.to_owned(),
        };
        for run in 0..merge.runs.len() {
            merge.read(run)?;
        }
        Ok(merge)
    }

    /// Moves the next record of a run to the heap, if there is one.
    fn read(&mut self, run: usize) -> Result<()> {
        let from = &mut self.runs[run];
        let mut read = || -> io::Result<Option<Record>> {
            if from.fill_buf()?.is_empty() {
                return Ok(None);
            }
            let mut lens = [[0; 4]; 2];
            for len in &mut lens {
                from.read_exact(len)?;
            }
            let [mut key, mut value] = lens.map(|len| vec![0; u32::from_le_bytes(len) as usize]);
            from.read_exact(&mut key)?;
            from.read_exact(&mut value)?;
            Ok(Some((key, value)))
        };
        let record = read().map_err(Error::io(&self.path, "read"))?;
        self.next
            .extend(record.map(|(key, value)| Reverse((key, run, value))));
        Ok(())
    }
}

impl Iterator for SorterMerge {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Result<Record>> {
        let Reverse((key, run, value)) = self.next.pop()?;
        Some(self.read(run).map(|()| (key, value)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Sorts like the standard library's stable sort, whatever fits in memory, and leaves nothing behind.
        #[test]
        fn sorts_as_in_memory(
            records in prop::collection::vec((prop::collection::vec(0u8..3, 0..4), any::<u16>()), 0..300),
            most in 1usize..20_000,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut sorter = ExternalSorter::new(most, dir.path());
            let mut expected: Vec<Record> = Vec::new();
            for (key, value) in records {
                let value = value.to_le_bytes().to_vec();
                sorter.push(&key, &value).unwrap();
                expected.push((key, value));
            }
            expected.sort_by(|one, other| one.0.cmp(&other.0));
            let sorted: Vec<Record> = sorter.sorted().unwrap().map(|record| record.unwrap()).collect();
            prop_assert_eq!(sorted, expected);
            prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn runs_take_less_room_than_their_records() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = ExternalSorter::new(1 << 18, dir.path());
        let mut bytes = 0;
        for number in 0..10_000 {
            let url = format!("https://example.org/{number:05}");
            sorter.push(url.as_bytes(), &[0; 96]).unwrap();
            bytes += url.len() as u64 + 96;
        }
        let spilled = sorter.spilled.as_ref().unwrap();
        assert!(spilled.runs.len() > 5);
        let room = spilled.runs.last().unwrap().end;
        assert_eq!(spilled.file.metadata().unwrap().len(), room);
        assert!(room < bytes / 4, "{room} of {bytes}");
        assert_eq!(sorter.sorted().unwrap().count(), 10_000);
    }

    /// If there are more runs than fit in memory, neighbours are merged first, which keeps the order of equal keys.
    #[test]
    fn many_runs_are_merged_in_little_memory() {
        let dir = tempfile::tempdir().unwrap();
        let most = 3 * RUN_BYTES;
        let mut spilled = SpilledRuns::new(dir.path()).unwrap();
        for run in 0..20u8 {
            let keys = (0..5u8).map(|key| Ok(([key / 2], [run])));
            spilled.write(keys).unwrap();
        }
        let narrowed = spilled.narrowed(most, dir.path()).unwrap();
        assert!(
            (2..=3).contains(&narrowed.runs.len()),
            "{:?}",
            narrowed.runs
        );
        let file = Arc::new(narrowed.file);
        let merged = SorterMerge::new(&file, &narrowed.path, &narrowed.runs, most).unwrap();
        let expected = (0..3u8).flat_map(|key| {
            let times = if key < 2 { 2 } else { 1 };
            (0..20 * times).map(move |at| (vec![key], vec![at / times]))
        });
        assert!(merged.map(|record| record.unwrap()).eq(expected));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let mut sorter = ExternalSorter::new(1, Path::new("/nowhere"));
        let error = sorter.push(b"key", b"value").unwrap_err();
        assert!(
            error.to_string().contains("/nowhere/cashrank-sort"),
            "{error}"
        );
    }
}
