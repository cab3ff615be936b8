//! The index at an archive's end: where each block lies. For reading from the middle.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::section::{END_HEAD, ENTRY, EndHead, TAIL, TAIL_MAGIC};
use crate::codec::frame::Fields;
use crate::codec::varint::number;
use crate::{Error, Result};

/// Where a block lies, and what comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Offset of the block in the archive.
    pub offset: u64,
    /// Records before it.
    pub first_record: u64,
    /// Names before it.
    pub first_name: u64,
    /// Links as read before it.
    pub first_link: u64,
}

/// The index of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// The blocks, in order.
    pub blocks: Vec<Stretch>,
    /// Records of all kinds.
    pub records: u64,
    /// Names.
    pub names: u64,
    /// Links as read.
    pub links: u64,
    /// Offset of the end section: where the last block ends.
    pub end: u64,
}

impl Index {
    /// Reads the index of the archive at `path`, and nothing else of it. Not for compressed archives.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Unsupported`] if the file does not end as an archive does.
    pub fn read(path: &Path) -> Result<Index> {
        let io = |source| Error::io(path, "read")(source);
        let refused = |what: &str| Error::Unsupported(format!("{}: {what}", path.display()));
        let none = || refused("its end is not that of a crawl archive (formats/cza.md)");
        let mut file = File::open(path).map_err(Error::io(path, "open"))?;
        let len = file.seek(SeekFrom::End(0)).map_err(io)?;
        let mut read = |from: u64, len: usize| {
            let mut bytes = vec![0; len];
            file.seek(SeekFrom::Start(from)).map_err(io)?;
            file.read_exact(&mut bytes).map_err(io)?;
            Ok(bytes)
        };
        let tail = read(len.checked_sub(TAIL as u64).ok_or_else(none)?, TAIL)?;
        let section = number(&tail[..8]);
        let least = (END_HEAD + TAIL) as u64;
        if tail[8..] != TAIL_MAGIC || section > len || section < least {
            return Err(none());
        }
        let end = len - section;
        let head =
            EndHead::read(&read(end, END_HEAD)?).map_err(|super::Fault(what)| refused(&what))?;
        if head.body() != Some(section - END_HEAD as u64) {
            return Err(none());
        }
        let entries = usize::try_from(section - least).map_err(|_| none())?;
        let entries = read(end + END_HEAD as u64, entries)?;
        if xxh3_64(&entries) != head.entries_sum {
            return Err(refused("the index of blocks does not match its checksum"));
        }
        let blocks = entries.chunks_exact(ENTRY).map(|entry| {
            let [offset, first_record, first_name, first_link] = Fields(entry).u64s();
            Stretch {
                offset,
                first_record,
                first_name,
                first_link,
            }
        });
        Ok(Index {
            blocks: blocks.collect(),
            records: head.records,
            names: head.names,
            links: head.links,
            end,
        })
    }

    /// The block that has the record `number`, counted from 0.
    pub fn find(&self, number: u64) -> Option<&Stretch> {
        let after = self
            .blocks
            .partition_point(|block| block.first_record <= number);
        let found = after.checked_sub(1).map(|at| &self.blocks[at]);
        found.filter(|_| number < self.records)
    }
}
