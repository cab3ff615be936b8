//! The two logs of names: URL text and fingerprints.
//!
//! A URL block is zstd over front-coded names: for each, the length of the prefix shared with the previous name, the
//! length of the rest, and the rest. A fingerprint block has 10 bytes per page ([`kept`]).

use std::ops::Range;
use std::path::Path;

use crate::batch::HashKey;
use crate::codec::prefix;
use crate::disk::log::{BlockLog, LogBlock, LogLengths};
use crate::disk::{Access, Disk};
use crate::engine::Fingerprint;
use crate::snapshot::blocks::flat;
use crate::{Error, Result};

/// Raw text in bytes, and number of fingerprints, after which a block is closed.
const URL_BLOCK_BYTES: usize = 64 << 10;
const FINGERPRINT_BLOCK: usize = 4096;
const ZSTD_LEVEL: i32 = 3;
/// Number of stored bytes of a fingerprint.
pub const PRINT: usize = 10;

/// Returns the stored part of a fingerprint: its low 64 and high 16 bits, all that the index uses; other bits are 0.
pub fn kept(fingerprint: Fingerprint) -> Fingerprint {
    read_print(print_bytes(fingerprint))
}

pub fn print_bytes(fingerprint: Fingerprint) -> [u8; PRINT] {
    let mut bytes = [0; PRINT];
    bytes[..8].copy_from_slice(&(fingerprint as u64).to_le_bytes());
    bytes[8..].copy_from_slice(&((fingerprint >> 112) as u16).to_le_bytes());
    bytes
}

pub fn read_print(bytes: [u8; PRINT]) -> Fingerprint {
    let [low @ .., a, b] = bytes;
    let high = u16::from_le_bytes([a, b]);
    Fingerprint::from(high) << 112 | Fingerprint::from(u64::from_le_bytes(low))
}

pub struct NameLogs {
    logs: NameReader,
    pages: u64,
    coded: Vec<u8>,
    coded_names: u32,
    last: Vec<u8>,
    prints: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NameLengths {
    pub urls: LogLengths,
    pub fingerprints: LogLengths,
}

impl NameLogs {
    pub fn create(disk: &dyn Disk, dir: &Path) -> Result<NameLogs> {
        NameLogs::open(disk, dir, Access::Create, NameLengths::default(), 0)
    }

    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        access: Access,
        lengths: NameLengths,
        pages: u64,
    ) -> Result<NameLogs> {
        Ok(NameLogs {
            logs: NameReader::open_as(disk, dir, access, lengths)?,
            pages,
            coded: Vec::new(),
            coded_names: 0,
            last: Vec::new(),
            prints: Vec::new(),
        })
    }

    pub fn append(&mut self, fingerprint: Fingerprint, name: &[u8]) -> Result<()> {
        prefix::put(&mut self.coded, &mut self.last, name);
        self.coded_names += 1;
        self.prints.extend_from_slice(&print_bytes(fingerprint));
        self.pages += 1;
        if self.coded.len() >= URL_BLOCK_BYTES {
            self.close_urls()?;
        }
        if self.prints.len() >= FINGERPRINT_BLOCK * PRINT {
            self.close_prints();
        }
        let NameReader { urls, fingerprints } = &mut self.logs;
        if urls.waiting() + fingerprints.waiting() > 4 << 20 {
            urls.flush()?;
            fingerprints.flush()?;
        }
        Ok(())
    }

    fn close_urls(&mut self) -> Result<()> {
        if self.coded_names == 0 {
            return Ok(());
        }
        let packed =
            zstd::bulk::compress(&self.coded, ZSTD_LEVEL).map_err(Error::io("urls", "compress"))?;
        let first = self.pages - u64::from(self.coded_names);
        self.logs.urls.append(first, self.coded_names, &packed);
        self.coded.clear();
        self.coded_names = 0;
        self.last.clear();
        Ok(())
    }

    fn close_prints(&mut self) {
        let count = self.prints.len() / PRINT;
        if count > 0 {
            let first = self.pages - count as u64;
            let log = &mut self.logs.fingerprints;
            log.append(first, count as u32, &self.prints);
            self.prints.clear();
        }
    }

    /// Returns a checksum that identifies all fingerprints so far; `None` if some are in no block yet.
    pub fn sum_of_prints(&self) -> Result<Option<u64>> {
        match self.pages.checked_sub(1) {
            Some(last) => self.logs.sum_of_prints(last),
            None => Ok(None),
        }
    }

    /// Closes the open blocks and makes all durable. Returns the lengths to commit.
    pub fn sync(&mut self) -> Result<NameLengths> {
        self.close_urls()?;
        self.close_prints();
        Ok(NameLengths {
            urls: self.logs.urls.sync()?,
            fingerprints: self.logs.fingerprints.sync()?,
        })
    }
}

pub struct NameReader {
    urls: BlockLog,
    fingerprints: BlockLog,
}

impl NameReader {
    pub fn open(disk: &dyn Disk, dir: &Path, lengths: NameLengths) -> Result<NameReader> {
        NameReader::open_as(disk, dir, Access::Look, lengths)
    }

    fn open_as(
        disk: &dyn Disk,
        dir: &Path,
        access: Access,
        lengths: NameLengths,
    ) -> Result<NameReader> {
        let open = |name, lengths| BlockLog::open(disk, &dir.join(name), access, lengths);
        Ok(NameReader {
            urls: open("urls", lengths.urls)?,
            fingerprints: open("fingerprints", lengths.fingerprints)?,
        })
    }

    /// Calls `visit` with the name of each of these pages, which ascend. Reads each block once.
    pub fn each_of(
        &self,
        pages: impl Iterator<Item = u64>,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let mut pages = pages.peekable();
        while let Some(&page) = pages.peek() {
            let block = self.urls.find(page)?;
            let mut numbers = block.pages();
            self.unpack_each(&block, &mut |name| {
                let number = numbers.next();
                while pages.next_if(|page| Some(*page) == number).is_some() {
                    visit(name);
                }
            })?;
        }
        Ok(())
    }

    pub fn names(&self) -> impl Iterator<Item = Result<String>> + '_ {
        let blocks = self.urls.blocks();
        flat(blocks.map(|block| self.unpack(&block?)))
    }

    /// Returns the fingerprint of a page; `held` caches the last block read.
    pub fn fingerprint(
        &self,
        page: u64,
        held: &mut Option<LogBlock>,
    ) -> Result<Option<Fingerprint>> {
        let block = match held.take_if(|block| block.pages().contains(&page)) {
            Some(block) => held.insert(block),
            None => held.insert(self.fingerprints.find(page)?),
        };
        let print = block.payload.as_chunks::<PRINT>().0;
        let print = print.get((page - block.first) as usize);
        Ok(print.map(|print| read_print(*print)))
    }

    /// Returns a checksum that identifies the fingerprints up to page `last`; `None` if no block ends with it.
    pub fn sum_of_prints(&self, last: u64) -> Result<Option<u64>> {
        self.fingerprints.sum_until(last)
    }

    /// Calls `visit` with the names of these pages, in order. Returns their number.
    pub fn each(&self, pages: Range<u64>, visit: &mut dyn FnMut(&[u8])) -> Result<u64> {
        let mut next = pages.start;
        if pages.is_empty() {
            return Ok(0);
        }
        for block in self.urls.blocks_from(pages.start)? {
            let block = block?;
            let mut page = block.first;
            if page >= pages.end {
                break;
            }
            self.unpack_each(&block, &mut |name| {
                if page >= next && page < pages.end {
                    visit(name);
                    next = page + 1;
                }
                page += 1;
            })?;
        }
        Ok(next - pages.start)
    }

    /// Iterates over the fingerprints from page `from` on, reduced to their [`kept`] part.
    pub fn fingerprints(
        &self,
        from: u64,
    ) -> Result<impl Iterator<Item = Result<Fingerprint>> + '_> {
        Ok(flat(self.fingerprint_blocks(from)?))
    }

    /// Iterates over the fingerprints from page `from` on, block by block; there may be none.
    pub fn fingerprint_blocks(
        &self,
        from: u64,
    ) -> Result<impl Iterator<Item = Result<Vec<Fingerprint>>> + '_> {
        let blocks = self.fingerprints.blocks_from(from)?;
        Ok(blocks.map(move |block| {
            let block = block?;
            let mut prints = self.prints(&block)?;
            let known = prints.len().min(from.saturating_sub(block.first) as usize);
            prints.drain(..known);
            Ok(prints)
        }))
    }

    fn prints(&self, block: &LogBlock) -> Result<Vec<Fingerprint>> {
        let (prints, _) = block.payload.as_chunks::<PRINT>();
        if block.payload.len() != block.pages as usize * PRINT {
            return Err(self.fingerprints.damaged("a block of wrong length"));
        }
        Ok(prints.iter().map(|print| read_print(*print)).collect())
    }

    /// Checks that the last block of names has its fingerprints, and that both logs end with the same page.
    pub fn check_end(&self, key: &HashKey) -> Result<()> {
        let expected = key.fingerprints();
        let ends = [self.urls.last()?, self.fingerprints.last()?];
        let pages = |block: &Option<LogBlock>| block.as_ref().map_or(0, |block| block.pages().end);
        let [urls, fingerprints] = ends.each_ref().map(pages);
        if urls != fingerprints {
            let what = format!("it ends with page {fingerprints}, and urls with page {urls}");
            return Err(self.fingerprints.damaged(what));
        }
        let [Some(block), Some(mut held)] = ends else {
            return Ok(());
        };
        for (page, name) in block.pages().zip(self.unpack(&block)?) {
            if !held.pages().contains(&page) {
                held = self.fingerprints.find(page)?;
            }
            let at = (page - held.first) as usize;
            let print = held.payload.as_chunks::<PRINT>().0.get(at).copied();
            if print != Some(print_bytes(expected.of(name.as_bytes()))) {
                return Err(self.misfit(page));
            }
        }
        Ok(())
    }

    /// Checks that all pages have a name and its fingerprint. `visit` gets each name. Returns their number.
    pub fn check_all(&self, key: &HashKey, visit: &mut dyn FnMut(&[u8])) -> Result<u64> {
        let expected = key.fingerprints();
        let mut prints = self.fingerprints(0)?;
        let mut pages = 0;
        for name in self.names() {
            let name = name?;
            let print = prints.next().transpose()?;
            if print != Some(kept(expected.of(name.as_bytes()))) {
                return Err(self.misfit(pages));
            }
            visit(name.as_bytes());
            pages += 1;
        }
        Ok(pages)
    }

    fn misfit(&self, page: u64) -> Error {
        let name = format!("the name of page {page} in urls");
        let what = format!("it does not fit {name} under the key in identity.json");
        self.fingerprints.damaged(what)
    }

    pub fn verify_indexes(&self) -> Result<()> {
        self.urls.verify_index()?;
        self.fingerprints.verify_index()
    }

    fn unpack(&self, block: &LogBlock) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.unpack_each(block, &mut |name| {
            names.push(std::str::from_utf8(name).unwrap_or_default().into());
        })?;
        Ok(names)
    }

    /// Calls `visit` with the names of a block, each of which is UTF-8.
    fn unpack_each(&self, block: &LogBlock, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let of = format!("block of page {}", block.first);
        let damaged = |what: &str| self.urls.damaged(format!("{of}: {what}"));
        // A block holds 64 KiB of front-coded text and at most one more name.
        let raw = zstd::stream::decode_all(&block.payload[..])
            .map_err(|error| damaged(&error.to_string()))?;
        // Names are parts of the text.
        let is_ascii = raw.is_ascii();
        let mut rest = &raw[..];
        let mut last: Vec<u8> = Vec::new();
        for _ in 0..block.pages {
            let taken = prefix::take(&mut rest, &mut last);
            taken.ok_or_else(|| damaged("a name is cut off"))?;
            if !is_ascii && std::str::from_utf8(&last).is_err() {
                return Err(damaged("no UTF-8"));
            }
            visit(&last);
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(damaged("more text than names"))
        }
    }
}
