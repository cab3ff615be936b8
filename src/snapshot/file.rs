//! A snapshot's file: its columns by block, each checked against its checksum when it is read.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    BEFORE, COLUMNS, COLUMNS_BEFORE, Column, ENTRY, Info, MAGIC, MAGIC_BEFORE, SnapshotPage,
    TRAILER, column,
};
use crate::codec::frame::{Fields, is_sealed};
use crate::engine::{CHUNK_PAGES, PageId};
use crate::model::Fetches;
use crate::store::{Disk, DiskFile};
use crate::threads::in_two;
use crate::{Error, Result};

/// A snapshot's file: all but the names.
pub(crate) struct Columns {
    pub(super) path: PathBuf,
    file: Box<dyn DiskFile>,
    pub(super) info: Info,
    directory: Vec<u8>,
    /// How many columns a block has.
    columns: usize,
    /// Where the directory begins: columns end before it.
    end: u64,
}

impl Columns {
    /// Opens a snapshot's file.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Columns> {
        let file = disk.read(path).map_err(Error::io(path, "open"))?;
        let (info, directory, end) = read_tail(&*file, path)?;
        let columns = columns_of(info.version);
        Ok(Columns {
            path: path.into(),
            file,
            info,
            directory,
            columns,
            end,
        })
    }

    /// Counters and settings of the run.
    pub fn info(&self) -> &Info {
        &self.info
    }

    pub(super) fn blocks(&self) -> u64 {
        self.info.pages.div_ceil(CHUNK_PAGES)
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    pub(super) fn column(&self, block: u64, which: Column) -> Result<Vec<u64>> {
        let packed = self.packed(block, which)?;
        let count = CHUNK_PAGES.min(self.info.pages - block * CHUNK_PAGES);
        column::unpack(&packed, count as usize).ok_or_else(|| self.bad(block, which))
    }

    fn bad(&self, block: u64, which: Column) -> Error {
        self.damaged(format!("column {which:?} of block {block} is damaged"))
    }

    /// A column's packed bytes, checked against their checksum.
    fn packed(&self, block: u64, which: Column) -> Result<Vec<u8>> {
        let at = (block as usize * self.columns + which as usize) * ENTRY;
        let entry = &self.directory[at..at + ENTRY];
        let mut entry = Fields(entry);
        let (offset, len, sum) = (entry.u64(), u64::from(entry.u32()), entry.u64());
        if offset.checked_add(len).is_none_or(|end| end > self.end) {
            return Err(self.damaged(format!(
                "its directory puts column {which:?} of block {block} outside of the columns"
            )));
        }
        let mut packed = vec![0; len as usize];
        self.file
            .read_at(&mut packed, offset)
            .map_err(Error::reading(&self.path))?;
        if xxh3_64(&packed) != sum {
            return Err(self.bad(block, which));
        }
        Ok(packed)
    }

    /// Checks every column's checksum: that it is as it was written, not that it makes sense.
    pub fn check_sums(&self) -> Result<()> {
        for block in 0..self.blocks() {
            for &which in &Column::ALL[..self.columns] {
                self.packed(block, which)?;
            }
        }
        Ok(())
    }

    pub(super) fn block(&self, block: u64) -> Result<Vec<SnapshotPage>> {
        let [importance, distributed, rank, visits, cash] = [
            self.column(block, Column::Importance)?,
            self.column(block, Column::Distributed)?,
            self.column(block, Column::Rank)?,
            self.column(block, Column::Visits)?,
            self.column(block, Column::Cash)?,
        ];
        let mut fetches = self.failures(block)?;
        for (fetches, &visits) in fetches.iter_mut().zip(&visits) {
            fetches.visits = visits;
        }
        if self.columns == COLUMNS {
            let [compared, changed, watched] = [
                self.column(block, Column::Compared)?,
                self.column(block, Column::Changed)?,
                self.column(block, Column::Watched)?,
            ];
            for (at, fetches) in fetches.iter_mut().enumerate() {
                (fetches.compared, fetches.changed) = (compared[at], changed[at]);
                fetches.watched_s = watched[at];
            }
        }
        let first = block * CHUNK_PAGES;
        let page = |at: usize| SnapshotPage {
            page: PageId(first + at as u64),
            importance: f64::from_bits(importance[at]),
            distributed: f64::from_bits(distributed[at]),
            rank: rank[at],
            cash: cash[at],
            fetches: fetches[at],
        };
        Ok((0..importance.len()).map(page).collect())
    }

    /// The last fetch and the failures of the pages of a block; what else is known of their fetches is left out.
    pub(super) fn failures(&self, block: u64) -> Result<Vec<Fetches>> {
        let time = |value: u64| Some(value as i64).filter(|&time| time != i64::MIN);
        let last = self.column(block, Column::LastFetch)?;
        let failures = match self.columns {
            COLUMNS => Some((
                self.column(block, Column::Failed)?,
                self.column(block, Column::LastFailed)?,
            )),
            _ => None,
        };
        let page = |(at, last): (usize, u64)| Fetches {
            last: time(last),
            failed: failures.as_ref().map_or(0, |(failed, _)| failed[at]),
            last_failed: failures.as_ref().and_then(|(_, last)| time(last[at])),
            ..Fetches::default()
        };
        Ok(last.into_iter().enumerate().map(page).collect())
    }

    /// Calls `visit` with what `read` makes of each block and the block's first page, in order; two blocks are read at a time.
    pub(super) fn in_twos<T: Send>(
        &self,
        read: impl Fn(u64) -> Result<T> + Sync,
        mut visit: impl FnMut(u64, T),
    ) -> Result<()> {
        for block in (0..self.blocks()).step_by(2) {
            let has_next = block + 1 < self.blocks();
            let next = || has_next.then(|| read(block + 1)).transpose();
            let (next, this) = in_two(has_next, next, || read(block));
            visit(block * CHUNK_PAGES, this?);
            if let Some(next) = next? {
                visit((block + 1) * CHUNK_PAGES, next);
            }
        }
        Ok(())
    }

    /// All pages, in number order.
    pub fn pages(&self) -> impl Iterator<Item = Result<SnapshotPage>> + '_ {
        (0..self.blocks()).flat_map(|block| {
            let (pages, error) = match self.block(block) {
                Ok(pages) => (pages, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            pages.into_iter().map(Ok).chain(error)
        })
    }

    /// Checks every column, and that the importances sum to 1.
    pub fn verify(&self) -> Result<()> {
        let mut sum = 0.0;
        for page in self.pages() {
            sum += page?.importance;
        }
        // Each value is within 2^-53 of its share, and so is each of the additions.
        let slack = 1e-15 * (self.info.pages as f64 + 10.0);
        let sound = (sum - 1.0f64).abs() <= slack.max(1e-9);
        if self.info.pages > 0 && !sound {
            return Err(self.damaged(format!("its importances sum to {sum}, not 1")));
        }
        Ok(())
    }
}

/// How many columns a block has in a snapshot of this version.
fn columns_of(version: u32) -> usize {
    match version {
        BEFORE => COLUMNS_BEFORE,
        _ => COLUMNS,
    }
}

/// Checks the file's first and last bytes.
fn check_magic(first: &[u8], last: &[u8], path: &Path) -> Result<()> {
    let whole = |magic: &[u8]| first == magic && last == magic;
    if whole(MAGIC) || whole(MAGIC_BEFORE) {
        return Ok(());
    }
    if first == last && first[..6] == MAGIC[..6] && first[6..].iter().all(u8::is_ascii_digit) {
        return Err(other_version(path, &String::from_utf8_lossy(&first[6..])));
    }
    Err(Error::damaged(
        path,
        "it does not begin and end like a snapshot",
    ))
}

fn other_version(path: &Path, found: &str) -> Error {
    Error::Unsupported(format!(
        "{}: a snapshot of version {found}; this cashrank reads versions {BEFORE} and {}: use the cashrank that \
         made it, or ingest the inputs into a new store",
        path.display(),
        super::VERSION
    ))
}

/// Parses the info. Its version is looked at first: another version may have other fields.
fn parse_info(text: &[u8], pages: u64, expected: u32, path: &Path) -> Result<Info> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    let damaged = |error: serde_json::Error| Error::damaged(path, format!("its info: {error}"));
    let Version { version } = serde_json::from_slice(text).map_err(damaged)?;
    if version != expected {
        return Err(other_version(path, &version.to_string()));
    }
    let info: Info = serde_json::from_slice(text).map_err(damaged)?;
    if info.pages != pages {
        return Err(Error::damaged(path, "its info does not fit its trailer"));
    }
    Ok(info)
}

/// The info and the directory, checked, and where the directory begins.
fn read_tail(file: &dyn DiskFile, path: &Path) -> Result<(Info, Vec<u8>, u64)> {
    let damaged = |what: &str| Error::damaged(path, what);
    let len = file.size().map_err(Error::io(path, "measure"))?;
    if len < (MAGIC.len() + TRAILER) as u64 {
        return Err(damaged("too short for a snapshot"));
    }
    let mut trailer = [0; TRAILER];
    file.read_at(&mut trailer, len - TRAILER as u64)
        .map_err(Error::reading(path))?;
    let mut magic = [0; MAGIC.len()];
    file.read_at(&mut magic, 0).map_err(Error::reading(path))?;
    check_magic(&magic, &trailer[32..], path)?;
    let [directory, info, pages] = Fields(&trailer).u64s();
    let blocks = pages.div_ceil(CHUNK_PAGES);
    let version = if magic == *MAGIC {
        super::VERSION
    } else {
        BEFORE
    };
    let entries = columns_of(version) * ENTRY;
    let directory_len = blocks.checked_mul(entries as u64);
    if directory.checked_add(directory_len.unwrap_or(u64::MAX)) != Some(info)
        || info > len - TRAILER as u64
    {
        return Err(damaged("its trailer is damaged"));
    }
    let mut tail = vec![0; (len - directory) as usize];
    file.read_at(&mut tail, directory)
        .map_err(Error::reading(path))?;
    if !is_sealed(&tail[..tail.len() - MAGIC.len()]) {
        return Err(damaged("its directory does not match its checksum"));
    }
    let text = &tail[(info - directory) as usize..tail.len() - TRAILER];
    let info = parse_info(text, pages, version, path)?;
    tail.truncate((blocks as usize) * entries);
    Ok((info, tail, directory))
}
