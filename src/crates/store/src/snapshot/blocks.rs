//! Files of columns by block, with checksums: snapshots, and the rankings computed beside them. The meaning of the
//! columns and of the info is up to their readers and writers. See `formats/snapshot.md`.
//!
//! ```text
//! magic | packed columns | directory | info | trailer
//! ```

use std::path::{Path, PathBuf};

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::{ENTRY, TRAILER, column};
use crate::codec::frame::{BlockHead, HeadReader, is_sealed};
use crate::disk::recreate;
use crate::engine::CHUNK_PAGES;
use crate::store::{Disk, DiskFile};
use crate::{Error, Result};

/// First and last bytes of a file: six letters, and the version in two digits.
pub(super) type Magic = [u8; 8];

pub(super) struct FileKind {
    /// Name of this kind of file, for messages.
    pub name: &'static str,
    /// Magics of its versions, the newest first.
    pub magics: &'static [Magic],
    /// Function that returns the error for an unsupported version.
    pub other_version: fn(&Path, &str) -> Error,
}

/// File that is open for reading.
pub(super) struct BlockFile {
    pub path: PathBuf,
    file: Box<dyn DiskFile>,
    directory: Vec<u8>,
    pub columns: usize,
    /// Number of rows in all blocks.
    pub count: u64,
    /// Offset of the directory, which follows the columns.
    end: u64,
}

/// Header of a file: the data after its directory.
pub(super) struct Described {
    /// Version of the file, as an index into [`FileKind::magics`].
    pub version: usize,
    pub info: Vec<u8>,
}

impl BlockFile {
    /// Opens a file of this kind. `columns` returns the number of columns for a version, given as an index into
    /// [`FileKind::magics`]; `None` for as many as the directory has entries.
    pub fn open(
        disk: &dyn Disk,
        path: &Path,
        kind: &FileKind,
        columns: impl Fn(usize) -> Option<usize>,
    ) -> Result<(BlockFile, Described)> {
        let file = disk.read(path).map_err(Error::io(path, "open"))?;
        let damaged = |what: &str| Error::damaged(path, what);
        let len = file.size().map_err(Error::io(path, "measure"))?;
        if len < (size_of::<Magic>() + TRAILER) as u64 {
            return Err(damaged(&format!("too short for a {}", kind.name)));
        }
        let mut trailer = [0; TRAILER];
        file.read_at(&mut trailer, len - TRAILER as u64)
            .map_err(Error::reading(path))?;
        let mut magic = Magic::default();
        file.read_at(&mut magic, 0).map_err(Error::reading(path))?;
        let version = version_of(&magic, &trailer[32..], kind, path)?;
        let [directory, info, count] = HeadReader(&trailer).u64s();
        let blocks = count.div_ceil(CHUNK_PAGES);
        let damaged_trailer = || damaged("its trailer is damaged");
        let held = info.checked_sub(directory).ok_or_else(damaged_trailer)?;
        let columns = match columns(version) {
            Some(columns) => columns,
            None => (held / blocks.max(1) / ENTRY as u64) as usize,
        };
        let entries = columns as u64 * ENTRY as u64;
        if blocks.checked_mul(entries) != Some(held) || info > len - TRAILER as u64 {
            return Err(damaged_trailer());
        }
        let mut tail = vec![0; (len - directory) as usize];
        file.read_at(&mut tail, directory)
            .map_err(Error::reading(path))?;
        if !is_sealed(&tail[..tail.len() - size_of::<Magic>()]) {
            return Err(damaged("its directory does not match its checksum"));
        }
        let text = tail[held as usize..tail.len() - TRAILER].to_vec();
        tail.truncate(held as usize);
        let opened = BlockFile {
            path: path.into(),
            file,
            directory: tail,
            columns,
            count,
            end: directory,
        };
        Ok((
            opened,
            Described {
                version,
                info: text,
            },
        ))
    }

    pub fn blocks(&self) -> u64 {
        self.count.div_ceil(CHUNK_PAGES)
    }

    pub fn rows_of(&self, block: u64) -> usize {
        CHUNK_PAGES.min(self.count - block * CHUNK_PAGES) as usize
    }

    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// Returns the error that a column, here called `name`, is damaged.
    pub fn bad(&self, block: u64, name: &str) -> Error {
        self.damaged(format!("column {name} of block {block} is damaged"))
    }

    pub fn numbers(&self, block: u64, column: usize, name: &str) -> Result<Vec<u64>> {
        let packed = self.packed(block, column, name)?;
        column::unpack(&packed, self.rows_of(block)).ok_or_else(|| self.bad(block, name))
    }

    /// Reads the packed bytes of a column and checks their checksum.
    pub fn packed(&self, block: u64, column: usize, name: &str) -> Result<Vec<u8>> {
        let at = (block as usize * self.columns + column) * ENTRY;
        let entry = &self.directory[at..at + ENTRY];
        let mut entry = HeadReader(entry);
        let (offset, len, sum) = (entry.u64(), u64::from(entry.u32()), entry.u64());
        if offset.checked_add(len).is_none_or(|end| end > self.end) {
            return Err(self.damaged(format!(
                "its directory puts column {name} of block {block} outside of the columns"
            )));
        }
        let mut packed = vec![0; len as usize];
        self.file
            .read_at(&mut packed, offset)
            .map_err(Error::reading(&self.path))?;
        if xxh3_64(&packed) != sum {
            return Err(self.bad(block, name));
        }
        Ok(packed)
    }
}

/// Checks the first and last bytes of a file. Returns the index of its magic.
fn version_of(first: &Magic, last: &[u8], kind: &FileKind, path: &Path) -> Result<usize> {
    let known = kind.magics.iter().position(|magic| first == magic);
    if let Some(known) = known
        && first == last
    {
        return Ok(known);
    }
    let letters = &kind.magics[0][..6];
    if first == last && first[..6] == *letters && first[6..].iter().all(u8::is_ascii_digit) {
        return Err((kind.other_version)(
            path,
            &String::from_utf8_lossy(&first[6..]),
        ));
    }
    Err(Error::damaged(
        path,
        format!("it does not begin and end like a {}", kind.name),
    ))
}

/// Location and checksum of a packed column.
#[derive(Clone, Copy, Default)]
pub(super) struct PackedColumnRef {
    pub offset: u64,
    pub len: u32,
    pub sum: u64,
}

/// File that is being written.
pub(super) struct BlockWriter {
    pub path: PathBuf,
    pub file: Box<dyn DiskFile>,
    at: u64,
    magic: Magic,
}

impl BlockWriter {
    pub fn create(disk: &dyn Disk, path: &Path, magic: Magic) -> Result<BlockWriter> {
        let file = recreate(disk, path).map_err(Error::io(path, "create"))?;
        let mut writer = BlockWriter {
            path: path.into(),
            file,
            at: 0,
            magic,
        };
        writer.write(&magic)?;
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

    pub fn column(&mut self, packed: std::io::Result<impl AsRef<[u8]>>) -> Result<PackedColumnRef> {
        let packed = packed.map_err(Error::io(&self.path, "compress"))?;
        let packed = packed.as_ref();
        Ok(PackedColumnRef {
            offset: self.write(packed)?,
            len: packed.len() as u32,
            sum: xxh3_64(packed),
        })
    }

    /// Writes what follows the columns, and makes the file durable. The directory is ordered by block and column.
    pub fn finish(
        mut self,
        directory: impl Iterator<Item = PackedColumnRef>,
        count: u64,
        info: &impl Serialize,
    ) -> Result<()> {
        let put = |head: BlockHead, packed: PackedColumnRef| {
            head.u64(packed.offset).u32(packed.len).u64(packed.sum)
        };
        let mut tail = directory.fold(BlockHead::default(), put).bytes();
        let directory = self.at;
        let info_at = directory + tail.len() as u64;
        let text = serde_json::to_vec(info).map_err(|error| Error::internal(error.to_string()))?;
        tail.extend_from_slice(&text);
        let places = [directory, info_at, count];
        let mut tail = BlockHead::behind(tail).u64s(places).sealed();
        tail.extend_from_slice(&self.magic);
        self.write(&tail)?;
        self.file.sync().map_err(Error::io(&self.path, "sync"))
    }
}
