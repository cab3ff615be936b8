//! Reading the blocks of a log in order, a stretch of its data at a time.

use xxhash_rust::xxh3::xxh3_64;

use super::{Block, BlockLog, HEADER, Head};
use crate::{Error, Result};

impl BlockLog {
    /// The block at `offset`, as [`BlockLog::block_at`] reads it.
    fn block_ahead(&self, offset: u64, ahead: &mut Ahead) -> Result<(Block, u64)> {
        match ahead.framed(self, offset)? {
            Some((head, payload)) if head.fits(xxh3_64(payload)) => {
                let end = offset + (HEADER + payload.len()) as u64;
                Ok((head.block(payload.to_vec()), end))
            }
            _ => self.block_at(offset),
        }
    }

    /// All blocks in order. Checks that pages follow on without a gap.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Block>> + '_ {
        self.blocks_at((0, 0))
    }

    /// The block that holds `page`, and all blocks after it. Where no block holds it: those from the last one on.
    pub fn blocks_from(&self, page: u64) -> Result<impl Iterator<Item = Result<Block>> + '_> {
        let begin = match page {
            0 => (0, 0),
            page => self.place_of(page)?,
        };
        Ok(self.blocks_at(begin))
    }

    /// All blocks from the one at `offset` on, which begins with `page`.
    fn blocks_at(
        &self,
        (mut page, mut offset): (u64, u64),
    ) -> impl Iterator<Item = Result<Block>> + '_ {
        let mut ahead = Ahead::default();
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

/// Bytes of a log's data read at a time, where it is read in order.
const AHEAD: u64 = 4 << 20;

/// A stretch of a log's data.
#[derive(Default)]
struct Ahead {
    offset: u64,
    bytes: Vec<u8>,
}

impl Ahead {
    /// Head and payload of the block at `offset`; `None`: it is too large, or its length is wrong.
    fn framed(&mut self, log: &BlockLog, offset: u64) -> Result<Option<(Head, &[u8])>> {
        if !self.read(log, offset, HEADER as u64)? {
            return Ok(None);
        }
        let head = Head::of(self.from(offset));
        if !self.read(log, offset, HEADER as u64 + head.length)? {
            return Ok(None);
        }
        let payload = &self.from(offset)[HEADER..][..head.length as usize];
        Ok(Some((head, payload)))
    }

    fn from(&self, offset: u64) -> &[u8] {
        &self.bytes[(offset - self.offset) as usize..]
    }

    /// Reads on if `len` bytes from `offset` on, at least the stretch's own, are not there yet. False:
    /// they can't be.
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
