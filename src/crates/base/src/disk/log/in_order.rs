//! Sequential reading of a log's blocks, with read-ahead.

use xxhash_rust::xxh3::xxh3_64;

use super::{BlockLog, HEADER, LogBlock, LogBlockHeader};
use crate::{Error, Result};

impl BlockLog {
    /// Reads the block at `offset` like [`BlockLog::block_at`], from the read-ahead buffer.
    fn block_ahead(&self, offset: u64, ahead: &mut ReadAheadBuffer) -> Result<(LogBlock, u64)> {
        match ahead.framed(self, offset)? {
            Some((head, payload)) if head.fits(xxh3_64(payload)) => {
                let end = offset + (HEADER + payload.len()) as u64;
                Ok((head.block(payload.to_vec()), end))
            }
            _ => self.block_at(offset),
        }
    }

    /// Iterates over all blocks in order. Checks that pages follow without a gap.
    pub fn blocks(&self) -> impl Iterator<Item = Result<LogBlock>> + '_ {
        self.blocks_at((0, 0))
    }

    /// Iterates from the block that holds `page`, or from the last one if none does.
    pub fn blocks_from(&self, page: u64) -> Result<impl Iterator<Item = Result<LogBlock>> + '_> {
        let begin = match page {
            0 => (0, 0),
            page => self.place_of(page)?,
        };
        Ok(self.blocks_at(begin))
    }

    /// Iterates from the block at `offset`, which begins with `page`.
    fn blocks_at(
        &self,
        (mut page, mut offset): (u64, u64),
    ) -> impl Iterator<Item = Result<LogBlock>> + '_ {
        let mut ahead = ReadAheadBuffer::default();
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed || offset >= self.lengths.data {
                return None;
            }
            let block = self
                .block_ahead(offset, &mut ahead)
                .and_then(|(block, end)| {
                    if block.first != page {
                        return Err(Error::damaged(
                            &self.path,
                            format!(
                                "block at byte {offset} begins with number {}, expected {page}",
                                block.first
                            ),
                        ));
                    }
                    offset = end;
                    page = block.pages().end;
                    Ok(block)
                });
            failed = block.is_err();
            Some(block)
        })
    }
}

/// Number of bytes read at a time.
const AHEAD: u64 = 4 << 20;

/// Read-ahead buffer of a log's data.
#[derive(Default)]
struct ReadAheadBuffer {
    offset: u64,
    bytes: Vec<u8>,
}

impl ReadAheadBuffer {
    /// Returns header and payload of the block at `offset`; `None` if it is too large or its length is wrong.
    fn framed(&mut self, log: &BlockLog, offset: u64) -> Result<Option<(LogBlockHeader, &[u8])>> {
        if !self.read(log, offset, HEADER as u64)? {
            return Ok(None);
        }
        let head = LogBlockHeader::of(self.from(offset));
        if !self.read(log, offset, HEADER as u64 + head.length)? {
            return Ok(None);
        }
        let payload = &self.from(offset)[HEADER..][..head.length as usize];
        Ok(Some((head, payload)))
    }

    fn from(&self, offset: u64) -> &[u8] {
        &self.bytes[(offset - self.offset) as usize..]
    }

    /// Reads `len` bytes from `offset` on into the buffer, at least its size, unless they are there. Returns false if
    /// the log is shorter.
    fn read(&mut self, log: &BlockLog, offset: u64, len: u64) -> Result<bool> {
        if offset + len <= self.offset + self.bytes.len() as u64 {
            return Ok(true);
        }
        let left = log.lengths.data.saturating_sub(offset).min(AHEAD);
        if len > left {
            return Ok(false);
        }
        self.offset = offset;
        self.bytes.resize(left as usize, 0);
        let read = log.data.read_at(&mut self.bytes, offset);
        read.map_err(Error::reading(&log.path))?;
        Ok(true)
    }
}
