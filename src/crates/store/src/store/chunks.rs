//! The ledger's cash on disk: arrays of all pages, in two slots per chunk.
//!
//! ```text
//! cash         chunk*      chunk: slot 0 | slot 1
//!              slot:       2^17 cells of 8 bytes | 2^17 ages of 4 bits (the last chunk: padded)
//! ```
//! A checkpoint writes each changed chunk to the slot that is not current; the commit of
//! `store.redb` makes those slots current. So the last committed state is never written over, and
//! one commit later a reader of the one before may still finish.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::disk::{Disk, DiskFile, recreate};
use crate::engine::CHUNK_PAGES;
use crate::threads::{result_of, spawn_in};
use crate::{Error, Result};

/// Number of chunks from which [`READERS`] threads load them.
const MANY_CHUNKS: usize = 64;
const READERS: usize = 8;

/// Name of the file.
pub const CASH: &str = "cash";
/// Length of each array in a full chunk, in bytes: cells and ages.
const WIDTHS: [usize; 2] = [CHUNK_PAGES as usize * 8, CHUNK_PAGES as usize / 2];
const SLOT_BYTES: u64 = (WIDTHS[0] + WIDTHS[1]) as u64;

/// Splits off the first `chunks` chunks of each array.
fn take<'a>(arrays: &mut [&'a mut [u8]], chunks: usize) -> Vec<&'a mut [u8]> {
    let take = |(array, width): (&mut &'a mut [u8], usize)| {
        let len = array.len().min(width * chunks);
        let (taken, left) = std::mem::take(array).split_at_mut(len);
        *array = left;
        taken
    };
    arrays.iter_mut().zip(WIDTHS).map(take).collect()
}

/// Current slot of a chunk, and the hash of its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub slot: u8,
    pub hash: u64,
}

impl Slot {
    /// Encodes the slot as stored.
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

/// File of chunks with two slots each.
pub struct ChunkFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
}

fn hash<'a>(arrays: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hash = Xxh3::new();
    arrays.for_each(|array| hash.update(array));
    hash.digest()
}

impl ChunkFile {
    /// Creates the file of a new store.
    pub fn create(disk: &dyn Disk, dir: &Path) -> Result<ChunkFile> {
        let path = dir.join(CASH);
        let file = disk.open(&path, true).map_err(Error::io(&path, "create"))?;
        Ok(ChunkFile { path, file })
    }

    /// Opens the file for reading and writing.
    pub fn open(disk: &dyn Disk, dir: &Path) -> Result<ChunkFile> {
        let path = dir.join(CASH);
        let file = disk.open(&path, false).map_err(Error::opening(&path))?;
        Ok(ChunkFile { path, file })
    }

    /// Opens the file for reading.
    pub fn look(disk: &dyn Disk, dir: &Path) -> Result<ChunkFile> {
        let path = dir.join(CASH);
        let file = disk.read(&path).map_err(Error::opening(&path))?;
        Ok(ChunkFile { path, file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn offset(&self, chunk: u64, slot: u8) -> u64 {
        (chunk * 2 + u64::from(slot)) * SLOT_BYTES
    }

    /// Extends the file to hold `pages` pages.
    pub fn make_room(&self, pages: u64) -> Result<()> {
        let len = self.offset(pages.div_ceil(CHUNK_PAGES), 0);
        let found = self.file.size().map_err(Error::io(&self.path, "measure"))?;
        if found < len {
            self.file
                .set_len(len)
                .map_err(Error::io(&self.path, "extend"))?;
        }
        Ok(())
    }

    /// Writes one chunk of the arrays to `slot`. Returns the slot with its hash.
    pub fn write(&self, arrays: &[&[u8]], chunk: u64, slot: u8) -> Result<Slot> {
        let parts = || {
            let part = |(array, width): (&&'_ [u8], usize)| {
                let first = chunk as usize * width;
                first..array.len().min(first + width)
            };
            let widths = arrays.iter().zip(WIDTHS);
            widths.map(move |(array, width)| &array[part((array, width))])
        };
        let mut at = self.offset(chunk, slot);
        for (part, width) in parts().zip(WIDTHS) {
            self.file
                .write_at(part, at)
                .map_err(Error::io(&self.path, "write"))?;
            at += width as u64;
        }
        let hash = hash(parts());
        Ok(Slot { slot, hash })
    }

    pub fn sync(&self) -> Result<()> {
        self.file.sync().map_err(Error::io(&self.path, "sync"))
    }

    /// Reads and checks all chunks of the arrays; many chunks are read by several threads, as one thread alone waits
    /// for the disk.
    pub fn load(&self, slots: &[Slot], mut arrays: Vec<&mut [u8]>) -> Result<()> {
        let parts = if slots.len() < MANY_CHUNKS {
            1
        } else {
            READERS
        };
        let part = slots.len().div_ceil(parts).max(1);
        let load = |first: usize, slots: &[Slot], mut arrays: Vec<&mut [u8]>| {
            for (chunk, slot) in (first..).zip(slots) {
                let mut arrays = take(&mut arrays, 1);
                self.read(chunk as u64, *slot, &mut arrays)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let parts = (0..).step_by(part).zip(slots.chunks(part));
            let threads: Vec<_> = parts
                .map(|(first, slots)| {
                    let arrays = take(&mut arrays, part);
                    spawn_in(scope, "chunks", move || load(first, slots, arrays))
                })
                .collect();
            let done = threads.into_iter().map(|thread| result_of(thread?));
            // Waits for all threads, then reports the first damaged chunk.
            done.collect::<Vec<Result<()>>>().into_iter().collect()
        })
    }

    pub fn read(&self, chunk: u64, current: Slot, arrays: &mut [&mut [u8]]) -> Result<()> {
        let mut at = self.offset(chunk, current.slot);
        for (array, width) in arrays.iter_mut().zip(WIDTHS) {
            debug_assert!(array.len() <= width);
            self.file.read_at(array, at).map_err(|error| {
                if error.kind() == std::io::ErrorKind::UnexpectedEof {
                    Error::damaged(&self.path, format!("it ends inside chunk {chunk}"))
                } else {
                    Error::io(&self.path, "read")(error)
                }
            })?;
            at += width as u64;
        }
        if hash(arrays.iter().map(|array| &**array)) == current.hash {
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

/// File of chunks, and the current slot of each.
pub struct Chunks {
    pub file: ChunkFile,
    pub slots: Vec<Slot>,
}

impl Chunks {
    /// Writes the changed chunks of the arrays of `pages` pages and makes them durable. They become current with the
    /// commit that names them.
    pub fn write(
        &self,
        arrays: &[&[u8]],
        pages: u64,
        changed: impl Iterator<Item = u64>,
    ) -> Result<Vec<(u64, Slot)>> {
        self.file.make_room(pages)?;
        let other = |chunk: u64| self.slots.get(chunk as usize).map_or(0, |s| 1 - s.slot);
        let written = changed
            .map(|chunk| Ok((chunk, self.file.write(arrays, chunk, other(chunk))?)))
            .collect::<Result<Vec<_>>>()?;
        if !written.is_empty() {
            self.file.sync()?;
        }
        Ok(written)
    }

    /// Copies the current slots of `pages` pages to another file.
    pub fn copy(&self, disk: &dyn Disk, path: &Path, pages: u64) -> Result<Chunks> {
        let file = recreate(disk, path).map_err(Error::io(path, "create"))?;
        let file = ChunkFile {
            path: path.into(),
            file,
        };
        file.make_room(pages)?;
        let (mut cells, mut ages) = (Vec::new(), Vec::new());
        for (chunk, slot) in (0..).zip(&self.slots) {
            let len = CHUNK_PAGES.min(pages - chunk * CHUNK_PAGES) as usize;
            cells.resize(len * 8, 0);
            ages.resize(len.div_ceil(2), 0);
            self.file
                .read(chunk, *slot, &mut [&mut cells[..], &mut ages[..]])?;
            let at = file.offset(chunk, slot.slot);
            file.file
                .write_at(&cells, at)
                .and_then(|()| file.file.write_at(&ages, at + WIDTHS[0] as u64))
                .map_err(Error::io(path, "write"))?;
        }
        Ok(Chunks {
            file,
            slots: self.slots.clone(),
        })
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

    /// Reads the chunk that begins with page `first`.
    pub fn read(&self, first: u64, arrays: &mut [&mut [u8]]) -> Result<()> {
        let chunk = first / CHUNK_PAGES;
        let slot = self.slots.get(chunk as usize);
        let slot = slot.filter(|_| first.is_multiple_of(CHUNK_PAGES));
        let slot = slot.ok_or_else(|| {
            Error::damaged(self.file.path(), format!("no chunk begins at page {first}"))
        })?;
        self.file.read(chunk, *slot, arrays)
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
        let cash = ChunkFile::create(&RealDisk, temp.path()).unwrap();
        cash.make_room(PAGES).unwrap();
        let piece = vec![7u8; 1 << 20];
        for pair in 0..4u8 {
            let begun = Instant::now();
            let numbers = 0..chunks;
            let slots: Vec<Slot> = numbers
                .map(|chunk| cash.write(&ledger.arrays(), chunk, pair % 2).unwrap())
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
            let load = |cells: &mut [u64], ages: &mut [u8]| {
                cash.load(&slots, vec![bytemuck::cast_slice_mut(cells), ages])
            };
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
