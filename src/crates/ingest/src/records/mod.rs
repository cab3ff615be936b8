//! Crawl records as files: the output of `convert`, and the dump of a store. All are made of lines of JSON
//! (`decode::records::write`); `formats/convert.md` describes the files.
//!
//! A gzip member or zstd frame ends with a record, after 16 MiB or more, so that readers can verify it before they use any of it,
//! and resume at its start. The same records give the same bytes.

mod dump;
#[cfg(feature = "parquet")]
mod parquet;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::decode::{Names, Time};
use crate::disk::ExternalSorter;
use crate::engine::FetchTimes;
use crate::{Error, Result};

pub use dump::{Dumped, dump, names_of};

/// Bytes of lines after which a gzip member or zstd frame ends.
const MEMBER_BYTES: usize = 16 << 20;
/// Default level of zstd. Higher ones take several times as long and save a tenth.
const ZSTD_LEVEL: i32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFormat {
    Jsonl,
    JsonlGzip,
    JsonlZstd,
    Parquet,
}

impl RecordFormat {
    /// Returns the kind for a file's name; lines for standard output, devices, pipes and names without an ending.
    pub fn of_name(path: &Path) -> Result<RecordFormat> {
        let name = path.to_string_lossy();
        for (end, format) in [
            (".jsonl", RecordFormat::Jsonl),
            (".jsonl.gz", RecordFormat::JsonlGzip),
            (".jsonl.zst", RecordFormat::JsonlZstd),
            (".parquet", RecordFormat::Parquet),
        ] {
            if name.ends_with(end) {
                if format == RecordFormat::Parquet {
                    crate::model::require_feature("parquet").map_err(Error::Usage)?;
                }
                return Ok(format);
            }
        }
        let is_other = fs::metadata(path).is_ok_and(|found| !found.is_file());
        if is_other || path.extension().is_none() {
            return Ok(RecordFormat::Jsonl);
        }
        Err(Error::Usage(format!(
            "{name}: records are written to a file whose name ends in .jsonl, .jsonl.gz, .jsonl.zst or .parquet, or to -"
        )))
    }

    pub fn is_text(self) -> bool {
        self == RecordFormat::Jsonl
    }
}

pub enum RecordFile<'w> {
    Lines(LineWriter<'w>),
    #[cfg(feature = "parquet")]
    Table(Box<parquet::ParquetWriter<'w>>),
}

impl<'w> RecordFile<'w> {
    /// Begins a file of pages with names of this kind; `path` is for messages.
    pub fn new(
        format: RecordFormat,
        names: Names,
        out: Box<dyn Write + Send + 'w>,
        path: &Path,
    ) -> Result<RecordFile<'w>> {
        Ok(match format {
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet => {
                RecordFile::Table(Box::new(parquet::ParquetWriter::new(out, names, path)?))
            }
            #[cfg(not(feature = "parquet"))]
            RecordFormat::Parquet => {
                let file = format!("{}: a table of {names:?} records", path.display());
                return Err(crate::model::lacks_feature(file, "parquet"));
            }
            _ => RecordFile::Lines(LineWriter {
                out,
                path: path.to_owned(),
                format,
                lines: Vec::new(),
                begun: false,
            }),
        })
    }

    /// Writes a record, one line of JSON with its line end.
    pub fn line(&mut self, line: &[u8]) -> Result<()> {
        match self {
            RecordFile::Lines(lines) => lines.line(line).map_err(Error::io(&lines.path, "write")),
            #[cfg(feature = "parquet")]
            RecordFile::Table(table) => table.line(line),
        }
    }

    /// Ends and flushes the file. If it is dropped instead, readers notice the truncation, except in plain lines.
    pub fn finish(self) -> Result<()> {
        match self {
            RecordFile::Lines(mut lines) => lines.finish().map_err(Error::io(&lines.path, "write")),
            #[cfg(feature = "parquet")]
            RecordFile::Table(table) => table.finish(),
        }
    }
}

/// Lines, plain or in gzip members or zstd frames, each compressed once it is complete.
pub struct LineWriter<'w> {
    out: Box<dyn Write + Send + 'w>,
    path: PathBuf,
    format: RecordFormat,
    lines: Vec<u8>,
    begun: bool,
}

impl LineWriter<'_> {
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.format == RecordFormat::Jsonl {
            return self.out.write_all(line);
        }
        self.lines.extend_from_slice(line);
        if self.lines.len() >= MEMBER_BYTES {
            self.end()?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        if self.format == RecordFormat::JsonlGzip {
            let mut member = GzEncoder::new(&mut self.out, flate2::Compression::default());
            member.write_all(&self.lines)?;
            member.finish()?;
        } else {
            let mut frame = ZstdEncoder::new(&mut self.out, ZSTD_LEVEL)?;
            frame.include_checksum(true)?;
            frame.set_pledged_src_size(Some(self.lines.len() as u64))?;
            frame.write_all(&self.lines)?;
            frame.finish()?;
        }
        self.lines.clear();
        self.begun = true;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let is_packed = self.format != RecordFormat::Jsonl;
        if is_packed && (!self.lines.is_empty() || !self.begun) {
            self.end()?;
        }
        self.out.flush()
    }
}

#[derive(Debug, Clone)]
pub struct SortRoom {
    pub memory: u64,
    /// Folder of unnamed temporary files, for what exceeds the memory.
    pub folder: PathBuf,
}

impl SortRoom {
    fn sorter(&self, sorters: usize) -> ExternalSorter {
        ExternalSorter::new(self.memory as usize / sorters, &self.folder)
    }
}

/// Sorts lines stably by the times of their records. One without a time gets the latest one before it.
pub struct TimeOrder {
    sorter: ExternalSorter,
    times: FetchTimes,
}

impl TimeOrder {
    pub fn new(room: &SortRoom) -> TimeOrder {
        TimeOrder {
            sorter: room.sorter(1),
            times: FetchTimes::default(),
        }
    }

    pub fn push(&mut self, time: Option<Time>, line: &[u8]) -> Result<()> {
        let latest = || self.times.latest().map(|(latest, _)| latest);
        let key = time_key(time.or_else(latest));
        if let Some(time) = time {
            self.times.add(time);
        }
        self.sorter.push(&key, line)
    }

    pub fn each(self, mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for record in self.sorter.sorted()? {
            put(&record?.1)?;
        }
        Ok(())
    }
}

/// Returns a key that sorts like times, with none before all others. (No page was fetched at the smallest time.)
fn time_key(time: Option<Time>) -> [u8; 8] {
    (time.unwrap_or(Time::MIN) as u64 ^ 1 << 63).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns each record with its time in an ingest, sorted by that, whatever fits into memory.
    fn expected(times: &[Option<Time>]) -> Vec<(Option<Time>, usize)> {
        let mut latest = None;
        let mut all: Vec<_> = times
            .iter()
            .enumerate()
            .map(|(at, &time)| {
                latest = latest.max(time);
                (time.or(latest), at)
            })
            .collect();
        all.sort_by_key(|(time, _)| *time);
        all
    }

    proptest! {
        #[test]
        fn times_are_as_they_are_ingested(
            times in prop::collection::vec(prop::option::of(-5i64..5), 0..200),
            memory in 1u64..5_000,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut order = TimeOrder::new(&SortRoom {
                memory,
                folder: dir.path().into(),
            });
            for (at, time) in times.iter().enumerate() {
                order.push(*time, at.to_string().as_bytes()).unwrap();
            }
            let mut sorted: Vec<usize> = Vec::new();
            order.each(|line| {
                sorted.push(std::str::from_utf8(line).unwrap().parse().unwrap());
                Ok(())
            }).unwrap();
            let places: Vec<usize> = expected(&times).into_iter().map(|(_, at)| at).collect();
            prop_assert_eq!(&sorted, &places);
            // Read again in this order, each record gets the same time.
            let again: Vec<_> = sorted.iter().map(|at| times[*at]).collect();
            let before: Vec<_> = expected(&times).into_iter().map(|(time, _)| time).collect();
            let mut after = expected(&again);
            after.sort_by_key(|(_, at)| *at);
            prop_assert_eq!(after.into_iter().map(|(time, _)| time).collect::<Vec<_>>(), before);
        }
    }
}
