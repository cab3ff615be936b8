//! The index on disk, `index`: which page has a fingerprint, so that to open a store or to find a name takes no sweep over all
//! fingerprints.
//!
//! It is made from the fingerprints, and can be made again from them: without it, or if it is damaged, they are read. A run
//! that ends leaves it, after its last commit. It covers the first pages; the fingerprints behind them are read, and are
//! few: once there are a 64th as many, the next end writes another. A newer one takes its place by a rename. Fingerprints
//! are never changed, so it stays right for whatever is committed later.
//!
//! ```text
//! version u64 | store u64 | pages u64 | sum u64 | slots u64 of each of 512 segments | XXH3-64 of these u64
//! chunk*      of each segment after the other: up to 4096 slots, 10 bytes each (`engine::index`)
//!             | XXH3-64 of them, of the chunk's offset u64 and of the XXH3-64 of the first four u64
//! ```
//! A lookup reads one chunk, or two. The sum is of the checksums of all blocks of fingerprints up to the one that ends with the
//! last page's: it binds the index to its log, for a store and a copy of it may go on with other pages. Readers hold what it finds
//! against the fingerprints; where it is not of theirs, they look for what it does not find there. Its bytes depend on
//! the pages alone, not on how the index in memory grew.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::Store;
use super::names::NameReader;
use super::reindex::{Indexed, indexed};
use crate::codec::frame::{self, Fields, Head};
use crate::disk::{Disk, DiskFile, recreate};
use crate::engine::{
    Engine, Fingerprint, Index, LEAST_SLOTS, PageId, Probe, SEGMENTS, Share, Slot,
};
use crate::{Error, Result};

/// Its name in a store's folder.
pub(crate) const INDEX: &str = "index";
/// Its name until it is whole.
const ASIDE: &str = "index.tmp";
const VERSION: u64 = 1;
/// Bytes before the first chunk.
const FIXED: usize = 8 * (4 + SEGMENTS + 1);
/// Slots of a chunk.
const CHUNK: usize = 4096;
const SLOT: usize = size_of::<Slot>();
/// Bytes of a whole chunk with its checksum.
const CHUNK_BYTES: u64 = (CHUNK * SLOT + 8) as u64;
/// A store of fewer pages has none: its fingerprints are read in a millisecond.
const LEAST_PAGES: u64 = 1 << 14;
/// Once a store has grown by such a part, another is written.
const GROWN_BY: u64 = 64;

/// Returns whether a store of so many pages is to have another index than that of `indexed` pages.
fn is_due(pages: u64, indexed: u64) -> bool {
    pages >= LEAST_PAGES && pages.saturating_sub(indexed) > indexed / GROWN_BY
}

/// The bytes of a segment of so many slots.
fn bytes_of(slots: u64) -> Option<u64> {
    let sums = slots.div_ceil(CHUNK as u64).checked_mul(8)?;
    slots.checked_mul(SLOT as u64)?.checked_add(sums)
}

/// Writes the index of a store with this identity. `sum`: of the last block of its fingerprints.
///
/// # Errors
///
/// [`Error::Io`]; what there is of it is removed.
fn write(disk: &dyn Disk, dir: &Path, store: u64, index: &Index, sum: u64) -> Result<()> {
    let aside = dir.join(ASIDE);
    let written = write_file(disk, &aside, store, index, sum);
    if written.is_err() {
        // What a disk has no room for is not left there.
        let _ = disk.remove(&aside);
    }
    written?;
    let path = dir.join(INDEX);
    disk.rename(&aside, &path)
        .map_err(Error::io(&path, "rename"))?;
    disk.sync_dir(dir).map_err(Error::io(dir, "sync"))
}

/// The checksum of a chunk in the index whose head begins with these.
pub(super) fn sum_of(chunk: &[u8], offset: u64, begins: &[u64; 4]) -> u64 {
    let begins = xxh3_64(bytemuck::cast_slice(&begins.map(u64::to_le)));
    let mut hash = Xxh3::new();
    hash.update(chunk);
    hash.update(&offset.to_le_bytes());
    hash.update(&begins.to_le_bytes());
    hash.digest()
}

fn write_file(disk: &dyn Disk, path: &Path, store: u64, index: &Index, sum: u64) -> Result<()> {
    let file = recreate(disk, path).map_err(Error::io(path, "create"))?;
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
        put.map_err(Error::io(path, "write"))
    })?;
    let head = Head::default().u64s(begins);
    let put = file.write_at(&head.u64s(slots).sealed(), 0);
    put.and_then(|()| file.sync())
        .map_err(Error::io(path, "write"))
}

impl Store {
    /// The index on disk, unless it cannot be used.
    pub(super) fn index_file(&self, pages: u64, names: &NameReader) -> Result<Option<IndexFile>> {
        let file = IndexFile::open(&*self.disk, &self.dir, self.identity.hash)?;
        let checked = file.map(|file| file.check(pages, names).map(|()| file));
        checked.transpose()
    }

    /// What was found of the index on disk when the store was opened: its pages, or why it was not used.
    pub(super) fn note_index(&mut self, found: Result<u64>) {
        match found {
            Ok(pages) => self.names.indexed = pages,
            Err(damage) => self.names.unused_index = Some(damage),
        }
    }

    /// Removes the index from disk. Whether there was one.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn drop_index(&mut self) -> Result<bool> {
        let path = self.dir.join(INDEX);
        self.names.indexed = 0;
        match self.disk.remove(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true).map_err(Error::io(&path, "remove")),
        }
    }

    /// Why the index on disk was not used, since this was last asked.
    pub(crate) fn unused_index(&mut self) -> Option<Error> {
        self.names.unused_index.take()
    }
}

/// Leaves the index of the last commit on disk, unless there is one of nearly as many pages. A store whose index is not all of
/// what was committed leaves none.
///
/// # Errors
///
/// [`Error::Io`]: there is none, or the one before. The store is as it was.
pub(crate) fn keep_index(engine: &mut Engine<Store>) -> Result<()> {
    let store = engine.storage();
    let pages = store.manifest.engine.totals.pages;
    if engine.index().pages() != pages || !is_due(pages, store.names.indexed) {
        return Ok(());
    }
    let Some(sum) = store.names.logs.sum_of_prints()? else {
        return Ok(());
    };
    write(
        &*store.disk,
        &store.dir,
        store.identity.hash,
        engine.index(),
        sum,
    )?;
    engine.storage_mut().names.indexed = pages;
    Ok(())
}

/// Takes the index on disk for that of the store, of whatever pages it is: what the campaign of faults must find out.
///
/// # Errors
///
/// Those of reading.
pub(crate) fn trust_index(engine: &mut Engine<Store>) -> Result<()> {
    let store = engine.storage();
    let pages = store.manifest.engine.totals.pages;
    let names = NameReader::open(&*store.disk, &store.dir, store.manifest.names)?;
    let file = IndexFile::open(&*store.disk, &store.dir, store.identity.hash);
    let Indexed {
        index, from_file, ..
    } = indexed(pages, &names, file)?;
    engine.restore_index(index);
    let store = engine.storage_mut();
    store.names.unused_index = None;
    store.note_index(from_file);
    Ok(())
}

/// Removes what a killed writer left of one, if it can: nothing depends on it.
pub(super) fn remove_unfinished(disk: &dyn Disk, dir: &Path) {
    let _ = disk.remove(&dir.join(ASIDE));
}

/// An index on disk, open for reading: it stays readable when another takes its place.
pub(crate) struct IndexFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// The pages that it covers: the first ones.
    pub pages: u64,
    /// What its head begins with.
    begins: [u64; 4],
    /// By segment: its slots, and where its first chunk is.
    slots: [u64; SEGMENTS],
    offsets: [u64; SEGMENTS],
    /// Whether it is of its store's fingerprints. Asked when it is first needed.
    checked: OnceLock<Result<()>>,
}

impl IndexFile {
    /// Opens the index of the store with this identity. `None`: there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if it is of another store, or damaged; those of reading.
    pub fn open(disk: &dyn Disk, dir: &Path, store: u64) -> Result<Option<IndexFile>> {
        let path = dir.join(INDEX);
        let file = match disk.read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(Error::opening(&path))?,
        };
        let damaged = |what: &str| Error::damaged(&path, what);
        let mut head = [0; FIXED];
        file.read_at(&mut head, 0).map_err(Error::reading(&path))?;
        if !frame::is_sealed(&head) {
            return Err(damaged("the checksum of its head does not match"));
        }
        let mut fields = Fields(&head);
        let begins = fields.u64s();
        let [version, of, pages, _] = begins;
        if version != VERSION {
            return Err(damaged("it is of another version"));
        }
        if of != store {
            return Err(damaged("it is of another store"));
        }
        let slots = fields.u64s::<SEGMENTS>();
        let mut offsets = [0; SEGMENTS];
        let mut end = Some(FIXED as u64);
        for (offset, &slots) in offsets.iter_mut().zip(&slots) {
            *offset = end.unwrap_or_default();
            let bytes = bytes_of(slots).filter(|_| slots >= LEAST_SLOTS);
            end = end
                .zip(bytes)
                .and_then(|(end, bytes)| end.checked_add(bytes));
        }
        let size = file.size().map_err(Error::reading(&path))?;
        if end != Some(size) {
            return Err(damaged("its length is wrong"));
        }
        Ok(Some(IndexFile {
            file,
            pages,
            begins,
            slots,
            offsets,
            checked: OnceLock::new(),
            path,
        }))
    }

    /// What is wrong with it.
    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// Checks that it is of its store's fingerprints, of which the first `committed` count.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`]; those of reading.
    pub fn check(&self, committed: u64, names: &NameReader) -> Result<()> {
        let checked = self.checked.get_or_init(|| self.compare(committed, names));
        checked.as_ref().copied().map_err(Error::again)
    }

    fn compare(&self, committed: u64, names: &NameReader) -> Result<()> {
        let ([.., sum], pages) = (self.begins, self.pages);
        if pages > committed {
            return Err(self.damaged(format!("it has {pages} pages, and the store {committed}")));
        }
        let last = pages.checked_sub(1);
        let found = last.map(|last| names.sum_of_prints(last)).transpose()?;
        if found.flatten() == Some(sum) {
            Ok(())
        } else {
            Err(self.damaged("it is of other fingerprints"))
        }
    }

    /// The page with this fingerprint, of those that it covers; it is to be held against the fingerprints, unless these were
    /// [checked](IndexFile::check).
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`]; those of reading.
    pub fn get(&self, fingerprint: Fingerprint) -> Result<Option<PageId>> {
        let probe = Probe::of(fingerprint, &self.slots);
        let mut slots = vec![[0; SLOT]; probe.slots.len()];
        self.read(probe.segment, probe.slots.clone(), &mut slots)?;
        let found = probe.find(&slots);
        if found.is_some_and(|page| page.0 >= self.pages) {
            return Err(self.damaged("it has a page that is not its"));
        }
        Ok(found)
    }

    /// Reads these slots of a segment, with their chunks.
    fn read(&self, segment: usize, wanted: Range<usize>, slots: &mut [Slot]) -> Result<()> {
        let all = self.slots[segment] as usize;
        let mut bytes = Vec::new();
        for at in wanted.start / CHUNK..wanted.end.div_ceil(CHUNK) {
            let chunk = at * CHUNK..all.min((at + 1) * CHUNK);
            let offset = self.offsets[segment] + at as u64 * CHUNK_BYTES;
            bytes.resize(chunk.len() * SLOT + 8, 0);
            let read = self.file.read_at(&mut bytes, offset);
            read.map_err(Error::reading(&self.path))?;
            let (found, sum) = bytes.split_at(chunk.len() * SLOT);
            if sum != sum_of(found, offset, &self.begins).to_le_bytes() {
                return Err(
                    self.damaged(format!("the checksum of byte {offset} on does not match"))
                );
            }
            let both = wanted.start.max(chunk.start)..wanted.end.min(chunk.end);
            let found = &found.as_chunks::<SLOT>().0[both.start - chunk.start..][..both.len()];
            slots[both.start - wanted.start..][..both.len()].copy_from_slice(found);
        }
        Ok(())
    }

    /// An index of `pages` pages that has room for what it has: [`IndexFile::load`] puts that in, a share at a time.
    ///
    /// # Errors
    ///
    /// [`Error::AddressSpace`].
    pub fn to_load(&self, pages: u64) -> Result<Index> {
        Index::to_load(pages, &self.slots)
    }

    /// Fills a share of an index. How many pages those are.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`]; those of reading.
    pub fn load(&self, share: &mut Share<'_>) -> Result<u64> {
        let found = share.fill(self.pages, &mut |segment, slots| {
            self.read(segment, 0..slots.len(), slots)
        })?;
        found.ok_or_else(|| self.damaged("it has a page that is not its"))
    }

    /// Checks that it has loaded so many pages.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`].
    pub fn check_loaded(&self, found: u64) -> Result<()> {
        if found == self.pages {
            return Ok(());
        }
        let pages = self.pages;
        Err(self.damaged(format!("{found} entries for {pages} pages")))
    }

    /// Compares it with the fingerprints, all that it covers.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`]; those of reading.
    pub fn verify(&self, names: &NameReader) -> Result<()> {
        let mut index = self.to_load(self.pages)?;
        let loaded = index.shares(1).map(|mut share| self.load(&mut share));
        self.check_loaded(loaded.sum::<Result<u64>>()?)?;
        for (page, print) in (0..self.pages).zip(names.fingerprints()) {
            if index.get(print?) != Some(PageId(page)) {
                return Err(self.damaged(format!("it does not lead to page {page}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
