//! Blocks of the spool, and segments as runs of blocks.
//!
//! ```text
//! segment      block*         its name: offset of its first byte in the stream, 20 digits
//! block        offset u64 | input u64 | length u32 | payload's XXH3-64 u64 |
//!              XXH3-64 of these 28 bytes u64 | payload
//! ```
//! All little-endian. The header has a checksum of its own, so that blocks can be skipped without reading them.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::codec::frame::{self, HeadReader, is_sealed};
use crate::disk::{Disk, DiskFile};
use crate::{Error, Result};

pub(super) const HEADER: usize = 36;
/// Maximum payload of a block, in bytes.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpoolBlockHeader {
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Number of the stream among the store's inputs.
    pub input: u64,
    pub length: u32,
    /// XXH3-64 of the payload.
    pub payload: u64,
}

impl SpoolBlockHeader {
    pub fn to_bytes(self) -> Vec<u8> {
        let head = frame::BlockHead::default().u64(self.offset).u64(self.input);
        head.u32(self.length).u64(self.payload).sealed()
    }

    /// Decodes a header; `None` if its checksum does not match or the length is impossible.
    fn from_bytes(head: &[u8; HEADER]) -> Option<SpoolBlockHeader> {
        let mut fields = HeadReader(head);
        let found = SpoolBlockHeader {
            offset: fields.u64(),
            input: fields.u64(),
            length: fields.u32(),
            payload: fields.u64(),
        };
        let is_sound = is_sealed(head) && (1..=BLOCK_BYTES as u32).contains(&found.length);
        is_sound.then_some(found)
    }

    /// Returns the offset of the stream's byte after the block.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }
}

pub(super) fn segment_path(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("{first:020}"))
}

/// Reader of a segment, block by block.
#[derive(Debug)]
pub(super) struct SegmentReader {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    size: u64,
    input: u64,
    /// Offset of the next block in the file.
    pub at: u64,
    /// Offset in the stream of the next block's first byte.
    pub offset: u64,
}

impl SegmentReader {
    /// Opens the segment that begins with byte `first` of the stream.
    pub fn open(disk: &dyn Disk, dir: &Path, first: u64, input: u64) -> Result<SegmentReader> {
        let path = segment_path(dir, first);
        let file = disk.read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::damaged(&path, "it is missing"),
            _ => Error::io(&path, "open")(error),
        })?;
        let size = file.size().map_err(Error::io(&path, "measure"))?;
        Ok(SegmentReader {
            path,
            file,
            size,
            input,
            at: 0,
            offset: first,
        })
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.size
    }

    pub fn damaged(&self, what: &str) -> Error {
        Error::damaged(&self.path, format!("block at byte {}: {what}", self.at))
    }

    /// Reads and checks the header of the next block.
    pub fn head(&self) -> Result<SpoolBlockHeader> {
        let mut bytes = [0; HEADER];
        self.file
            .read_at(&mut bytes, self.at)
            .map_err(Error::reading(&self.path))?;
        let Some(head) = SpoolBlockHeader::from_bytes(&bytes) else {
            return Err(self.damaged("its header does not match its checksum"));
        };
        if head.input != self.input {
            return Err(self.damaged("it is of another stream"));
        }
        if head.offset != self.offset {
            return Err(self.damaged(&format!(
                "it holds byte {} of the stream and on, expected {}",
                head.offset, self.offset
            )));
        }
        if self.size - self.at < HEADER as u64 + u64::from(head.length) {
            return Err(self.damaged("the file ends inside it"));
        }
        Ok(head)
    }

    /// Reads and checks the payload of the next block.
    pub fn payload(&self, head: &SpoolBlockHeader, payload: &mut Vec<u8>) -> Result<()> {
        payload.resize(head.length as usize, 0);
        self.file
            .read_at(payload, self.at + HEADER as u64)
            .map_err(Error::reading(&self.path))?;
        if xxh3_64(payload) != head.payload {
            return Err(self.damaged("its checksum does not match"));
        }
        Ok(())
    }

    /// Advances past the next block.
    pub fn pass(&mut self, head: &SpoolBlockHeader) {
        self.at += HEADER as u64 + u64::from(head.length);
        self.offset = head.end();
    }
}
