//! Building the directory of a row file ([`places`](super::places)) from its rows, and comparing the two.

use std::ops::Range;
use std::path::Path;

use super::places::{
    CHUNK, CHUNK_BYTES, ENTRY, Entries, FIXED, Places, VERSION, pack, parts, path_of,
};
use super::read::{KeptRows, RowFile};
use crate::codec::frame::BlockHead;
use crate::disk::{Disk, recreate};
use crate::{Error, Result};

/// Number of rows after a directory below which it is not rewritten.
const LEAST: u64 = 64;

impl KeptRows {
    /// Compares the directory, if there is one, with the rows.
    pub fn verify_places(&self) -> Result<()> {
        match self.file.places()? {
            Some(places) => verify(places, &self.file),
            None => Ok(()),
        }
    }
}

/// Compares a directory with the rows, unless they are older.
fn verify(places: &Places, rows: &RowFile) -> Result<()> {
    for chunks in parts(places.pages) {
        let kept = places.entries(chunks.clone())?;
        if places.rows <= rows.kept.rows && entries(rows, None, places.rows, chunks)? != kept {
            let what = "a page's last row is not where it says";
            return Err(Error::damaged(&places.path, what));
        }
    }
    Ok(())
}

/// Returns the entries of these chunks as of the first `end` rows, starting from `old`.
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

/// Writes a directory of these committed rows if there is none or many rows follow it. Replaces a damaged one and
/// returns its damage.
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
        // Leaves nothing behind on a full disk.
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
    let head = BlockHead::default().u64s(fields).u64(rows.sum_before(end)?);
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
    use crate::engine::{PageId, TargetLinks};
    use crate::fuzz::memory::Memory;
    use crate::store::rows::places::pack;
    use crate::store::rows::write::RowWriter;
    use crate::store::rows::{CommittedRows, renew_places};

    const DIR: &str = "store";

    /// Appends rows of these pages, each with one link to the page after it.
    fn append(disk: &Memory, writer: &mut RowWriter, pages: &[u64]) -> CommittedRows {
        for &page in pages {
            let links = [PageId(page + 1)];
            let appended = writer.append(PageId(page), false, TargetLinks::from(&links[..]), false);
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

    /// The bytes are as specified in `formats/rows.md`.
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
            let kept = append(&disk, &mut writer, &pages);
            renew_places(&disk, dir, &kept, 9_001).unwrap();
            states.push(kept);
        }
        let check = |sound: bool| {
            for kept in &states {
                let rows = RowFile::open(&disk, dir, *kept).unwrap();
                assert_eq!(rows.places().is_ok(), sound);
                for page in (0..9_001).step_by(37) {
                    assert_eq!(rows.last_row(page).unwrap(), last_row(&rows, page));
                }
            }
        };
        check(true);
        let newest = RowFile::open(&disk, dir, *states.last().unwrap()).unwrap();
        let places = newest.places().unwrap().unwrap();
        assert!(places.rows > 64 && places.rows <= newest.kept.rows);
        verify(places, &newest).unwrap();
        // One row too new with a valid checksum: found by the comparison alone.
        let file = disk.open(path, false).unwrap();
        let mut entries = places.chunk(0).unwrap();
        let at = entries.iter().position(|&entry| entry > 1).unwrap();
        let old = std::mem::replace(&mut entries[at], 1);
        file.write_at(&pack(0, &entries), FIXED as u64).unwrap();
        assert!(verify(places, &newest).is_err());
        entries[at] = old;
        file.write_at(&pack(0, &entries), FIXED as u64).unwrap();
        verify(places, &newest).unwrap();
        // A flipped bit in a chunk, then in the head.
        file.write_at(&[0xff], FIXED as u64 + 4).unwrap();
        assert!(verify(places, &newest).is_err());
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
