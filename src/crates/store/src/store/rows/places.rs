//! The directory of a row file, `rows/NUMBER.places`: the last row of each page.
//!
//! It is a cache of the log of rows: if it is absent or damaged, the heads of rows are searched backwards from the last
//! one. It is written after a commit and never contains more than that commit, so a crash cannot make it wrong. It
//! covers the first rows of the file; a checkpoint replaces it by a rename once an eighth as many rows follow, which
//! are searched first. Specified in `formats/rows.md`.
//!
//! A lookup reads one chunk. Checksums of two blocks bind the directory to its log.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::CommittedRows;
use super::read::RowFile;
use crate::codec::frame::{self, BlockHead};
use crate::disk::{Disk, StoreFile, open_cache};
use crate::store::TempFile;
use crate::{Error, Result};

const VERSION: u64 = 1;
/// Length of the head before the first chunk, in bytes.
const FIXED: usize = 56;
const CHUNK: usize = 4096;
const ENTRY: usize = 5;
const CHUNK_BYTES: usize = CHUNK * ENTRY + 8;
/// Number of parts in which a directory is built to bound memory; a part has at least [`LEAST_CHUNKS`] chunks (8 MiB).
const PARTS: u64 = 16;
const LEAST_CHUNKS: u64 = 256;

/// Maximum number of rows after a directory for which it is not rewritten.
const LEAST: u64 = 64;

pub(super) fn path_of(rows: &Path) -> PathBuf {
    rows.with_extension("places")
}

/// Directory open for reading; it stays readable when it is replaced.
pub(super) struct Places {
    pub file: StoreFile,
    /// Number of the file's first rows that the directory covers.
    pub rows: u64,
    pub pages: u64,
}

impl Places {
    /// Opens the directory of these rows; `None` if there is none, [`Error::Damaged`] if it is of others: the log must
    /// have the first block that the directory covers and, unless it is older, the last.
    pub fn open(disk: &dyn Disk, of: &RowFile) -> Result<Option<Places>> {
        let Some((file, head)) = open_cache(disk, &path_of(of.log.path()))? else {
            return Ok(None);
        };
        let [version, number, rows, pages, first, last] = head;
        let length = pages.div_ceil(CHUNK as u64).checked_mul(CHUNK_BYTES as u64);
        let length = length.and_then(|len| len.checked_add(FIXED as u64));
        if version != VERSION || length != Some(file.size()?) {
            return Err(file.damaged("it is of another version, or length"));
        }
        if number != of.kept.number
            || of.sum_before(1)? != first
            || rows <= of.kept.rows && of.sum_before(rows)? != last
        {
            return Err(file.damaged("it is not of these rows"));
        }
        Ok(Some(Places { file, rows, pages }))
    }

    /// Returns the last row of `page` among those that the directory covers.
    pub fn get(&self, page: u64) -> Result<Option<u64>> {
        let mut found = None;
        self.each_of(std::iter::once(page), |row| found = Some(row))?;
        Ok(found)
    }

    /// Calls `visit` with the last rows of these pages, which ascend, among those that the directory covers.
    pub fn each_of(&self, pages: impl Iterator<Item = u64>, visit: impl FnMut(u64)) -> Result<()> {
        let (mut chunk, mut visit) = ((u64::MAX, Vec::new()), visit);
        for page in pages.take_while(|&page| page < self.pages) {
            let at = page / CHUNK as u64;
            if chunk.0 != at {
                chunk = (at, self.chunk(at)?);
            }
            let row = chunk.1[page as usize % CHUNK].checked_sub(1);
            row.map(&mut visit);
        }
        Ok(())
    }

    /// Returns the last rows of the pages of a chunk: row + 1, or 0.
    pub fn chunk(&self, at: u64) -> Result<Vec<u64>> {
        let mut bytes = vec![0; CHUNK_BYTES];
        let offset = FIXED as u64 + at * CHUNK_BYTES as u64;
        self.file.read_at(&mut bytes, offset)?;
        let entries = unpack(at, &bytes);
        let entries = entries.filter(|entries| entries.iter().all(|&entry| entry <= self.rows));
        let what = || format!("the checksum of chunk {at} does not match");
        entries.ok_or_else(|| self.file.damaged(what()))
    }
}

pub fn unpack(at: u64, bytes: &[u8]) -> Option<Vec<u64>> {
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
fn parts(pages: u64) -> impl Iterator<Item = Range<u64>> {
    let chunks = pages.div_ceil(CHUNK as u64);
    let step = chunks.div_ceil(PARTS).max(LEAST_CHUNKS);
    (0..chunks.div_ceil(step)).map(move |at| at * step..(at * step + step).min(chunks))
}

impl RowFile {
    /// Compares the directory, if there is one, with the rows, unless they are older.
    pub fn verify_places(&self) -> Result<()> {
        let Some(places) = self.places()? else {
            return Ok(());
        };
        let end = places.rows;
        for chunks in parts(places.pages) {
            let kept = entries(self, Some(places), end, chunks.clone())?;
            if end <= self.kept.rows && entries(self, None, end, chunks)? != kept {
                let what = "a page's last row is not where it says";
                return Err(places.file.damaged(what));
            }
        }
        Ok(())
    }
}

/// Returns the entries of these chunks as of the first `end` rows, starting from `old`.
fn entries(rows: &RowFile, old: Option<&Places>, end: u64, chunks: Range<u64>) -> Result<Vec<u64>> {
    let known = old.map_or(0, |old| old.rows);
    let first = chunks.start * CHUNK as u64;
    let mut entries = Vec::new();
    for at in chunks {
        let old = old.filter(|old| at * (CHUNK as u64) < old.pages);
        entries.extend(old.map_or_else(|| Ok(vec![0; CHUNK]), |old| old.chunk(at))?);
    }
    rows.back_over(known..end, |row, head| {
        let at = u64::from(head.page).wrapping_sub(first);
        // Goes from the last row backwards: an entry above `known` is of a later row.
        if let Some(entry) = entries.get_mut(usize::try_from(at).unwrap_or(usize::MAX))
            && *entry <= known
        {
            *entry = row + 1;
        }
        Ok(())
    })?;
    Ok(entries)
}

/// Writes the directory of committed rows if it is absent or old; replaces a damaged one and returns its damage. On a
/// full disk or with damaged rows no directory is written, as it is only a cache.
pub(in crate::store) fn renew_places(
    disk: &dyn Disk,
    dir: &Path,
    kept: &CommittedRows,
    pages: u64,
) -> Result<Option<Error>> {
    let rows = &RowFile::open(disk, dir, *kept, pages)?;
    let old = rows.places();
    let known = old.as_ref().map_or(0, |old| old.map_or(0, |old| old.rows));
    if kept.rows.saturating_sub(known) <= LEAST.max(known / 8) || kept.rows >> (8 * ENTRY) > 0 {
        return Ok(None);
    }
    let written = match old.and_then(|old| write(disk, rows, old)) {
        Err(
            damage @ (Error::Damaged { .. }
            | Error::Io {
                action: "read" | "open",
                ..
            }),
        ) => write(disk, rows, None).map(|()| Some(damage)),
        written => written.map(|()| None),
    };
    match written {
        Err(error) if error.is_full() || matches!(error, Error::Damaged { .. }) => Ok(None),
        written => written,
    }
}

fn write(disk: &dyn Disk, rows: &RowFile, old: Option<&Places>) -> Result<()> {
    let (end, pages) = (rows.kept.rows, rows.pages);
    let temporary = TempFile::of(disk, path_of(rows.log.path()));
    let file = temporary.create()?;
    let fields = [VERSION, rows.kept.number, end, pages, rows.sum_before(1)?];
    let head = BlockHead::default().u64s(fields).u64(rows.sum_before(end)?);
    file.write_at(&head.sealed(), 0)?;
    let mut offset = FIXED as u64;
    for chunks in parts(pages) {
        let entries = entries(rows, old, end, chunks.clone())?;
        for (at, chunk) in chunks.zip(entries.chunks(CHUNK)) {
            file.write_at(&pack(at, chunk), offset)?;
            offset += CHUNK_BYTES as u64;
        }
    }
    file.sync()?;
    drop(file);
    temporary.put_in_place().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{PageId, TargetLinks};
    use crate::fuzz::memory::Memory;
    use crate::store::rows::write::RowWriter;

    const DIR: &str = "store";

    /// Appends rows of these pages, each with one link to the page after it.
    fn append(writer: &mut RowWriter, pages: &[u64]) -> CommittedRows {
        for &page in pages {
            let links = [PageId(page + 1)];
            let appended = writer.append(PageId(page), false, TargetLinks::from(&links[..]), false);
            assert!(appended.is_ok());
        }
        writer.sync().unwrap()
    }

    fn last_row(rows: &RowFile, page: u32) -> Option<u64> {
        let (mut found, end) = (None, rows.kept.rows);
        let whole = rows.back_over(0..end, |row, head| {
            found = found.or((head.page == page).then_some(row));
            Ok(())
        });
        assert!(whole.unwrap());
        found
    }

    /// The bytes are as specified in `formats/rows.md`.
    #[test]
    fn its_bytes_are_those_of_the_specification() {
        let (disk, dir) = (Memory::default(), Path::new(DIR));
        let mut writer =
            RowWriter::create(&disk, dir, 7, 1 << 20).unwrap_or_else(|e| panic!("{e}"));
        let pages: Vec<u64> = (0..65).map(|row| if row == 64 { 3 } else { row }).collect();
        let kept = append(&mut writer, &pages);
        renew_places(&disk, dir, &kept, 66).unwrap();
        let log = disk.read(Path::new("store/rows/7")).unwrap();
        let mut payload = vec![0; kept.lengths.data as usize - 24];
        log.read_at(&mut payload, 24).unwrap();
        let sum = |bytes: &[u8]| xxhash_rust::xxh3::xxh3_64(bytes);
        let mut expected = Vec::new();
        // One block, which is the first and the last.
        for field in [1, 7, 65, 66, sum(&payload), sum(&payload)] {
            expected.extend_from_slice(&u64::to_le_bytes(field));
        }
        expected.extend_from_slice(&sum(&expected).to_le_bytes());
        let mut chunk = vec![0; 5 * 4096];
        for page in 0..64 {
            // The last row, number 64, read page 3 again.
            chunk[5 * page] = if page == 3 { 65 } else { page as u8 + 1 };
        }
        expected.extend_from_slice(&chunk);
        chunk.extend_from_slice(&0u64.to_le_bytes());
        expected.extend_from_slice(&sum(&chunk).to_le_bytes());
        let file = disk.read(Path::new("store/rows/7.places")).unwrap();
        let mut found = vec![0; file.size().unwrap() as usize];
        file.read_at(&mut found, 0).unwrap();
        assert!(found == expected);
    }

    /// Directories that grow with their rows, rows older than their directory, and damage: the last row is always
    /// found.
    #[test]
    fn the_last_row_is_found_whatever_the_directory() {
        let (disk, dir) = (Memory::default(), Path::new(DIR));
        let mut writer =
            RowWriter::create(&disk, dir, 1, 1 << 24).unwrap_or_else(|e| panic!("{e}"));
        let path = Path::new("store/rows/1.places");
        let mut states = Vec::new();
        for round in 0..12u64 {
            let pages: Vec<u64> = (0..30).map(|at| (at * 37 + round * 101) % 9_000).collect();
            let kept = append(&mut writer, &pages);
            renew_places(&disk, dir, &kept, 9_001).unwrap();
            states.push(kept);
        }
        let check = |sound: bool| {
            for kept in &states {
                let rows = RowFile::open(&disk, dir, *kept, 9_001).unwrap();
                assert_eq!(rows.places().is_ok(), sound);
                for page in (0..9_001).step_by(37) {
                    assert_eq!(rows.last_row(page).unwrap(), last_row(&rows, page));
                }
            }
        };
        check(true);
        let newest = RowFile::open(&disk, dir, *states.last().unwrap(), 9_001).unwrap();
        let places = newest.places().unwrap().unwrap();
        assert!(places.rows > 64 && places.rows <= newest.kept.rows);
        newest.verify_places().unwrap();
        // One row too new with a valid checksum: found by the comparison alone.
        let file = disk.open(path, false).unwrap();
        let mut entries = places.chunk(0).unwrap();
        let at = entries.iter().position(|&entry| entry > 1).unwrap();
        let old = std::mem::replace(&mut entries[at], 1);
        file.write_at(&pack(0, &entries), FIXED as u64).unwrap();
        assert!(newest.verify_places().is_err());
        entries[at] = old;
        file.write_at(&pack(0, &entries), FIXED as u64).unwrap();
        newest.verify_places().unwrap();
        // A flipped bit in a chunk, then in the head.
        file.write_at(&[0xff], FIXED as u64 + 4).unwrap();
        assert!(newest.verify_places().is_err());
        check(true);
        file.write_at(&[0xff], 3).unwrap();
        check(false);
        // The next checkpoint rewrites it.
        let renewed = || renew_places(&disk, dir, states.last().unwrap(), 9_001).unwrap();
        let damage = renewed().expect("reported").to_string();
        assert!(damage.contains("1.places: damaged: the checksum of its head"));
        assert!(renewed().is_none());
        check(true);
    }
}
