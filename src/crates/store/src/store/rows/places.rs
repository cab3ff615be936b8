//! The directory of a row file, `rows/NUMBER.places`: the last row of each page.
//!
//! It is a cache of the log of rows: if it is absent or damaged, the heads of rows are searched backwards from the last
//! one. It is written after a commit and never contains more than that commit, so a crash cannot make it wrong; a new one
//! replaces it by a rename. It covers the first rows of the file. The rows after them are searched first, and are few:
//! once there are an eighth as many, a checkpoint writes another.
//!
//! ```text
//! version u64 | file number u64 | rows u64 | pages u64 | sum of the first block u64 | of the last u64 | XXH3-64 u64
//! chunk*      of 4096 pages each: 5 bytes a page, the number of its last row + 1 (0: none)
//!             | XXH3-64 of them and of the chunk's number u64
//! ```
//! A lookup reads one chunk. The two sums are those of the blocks' payloads: they bind the directory to its log.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::codec::frame::{self, BlockHead, HeadReader};
use crate::disk::{Disk, DiskFile};
use crate::rows::Bits;
use crate::{Error, Result};

pub(super) const VERSION: u64 = 1;
/// Length of the head before the first chunk, in bytes.
pub(super) const FIXED: usize = 56;
/// Number of pages in a chunk.
pub(super) const CHUNK: usize = 4096;
/// Length of an entry in bytes.
pub(super) const ENTRY: usize = 5;
/// Length of a chunk with its checksum, in bytes.
pub(super) const CHUNK_BYTES: usize = CHUNK * ENTRY + 8;
/// Number of parts in which a directory is built to bound memory; a part has at least [`LEAST_CHUNKS`] chunks (8 MiB).
const PARTS: u64 = 16;
const LEAST_CHUNKS: u64 = 256;

/// Error text for a directory of another log.
const OTHER: &str = "it is not of these rows";

/// Last rows of consecutive pages: row + 1, or 0.
pub(super) type Entries = Vec<u64>;

/// Returns the path of a row file's directory.
pub(super) fn path_of(rows: &Path) -> PathBuf {
    rows.with_extension("places")
}

/// Directory open for reading; it stays readable when it is replaced.
pub(super) struct Places {
    pub path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Number of rows that it covers, from the first.
    pub rows: u64,
    pub pages: u64,
    /// Checksums of the first and the last block that it covers.
    sums: [u64; 2],
    /// Result of comparing these with the log, done on first use: most commands look up no single rows.
    checked: OnceLock<Result<()>>,
}

fn is_missing(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

impl Places {
    /// Opens the directory of the row file `file_number` at `rows`; `None` if there is none. One of another file is
    /// [`Error::Damaged`].
    pub fn open(disk: &dyn Disk, rows: &Path, file_number: u64) -> Result<Option<Places>> {
        let path = path_of(rows);
        let file = match disk.read(&path) {
            Err(error) if is_missing(&error) => return Ok(None),
            file => file.map_err(Error::opening(&path))?,
        };
        let damaged = |what| Error::damaged(&path, what);
        let mut head = [0; FIXED];
        file.read_at(&mut head, 0).map_err(Error::reading(&path))?;
        if !frame::is_sealed(&head) {
            return Err(damaged("the checksum of its head does not match"));
        }
        let [version, number, covered, pages, first, last] = HeadReader(&head).u64s();
        let length = pages.div_ceil(CHUNK as u64).checked_mul(CHUNK_BYTES as u64);
        let size = file.size().map_err(Error::reading(&path))?;
        if version != VERSION || length.and_then(|len| len.checked_add(FIXED as u64)) != Some(size)
        {
            return Err(damaged("it is of another version, or length"));
        }
        if number != file_number {
            return Err(damaged(OTHER));
        }
        Ok(Some(Places {
            file,
            rows: covered,
            pages,
            sums: [first, last],
            checked: OnceLock::new(),
            path,
        }))
    }

    /// Returns the directory if it belongs to these rows. `sum_before` returns the checksum of the block that ends
    /// before a row. The log must have the first block that the directory covers and, unless it is older, the last.
    pub fn check(&self, rows: u64, sum_before: impl Fn(u64) -> Result<u64>) -> Result<&Places> {
        let [first, last] = self.sums;
        let is_theirs = || {
            Ok::<_, Error>(
                sum_before(1)? == first && (self.rows > rows || sum_before(self.rows)? == last),
            )
        };
        let check = || {
            if is_theirs()? {
                Ok(())
            } else {
                Err(Error::damaged(&self.path, OTHER))
            }
        };
        let checked = self.checked.get_or_init(check);
        checked.as_ref().map(|()| self).map_err(Error::again)
    }

    /// Returns the last row of `page` among those that it covers.
    pub fn get(&self, page: u64) -> Result<Option<u64>> {
        if page >= self.pages {
            return Ok(None);
        }
        let chunk = self.chunk(page / CHUNK as u64)?;
        Ok(chunk[page as usize % CHUNK].checked_sub(1))
    }

    /// Calls `visit` with each of the `wanted` pages that it has, and the page's last row.
    pub fn each_of(&self, wanted: &Bits, mut visit: impl FnMut(u64, u64)) -> Result<()> {
        let mut page = 0;
        let mut chunk = (u64::MAX, Entries::new());
        while let Some(next) = wanted.next(page).filter(|&next| next < self.pages) {
            let at = next / CHUNK as u64;
            if chunk.0 != at {
                chunk = (at, self.chunk(at)?);
            }
            if let Some(row) = chunk.1[next as usize % CHUNK].checked_sub(1) {
                visit(next, row);
            }
            page = next + 1;
        }
        Ok(())
    }

    pub fn chunk(&self, at: u64) -> Result<Entries> {
        let mut bytes = vec![0; CHUNK_BYTES];
        let offset = FIXED as u64 + at * CHUNK_BYTES as u64;
        let read = self.file.read_at(&mut bytes, offset);
        read.map_err(Error::reading(&self.path))?;
        let entries = unpack(at, &bytes);
        entries
            .filter(|entries| entries.iter().all(|&entry| entry <= self.rows))
            .ok_or_else(|| {
                let what = format!("the checksum of chunk {at} does not match");
                Error::damaged(&self.path, what)
            })
    }

    /// Returns the entries of these chunks, as far as it has them.
    pub fn entries(&self, chunks: Range<u64>) -> Result<Entries> {
        let end = chunks.end.min(self.pages.div_ceil(CHUNK as u64));
        let mut entries = Entries::new();
        for at in chunks.start..end {
            entries.extend(self.chunk(at)?);
        }
        Ok(entries)
    }

    /// Returns the directory if no chunk is damaged.
    pub fn whole(&self) -> Result<&Places> {
        parts(self.pages).try_for_each(|part| self.entries(part).map(drop))?;
        Ok(self)
    }
}

/// Decodes the entries of a chunk; `None` if its checksum does not match.
pub fn unpack(at: u64, bytes: &[u8]) -> Option<Entries> {
    let (entries, sum) = bytes.split_at_checked(CHUNK * ENTRY)?;
    if sum != frame::checksum(entries, at).to_le_bytes() {
        return None;
    }
    let entries = entries.as_chunks::<ENTRY>().0.iter();
    Some(
        entries
            .map(|&[a, b, c, d, e]| u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]))
            .collect(),
    )
}

/// Encodes the entries of a chunk, the inverse of [`unpack`]. Entries are below 2^40.
pub fn pack(at: u64, entries: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CHUNK_BYTES);
    for entry in entries {
        bytes.extend_from_slice(&entry.to_le_bytes()[..ENTRY]);
    }
    let sum = frame::checksum(&bytes, at);
    BlockHead::behind(bytes).u64(sum).bytes()
}

/// Splits the chunks of `pages` pages into parts that fit in memory.
pub(super) fn parts(pages: u64) -> impl Iterator<Item = Range<u64>> {
    let chunks = pages.div_ceil(CHUNK as u64);
    let step = chunks.div_ceil(PARTS).max(LEAST_CHUNKS);
    (0..chunks.div_ceil(step)).map(move |at| at * step..(at * step + step).min(chunks))
}
