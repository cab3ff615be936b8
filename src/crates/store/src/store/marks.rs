//! Retained copies of the cash cells: one file per mark, `marks/NUMBER`, specified in `formats/store.md`. The seed of a
//! block's checksum identifies the store, the mark and the block.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::folder::{remove_except, remove_file};
use crate::disk::{Disk, DiskFile};
use crate::engine::{CHUNK_PAGES, CashMark, check_law};
use crate::{Error, Result};

pub(super) const MARKS: &str = "marks";

const BLOCK_BYTES: u64 = CHUNK_PAGES * 8 + 8;

fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(MARKS).join(number.to_string())
}

/// Returns the checksum of a block, given the hash of the store's identity.
fn checksum(store: u64, mark: u64, block: u64, cells: &[u8]) -> u64 {
    let mut seed = Xxh3::new();
    for number in [store, mark, block] {
        seed.update(&number.to_le_bytes());
    }
    xxh3_64_with_seed(cells, seed.digest())
}

/// Writes a mark of the store with this identity; the file is not durable yet.
pub fn write(
    disk: &dyn Disk,
    dir: &Path,
    store: u64,
    mark: &CashMark,
    cells: &[u64],
) -> Result<Box<dyn DiskFile>> {
    let path = path_of(dir, mark.number);
    let file = disk.open(&path, true).map_err(Error::io(&path, "create"))?;
    let mut at = 0;
    for (block, cells) in (0..).zip(cells.chunks(CHUNK_PAGES as usize)) {
        let bytes: &[u8] = bytemuck::cast_slice(cells);
        file.write_at(bytes, at)
            .and_then(|()| {
                let sum = checksum(store, mark.number, block, bytes).to_le_bytes();
                file.write_at(&sum, at + bytes.len() as u64)
            })
            .map_err(Error::io(&path, "write"))?;
        at += bytes.len() as u64 + 8;
    }
    file.set_len(at).map_err(Error::io(&path, "cut"))?;
    Ok(file)
}

/// Removes a mark that no manifest names.
pub fn remove(disk: &dyn Disk, dir: &Path, number: u64) -> Result<()> {
    remove_file(disk, &path_of(dir, number))
}

pub fn remove_others(disk: &dyn Disk, dir: &Path, keep: &[CashMark]) -> Result<()> {
    // Files of other names are not the store's.
    remove_except(disk, &dir.join(MARKS), |name| {
        let number = name.parse::<u64>();
        number.map_or(true, |number| keep.iter().any(|mark| mark.number == number))
    })
}

/// Marks open for reading. Open files stay readable after the writer drops a mark.
pub struct MarkFiles {
    dir: PathBuf,
    store: u64,
    files: HashMap<u64, (CashMark, Box<dyn DiskFile>)>,
}

impl MarkFiles {
    pub fn open(disk: &dyn Disk, dir: &Path, store: u64, marks: &[CashMark]) -> Result<MarkFiles> {
        let mut files = HashMap::new();
        for mark in marks {
            let path = path_of(dir, mark.number);
            let file = disk.read(&path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    Error::damaged(&path, "it is missing (or store.redb is an old one)")
                }
                _ => Error::opening(&path)(error),
            })?;
            files.insert(mark.number, (*mark, file));
        }
        Ok(MarkFiles {
            dir: dir.into(),
            store,
            files,
        })
    }

    /// Fills `out` with the cells from page `first` on, which must begin a block.
    pub fn cells(&self, number: u64, first: u64, out: &mut [u64]) -> Result<()> {
        let path = || path_of(&self.dir, number);
        let (mark, file) = self
            .files
            .get(&number)
            .ok_or_else(|| Error::damaged(path(), "no such mark"))?;
        let block = first / CHUNK_PAGES;
        let len = CHUNK_PAGES.min(mark.totals.pages - block * CHUNK_PAGES) as usize;
        if !first.is_multiple_of(CHUNK_PAGES) || len != out.len() {
            return Err(Error::damaged(path(), "asked for part of a block"));
        }
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
        let at = block * BLOCK_BYTES;
        let mut sum = [0; 8];
        let read = file
            .read_at(bytes, at)
            .and_then(|()| file.read_at(&mut sum, at + bytes.len() as u64));
        read.map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                Error::damaged(path(), format!("it ends inside block {block}"))
            } else {
                Error::io(path(), "read")(error)
            }
        })?;
        if u64::from_le_bytes(sum) == checksum(self.store, number, block, bytes) {
            return Ok(());
        }
        Err(Error::damaged(
            path(),
            format!("block {block} does not match its checksum"),
        ))
    }

    /// Reads and checks every block of a mark, and its law.
    pub fn verify(&self, mark: &CashMark) -> Result<()> {
        let pages = mark.totals.pages;
        let mut cells = Vec::new();
        let mut cash = 0;
        let mut first = 0;
        while first < pages {
            cells.resize(CHUNK_PAGES.min(pages - first) as usize, 0);
            self.cells(mark.number, first, &mut cells)?;
            let held = |cell: &u64| u128::from(cell.wrapping_add(mark.totals.paid));
            cash += cells.iter().map(held).sum::<u128>();
            first += cells.len() as u64;
        }
        check_law(cash, &mark.totals)
            .map_err(|what| Error::damaged(path_of(&self.dir, mark.number), what))
    }
}
