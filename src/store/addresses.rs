//! Where pages of a partitioned store are: a log of their *addresses*, a partition and the number that it has for the page.
//!
//! The store itself has one, `addresses`, with the address of every page, in the order of first appearance: which is what
//! snapshots number pages by. Each partition has one of its ghosts, `ghosts`: pages of others that its rows link to.
//!
//! ```text
//! block payload: number of the first page, varint | entry*, at most 4096
//! entry: partition * 2 + (1 if pages lie between this and the one before), varint
//!        | if so: how many, varint
//!        | number there less the one of the last entry of the same partition in the block, zigzag varint
//! ```
//! Blocks are as in all logs; their numbers count entries, not pages.

use std::path::{Path, PathBuf};

use super::identity::{Identity, PARTITIONS_MAX, Partitions};
use super::manifest::Manifest;
use crate::codec::varint;
use crate::disk::Disk;
use crate::disk::log::{Block, BlockLog, Held, LogLengths};
use crate::rows::Ghost;
use crate::{Error, Result};

/// The log of a store with partitions.
pub(crate) const ADDRESSES: &str = "addresses";
/// That of a partition.
pub(crate) const GHOSTS: &str = "ghosts";
/// Entries a block holds at most.
const BLOCK: u32 = 4096;
/// Bytes that wait for being written, at most but for the last block.
const WAITING: usize = 1 << 20;

/// Committed state of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CommittedAddresses {
    /// Entries in it.
    pub count: u64,
    /// Its lengths.
    pub lengths: LogLengths,
}

/// What entries of a block are coded against.
#[derive(Default)]
struct Before {
    /// The page that follows the last one.
    next: u32,
    /// The last number in each partition.
    at: Vec<u32>,
}

impl Before {
    /// The last number of a partition.
    fn at(&mut self, owner: u32) -> &mut u32 {
        let owner = owner as usize;
        if self.at.len() <= owner {
            self.at.resize(owner + 1, 0);
        }
        &mut self.at[owner]
    }
}

/// Opens the log of a store for writing; `None`: it has no partitions and is none.
pub(super) fn open_to_write(
    disk: &dyn Disk,
    dir: &Path,
    identity: &Identity,
    manifest: &Manifest,
) -> Result<Option<AddressWriter>> {
    let Some(name) = name(identity.settings.partitions) else {
        return Ok(None);
    };
    let committed = manifest.parts.log;
    let log = AddressWriter::open(disk, &dir.join(name), committed)?;
    if committed.count == 0 {
        // The names of its files must not be lost when a commit says what is in them.
        disk.sync_dir(dir).map_err(Error::io(dir, "sync"))?;
    }
    Ok(Some(log))
}

/// The name of a store's log, if it has one.
pub(super) fn name(partitions: Partitions) -> Option<&'static str> {
    match (partitions.number, partitions.split()) {
        (Some(_), _) => Some(GHOSTS),
        (None, Some(_)) => Some(ADDRESSES),
        (None, None) => None,
    }
}

/// The log, open for appending.
pub(super) struct AddressWriter {
    log: BlockLog,
    /// Entries, those of the open block as well.
    count: u64,
    open: Packer,
}

/// A block that is being filled.
#[derive(Default)]
pub(super) struct Packer {
    bytes: Vec<u8>,
    entries: u32,
    before: Before,
}

impl Packer {
    /// Adds an entry, of a page behind that of the last one.
    pub fn add(&mut self, entry: Ghost) {
        let Packer { bytes, before, .. } = self;
        if self.entries == 0 {
            varint::put(bytes, entry.page.into());
            before.next = entry.page;
        }
        let between = entry.page - before.next;
        let head = u128::from(entry.owner) * 2 + u128::from(between > 0);
        varint::put(bytes, head);
        if between > 0 {
            varint::put(bytes, between.into());
        }
        let last = before.at(entry.owner);
        let change = i64::from(entry.at) - i64::from(*last);
        varint::put(bytes, varint::zigzag(change).into());
        *last = entry.at;
        before.next = entry.page.saturating_add(1);
        self.entries += 1;
    }

    /// The block so far, and how many entries it has; it is empty then.
    pub fn take(&mut self) -> (Vec<u8>, u32) {
        let full = std::mem::take(self);
        (full.bytes, full.entries)
    }
}

impl AddressWriter {
    /// Opens for writing, and cuts to the committed lengths. Of nothing committed: makes the files, or empties them.
    pub fn open(disk: &dyn Disk, path: &Path, committed: CommittedAddresses) -> Result<Self> {
        if committed.count == 0 {
            BlockLog::create(disk, path)?;
        }
        Ok(AddressWriter {
            log: BlockLog::open(disk, path, committed.lengths)?,
            count: committed.count,
            open: Packer::default(),
        })
    }

    /// Entries so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Appends an entry, of a page behind that of the last one.
    pub fn append(&mut self, entry: Ghost) -> Result<()> {
        self.open.add(entry);
        self.count += 1;
        if self.open.entries == BLOCK {
            self.close();
        }
        if self.log.waiting() >= WAITING {
            self.log.flush()?;
        }
        Ok(())
    }

    fn close(&mut self) {
        let (bytes, entries) = self.open.take();
        if entries > 0 {
            let first = self.count - u64::from(entries);
            self.log.append(first, entries, &bytes);
        }
    }

    /// See [`BlockLog::appended`].
    pub fn appended(&self) -> u64 {
        self.log.appended()
    }

    /// Closes the open block and makes all durable; what to commit.
    pub fn sync(&mut self) -> Result<CommittedAddresses> {
        self.close();
        Ok(CommittedAddresses {
            count: self.count,
            lengths: self.log.sync()?,
        })
    }
}

/// The log, open for reading what was committed.
pub(crate) struct Addresses {
    path: PathBuf,
    log: BlockLog,
    /// Entries.
    pub count: u64,
}

impl Addresses {
    /// Opens the log of that name.
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        name: &str,
        committed: CommittedAddresses,
    ) -> Result<Addresses> {
        let path = dir.join(name);
        Ok(Addresses {
            log: BlockLog::read(disk, &path, committed.lengths)?,
            path,
            count: committed.count,
        })
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// All entries from number `from` on, in order.
    ///
    /// # Errors
    /// Those of reading.
    pub fn entries(&self, from: u64) -> Result<impl Iterator<Item = Result<Ghost>> + '_> {
        let mut blocks = self.log.blocks_from(from)?;
        let mut held = Vec::new().into_iter();
        let mut next = None;
        let count = self.count;
        Ok(std::iter::from_fn(move || {
            loop {
                if let Some(entry) = held.next() {
                    return Some(Ok(entry));
                }
                let end = next.unwrap_or(from);
                let block = match blocks.next() {
                    Some(block) => block,
                    None if end == count => return None,
                    None => {
                        let what = format!("it ends with entry {end} of {count}");
                        next = Some(count);
                        return Some(Err(self.damaged(what)));
                    }
                };
                match block.and_then(|block| Ok((block.pages(), self.unpack(&block)?))) {
                    Ok((entries, mut unpacked)) => {
                        let skipped = from.saturating_sub(entries.start);
                        unpacked.drain(..(skipped as usize).min(unpacked.len()));
                        next = Some(entries.end);
                        held = unpacked.into_iter();
                    }
                    Err(error) => {
                        next = Some(count);
                        return Some(Err(error));
                    }
                }
            }
        }))
    }

    /// By partition, of which each knows so many pages: the number among all of each page of its own; `u32::MAX` of others.
    ///
    /// # Errors
    /// Those of reading; [`Error::Damaged`]: a page is in no partition, or not in its turn.
    pub fn numbers(&self, pages: impl Iterator<Item = u64>) -> Result<Vec<Vec<u32>>> {
        let mut numbers: Vec<Vec<u32>> =
            pages.map(|pages| vec![u32::MAX; pages as usize]).collect();
        for (expected, address) in (0..).zip(self.entries(0)?) {
            let Ghost { page, owner, at } = address?;
            let own = numbers.get_mut(owner as usize);
            let number = own.and_then(|own| own.get_mut(at as usize));
            let number = number.filter(|_| page == expected);
            *number.ok_or_else(|| self.nowhere(page))? = page;
        }
        Ok(numbers)
    }

    pub(super) fn nowhere(&self, page: u32) -> Error {
        self.damaged(format!("page {page} is in no partition"))
    }

    /// Entry number `at`; `held` has the last block that was read.
    pub fn get(&self, at: u64, held: &mut Held<Ghost>) -> Result<Ghost> {
        let found = self.log.value_of(at, held, |block| self.unpack(block))?;
        found
            .copied()
            .ok_or_else(|| self.damaged(format!("no entry {at}")))
    }

    /// Checks the index against the blocks.
    pub fn verify_index(&self) -> Result<()> {
        self.log.verify_index()
    }

    fn unpack(&self, block: &Block) -> Result<Vec<Ghost>> {
        unpack(&block.payload, block.pages)
            .ok_or_else(|| self.damaged(format!("the block of entry {} is damaged", block.first)))
    }
}

/// The entries of a block; `None`: there are not so many, or more.
pub(super) fn unpack(mut payload: &[u8], count: u32) -> Option<Vec<Ghost>> {
    // An entry takes two bytes at least.
    if count > BLOCK || u64::from(count) * 2 > payload.len() as u64 {
        return None;
    }
    let mut before = Before {
        next: u32::try_from(varint::take(&mut payload)?).ok()?,
        ..Before::default()
    };
    let mut entries = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let head = u32::try_from(varint::take(&mut payload)?).ok()?;
        let owner = head / 2;
        if owner >= PARTITIONS_MAX {
            return None;
        }
        let between = match head % 2 {
            0 => 0,
            _ => u32::try_from(varint::take(&mut payload)?).ok()?,
        };
        let page = before.next.checked_add(between)?;
        let last = before.at(owner);
        let change = varint::unzigzag(u64::try_from(varint::take(&mut payload)?).ok()?);
        let at = u32::try_from(i64::from(*last).checked_add(change)?).ok()?;
        *last = at;
        before.next = page.checked_add(1)?;
        entries.push(Ghost { page, owner, at });
    }
    payload.is_empty().then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::memory::Memory;
    use proptest::prelude::*;

    /// Entries of ascending pages.
    fn entries() -> impl Strategy<Value = Vec<Ghost>> {
        let entry = (0u32..5, 0u32..PARTITIONS_MAX, any::<u32>());
        let all = proptest::collection::vec(entry, 0..200);
        all.prop_map(|all| {
            let mut next = 0;
            let entry = |(gap, owner, at)| {
                let page = next + gap;
                next = page + 1;
                Ghost { page, owner, at }
            };
            all.into_iter().map(entry).collect()
        })
    }

    proptest! {
        /// Whatever is committed in between, and where it is read from.
        #[test]
        fn what_is_appended_is_read(entries in entries(), cut in 0usize..200, from in 0usize..200) {
            let disk = Memory::default();
            let path = Path::new("ghosts");
            let (before, after) = entries.split_at(cut.min(entries.len()));
            let none = CommittedAddresses::default();
            let mut writer = AddressWriter::open(&disk, path, none).unwrap();
            before.iter().for_each(|&entry| writer.append(entry).unwrap());
            let committed = writer.sync().unwrap();
            // What no commit has is cut off.
            writer.append(Ghost { page: u32::MAX, owner: 0, at: 7 }).unwrap();
            writer.sync().unwrap();
            let mut writer = AddressWriter::open(&disk, path, committed).unwrap();
            after.iter().for_each(|&entry| writer.append(entry).unwrap());
            let committed = writer.sync().unwrap();
            prop_assert_eq!(committed.count, entries.len() as u64);
            let reader = Addresses::open(&disk, Path::new(""), "ghosts", committed).unwrap();
            let from = from.min(entries.len());
            let read: Vec<Ghost> = reader.entries(from as u64).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(&read, &entries[from..]);
            let mut held = None;
            for (at, &entry) in entries.iter().enumerate().rev() {
                prop_assert_eq!(reader.get(at as u64, &mut held).unwrap(), entry);
            }
            reader.verify_index().unwrap();
        }

        #[test]
        fn nonsense_is_refused(payload in proptest::collection::vec(any::<u8>(), 0..40), count in 0u32..9) {
            if let Some(entries) = unpack(&payload, count) {
                prop_assert_eq!(entries.len(), count as usize);
                prop_assert!(entries.is_sorted_by(|one, other| one.page < other.page));
            }
        }
    }
}
