//! Files of columns by block, with checksums: snapshots, and the rankings computed beside them. The meaning of the
//! columns and of the info is up to their readers and writers. See `formats/snapshot.md`.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::column;
use crate::codec::frame::{BlockHead, HeadReader, is_sealed};
use crate::disk::{Disk, DiskFile, recreate};
use crate::engine::{CHUNK_PAGES, PageId};
use crate::threads::{join, par_map};
use crate::{Error, Result};

/// First and last bytes of a file: six letters, and the version in two digits.
pub(crate) type Magic = [u8; 8];
/// Length of the trailer in bytes: see `formats/snapshot.md`.
pub(super) const TRAILER: usize = 40;
/// Length of a directory entry in bytes: offset, length, checksum.
pub(super) const ENTRY: usize = 20;

/// Info of a file, which determines the kind of the file.
pub trait FileInfo: DeserializeOwned + Sync {
    /// Column, whose number is its place in the directory.
    type Column: Debug + Copy + Into<usize> + Sync;
    const NAME: &'static str;
    const MAGIC: Magic;
    /// Number of columns; `None` if the directory tells.
    const COLUMNS: Option<usize>;
    const REMEDY: &'static str;

    /// Returns true if it is the info of a file with this many rows and columns.
    fn fits(&self, rows: u64, columns: usize) -> bool;
}

pub struct BlockFile<I> {
    pub(super) path: PathBuf,
    file: Box<dyn DiskFile>,
    directory: Vec<u8>,
    pub(super) columns: usize,
    count: u64,
    /// Offset of the directory, which follows the columns.
    end: u64,
    pub(super) info: I,
}

impl<I: FileInfo> BlockFile<I> {
    /// Opens the file at `path`; [`Error::Unsupported`] if it has another version.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<BlockFile<I>> {
        let file = disk.read(path).map_err(Error::io(path, "open"))?;
        let damaged = |what: &str| Error::damaged(path, what);
        let len = file.size().map_err(Error::io(path, "measure"))?;
        if len < (size_of::<Magic>() + TRAILER) as u64 {
            return Err(damaged(&format!("too short for a {}", I::NAME)));
        }
        let mut trailer = [0; TRAILER];
        file.read_at(&mut trailer, len - TRAILER as u64)
            .map_err(Error::reading(path))?;
        let mut magic = Magic::default();
        file.read_at(&mut magic, 0).map_err(Error::reading(path))?;
        check_magic::<I>(&magic, &trailer[32..], path)?;
        let [end, info, count] = HeadReader(&trailer).u64s();
        let blocks = count.div_ceil(CHUNK_PAGES);
        let damaged_trailer = || damaged("its trailer is damaged");
        let held = info.checked_sub(end).ok_or_else(damaged_trailer)?;
        let entries = (held / blocks.max(1) / ENTRY as u64) as usize;
        let columns = I::COLUMNS.unwrap_or(entries);
        let expected = blocks.checked_mul(columns as u64 * ENTRY as u64);
        if expected != Some(held) || info > len - TRAILER as u64 {
            return Err(damaged_trailer());
        }
        let mut directory = vec![0; (len - end) as usize];
        file.read_at(&mut directory, end)
            .map_err(Error::reading(path))?;
        if !is_sealed(&directory[..directory.len() - size_of::<Magic>()]) {
            return Err(damaged("its directory does not match its checksum"));
        }
        let text = &directory[held as usize..directory.len() - TRAILER];
        let wrong = |error: serde_json::Error| damaged(&format!("its info: {error}"));
        // Another version may have other fields.
        let InfoVersion { version } = serde_json::from_slice(text).map_err(wrong)?;
        if version != version_of(&I::MAGIC) {
            return Err(other_version::<I>(path, &version.to_string()));
        }
        let info: I = serde_json::from_slice(text).map_err(wrong)?;
        if !info.fits(count, columns) {
            return Err(damaged("its info does not fit its trailer"));
        }
        directory.truncate(held as usize);
        Ok(BlockFile {
            path: path.into(),
            file,
            directory,
            columns,
            count,
            end,
            info,
        })
    }

    /// Opens the file at `path`; `None` if there is none.
    pub fn open_any(disk: &dyn Disk, path: &Path) -> Result<Option<BlockFile<I>>> {
        match Self::open(disk, path) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            file => file.map(Some),
        }
    }

    pub fn info(&self) -> &I {
        &self.info
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.count.div_ceil(CHUNK_PAGES)
    }

    pub(crate) fn rows_of(&self, block: u64) -> usize {
        CHUNK_PAGES.min(self.count - block * CHUNK_PAGES) as usize
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    pub(crate) fn bad(&self, block: u64, which: I::Column) -> Error {
        self.damaged(format!("column {which:?} of block {block} is damaged"))
    }

    pub(super) fn column(&self, block: u64, which: I::Column) -> Result<Vec<u64>> {
        let packed = self.packed(block, which)?;
        column::unpack(&packed, self.rows_of(block)).ok_or_else(|| self.bad(block, which))
    }

    /// Returns the values at these places of a block's column.
    pub(super) fn column_at(
        &self,
        block: u64,
        which: I::Column,
        places: &[usize],
    ) -> Result<Vec<u64>> {
        let packed = self.packed(block, which)?;
        let values = column::unpack_at(&packed, self.rows_of(block), places);
        values.ok_or_else(|| self.bad(block, which))
    }

    pub(crate) fn column_blocks(
        &self,
        which: I::Column,
    ) -> impl Iterator<Item = Result<Vec<u64>>> + '_ {
        self.in_twos(move |block| self.column(block, which))
    }

    /// Calls `visit` with the number and the value of each row of a column, in order.
    pub(super) fn each_value(
        &self,
        which: I::Column,
        mut visit: impl FnMut(u64, u64),
    ) -> Result<()> {
        let mut row = 0;
        for values in self.column_blocks(which) {
            for value in values? {
                visit(row, value);
                row += 1;
            }
        }
        Ok(())
    }

    /// Iterates over the results of `read` for all blocks, in order; two blocks are read at a time.
    pub(super) fn in_twos<T: Send>(
        &self,
        read: impl Fn(u64) -> Result<T> + Sync,
    ) -> impl Iterator<Item = Result<T>> {
        let blocks = self.blocks();
        (0..blocks).step_by(2).flat_map(move |block| {
            let has_next = block + 1 < blocks;
            let next = || has_next.then(|| read(block + 1));
            let (next, this) = join(has_next, next, || read(block));
            std::iter::once(this).chain(next)
        })
    }

    pub(crate) fn packed(&self, block: u64, which: I::Column) -> Result<Vec<u8>> {
        let at = (block as usize * self.columns + which.into()) * ENTRY;
        let mut entry = HeadReader(&self.directory[at..at + ENTRY]);
        let (offset, len, sum) = (entry.u64(), u64::from(entry.u32()), entry.u64());
        if offset.checked_add(len).is_none_or(|end| end > self.end) {
            return Err(self.damaged(format!(
                "its directory puts column {which:?} of block {block} outside of the columns"
            )));
        }
        let mut packed = vec![0; len as usize];
        self.file
            .read_at(&mut packed, offset)
            .map_err(Error::reading(&self.path))?;
        if xxh3_64(&packed) != sum {
            return Err(self.bad(block, which));
        }
        Ok(packed)
    }
}

#[derive(serde::Deserialize)]
struct InfoVersion {
    version: u32,
}

pub(crate) const fn version_of(magic: &Magic) -> u32 {
    ((magic[6] - b'0') * 10 + magic[7] - b'0') as u32
}

fn check_magic<I: FileInfo>(first: &Magic, last: &[u8], path: &Path) -> Result<()> {
    if *first == I::MAGIC && last == first {
        return Ok(());
    }
    // Before they were files of blocks, some kinds began with their version as a number of 8 bytes.
    let number = u64::from_le_bytes(*first);
    if (1..u64::from(version_of(&I::MAGIC))).contains(&number) {
        return Err(other_version::<I>(path, &number.to_string()));
    }
    if first == last && first[..6] == I::MAGIC[..6] && first[6..].iter().all(u8::is_ascii_digit) {
        let found = String::from_utf8_lossy(&first[6..]);
        return Err(other_version::<I>(path, &found));
    }
    let what = format!("it does not begin and end like a {}", I::NAME);
    Err(Error::damaged(path, what))
}

fn other_version<I: FileInfo>(path: &Path, found: &str) -> Error {
    Error::Unsupported(format!(
        "{}: a {} of version {found}; this cashrank reads version {}: use the cashrank that made it, or {}",
        path.display(),
        I::NAME,
        version_of(&I::MAGIC),
        I::REMEDY
    ))
}

/// Returns rows in the order of `numbers`. `read` gets a block and ascending places in it, once per block, in parallel.
pub(super) fn rows_at<T: Clone + Send>(
    numbers: &[PageId],
    read: impl Fn(u64, &[usize]) -> Result<Vec<T>> + Sync,
) -> Result<Vec<T>> {
    let block_of = |at: usize| numbers[at].0 / CHUNK_PAGES;
    let mut sorted: Vec<usize> = (0..numbers.len()).collect();
    sorted.sort_unstable_by_key(|&at| numbers[at]);
    let mut blocks: Vec<&[usize]> =
        (sorted.chunk_by(|&one, &other| block_of(one) == block_of(other))).collect();
    let parts = par_map(&mut blocks, |_, rows| {
        let inside = |&at: &usize| (numbers[at].0 % CHUNK_PAGES) as usize;
        let places: Vec<usize> = rows.iter().map(inside).collect();
        let found = read(block_of(rows[0]), &places)?;
        Ok(rows.iter().copied().zip(found).collect::<Vec<_>>())
    })?;
    let mut found = vec![None; numbers.len()];
    for (at, row) in parts.into_iter().flatten() {
        found[at] = Some(row);
    }
    Ok(found.into_iter().flatten().collect())
}

pub(crate) fn flat<B: IntoIterator>(
    mut blocks: impl Iterator<Item = Result<B>>,
) -> impl Iterator<Item = Result<B::Item>> {
    let mut items: Option<B::IntoIter> = None;
    std::iter::from_fn(move || {
        loop {
            if let Some(item) = items.as_mut().and_then(Iterator::next) {
                return Some(Ok(item));
            }
            match blocks.next()? {
                Ok(block) => items = Some(block.into_iter()),
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

pub(crate) struct BlockWriter<I> {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    at: u64,
    columns: usize,
    directory: Vec<[u8; ENTRY]>,
    info: PhantomData<fn(&I)>,
}

impl<I: FileInfo + Serialize> BlockWriter<I> {
    pub fn create(disk: &dyn Disk, path: &Path, columns: usize) -> Result<BlockWriter<I>> {
        let file = recreate(disk, path).map_err(Error::io(path, "create"))?;
        let mut writer = BlockWriter {
            path: path.into(),
            file,
            at: 0,
            columns,
            directory: Vec::new(),
            info: PhantomData,
        };
        writer.write(&I::MAGIC)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<u64> {
        let offset = self.at;
        self.file
            .write_at(bytes, offset)
            .map_err(Error::io(&self.path, "write"))?;
        self.at += bytes.len() as u64;
        Ok(offset)
    }

    pub fn column(&mut self, block: usize, which: I::Column, values: &[u64]) -> Result<()> {
        self.packed(block, which, &column::pack(values)?)
    }

    pub fn packed(&mut self, block: usize, which: I::Column, packed: &[u8]) -> Result<()> {
        let entries = self.directory.len().max((block + 1) * self.columns);
        self.directory.resize(entries, [0; ENTRY]);
        let entry = BlockHead::default().u64(self.write(packed)?);
        let entry = entry.u32(packed.len() as u32).u64(xxh3_64(packed)).bytes();
        self.directory[block * self.columns + which.into()].copy_from_slice(&entry);
        Ok(())
    }

    /// Writes what follows the columns, and makes the file durable.
    pub fn finish(mut self, count: u64, info: &I) -> Result<()> {
        let mut tail = self.directory.concat();
        let directory = self.at;
        let info_at = directory + tail.len() as u64;
        let text = serde_json::to_vec(info).map_err(|error| Error::internal(error.to_string()))?;
        tail.extend_from_slice(&text);
        let places = [directory, info_at, count];
        let mut tail = BlockHead::after(tail).u64s(places).sealed();
        tail.extend_from_slice(&I::MAGIC);
        self.write(&tail)?;
        self.file.sync().map_err(Error::io(&self.path, "sync"))
    }
}
