//! Reading of the spool: its blocks in the segments that hold them, in the order of the stream. A block's header has a
//! checksum of its own, so that blocks can be skipped without reading them. Specified in `formats/store.md`.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::SpoolState;
use crate::codec::frame::{HeadReader, is_sealed};
use crate::disk::{Disk, StoreFile};
use crate::source::PIPE_BYTES;
use crate::{Error, Result};

/// Length of a block's header: offset in the stream, the stream's number, length and checksum of the payload, checksum.
const HEADER: usize = 36;
/// Maximum payload of a block, in bytes.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

pub(super) fn segment_path(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("{first:020}"))
}

/// Returns the segments, by their first bytes, that hold bytes `from .. to`.
pub(super) fn held(segments: &[u64], from: u64, to: u64) -> &[u64] {
    let end = segments.partition_point(|&first| first < to);
    let start = segments[..end].partition_point(|&first| first <= from);
    if from < to {
        &segments[start.saturating_sub(1)..end]
    } else {
        &[]
    }
}

pub(super) fn missing(dir: &Path, offset: u64) -> Error {
    let what =
        format!("no segment holds byte {offset} of the stream (or store.redb is an old one)");
    Error::damaged(dir, what)
}

/// Reader of the blocks that hold a range of a stream. Checks all headers, and the payloads inside the range.
pub(super) struct BlockReader {
    dir: PathBuf,
    input: u64,
    /// First bytes of the segments not opened yet, ascending.
    segments: VecDeque<u64>,
    /// Open segment, and its length.
    segment: Option<(StoreFile, u64)>,
    /// Offset of the next block in the segment.
    at: u64,
    /// Offset of the next block in the stream.
    offset: u64,
    /// Range of the stream; its start advances as bytes are taken.
    pub(super) from: u64,
    to: u64,
    /// Payload of the last block, if it is inside the range.
    block: Vec<u8>,
}

impl BlockReader {
    /// Creates a reader of the acknowledged bytes from byte `from` on, all of which the segments must hold.
    pub(super) fn new(dir: &Path, state: SpoolState, segments: &[u64], from: u64) -> BlockReader {
        BlockReader {
            dir: dir.into(),
            input: state.input,
            segments: held(segments, from, state.acked).iter().copied().collect(),
            segment: None,
            at: 0,
            offset: from,
            from,
            to: state.acked,
            block: Vec::new(),
        }
    }

    fn damaged(&self, what: &str) -> Error {
        let segment = self.segment.as_ref();
        let path = segment.map_or(&self.dir, |(file, _)| &file.path);
        Error::damaged(path, format!("block at byte {}: {what}", self.at))
    }

    /// Opens the next segment. Returns false if there is none, because all bytes were passed.
    fn open_next(&mut self, disk: &dyn Disk) -> Result<bool> {
        let Some(first) = self.segments.pop_front() else {
            return match &self.segment {
                _ if self.offset >= self.to => Ok(false),
                Some(_) => Err(self.damaged(&format!(
                    "it is missing: {} bytes of the stream were acknowledged",
                    self.to
                ))),
                None => Err(missing(&self.dir, self.offset)),
            };
        };
        if first > self.offset {
            return Err(missing(&self.dir, self.offset));
        }
        let path = segment_path(&self.dir, first);
        let file = disk.read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::damaged(&path, "it is missing"),
            _ => Error::io(&path, "open")(error),
        })?;
        let file = StoreFile::new(path, file);
        let size = file.size()?;
        self.at = 0;
        if self.segment.replace((file, size)).is_some() && first != self.offset {
            return Err(self.damaged("the segment before it holds its first bytes too"));
        }
        self.offset = first;
        Ok(true)
    }

    /// Reads the next block. Returns the offset of its first byte; `None` after the last block.
    fn next(&mut self, disk: &dyn Disk) -> Result<Option<u64>> {
        let (file, size) = loop {
            // Segments after the last byte of the range would hold it, too.
            let is_read = self.offset < self.to || self.segments.is_empty();
            if let Some((file, size)) = &self.segment
                && self.at < *size
                && is_read
            {
                break (file, size);
            }
            if !self.open_next(disk)? {
                return Ok(None);
            }
        };
        if self.offset >= self.to {
            return Ok(None);
        }
        let mut head = [0; HEADER];
        file.read_at(&mut head, self.at)?;
        let mut fields = HeadReader(&head);
        let [first, input] = fields.u64s();
        let (length, sum) = (fields.u32(), fields.u64());
        if !is_sealed(&head) || !(1..=BLOCK_BYTES as u32).contains(&length) {
            return Err(self.damaged("its header does not match its checksum"));
        }
        let end = first.saturating_add(length.into());
        if input != self.input {
            return Err(self.damaged("it is of another stream"));
        }
        if first != self.offset {
            return Err(self.damaged(&format!(
                "it holds byte {first} of the stream and on, expected {}",
                self.offset
            )));
        }
        let payload = self.at + HEADER as u64;
        if size - self.at < HEADER as u64 + u64::from(length) {
            return Err(self.damaged("the file ends inside it"));
        }
        if end > self.to {
            return Err(self.damaged(&format!(
                "it goes beyond byte {} of the stream, the last acknowledged",
                self.to
            )));
        }
        if end > self.from {
            self.block.resize(length as usize, 0);
            file.read_at(&mut self.block, payload)?;
            if xxh3_64(&self.block) != sum {
                return Err(self.damaged("its checksum does not match"));
            }
        }
        self.at = payload + u64::from(length);
        self.offset = end;
        Ok(Some(first))
    }

    /// Checks all blocks, and their payloads in the range. Returns the offset at which the last one ends in its segment.
    pub(super) fn check(mut self, disk: &dyn Disk) -> Result<u64> {
        while self.next(disk)?.is_some() {}
        Ok(self.at)
    }
}

/// Reader of the bytes of a spool between two offsets of the stream. Its errors wrap those of this crate.
pub struct SpoolReader {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) blocks: BlockReader,
    /// Number of bytes of the last block that were taken.
    pub(super) given: usize,
}

impl SpoolReader {
    /// Reads the block that holds the next byte.
    fn next_block(&mut self) -> Result<()> {
        let at = self.blocks.from;
        loop {
            let first = self.blocks.next(&*self.disk)?;
            let first = first.ok_or_else(|| missing(&self.blocks.dir, at))?;
            if self.blocks.offset > at {
                self.given = (at - first) as usize;
                return Ok(());
            }
        }
    }
}

impl Read for SpoolReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.blocks.to - self.blocks.from;
        let mut want = usize::try_from(left).unwrap_or(out.len()).min(out.len());
        if want as u64 == left && want >= PIPE_BYTES {
            // The last read must be a short one. It is taken for a pause of the stream, so the spool's contents are
            // processed without waiting for what comes after them.
            want -= 1;
        }
        let mut filled = 0;
        while filled < want {
            if self.given == self.blocks.block.len() {
                self.next_block().map_err(io::Error::other)?;
            }
            let rest = &self.blocks.block[self.given..];
            let part = (want - filled).min(rest.len());
            out[filled..filled + part].copy_from_slice(&rest[..part]);
            filled += part;
            self.given += part;
            self.blocks.from += part as u64;
        }
        Ok(filled)
    }
}
