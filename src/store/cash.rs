//! Cash on disk: the ledger's cells and ages, in two slots a chunk.
//!
//! ```text
//! cash     chunk*          chunk: slot 0 | slot 1
//!          slot:           2^17 cells of 8 bytes | 2^17 ages of 4 bits (the last chunk: padded)
//! ```
//! A checkpoint writes each changed chunk to the slot that is not current; the commit of
//! `store.redb` makes those slots current. So the last committed state is never written over, and
//! one commit later a reader of the one before may still finish.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::disk::{Disk, DiskFile};
use crate::engine::{CHUNK_PAGES, Ledger};
use crate::{Error, Result};

const CELL_BYTES: usize = CHUNK_PAGES as usize * 8;
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
