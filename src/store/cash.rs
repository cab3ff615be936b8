//! Cash on disk: the ledger's cells and ages, in two slots a chunk.
//!
//! ```text
//! cash     chunk*          chunk: slot 0 | slot 1
//!          slot:           2^17 cells of 8 bytes | 2^17 ages of 4 bits (the last chunk: padded)
//! ```
//! A checkpoint writes each changed chunk to the slot that is not current; the commit of
//! `store.redb` makes those slots current. So the last committed state is never written over, and
//! one commit later a reader of the one before may still finish.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::disk::{Disk, DiskFile};
use crate::engine::{CHUNK_PAGES, Ledger};
use crate::{Error, Result};

const CELL_BYTES: usize = CHUNK_PAGES as usize * 8;
/// From so many chunks on, [`READERS`] threads load them.
const MANY_CHUNKS: usize = 64;
const READERS: usize = 8;
const SLOT_BYTES: usize = CELL_BYTES + CHUNK_PAGES as usize / 2;

/// Where a chunk's current state is, and what it must hash to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub slot: u8,
    pub hash: u64,
}

impl Slot {
    /// As stored.
    pub fn to_bytes(self) -> [u8; 9] {
        let mut bytes = [self.slot; 9];
        bytes[1..].copy_from_slice(&self.hash.to_le_bytes());
        bytes
    }

    /// From its bytes; `None` if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Slot> {
        let (&slot, hash) = bytes.split_first()?;
        let hash = u64::from_le_bytes(hash.try_into().ok()?);
        (slot < 2).then_some(Slot { slot, hash })
    }
}

/// A hash of all slots: the manifest holds it, so that no old entry is taken for a current one.
pub(crate) fn slots_sum(slots: &[Slot]) -> u64 {
    let mut hash = Xxh3::new();
    for slot in slots {
        hash.update(&slot.to_bytes());
    }
    hash.digest()
}

/// The file of cash slots.
pub(crate) struct CashFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
}

/// Pages in chunk `chunk` of `pages`.
fn pages_in(chunk: u64, pages: u64) -> usize {
    CHUNK_PAGES.min(pages - chunk * CHUNK_PAGES) as usize
}

fn hash(cells: &[u8], ages: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(cells);
    hash.update(ages);
    hash.digest()
}

impl CashFile {
    /// Makes the file of a new store.
    pub fn create(disk: &dyn Disk, dir: &Path) -> Result<CashFile> {
        let path = dir.join("cash");
        let file = disk.open(&path, true).map_err(Error::io(&path, "create"))?;
        Ok(CashFile { path, file })
    }

    /// Opens for writing too.
    pub fn open(disk: &dyn Disk, dir: &Path) -> Result<CashFile> {
        let path = dir.join("cash");
        let file = disk.open(&path, false).map_err(Error::opening(&path))?;
        Ok(CashFile { path, file })
    }

    /// Opens for reading.
    pub fn look(disk: &dyn Disk, dir: &Path) -> Result<CashFile> {
        let path = dir.join("cash");
        let file = disk.read(&path).map_err(Error::opening(&path))?;
        Ok(CashFile { path, file })
    }

    fn offset(chunk: u64, slot: u8) -> u64 {
        (chunk * 2 + u64::from(slot)) * SLOT_BYTES as u64
    }

    /// Makes the file long enough for `pages`.
    pub fn make_room(&self, pages: u64) -> Result<()> {
        let len = pages.div_ceil(CHUNK_PAGES) * 2 * SLOT_BYTES as u64;
        let found = self.file.size().map_err(Error::io(&self.path, "measure"))?;
        if found < len {
            self.file
                .set_len(len)
                .map_err(Error::io(&self.path, "extend"))?;
        }
        Ok(())
    }

    /// Writes one chunk of the ledger to `slot`; what it hashes to.
    pub fn write(&self, ledger: &Ledger, chunk: u64, slot: u8) -> Result<Slot> {
        let first = (chunk * CHUNK_PAGES) as usize;
        let pages = pages_in(chunk, ledger.totals().pages);
        let cells = bytemuck::cast_slice(&ledger.cells()[first..first + pages]);
        let ages = &ledger.ages()[first / 2..first / 2 + pages.div_ceil(2)];
        let at = Self::offset(chunk, slot);
        self.file
            .write_at(cells, at)
            .and_then(|()| self.file.write_at(ages, at + CELL_BYTES as u64))
            .map_err(Error::io(&self.path, "write"))?;
        Ok(Slot {
            slot,
            hash: hash(cells, ages),
        })
    }

    pub fn sync(&self) -> Result<()> {
        self.file.sync().map_err(Error::io(&self.path, "sync"))
    }

    /// Reads and checks all chunks; many of them on some threads, as one alone waits for the disk.
    pub fn load(&self, slots: &[Slot], cells: &mut [u64], ages: &mut [u8]) -> Result<()> {
        let pages = cells.len() as u64;
        let parts = if slots.len() < MANY_CHUNKS {
            1
        } else {
            READERS
        };
        let part = slots.len().div_ceil(parts).max(1);
        let cells = cells.chunks_mut(part * CHUNK_PAGES as usize);
        let ages = ages.chunks_mut(part * CHUNK_PAGES as usize / 2);
        let load = |first: usize, slots: &[Slot], cells: &mut [u64], ages: &mut [u8]| {
            let cells = cells.chunks_mut(CHUNK_PAGES as usize);
            let ages = ages.chunks_mut(CHUNK_PAGES as usize / 2);
            for ((chunk, slot), (cells, ages)) in (first..).zip(slots).zip(cells.zip(ages)) {
                self.read(chunk as u64, pages, *slot, cells, ages)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let parts = (0..)
                .step_by(part)
                .zip(slots.chunks(part))
                .zip(cells.zip(ages));
            let threads: Vec<_> = parts
                .map(|((first, slots), (cells, ages))| {
                    scope.spawn(move || load(first, slots, cells, ages))
                })
                .collect();
            let done = threads.into_iter().map(|thread| {
                let done = thread.join();
                done.unwrap_or_else(|panic| resume_unwind(panic))
            });
            // All are waited for; the first chunk that is damaged is told.
            done.collect::<Vec<Result<()>>>().into_iter().collect()
        })
    }

    /// Reads and checks one chunk of `pages` pages in all.
    pub fn read(
        &self,
        chunk: u64,
        pages: u64,
        current: Slot,
        cells: &mut [u64],
        ages: &mut [u8],
    ) -> Result<()> {
        debug_assert_eq!(cells.len(), pages_in(chunk, pages));
        let at = Self::offset(chunk, current.slot);
        let read = |buf: &mut [u8], at| {
            self.file.read_at(buf, at).map_err(|error| {
                if error.kind() == std::io::ErrorKind::UnexpectedEof {
                    Error::damaged(&self.path, format!("it ends inside chunk {chunk}"))
                } else {
                    Error::io(&self.path, "read")(error)
                }
            })
        };
        read(bytemuck::cast_slice_mut(cells), at)?;
        read(ages, at + CELL_BYTES as u64)?;
        if hash(bytemuck::cast_slice(cells), ages) == current.hash {
            return Ok(());
        }
        Err(Error::damaged(
            &self.path,
            format!(
                "chunk {chunk} (slot {}) does not match its checksum in store.redb",
                current.slot
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk::RealDisk;
    use super::*;
    use crate::engine::Totals;
    use std::time::Instant;

    /// 1 GiB of cells.
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

    /// What a checkpoint's cash and a restart's take, beside a plain sequential write and read of as
    /// many bytes. For measuring: `cargo test --release --lib cash_speed -- --ignored --nocapture`.
    #[test]
    #[ignore = "takes 3 GB of disk and a minute"]
    fn cash_speed() {
        let temp = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let ledger = ledger();
        let chunks = PAGES / CHUNK_PAGES;
        let bytes = chunks * SLOT_BYTES as u64;
        let mut speeds: [Vec<f64>; 4] = Default::default();
        let told = |since: Instant| bytes as f64 / 1e6 / since.elapsed().as_secs_f64();
        let cash = CashFile::create(&RealDisk, temp.path()).unwrap();
        cash.make_room(PAGES).unwrap();
        let piece = vec![7u8; 1 << 20];
        for pair in 0..4u8 {
            let begun = Instant::now();
            let numbers = 0..chunks;
            let slots: Vec<Slot> = numbers
                .map(|chunk| cash.write(&ledger, chunk, pair % 2).unwrap())
                .collect();
            cash.sync().unwrap();
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
            let load = |cells: &mut [u64], ages: &mut [u8]| cash.load(&slots, cells, ages);
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
