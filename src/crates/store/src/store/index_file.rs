//! The index on disk, `index`: maps fingerprints to pages, so that opening a store or looking up a name does not scan
//! all fingerprints. Specified in `formats/store.md`.
//!
//! It is a cache of the fingerprints: if it is absent or damaged, they are read instead. It stays valid for later commits. Its
//! sum covers the checksums of all blocks of fingerprints up to its last page, because a store and a copy of it may
//! continue with different pages. Readers verify what they find against the fingerprints.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::names::NameReader;
use super::{StoreWriter, TempFile};
use crate::codec::frame::BlockHead;
use crate::disk::{Disk, StoreFile, open_cache};
use crate::engine::{
    Engine, Fingerprint, Index, IndexSegment, LEAST_SLOTS, PageId, Probe, SEGMENTS, Slot,
};
use crate::threads::par_map;
use crate::{Error, Result};

pub const INDEX: &str = "index";
const VERSION: u64 = 1;
/// Length of the head before the first chunk, in bytes.
const FIXED: usize = 8 * (4 + SEGMENTS + 1);
const CHUNK: usize = 4096;
const SLOT: usize = size_of::<Slot>();
/// Length of a full chunk with its checksum, in bytes.
const CHUNK_BYTES: u64 = (CHUNK * SLOT + 8) as u64;
/// Smallest number of pages for which an index is written; fewer fingerprints are read in a millisecond.
const LEAST_PAGES: u64 = 1 << 14;
/// Growth after which the index is rewritten: 1/64 of the indexed pages.
const GROWN_BY: u64 = 64;

/// Returns true if a store of `pages` pages needs a newer index than one of `indexed` pages.
pub fn is_due(pages: u64, indexed: u64) -> bool {
    pages >= LEAST_PAGES && pages.saturating_sub(indexed) > indexed / GROWN_BY
}

fn bytes_of(slots: u64) -> Option<u64> {
    let sums = slots.div_ceil(CHUNK as u64).checked_mul(8)?;
    slots.checked_mul(SLOT as u64)?.checked_add(sums)
}

/// Returns the checksum of a chunk in an index whose head begins with `begins`.
pub(super) fn sum_of(chunk: &[u8], offset: u64, begins: &[u64; 4]) -> u64 {
    let begins = xxh3_64(bytemuck::cast_slice(&begins.map(u64::to_le)));
    let mut hash = Xxh3::new();
    hash.update(chunk);
    hash.update(&offset.to_le_bytes());
    hash.update(&begins.to_le_bytes());
    hash.digest()
}

/// Writes the index of a store with this identity. `sum` is that of the last block of its fingerprints.
fn write(disk: &dyn Disk, dir: &Path, store: u64, index: &Index, sum: u64) -> Result<()> {
    let temporary = TempFile::of(disk, dir.join(INDEX));
    let file = temporary.create()?;
    let begins = [VERSION, store, index.pages(), sum];
    let mut offset = FIXED as u64;
    let mut slots = Vec::with_capacity(SEGMENTS);
    let mut bytes = Vec::new();
    index.each_segment(&mut |segment| {
        slots.push(segment.len() as u64);
        bytes.clear();
        for chunk in segment.chunks(CHUNK) {
            let at = offset + bytes.len() as u64;
            let chunk = chunk.as_flattened();
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(&sum_of(chunk, at, &begins).to_le_bytes());
        }
        let put = file.write_at(&bytes, offset);
        offset += bytes.len() as u64;
        put
    })?;
    let head = BlockHead::default().u64s(begins).u64s(slots);
    file.write_at(&head.sealed(), 0)?;
    file.sync()?;
    drop(file);
    temporary.put_in_place().map(drop)
}

/// Writes the index of the last commit, unless the present one covers nearly as many pages, or
/// the one in memory is incomplete.
pub fn keep_index(engine: &mut Engine<StoreWriter>) -> Result<()> {
    let store = engine.storage();
    let pages = store.manifest.engine.totals.pages;
    if engine.index.pages() != pages || !is_due(pages, store.indexed) {
        return Ok(());
    }
    let Some(sum) = store.names.sum_of_prints()? else {
        return Ok(());
    };
    write(
        &*store.disk,
        &store.dir,
        store.identity.hash,
        &engine.index,
        sum,
    )?;
    engine.storage_mut().indexed = pages;
    Ok(())
}

/// Accepts the index on disk as the store's without checking it: a fault that the campaign must detect.
pub fn trust_index(engine: &mut Engine<StoreWriter>) -> Result<()> {
    let store = engine.storage();
    let names = NameReader::open(&*store.disk, &store.dir, store.manifest.names)?;
    let file = IndexFile::open(&*store.disk, &store.dir, store.identity.hash);
    let (index, _, from_file) = indexed(store.manifest.engine.totals.pages, &names, file)?;
    take_index(engine, index, from_file);
    Ok(())
}

/// Takes an index, and records how many of its pages are from the file, or why that was not used.
pub(super) fn take_index(engine: &mut Engine<StoreWriter>, index: Index, from_file: Result<u64>) {
    engine.index = index;
    let store = engine.storage_mut();
    store.indexed = from_file.as_ref().copied().unwrap_or_default();
    store.rebuilt = from_file.err();
}

/// Builds the index as [`reindex`] does, with the number of pages from the file, or why that was not used.
pub(super) fn indexed(
    pages: u64,
    names: &NameReader,
    file: Result<Option<IndexFile>>,
) -> Result<(Index, Option<u64>, Result<u64>)> {
    let from_file = match file {
        Ok(None) => Ok(0),
        Ok(Some(file)) => match reindex(pages, names, Some(&file)) {
            Ok((index, known @ Some(_))) => return Ok((index, known, Ok(file.pages))),
            Ok((_, None)) => Err(file.file.damaged("it has a page that is behind it")),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    let (index, known) = reindex(pages, names, None)?;
    Ok((index, known, from_file))
}

/// Builds the index of all fingerprints, from the file as far as it goes. Their number is `None` if two are alike.
pub(super) fn reindex(
    pages: u64,
    names: &NameReader,
    file: Option<&IndexFile>,
) -> Result<(Index, Option<u64>)> {
    let mut index = match file {
        Some(file) => file.load()?,
        None => Index::with_room(pages)?,
    };
    for prints in names.fingerprint_blocks(index.pages())? {
        let prints = prints?;
        let mut are_new = true;
        index.admit_all(&prints, 0..prints.len(), |_, _, is_new| {
            are_new &= is_new;
            Ok(())
        })?;
        if !are_new {
            return Ok((index, None));
        }
    }
    let known = index.pages();
    Ok((index, Some(known)))
}

/// Index on disk, open for reading; it stays readable when it is replaced.
pub struct IndexFile {
    pub file: StoreFile,
    /// Number of the store's first pages that the index covers.
    pub pages: u64,
    /// First fields of the head: version, store, pages, sum.
    begins: [u64; 4],
    slots: [u64; SEGMENTS],
    /// Result of comparing the index with the store's fingerprints, done on first use.
    checked: OnceLock<Result<()>>,
}

impl IndexFile {
    /// Opens the store's index; `None` if there is none, and [`Error::Damaged`] if it is of another store.
    pub fn open(disk: &dyn Disk, dir: &Path, store: u64) -> Result<Option<IndexFile>> {
        let found = open_cache::<{ 4 + SEGMENTS }>(disk, &dir.join(INDEX))?;
        let Some((file, head)) = found else {
            return Ok(None);
        };
        let begins: [u64; 4] = std::array::from_fn(|at| head[at]);
        let slots: [u64; SEGMENTS] = std::array::from_fn(|at| head[4 + at]);
        let [version, of, pages, _] = begins;
        if version != VERSION {
            return Err(file.damaged("it is of another version"));
        }
        if of != store {
            return Err(file.damaged("it is of another store"));
        }
        let end = slots.iter().try_fold(FIXED as u64, |end, &slots| {
            let bytes = bytes_of(slots).filter(|_| slots >= LEAST_SLOTS)?;
            end.checked_add(bytes)
        });
        if end != Some(file.size()?) {
            return Err(file.damaged("its length is wrong"));
        }
        Ok(Some(IndexFile {
            file,
            pages,
            begins,
            slots,
            checked: OnceLock::new(),
        }))
    }

    /// Checks that the index belongs to the store's fingerprints, of which the first `committed` count.
    pub fn check(&self, committed: u64, names: &NameReader) -> Result<()> {
        let checked = self.checked.get_or_init(|| self.compare(committed, names));
        checked.as_ref().copied().map_err(Error::again)
    }

    fn compare(&self, committed: u64, names: &NameReader) -> Result<()> {
        let ([.., sum], pages) = (self.begins, self.pages);
        if pages > committed {
            return Err(self
                .file
                .damaged(format!("it has {pages} pages, and the store {committed}")));
        }
        let last = pages.checked_sub(1);
        let found = last.map(|last| names.sum_of_prints(last)).transpose()?;
        if found.flatten() == Some(sum) {
            Ok(())
        } else {
            Err(self.file.damaged("it is of other fingerprints"))
        }
    }

    /// Returns the page of this fingerprint among those that the index covers, to be verified by the caller.
    pub fn get(&self, fingerprint: Fingerprint) -> Result<Option<PageId>> {
        let probe = Probe::of(fingerprint, &self.slots);
        let mut slots = vec![[0; SLOT]; probe.slots.len()];
        self.read(probe.segment, probe.slots.clone(), &mut slots)?;
        let found = probe.find(&slots);
        if found.is_some_and(|page| page.0 >= self.pages) {
            return Err(self.file.damaged("it has a page that is not its"));
        }
        Ok(found)
    }

    /// Reads these slots of a segment, and checks their chunks.
    fn read(&self, segment: usize, wanted: Range<usize>, slots: &mut [Slot]) -> Result<()> {
        let all = self.slots[segment] as usize;
        let before = self.slots[..segment].iter();
        let start = FIXED as u64 + before.filter_map(|&slots| bytes_of(slots)).sum::<u64>();
        let mut bytes = Vec::new();
        for at in wanted.start / CHUNK..wanted.end.div_ceil(CHUNK) {
            let chunk = at * CHUNK..all.min((at + 1) * CHUNK);
            let offset = start + at as u64 * CHUNK_BYTES;
            bytes.resize(chunk.len() * SLOT + 8, 0);
            self.file.read_at(&mut bytes, offset)?;
            let (found, sum) = bytes.split_at(chunk.len() * SLOT);
            if sum != sum_of(found, offset, &self.begins).to_le_bytes() {
                let what = format!("the checksum of byte {offset} on does not match");
                return Err(self.file.damaged(what));
            }
            let both = wanted.start.max(chunk.start)..wanted.end.min(chunk.end);
            let found = &found.as_chunks::<SLOT>().0[both.start - chunk.start..][..both.len()];
            slots[both.start - wanted.start..][..both.len()].copy_from_slice(found);
        }
        Ok(())
    }

    fn load(&self) -> Result<Index> {
        let pages = self.pages;
        let mut index = Index::to_load(pages, &self.slots)?;
        let load = |at: usize, segment: &mut IndexSegment| {
            let found = segment.fill(pages, |slots| self.read(at, 0..slots.len(), slots))?;
            found.ok_or_else(|| self.file.damaged("it has a page that is not its"))
        };
        let found: u64 = par_map(&mut index.segments, load)?.into_iter().sum();
        if found == pages {
            return Ok(index);
        }
        let what = format!("{found} entries for {pages} pages");
        Err(self.file.damaged(what))
    }

    pub fn verify(&self, names: &NameReader) -> Result<()> {
        let index = self.load()?;
        for (page, print) in (0..self.pages).zip(names.fingerprints(0)?) {
            if index.get(print?) != Some(PageId(page)) {
                return Err(self
                    .file
                    .damaged(format!("it does not lead to page {page}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
