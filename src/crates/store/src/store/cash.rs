//! The ledger's cash on disk, and retained copies of it; specified in `formats/store.md`.
//!
//! `cash` holds cells and ages of all pages, in two slots per chunk. A checkpoint writes each changed chunk to the slot that
//! is not current; the commit of `store.redb` makes it current. So a reader can finish after one more commit.
//!
//! `marks/NUMBER` holds the cells of one mark. The seed of a block's checksum identifies the store, the mark and the block.

use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::folder::{remove_except, remove_file};
use crate::disk::{Access, Disk, StoreFile, recreate};
use crate::engine::{CHUNK_PAGES, CashMark, Totals, check_law};
use crate::threads::par_map;
use crate::{Error, Result};

pub const CASH: &str = "cash";
pub const MARKS: &str = "marks";
/// Number of cells, and of bytes of ages, in a full chunk.
const CELLS: usize = CHUNK_PAGES as usize;
const AGES: usize = CELLS / 2;
/// Length of the cells of a full chunk, and of a slot, in bytes.
const CELL_BYTES: u64 = CHUNK_PAGES * 8;
const SLOT_BYTES: u64 = CELL_BYTES + AGES as u64;
const MARK_BLOCK_BYTES: u64 = CELL_BYTES + 8;

/// Returns the stored form of a chunk's current slot and the hash of its contents.
pub fn slot_bytes((slot, hash): (u8, u64)) -> [u8; 9] {
    let mut bytes = [slot; 9];
    bytes[1..].copy_from_slice(&hash.to_le_bytes());
    bytes
}

/// Decodes a slot and its hash; `None` if the bytes are invalid.
pub fn read_slot(bytes: &[u8]) -> Option<(u8, u64)> {
    let (&slot, hash) = bytes.split_first()?;
    let hash = u64::from_le_bytes(hash.try_into().ok()?);
    (slot < 2).then_some((slot, hash))
}

/// Returns a hash of all slots; the manifest stores it, so that an old entry is not taken for a current one.
pub fn slots_sum(slots: &[(u8, u64)]) -> u64 {
    let mut hash = Xxh3::new();
    for &slot in slots {
        hash.update(&slot_bytes(slot));
    }
    hash.digest()
}

pub struct CashFile {
    file: StoreFile,
    /// Current slot of each chunk, and the hash of its contents.
    pub slots: Vec<(u8, u64)>,
}

fn hash(cells: &[u8], ages: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(cells);
    hash.update(ages);
    hash.digest()
}

fn offset(chunk: u64, slot: u8) -> u64 {
    (chunk * 2 + u64::from(slot)) * SLOT_BYTES
}

impl CashFile {
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        access: Access,
        slots: Vec<(u8, u64)>,
    ) -> Result<CashFile> {
        let file = access.open(disk, &dir.join(CASH))?;
        Ok(CashFile { file, slots })
    }

    fn make_room(&self, pages: u64) -> Result<()> {
        let len = offset(pages.div_ceil(CHUNK_PAGES), 0);
        if self.file.size()? < len {
            let extended = self.file.file.set_len(len);
            extended.map_err(Error::io(&self.file.path, "extend"))?;
        }
        Ok(())
    }

    /// Writes the changed chunks of `pages` pages durably. The commit that names them makes them current.
    pub fn write(
        &self,
        [cells, ages]: [&[u8]; 2],
        pages: u64,
        changed: impl Iterator<Item = u64>,
    ) -> Result<Vec<(u64, (u8, u64))>> {
        fn part(array: &[u8], chunk: u64, width: usize) -> &[u8] {
            let first = chunk as usize * width;
            &array[first..array.len().min(first + width)]
        }
        self.make_room(pages)?;
        let write = |chunk: u64| {
            let current = self.slots.get(chunk as usize);
            let slot = current.map_or(0, |(current, _)| 1 - current);
            let cells = part(cells, chunk, CELL_BYTES as usize);
            let ages = part(ages, chunk, AGES);
            self.write_at(offset(chunk, slot), cells, ages)?;
            let hash = hash(cells, ages);
            Ok((chunk, (slot, hash)))
        };
        let written = changed.map(write).collect::<Result<Vec<_>>>()?;
        if !written.is_empty() {
            self.file.sync()?;
        }
        Ok(written)
    }

    fn write_at(&self, at: u64, cells: &[u8], ages: &[u8]) -> Result<()> {
        self.file.write_at(cells, at)?;
        self.file.write_at(ages, at + CELL_BYTES)
    }

    /// Records the slots that were written. Returns the hash of all slots.
    pub fn note(&mut self, written: &[(u64, (u8, u64))]) -> u64 {
        for &(chunk, slot) in written {
            match self.slots.get_mut(chunk as usize) {
                Some(current) => *current = slot,
                None => self.slots.push(slot),
            }
        }
        slots_sum(&self.slots)
    }

    /// Copies the current slots of `pages` pages to another file.
    pub fn copy(&self, disk: &dyn Disk, path: &Path, pages: u64) -> Result<CashFile> {
        let file = recreate(disk, path).map_err(Error::io(path, "create"))?;
        let copy = CashFile {
            file: StoreFile::new(path, file),
            slots: self.slots.clone(),
        };
        copy.make_room(pages)?;
        let (mut cells, mut ages) = (Vec::new(), Vec::new());
        for (chunk, &(slot, _)) in (0..).zip(&self.slots) {
            let first = chunk * CHUNK_PAGES;
            let len = CHUNK_PAGES.min(pages - first) as usize;
            cells.resize(len, 0);
            ages.resize(len.div_ceil(2), 0);
            self.read(first, &mut cells, &mut ages)?;
            let at = offset(chunk, slot);
            copy.write_at(at, bytemuck::cast_slice(&cells), &ages)?;
        }
        Ok(copy)
    }

    /// Reads and checks all chunks, on several threads. Reports the first damaged one.
    pub fn load(&self, cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        let chunks = cells.chunks_mut(CELLS).zip(ages.chunks_mut(AGES));
        let read = |at: usize, (cells, ages): &mut (&mut [u64], &mut [u8])| {
            self.read(at as u64 * CHUNK_PAGES, cells, ages)
        };
        par_map(&mut chunks.collect::<Vec<_>>(), read).map(drop)
    }

    /// Reads and checks all chunks, one at a time, and their law.
    pub fn verify(&self, totals: &Totals) -> Result<()> {
        let mut ages = Vec::new();
        check_cells(totals, &self.file.path, |first, cells| {
            ages.resize(cells.len().div_ceil(2), 0);
            self.read(first, cells, &mut ages)
        })
    }

    /// Reads and checks the chunk that begins with page `first`.
    pub fn read(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        let chunk = first / CHUNK_PAGES;
        let slot = self.slots.get(chunk as usize);
        let slot = slot.filter(|_| first.is_multiple_of(CHUNK_PAGES));
        let missing = || format!("no chunk begins at page {first}");
        let &(slot, expected) = slot.ok_or_else(|| self.file.damaged(missing()))?;
        debug_assert!(cells.len() <= CELLS && ages.len() <= AGES);
        let cells = bytemuck::cast_slice_mut(cells);
        let at = offset(chunk, slot);
        self.file.read_at(cells, at)?;
        self.file.read_at(ages, at + CELL_BYTES)?;
        if hash(cells, ages) == expected {
            return Ok(());
        }
        Err(self.file.damaged(format!(
            "chunk {chunk} (slot {slot}) does not match its checksum in store.redb"
        )))
    }
}

/// Reads the cells of all pages by chunk, and checks their law.
fn check_cells(
    totals: &Totals,
    path: &Path,
    mut read: impl FnMut(u64, &mut [u64]) -> Result<()>,
) -> Result<()> {
    let (mut cells, mut cash) = (Vec::new(), 0);
    for first in (0..totals.pages).step_by(CELLS) {
        cells.resize(CHUNK_PAGES.min(totals.pages - first) as usize, 0);
        read(first, &mut cells)?;
        let held = |cell: &u64| u128::from(cell.wrapping_add(totals.paid));
        cash += cells.iter().map(held).sum::<u128>();
    }
    check_law(cash, totals).map_err(|what| Error::damaged(path, what))
}

fn mark_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(MARKS).join(number.to_string())
}

/// Returns the checksum of a block of a mark, given the hash of the store's identity.
fn mark_sum(store: u64, mark: u64, block: u64, cells: &[u8]) -> u64 {
    let mut seed = Xxh3::new();
    for number in [store, mark, block] {
        seed.update(&number.to_le_bytes());
    }
    xxh3_64_with_seed(cells, seed.digest())
}

/// Writes a mark of the store with this identity; the file is not durable yet.
pub fn write_mark(
    disk: &dyn Disk,
    dir: &Path,
    store: u64,
    mark: &CashMark,
    cells: &[u64],
) -> Result<StoreFile> {
    let path = mark_path(dir, mark.number);
    let file = Access::Create.open(disk, &path)?;
    let mut at = 0;
    for (block, cells) in (0..).zip(cells.chunks(CELLS)) {
        let bytes: &[u8] = bytemuck::cast_slice(cells);
        file.write_at(bytes, at)?;
        at += bytes.len() as u64;
        let sum = mark_sum(store, mark.number, block, bytes);
        file.write_at(&sum.to_le_bytes(), at)?;
        at += 8;
    }
    file.set_len(at)?;
    Ok(file)
}

pub fn remove_mark(disk: &dyn Disk, dir: &Path, number: u64) -> Result<()> {
    remove_file(disk, &mark_path(dir, number))
}

pub fn remove_other_marks(disk: &dyn Disk, dir: &Path, keep: &[CashMark]) -> Result<()> {
    // Files of other names are not the store's.
    remove_except(disk, &dir.join(MARKS), |name| {
        let number = name.parse::<u64>();
        number.map_or(true, |number| keep.iter().any(|mark| mark.number == number))
    })
}

/// Opens the files of marks for reading. Open files stay readable after the writer drops a mark.
pub fn open_marks(disk: &dyn Disk, dir: &Path, marks: &[CashMark]) -> Result<Vec<StoreFile>> {
    let open = |mark: &CashMark| {
        let path = mark_path(dir, mark.number);
        let file = disk.read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                Error::damaged(&path, "it is missing (or store.redb is an old one)")
            }
            _ => Error::opening(&path)(error),
        })?;
        Ok(StoreFile::new(path, file))
    };
    marks.iter().map(open).collect()
}

/// Fills `out` with the cells of a mark from page `first` on, which must begin a block, in the store of this identity.
pub fn mark_cells(
    store: u64,
    (mark, file): (&CashMark, &StoreFile),
    first: u64,
    out: &mut [u64],
) -> Result<()> {
    let block = first / CHUNK_PAGES;
    let len = CHUNK_PAGES.min(mark.totals.pages - block * CHUNK_PAGES) as usize;
    if !first.is_multiple_of(CHUNK_PAGES) || len != out.len() {
        return Err(file.damaged("asked for part of a block"));
    }
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
    let at = block * MARK_BLOCK_BYTES;
    let mut sum = [0; 8];
    file.read_at(bytes, at)?;
    file.read_at(&mut sum, at + bytes.len() as u64)?;
    if u64::from_le_bytes(sum) == mark_sum(store, mark.number, block, bytes) {
        return Ok(());
    }
    Err(file.damaged(format!("block {block} does not match its checksum")))
}

pub fn verify_mark(store: u64, (mark, file): (&CashMark, &StoreFile)) -> Result<()> {
    let read = |first, cells: &mut [u64]| mark_cells(store, (mark, file), first, cells);
    check_cells(&mark.totals, &file.path, read)
}
