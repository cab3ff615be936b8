//! The ledger's cash on disk, `cash`: cells and ages of all pages, in two slots per chunk (`formats/store.md`).
//!
//! A checkpoint writes each changed chunk to the slot that is not current; the commit of `store.redb` makes those slots
//! current. So the last committed state is never overwritten, and after one more commit a reader of the previous state
//! can still finish.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::disk::{Access, Disk, DiskFile, recreate};
use crate::engine::CHUNK_PAGES;
use crate::threads::par_map;
use crate::{Error, Result};

pub const CASH: &str = "cash";
/// Number of cells, and of bytes of ages, in a full chunk.
const CELLS: usize = CHUNK_PAGES as usize;
const AGES: usize = CELLS / 2;
/// Length of the cells of a full chunk, and of a slot, in bytes.
const CELL_BYTES: u64 = CHUNK_PAGES * 8;
const SLOT_BYTES: u64 = CELL_BYTES + AGES as u64;

/// Current slot of a chunk, and the hash of its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub slot: u8,
    pub hash: u64,
}

impl Slot {
    pub fn to_bytes(self) -> [u8; 9] {
        let mut bytes = [self.slot; 9];
        bytes[1..].copy_from_slice(&self.hash.to_le_bytes());
        bytes
    }

    /// Decodes a slot; `None` if the bytes are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Slot> {
        let (&slot, hash) = bytes.split_first()?;
        let hash = u64::from_le_bytes(hash.try_into().ok()?);
        (slot < 2).then_some(Slot { slot, hash })
    }
}

/// Returns a hash of all slots; the manifest stores it, so that an old entry is not taken for a current one.
pub fn slots_sum(slots: &[Slot]) -> u64 {
    let mut hash = Xxh3::new();
    for slot in slots {
        hash.update(&slot.to_bytes());
    }
    hash.digest()
}

/// File of chunks with two slots each, and the current slot of each chunk.
pub struct CashFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    pub slots: Vec<Slot>,
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
    pub fn open(disk: &dyn Disk, dir: &Path, access: Access, slots: Vec<Slot>) -> Result<CashFile> {
        let path = dir.join(CASH);
        let file = access.open(disk, &path)?;
        Ok(CashFile { path, file, slots })
    }

    /// Extends the file to hold `pages` pages.
    fn make_room(&self, pages: u64) -> Result<()> {
        let len = offset(pages.div_ceil(CHUNK_PAGES), 0);
        let found = self.file.size().map_err(Error::io(&self.path, "measure"))?;
        if found < len {
            self.file
                .set_len(len)
                .map_err(Error::io(&self.path, "extend"))?;
        }
        Ok(())
    }

    pub fn clear(&self) -> Result<()> {
        self.file.set_len(0).map_err(Error::io(&self.path, "cut"))?;
        self.sync()
    }

    pub fn sync(&self) -> Result<()> {
        self.file.sync().map_err(Error::io(&self.path, "sync"))
    }

    /// Writes the changed chunks of `pages` pages durably. The commit that names them makes them current.
    pub fn write(
        &self,
        [cells, ages]: [&[u8]; 2],
        pages: u64,
        changed: impl Iterator<Item = u64>,
    ) -> Result<Vec<(u64, Slot)>> {
        fn part(array: &[u8], chunk: u64, width: usize) -> &[u8] {
            let first = chunk as usize * width;
            &array[first..array.len().min(first + width)]
        }
        self.make_room(pages)?;
        let write = |chunk: u64| {
            let current = self.slots.get(chunk as usize);
            let slot = current.map_or(0, |current| 1 - current.slot);
            let cells = part(cells, chunk, CELL_BYTES as usize);
            let ages = part(ages, chunk, AGES);
            self.write_at(offset(chunk, slot), cells, ages)?;
            let hash = hash(cells, ages);
            Ok((chunk, Slot { slot, hash }))
        };
        let written = changed.map(write).collect::<Result<Vec<_>>>()?;
        if !written.is_empty() {
            self.sync()?;
        }
        Ok(written)
    }

    fn write_at(&self, at: u64, cells: &[u8], ages: &[u8]) -> Result<()> {
        self.file
            .write_at(cells, at)
            .and_then(|()| self.file.write_at(ages, at + CELL_BYTES))
            .map_err(Error::io(&self.path, "write"))
    }

    /// Records the slots that were written. Returns the hash of all slots.
    pub fn note(&mut self, written: &[(u64, Slot)]) -> u64 {
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
        let copy = CashFile {
            path: path.into(),
            file: recreate(disk, path).map_err(Error::io(path, "create"))?,
            slots: self.slots.clone(),
        };
        copy.make_room(pages)?;
        let (mut cells, mut ages) = (Vec::new(), Vec::new());
        for (chunk, slot) in (0..).zip(&self.slots) {
            let first = chunk * CHUNK_PAGES;
            let len = CHUNK_PAGES.min(pages - first) as usize;
            cells.resize(len, 0);
            ages.resize(len.div_ceil(2), 0);
            self.read(first, &mut cells, &mut ages)?;
            let at = offset(chunk, slot.slot);
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

    /// Reads and checks the chunk that begins with page `first`.
    pub fn read(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        let chunk = first / CHUNK_PAGES;
        let slot = self.slots.get(chunk as usize);
        let slot = slot.filter(|_| first.is_multiple_of(CHUNK_PAGES));
        let damaged = |what: String| Error::damaged(&self.path, what);
        let slot = slot.ok_or_else(|| damaged(format!("no chunk begins at page {first}")))?;
        debug_assert!(cells.len() <= CELLS && ages.len() <= AGES);
        let cells = bytemuck::cast_slice_mut(cells);
        let at = offset(chunk, slot.slot);
        self.file
            .read_at(cells, at)
            .and_then(|()| self.file.read_at(ages, at + CELL_BYTES))
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    damaged(format!("it ends inside chunk {chunk}"))
                }
                _ => Error::io(&self.path, "read")(error),
            })?;
        if hash(cells, ages) == slot.hash {
            return Ok(());
        }
        Err(damaged(format!(
            "chunk {chunk} (slot {}) does not match its checksum in store.redb",
            slot.slot
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use crate::engine::{Ledger, Totals};
    use std::time::Instant;

    /// Number of pages: 1 GiB of cells.
    const PAGES: u64 = 1 << 27;

    fn ledger() -> Ledger {
        let mut ledger = Ledger::new(1 << 31, 3, PAGES).unwrap();
        let totals = Totals {
            pages: PAGES,
            ..Totals::start()
        };
        let fill = |cells: &mut [u64], _: &mut [u8]| {
            for (cell, at) in cells.iter_mut().zip(1u64..) {
                *cell = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            Ok(())
        };
        ledger.restore(totals, fill).unwrap();
        ledger
    }

    /// Measures writing and loading the cash, compared with a plain sequential write and read of as many bytes: `cargo
    /// test --release --lib cash_speed -- --ignored --nocapture`.
    #[test]
    #[ignore = "takes 3 GB of disk and a minute"]
    fn cash_speed() {
        let temp = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let ledger = ledger();
        let chunks = PAGES / CHUNK_PAGES;
        let bytes = chunks * SLOT_BYTES;
        let mut speeds: [Vec<f64>; 4] = Default::default();
        let told = |since: Instant| bytes as f64 / 1e6 / since.elapsed().as_secs_f64();
        let mut cash = CashFile::open(&RealDisk, temp.path(), Access::Create, Vec::new()).unwrap();
        cash.make_room(PAGES).unwrap();
        let piece = vec![7u8; 1 << 20];
        for _ in 0..4 {
            let begun = Instant::now();
            let written = cash.write(ledger.arrays(), PAGES, 0..chunks).unwrap();
            cash.note(&written);
            speeds[0].push(told(begun));

            let begun = Instant::now();
            let raw = RealDisk.open(&temp.path().join("raw"), true).unwrap();
            raw.set_len(0).unwrap();
            for at in (0..bytes).step_by(piece.len()) {
                raw.write_at(&piece, at).unwrap();
            }
            raw.sync().unwrap();
            speeds[1].push(told(begun));

            let begun = Instant::now();
            let mut read = piece.clone();
            for at in (0..bytes - bytes % (1 << 20)).step_by(piece.len()) {
                raw.read_at(&mut read, at).unwrap();
            }
            speeds[2].push(told(begun));
            assert_eq!(read, piece);

            let begun = Instant::now();
            let mut loaded = Ledger::new(1 << 31, 3, PAGES).unwrap();
            let load = |cells: &mut [u64], ages: &mut [u8]| cash.load(cells, ages);
            loaded.restore(*ledger.totals(), load).unwrap();
            speeds[3].push(told(begun));
            assert!(loaded.cells() == ledger.cells());
        }
        for (what, speeds) in ["checkpoint", "raw write", "raw read", "load"]
            .iter()
            .zip(speeds)
        {
            let speeds: Vec<String> = speeds.iter().map(|speed| format!("{speed:.0}")).collect();
            eprintln!("{what:>10}: {} MB/s", speeds.join(", "));
        }
    }
}
