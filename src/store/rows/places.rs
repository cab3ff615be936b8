//! The directory of a row file, `rows/NUMBER.places`: where the last row of each page is.
//!
//! It is made from the log of rows, and can be made again from it: without it, or if it is damaged, the heads of
//! rows are searched from the last one back. It is written after a commit and never says more than that commit holds,
//! so that no cut makes it wrong; a newer one takes its place by a rename. It covers the first rows of the file. The
//! rows behind them are searched first, and are few: once there are an eighth as many, a checkpoint writes another.
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

use super::read::RowFile;
use crate::codec::frame::{self, Fields, Head};
use crate::disk::{Disk, DiskFile, recreate};
use crate::{Error, Result};

const VERSION: u64 = 1;
/// Bytes before the first chunk.
const FIXED: usize = 56;
/// Pages of a chunk.
const CHUNK: usize = 4096;
/// Bytes of a page.
const ENTRY: usize = 5;
/// Bytes of a chunk with its checksum.
const CHUNK_BYTES: usize = CHUNK * ENTRY + 8;
/// Rows behind a directory for which no other is written.
const LEAST: u64 = 64;
/// A part of its pages is in memory at a time while a directory is made, or so many chunks.
const PARTS: u64 = 16;
const LEAST_CHUNKS: u64 = 16;

/// The error about a directory of another log.
const OTHER: &str = "it is not of these rows";

/// The last rows of some pages: row + 1, or 0.
type Entries = Vec<u64>;

/// The file of a row file's directory.
pub(super) fn path_of(rows: &Path) -> PathBuf {
    rows.with_extension("places")
}

/// A directory, open for reading: it stays readable when another takes its place.
pub(super) struct Places {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// The rows that it covers: the first ones.
    pub rows: u64,
    pages: u64,
    /// The sums of the first and of the last block that it covers.
    sums: [u64; 2],
    /// Whether its log has these blocks. Asked when it is first used: most commands use no single rows.
    checked: OnceLock<Result<()>>,
}

fn is_missing(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

impl Places {
    /// The directory of the row file of this number at `rows`. `None`: there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if it is not its, or damaged.
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
        let [version, number, covered, pages, first, last] = Fields(&head).u64s();
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

    /// It, if it is of these rows. Of the blocks that it covers they have the first, and the last where they are not
    /// older.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if it is of others, or these cannot be read.
    pub fn check(&self, rows: &RowFile) -> Result<&Places> {
        let [first, last] = self.sums;
        let is_theirs = || {
            Ok::<_, Error>(
                rows.sum_before(1)? == first
                    && (self.rows > rows.kept.rows || rows.sum_before(self.rows)? == last),
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

    /// The last of the rows that it covers that is of `page`.
    pub fn get(&self, page: u64) -> Result<Option<u64>> {
        if page >= self.pages {
            return Ok(None);
        }
        let chunk = self.chunk(page / CHUNK as u64)?;
        Ok(chunk[page as usize % CHUNK].checked_sub(1))
    }

    fn chunk(&self, at: u64) -> Result<Entries> {
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

    /// The entries of these chunks, as far as it has them.
    fn entries(&self, chunks: Range<u64>) -> Result<Entries> {
        let end = chunks.end.min(self.pages.div_ceil(CHUNK as u64));
        let mut entries = Entries::new();
        for at in chunks.start..end {
            entries.extend(self.chunk(at)?);
        }
        Ok(entries)
    }

    /// It, if none of its chunks is damaged.
    fn whole(&self) -> Result<&Places> {
        parts(self.pages).try_for_each(|part| self.entries(part).map(drop))?;
        Ok(self)
    }

    /// Compares it with the rows, if they are not older than it.
    pub fn verify(&self, rows: &RowFile) -> Result<()> {
        for chunks in parts(self.pages) {
            let kept = self.entries(chunks.clone())?;
            if self.rows <= rows.kept.rows && entries(rows, None, self.rows, chunks)? != kept {
                let what = "a page's last row is not where it says";
                return Err(Error::damaged(&self.path, what));
            }
        }
        Ok(())
    }
}

/// The entries of a chunk; `None`: its checksum does not match.
pub(crate) fn unpack(at: u64, bytes: &[u8]) -> Option<Entries> {
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

/// The inverse of [`unpack`]. Entries are below 2^40.
pub(crate) fn pack(at: u64, entries: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CHUNK_BYTES);
    for entry in entries {
        bytes.extend_from_slice(&entry.to_le_bytes()[..ENTRY]);
    }
    let sum = frame::checksum(&bytes, at);
    Head::behind(bytes).u64(sum).bytes()
}

/// The chunks of so many pages, in parts that fit memory.
fn parts(pages: u64) -> impl Iterator<Item = Range<u64>> {
    let chunks = pages.div_ceil(CHUNK as u64);
    let step = chunks.div_ceil(PARTS).max(LEAST_CHUNKS);
    (0..chunks.div_ceil(step)).map(move |at| at * step..(at * step + step).min(chunks))
}

/// The entries of these chunks as of the first `end` rows, of which `old` knows some.
fn entries(rows: &RowFile, old: Option<&Places>, end: u64, chunks: Range<u64>) -> Result<Entries> {
    let known = old.map_or(0, |old| old.rows);
    let mut entries = match old {
        Some(old) => old.entries(chunks.clone())?,
        None => Entries::new(),
    };
    entries.resize((chunks.end - chunks.start) as usize * CHUNK, 0);
    let first = chunks.start * CHUNK as u64;
    rows.back_over(known..end, |row, head| {
        let at = u64::from(head.page).wrapping_sub(first);
        // From the last row back: whatever is above `known` is of a later row.
        if let Some(entry) = entries.get_mut(usize::try_from(at).unwrap_or(usize::MAX))
            && *entry <= known
        {
            *entry = row + 1;
        }
        Ok(())
    })?;
    Ok(entries)
}

/// Writes a directory of these committed rows, if there is none or many rows are behind it. A damaged one is made
/// again: what is wrong with it.
pub(super) fn renew(disk: &dyn Disk, rows: &RowFile, pages: u64) -> Result<Option<Error>> {
    let old = rows.places();
    let known = old.as_ref().map_or(0, |old| old.map_or(0, |old| old.rows));
    let end = rows.kept.rows;
    if end.saturating_sub(known) <= LEAST.max(known / 8) || end >> (8 * ENTRY) > 0 {
        return Ok(None);
    }
    let (old, damage) = match old.and_then(|old| old.map(Places::whole).transpose()) {
        Ok(old) => (old, None),
        Err(damage) => (None, Some(damage)),
    };
    let aside = rows.path.with_extension("tmp");
    let written = write(disk, rows, old, pages, &aside);
    if written.is_err() {
        // What a disk has no room for is not left there.
        let _ = disk.remove(&aside);
    }
    written.map(|()| damage)
}

fn write(
    disk: &dyn Disk,
    rows: &RowFile,
    old: Option<&Places>,
    pages: u64,
    aside: &Path,
) -> Result<()> {
    let end = rows.kept.rows;
    let file = recreate(disk, aside).map_err(Error::io(aside, "create"))?;
    let put = |bytes: &[u8], offset: u64| {
        file.write_at(bytes, offset)
            .map_err(Error::io(aside, "write"))
    };
    let fields = [VERSION, rows.kept.number, end, pages, rows.sum_before(1)?];
    let head = Head::default().u64s(fields).u64(rows.sum_before(end)?);
    put(&head.sealed(), 0)?;
    let mut offset = FIXED as u64;
    for chunks in parts(pages) {
        let entries = entries(rows, old, end, chunks.clone())?;
        for (at, chunk) in chunks.zip(entries.chunks(CHUNK)) {
            put(&pack(at, chunk), offset)?;
            offset += CHUNK_BYTES as u64;
        }
    }
    file.sync().map_err(Error::io(aside, "sync"))?;
    drop(file);
    let path = path_of(&rows.path);
    disk.rename(aside, &path)
        .map_err(Error::io(&path, "rename"))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    disk.sync_dir(folder).map_err(Error::io(folder, "sync"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Links, PageId};
    use crate::fuzz::memory::Memory;
    use crate::store::rows::write::RowWriter;
    use crate::store::rows::{CommittedRows, renew_places};

    const DIR: &str = "store";

    /// Appends rows of these pages, each with one link to the page after it.
    fn append(disk: &Memory, writer: &mut RowWriter, pages: &[u64]) -> CommittedRows {
        for &page in pages {
            let links = [PageId(page + 1)];
            let appended = writer.append(PageId(page), false, Links::from(&links[..]), false);
            assert!(appended.is_ok());
        }
        let synced = writer.sync(disk, Path::new(DIR));
        synced.unwrap_or_else(|_| panic!("sync"))
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

    /// As `formats/rows.md` says, byte by byte.
    #[test]
    fn its_bytes_are_those_of_the_specification() {
        let (disk, dir) = (Memory::default(), Path::new(DIR));
        let mut writer =
            RowWriter::create(&disk, dir, 7, 1 << 20).unwrap_or_else(|e| panic!("{e}"));
        let pages: Vec<u64> = (0..65).map(|row| if row == 64 { 3 } else { row }).collect();
        let kept = append(&disk, &mut writer, &pages);
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
            // Page 3 was read again by the last row, number 64.
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

    /// Directories that grow with their rows, older rows beside a newer directory, and damage: always the last row.
    #[test]
    fn the_last_row_is_found_whatever_the_directory() {
        let (disk, dir) = (Memory::default(), Path::new(DIR));
        let mut writer =
            RowWriter::create(&disk, dir, 1, 1 << 24).unwrap_or_else(|e| panic!("{e}"));
        let path = Path::new("store/rows/1.places");
        let mut states = Vec::new();
        for round in 0..12u64 {
            let pages: Vec<u64> = (0..30).map(|at| (at * 37 + round * 101) % 9_000).collect();
            let kept = append(&disk, &mut writer, &pages);
            renew_places(&disk, dir, &kept, 9_001).unwrap();
            states.push(kept);
        }
        let check = |sound: bool| {
            for kept in &states {
                let rows = RowFile::open(&disk, dir, *kept).unwrap();
                assert_eq!(rows.places().is_ok(), sound);
                for page in (0..9_001).step_by(7) {
                    assert_eq!(rows.last_row(page).unwrap(), last_row(&rows, page));
                }
            }
        };
        check(true);
        let newest = RowFile::open(&disk, dir, *states.last().unwrap()).unwrap();
        let places = newest.places().unwrap().unwrap();
        assert!(places.rows > 64 && places.rows <= newest.kept.rows);
        places.verify(&newest).unwrap();
        // One row too new, its checksum right: found by the comparison alone.
        let file = disk.open(path, false).unwrap();
        let mut entries = places.chunk(0).unwrap();
        let at = entries.iter().position(|&entry| entry > 1).unwrap();
        let old = std::mem::replace(&mut entries[at], 1);
        file.write_at(&pack(0, &entries), FIXED as u64).unwrap();
        assert!(places.verify(&newest).is_err());
        entries[at] = old;
        file.write_at(&pack(0, &entries), FIXED as u64).unwrap();
        places.verify(&newest).unwrap();
        // A flipped bit in a chunk, then in the head.
        file.write_at(&[0xff], FIXED as u64 + 4).unwrap();
        assert!(places.verify(&newest).is_err());
        check(true);
        file.write_at(&[0xff], 3).unwrap();
        check(false);
        // The next checkpoint makes it again.
        let renewed = || renew_places(&disk, dir, states.last().unwrap(), 9_001).unwrap();
        let damage = renewed().expect("told").to_string();
        assert!(damage.contains("1.places: damaged: the checksum of its head"));
        assert!(renewed().is_none());
        check(true);
    }
}
