//! An append-only file of checksummed blocks, with an index of their offsets.
//!
//! Blocks are in page order; a block holds a range of pages (or of rows, numbered from 0). Appending touches only bytes
//! after the committed length, so readers are never disturbed, and recovery is a truncation. See `formats/store.md`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{Access, Disk, StoreFile};
use crate::codec::frame::{self, HeadReader};
use crate::{Error, Result};

const HEADER: usize = 24;
/// Number of header bytes covered by its checksum.
const SUMMED: usize = 16;
const ENTRY: u64 = 16;
/// Payload length in bytes above which the checksum is verified before the payload is loaded.
const LARGE: u64 = 1 << 20;
/// Number of bytes that sequential readers read at a time: network disks answer few requests per second.
const AHEAD: u64 = 4 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLengths {
    pub data: u64,
    pub index: u64,
}

/// Block of pages `first .. first + pages`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBlock {
    pub first: u64,
    pub pages: u32,
    pub payload: Vec<u8>,
}

impl LogBlock {
    pub fn pages(&self) -> std::ops::Range<u64> {
        self.first..self.first.saturating_add(self.pages.into())
    }
}

struct LogBlockHeader {
    first: u64,
    pages: u32,
    length: u64,
    sum: u64,
    summed: [u8; SUMMED],
}

impl LogBlockHeader {
    /// Decodes the header at the start of `bytes`, which are at least [`HEADER`].
    fn of(bytes: &[u8]) -> LogBlockHeader {
        let mut summed = [0; SUMMED];
        summed.copy_from_slice(&bytes[..SUMMED]);
        let mut fields = HeadReader(bytes);
        LogBlockHeader {
            first: fields.u64(),
            pages: fields.u32(),
            length: fields.u32().into(),
            sum: fields.u64(),
            summed,
        }
    }

    /// Returns true if the checksum matches the header and a payload with this hash.
    fn fits(&self, payload: u64) -> bool {
        frame::checksum(&self.summed, payload) == self.sum
    }
}

/// Log open for reading up to given lengths and, for the writer, for appending.
pub struct BlockLog {
    data: StoreFile,
    index: StoreFile,
    lengths: LogLengths,
    /// Bytes appended since the last flush.
    data_tail: Vec<u8>,
    index_tail: Vec<u8>,
}

impl BlockLog {
    /// Opens the log up to the committed lengths: for reading, or for writing, which truncates it to them.
    pub fn open(
        disk: &dyn Disk,
        path: &Path,
        access: Access,
        lengths: LogLengths,
    ) -> Result<BlockLog> {
        let log = BlockLog {
            data: access.open(disk, path)?,
            index: access.open(disk, &path.with_extension("index"))?,
            lengths,
            data_tail: Vec::new(),
            index_tail: Vec::new(),
        };
        for (file, len) in log.files(lengths) {
            let found = file.size()?;
            if found < len {
                let what = format!("{found} bytes long, but {len} were committed");
                return Err(file.damaged(what));
            }
        }
        if access == Access::Write {
            log.cut(lengths)?;
        }
        Ok(log)
    }

    pub fn path(&self) -> &Path {
        &self.data.path
    }

    pub fn damaged(&self, what: impl Into<String>) -> Error {
        self.data.damaged(what)
    }

    fn files(&self, lengths: LogLengths) -> [(&StoreFile, u64); 2] {
        [(&self.data, lengths.data), (&self.index, lengths.index)]
    }

    pub fn cut(&self, lengths: LogLengths) -> Result<()> {
        for (file, len) in self.files(lengths) {
            if file.size()? > len {
                file.set_len(len)?;
            }
        }
        Ok(())
    }

    /// Appends a block, in memory until [`BlockLog::flush`].
    pub fn append(&mut self, first: u64, pages: u32, payload: &[u8]) {
        let offset = self.lengths.data + self.data_tail.len() as u64;
        self.index_tail.extend_from_slice(&first.to_le_bytes());
        self.index_tail.extend_from_slice(&offset.to_le_bytes());
        let head = frame::BlockHead::default().u64(first).u32(pages);
        let head = head.u32(payload.len() as u32).summed(xxh3_64(payload));
        self.data_tail.extend_from_slice(&head);
        self.data_tail.extend_from_slice(payload);
    }

    pub fn waiting(&self) -> usize {
        self.data_tail.len()
    }

    pub fn bytes(&self) -> u64 {
        self.lengths.data + self.data_tail.len() as u64
    }

    /// Writes what was appended; durable only after [`BlockLog::sync`].
    pub fn flush(&mut self) -> Result<()> {
        let data = self.data.file.write_at(&self.data_tail, self.lengths.data);
        let index = |()| (self.index.file).write_at(&self.index_tail, self.lengths.index);
        data.and_then(index)
            .map_err(Error::io(&self.data.path, "append"))?;
        self.lengths.data += self.data_tail.len() as u64;
        self.lengths.index += self.index_tail.len() as u64;
        self.data_tail.clear();
        self.index_tail.clear();
        Ok(())
    }

    /// Flushes the log and makes it durable. Returns the lengths to commit.
    pub fn sync(&mut self) -> Result<LogLengths> {
        self.flush()?;
        self.data.sync()?;
        self.index.sync()?;
        Ok(self.lengths)
    }

    fn head_at(&self, offset: u64) -> Result<LogBlockHeader> {
        let mut head = [0; HEADER];
        self.data.read_at(&mut head, offset)?;
        Ok(LogBlockHeader::of(&head))
    }

    /// Reads and checks the block at `offset`, by `read`. Returns it with the offset of the next.
    fn block_by(
        &self,
        offset: u64,
        mut read: impl FnMut(&mut [u8], u64) -> Result<()>,
    ) -> Result<(LogBlock, u64)> {
        let at = |what: &str| self.data.damaged(format!("block at byte {offset}: {what}"));
        let head_end = offset.checked_add(HEADER as u64);
        let start = head_end.filter(|&end| end <= self.lengths.data);
        let start = start.ok_or_else(|| at("past the committed length"))?;
        let mut head = [0; HEADER];
        read(&mut head, offset)?;
        let head = LogBlockHeader::of(&head);
        let end = start + head.length;
        if end > self.lengths.data {
            return Err(at("its length is wrong"));
        }
        // Blocks are small. A damaged length must not take gigabytes of memory before it is detected.
        if head.length > LARGE && !head.fits(self.sum_of(start, head.length)?) {
            return Err(at("its checksum does not match"));
        }
        let mut payload = vec![0; head.length as usize];
        read(&mut payload, start)?;
        if !head.fits(xxh3_64(&payload)) {
            return Err(at("its checksum does not match"));
        }
        let block = LogBlock {
            first: head.first,
            pages: head.pages,
            payload,
        };
        Ok((block, end))
    }

    fn block_at(&self, offset: u64) -> Result<(LogBlock, u64)> {
        self.block_by(offset, |bytes, at| self.data.read_at(bytes, at))
    }

    /// Reads the block to which an entry of the index leads, with the offset of the next.
    fn block_led_to(&self, (_, offset): (u64, u64)) -> Result<(LogBlock, u64)> {
        let block = self.block_at(offset);
        block.map_err(|error| self.blame(offset, error))
    }

    /// Reads committed bytes from those that were read ahead from offset `start` on, which is not after `offset`.
    fn read_ahead(
        &self,
        bytes: &mut [u8],
        offset: u64,
        (start, ahead): &mut (u64, Vec<u8>),
    ) -> Result<()> {
        if offset + bytes.len() as u64 > *start + ahead.len() as u64 {
            if bytes.len() as u64 > AHEAD {
                return self.data.read_at(bytes, offset);
            }
            *start = offset;
            ahead.resize((self.lengths.data - offset).min(AHEAD) as usize, 0);
            self.data.read_at(ahead, offset)?;
        }
        bytes.copy_from_slice(&ahead[(offset - *start) as usize..][..bytes.len()]);
        Ok(())
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
        let (mut failed, mut ahead) = (false, (0, Vec::new()));
        std::iter::from_fn(move || {
            if failed || offset >= self.lengths.data {
                return None;
            }
            let read = |bytes: &mut [u8], at| self.read_ahead(bytes, at, &mut ahead);
            let block = self.block_by(offset, read).and_then(|(block, end)| {
                if block.first != page {
                    let what = format!(
                        "block at byte {offset} begins with number {}, expected {page}",
                        block.first
                    );
                    return Err(self.data.damaged(what));
                }
                (page, offset) = (block.pages().end, end);
                Ok(block)
            });
            failed = block.is_err();
            Some(block)
        })
    }

    fn sum_of(&self, mut offset: u64, mut len: u64) -> Result<u64> {
        let mut hash = Xxh3::new();
        let mut piece = vec![0; LARGE as usize];
        while len > 0 {
            piece.truncate(len.min(LARGE) as usize);
            self.data.read_at(&mut piece, offset)?;
            hash.update(&piece);
            offset += piece.len() as u64;
            len -= piece.len() as u64;
        }
        Ok(hash.digest())
    }

    fn entry(&self, at: u64) -> Result<(u64, u64)> {
        let mut bytes = [0; ENTRY as usize];
        self.index.read_at(&mut bytes, at * ENTRY)?;
        let [first, offset] = HeadReader(&bytes).u64s();
        Ok((first, offset))
    }

    pub fn entries(&self) -> u64 {
        self.lengths.index / ENTRY
    }

    /// Reads the start of the payload of block `at`, unverified: as many bytes as `len` returns for the first `least`.
    pub fn front(
        &self,
        at: u64,
        least: usize,
        len: impl FnOnce(&[u8]) -> Option<usize>,
    ) -> Result<(Vec<u8>, u64, u32)> {
        let (_, offset) = self.entry(at)?;
        let damaged = || self.damaged_at(at, format!("there is no block at byte {offset}"));
        let end_of = |len: usize| offset.checked_add((HEADER + len) as u64);
        let is_inside = |len: usize| end_of(len).is_some_and(|end| end <= self.lengths.data);
        if !is_inside(least) {
            return Err(damaged());
        }
        let mut bytes = vec![0; HEADER + least];
        self.data.read_at(&mut bytes, offset)?;
        let head = LogBlockHeader::of(&bytes);
        bytes.drain(..HEADER);
        let len = len(&bytes).filter(|&len| len >= least && len as u64 <= head.length);
        let len = len.filter(|&len| is_inside(len)).ok_or_else(damaged)?;
        bytes.resize(len, 0);
        let rest = offset + (HEADER + least) as u64;
        self.data.read_at(&mut bytes[least..], rest)?;
        Ok((bytes, head.first, head.pages))
    }

    /// Returns first page and offset of the block that holds `page` by the index; the last block if there is none.
    fn place_of(&self, page: u64) -> Result<(u64, u64)> {
        let (mut low, mut high) = (0, self.entries());
        while low < high {
            let mid = (low + high) / 2;
            if self.entry(mid)?.0 <= page {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        self.entry(low.checked_sub(1).ok_or_else(|| self.leads_nowhere(page))?)
    }

    fn leads_nowhere(&self, page: u64) -> Error {
        self.index
            .damaged(format!("it leads to no block with page {page}"))
    }

    pub fn find(&self, page: u64) -> Result<LogBlock> {
        let (block, _) = self.block_led_to(self.place_of(page)?)?;
        if block.pages().contains(&page) {
            Ok(block)
        } else {
            Err(self.leads_nowhere(page))
        }
    }

    /// Returns a hash of the headers' checksums of all blocks up to the one that ends with `page`, if one does.
    pub fn sum_until(&self, page: u64) -> Result<Option<u64>> {
        let mut sums = Xxh3::new();
        for at in 0..self.entries() {
            let (_, offset) = self.entry(at)?;
            let head = self.head_at(offset)?;
            sums.update(&head.sum.to_le_bytes());
            let last = head.first.saturating_add(head.pages.into()).checked_sub(1);
            if last.is_none_or(|last| last >= page) {
                return Ok((last == Some(page)).then(|| sums.digest()));
            }
        }
        Ok(None)
    }

    /// Reads the last block, which must end where the log does; `None` if the log is empty.
    pub fn last(&self) -> Result<Option<LogBlock>> {
        let Some(last) = self.entries().checked_sub(1) else {
            return match self.lengths.data {
                0 => Ok(None),
                _ => Err(self.index.damaged("it is empty")),
            };
        };
        let (block, end) = self.block_led_to(self.entry(last)?)?;
        if end == self.lengths.data {
            Ok(Some(block))
        } else {
            let what = "its end does not lead to the last block";
            Err(self.index.damaged(what))
        }
    }

    /// Returns the error for a block that cannot be read at its index entry: it names the damaged one of the two files.
    fn blame(&self, offset: u64, error: Error) -> Error {
        let Error::Damaged { path, what } = error else {
            return error;
        };
        let index = &self.index.path;
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let index = match path.file_name().and_then(|name| name.to_str()) {
            // A number alone is not a helpful name.
            Some(name) if is_number(name) => index.display().to_string(),
            _ => index
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
        };
        let what = format!("{what} (or {index} is damaged, which leads to byte {offset})");
        Error::Damaged { path, what }
    }

    pub fn damaged_at(&self, at: u64, what: String) -> Error {
        match self.entry(at) {
            Ok((_, offset)) => self.blame(offset, self.data.damaged(what)),
            Err(error) => error,
        }
    }

    /// Checks that the index leads to every block and to nothing else.
    pub fn verify_index(&self) -> Result<()> {
        let mut offset = 0;
        let mut at = 0;
        while offset < self.lengths.data {
            let (block, end) = self.block_at(offset)?;
            if at * ENTRY >= self.lengths.index || self.entry(at)? != (block.first, offset) {
                let what = format!("entry {at} does not lead to the block at byte {offset}");
                return Err(self.index.damaged(what));
            }
            offset = end;
            at += 1;
        }
        if at * ENTRY == self.lengths.index {
            return Ok(());
        }
        let index = self.lengths.index;
        let what = format!("{index} bytes for {at} blocks of {ENTRY}");
        Err(self.index.damaged(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::memory::Memory;

    /// Regression: the end of a block's pages was computed before checking that the block holds the page; near 2^64 the
    /// sum overflowed.
    #[test]
    fn a_block_of_the_last_possible_pages_does_not_overflow() {
        let disk = Memory::default();
        let path = Path::new("urls");
        let mut log = BlockLog::open(&disk, path, Access::Create, LogLengths::default()).unwrap();
        log.append(u64::MAX - 1, 9, b"names");
        log.flush().unwrap();
        for page in [0, u64::MAX - 2] {
            assert!(matches!(log.find(page), Err(Error::Damaged { .. })));
        }
        assert_eq!(log.find(u64::MAX - 1).unwrap().payload, b"names");
    }
}
