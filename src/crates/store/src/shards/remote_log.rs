//! Numbers of a shard's remote pages in their owners' stores: the file `remote` in its folder.
//!
//! Page numbers never change, so each is asked for once. The file is a cache outside of the commit: if it is absent or
//! damaged, numbers are asked for again, with the same result.
//!
//! ```text
//! block*    head:    version u64 | store u64 | first u64 | end u64 | length u64 | XXH3-64 of the payload u64
//!                    | XXH3-64 of these u64
//!           payload: of each shard: pages u64 | sum u64     its names when the block was written
//!                    of each shard: remote pages, and for each of them two varints:
//!                                   number here, less the one before | number there, less the one before, zigzag
//! ```
//! A block covers the store's pages `first .. end`; together blocks cover all pages up to some page. `store` is the hash of
//! the identity. A shard has as many names as pages; the sum is the hash of the checksums of their fingerprints' blocks, as
//! in `index`. So a block tells whether the stores still have the pages it refers to, after a restore from a copy or a new
//! start. The names of the last block extend those of earlier blocks.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::codec::frame::{BlockHead, HeadReader, is_sealed};
use crate::codec::varint::{put, take, unzigzag, zigzag};
use crate::disk::{Disk, DiskFile, recreate};
use crate::engine::HistoryView;
use crate::rules::Shard;
use crate::store::{Depth, NameReader, View};
use crate::{Error, Result};

/// Name of the file in a store's folder.
const REMOTE: &str = "remote";
const VERSION: u64 = 1;
const HEAD: usize = 7 * 8;

/// Identification of the names that a shard had at a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamesState {
    pub pages: u64,
    pub sum: u64,
}

impl NamesState {
    pub const BYTES: usize = 16;

    pub fn of(view: &View) -> Result<NamesState> {
        let pages = view.totals().pages;
        let Some(last) = pages.checked_sub(1) else {
            return Ok(NamesState::default());
        };
        let sum = view.names().sum_of_prints(last)?;
        let none = || Error::internal(format!("no block of fingerprints ends with page {last}"));
        let sum = sum.ok_or_else(none)?;
        Ok(NamesState { pages, sum })
    }

    /// Returns true if these are the first names of a store that now has `pages`.
    pub fn begins(self, names: &NameReader, pages: u64) -> Result<bool> {
        match self.pages.checked_sub(1) {
            None => Ok(self.sum == 0),
            Some(last) if last < pages => Ok(names.sum_of_prints(last)? == Some(self.sum)),
            Some(_) => Ok(false),
        }
    }

    pub fn to_bytes(self) -> Vec<u8> {
        BlockHead::default().u64s([self.pages, self.sum]).bytes()
    }

    pub fn read(fields: &mut HeadReader<'_>) -> NamesState {
        let [pages, sum] = fields.u64s();
        NamesState { pages, sum }
    }
}

/// Remote page: its number in its owner's store, and its number here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Remote {
    pub there: u32,
    pub here: u32,
}

/// Range of a store's pages, and the remote pages in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RemoteRange {
    pub first: u64,
    pub end: u64,
    /// Remote pages by owner, in the order of their numbers here.
    pub remote: Vec<Vec<Remote>>,
}

pub(super) struct RemoteLog {
    path: PathBuf,
    store: u64,
    /// Length of its valid blocks in bytes.
    length: u64,
    /// True if unusable bytes follow them.
    has_rest: bool,
    pub covered: u64,
    /// Names of all shards when the last block was written; empty without a block.
    pub states: Vec<NamesState>,
    /// Remote pages by owner, in the order of their numbers here; empty without a block.
    pub remote: Vec<Vec<Remote>>,
}

/// Reason why a file is not used, or not all of it.
#[derive(Debug)]
pub(super) enum Flaw {
    /// The last block is incomplete: a command was stopped while it wrote.
    Torn(Error),
    Damaged(Error),
}

impl Flaw {
    pub fn error(self) -> Error {
        match self {
            Flaw::Torn(error) | Flaw::Damaged(error) => error,
        }
    }
}

impl RemoteLog {
    fn empty(dir: &Path, store: u64) -> RemoteLog {
        RemoteLog {
            path: dir.join(REMOTE),
            store,
            length: 0,
            has_rest: false,
            covered: 0,
            states: Vec::new(),
            remote: Vec::new(),
        }
    }

    /// Reads the file in `dir` of the store with this identity, if there is one, as far as it is valid. Returns also
    /// what is wrong after that.
    pub fn read(
        disk: &dyn Disk,
        dir: &Path,
        store: u64,
        shard: Shard,
    ) -> (RemoteLog, Option<Flaw>) {
        let mut log = RemoteLog::empty(dir, store);
        let flaw = match disk.read(&log.path) {
            Ok(file) => log.read_blocks(&*file, shard).err(),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => Some(Flaw::Damaged(Error::opening(&log.path)(error))),
        };
        log.has_rest = flaw.is_some();
        (log, flaw)
    }

    fn read_blocks(&mut self, file: &dyn DiskFile, shard: Shard) -> Result<(), Flaw> {
        let path = self.path.clone();
        let failed = |error| Flaw::Damaged(Error::reading(&path)(error));
        let size = file.size().map_err(failed)?;
        while self.length < size {
            let torn = |what| Err(Flaw::Torn(self.block_error(what)));
            let damaged = |what| Err(Flaw::Damaged(self.block_error(what)));
            let start = self.length + HEAD as u64;
            if start > size {
                return torn("it ends inside the head of a block");
            }
            let mut head = [0; HEAD];
            file.read_at(&mut head, self.length).map_err(failed)?;
            if !is_sealed(&head) {
                return damaged("the checksum of its head does not match");
            }
            let [version, store, first, end, length, sum] = HeadReader(&head).u64s();
            if version != VERSION {
                return damaged("it is of another version");
            }
            if store != self.store {
                return damaged("it is of another store");
            }
            if first != self.covered || end <= first || end > 1 << 32 {
                return damaged("its pages are not those that follow");
            }
            if length > size - start {
                return torn("it ends inside a block");
            }
            let mut payload = vec![0; length as usize];
            file.read_at(&mut payload, start).map_err(failed)?;
            if xxh3_64(&payload) != sum {
                return damaged("its checksum does not match");
            }
            if self.read_payload(first..end, &payload, shard).is_none() {
                return Err(Flaw::Damaged(self.block_error("its numbers are wrong")));
            }
            self.length = start + length;
        }
        Ok(())
    }

    /// Adds the contents of a block; `None` if it is invalid.
    fn read_payload(&mut self, pages: Range<u64>, payload: &[u8], shard: Shard) -> Option<()> {
        let shards = shard.count() as usize;
        let (states, mut rest) = payload.split_at_checked(shards * NamesState::BYTES)?;
        let mut fields = HeadReader(states);
        let states: Vec<NamesState> = (0..shards).map(|_| NamesState::read(&mut fields)).collect();
        let mut remote = Vec::with_capacity(shards);
        for (owner, state) in (0..).zip(&states) {
            remote.push(read_pages(&mut rest, &pages, state.pages)?);
            if owner == shard.number() && remote.last().is_some_and(|own| !own.is_empty()) {
                return None;
            }
        }
        if !rest.is_empty() || states[shard.number() as usize].pages < pages.end {
            return None;
        }
        self.states = states;
        self.add(RemoteRange {
            first: pages.start,
            end: pages.end,
            remote,
        });
        Some(())
    }

    fn add(&mut self, stretch: RemoteRange) {
        self.covered = stretch.end;
        self.remote.resize_with(stretch.remote.len(), Vec::new);
        for (all, more) in self.remote.iter_mut().zip(stretch.remote) {
            all.extend(more);
        }
    }

    pub fn clear(&mut self) {
        self.has_rest |= self.length > 0;
        self.length = 0;
        self.covered = 0;
        self.states.clear();
        self.remote.clear();
    }

    /// Returns the names that this shard had when the last block was written.
    pub fn state_of(&self, shard: u32) -> NamesState {
        let state = self.states.get(shard as usize);
        state.copied().unwrap_or_default()
    }

    /// Appends the next ranges durably, and adds their remote pages. The caller holds the store's lock.
    pub fn append(
        &mut self,
        disk: &dyn Disk,
        stretches: Vec<RemoteRange>,
        states: &[NamesState],
    ) -> Result<()> {
        let written = self.write(disk, &stretches, states);
        // Numbers are used even if they cannot be stored.
        stretches.into_iter().for_each(|stretch| self.add(stretch));
        written
    }

    fn write(
        &mut self,
        disk: &dyn Disk,
        stretches: &[RemoteRange],
        states: &[NamesState],
    ) -> Result<()> {
        if stretches.is_empty() && !self.has_rest {
            return Ok(());
        }
        let path = &self.path;
        let is_new = self.length == 0;
        let file = if is_new {
            recreate(disk, path)
        } else {
            disk.open(path, false)
        };
        let file = file.map_err(Error::io(path, "create"))?;
        if self.has_rest {
            file.set_len(self.length).map_err(Error::io(path, "cut"))?;
        }
        let mut end = self.length;
        let written = stretches.iter().try_for_each(|stretch| {
            let bytes = block(self.store, stretch, states);
            file.write_at(&bytes, end)?;
            end += bytes.len() as u64;
            Ok(())
        });
        written
            .and_then(|()| file.sync())
            .map_err(Error::io(path, "write"))?;
        if let (true, Some(dir)) = (is_new, path.parent()) {
            disk.sync_dir(dir).map_err(Error::io(dir, "sync"))?;
        }
        self.length = end;
        self.has_rest = false;
        Ok(())
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    fn block_error(&self, what: &str) -> Error {
        self.damaged(format!("block at byte {}: {what}", self.length))
    }
}

fn block(store: u64, stretch: &RemoteRange, states: &[NamesState]) -> Vec<u8> {
    let mut payload: Vec<u8> = states.iter().flat_map(|state| state.to_bytes()).collect();
    for pages in &stretch.remote {
        put(&mut payload, pages.len() as u128);
        let (mut here, mut there) = (stretch.first, 0);
        for page in pages {
            put(&mut payload, u128::from(u64::from(page.here) - here));
            put(&mut payload, zigzag(i64::from(page.there) - there).into());
            (here, there) = (page.here.into(), page.there.into());
        }
    }
    let head = BlockHead::default().u64s([VERSION, store, stretch.first, stretch.end]);
    let mut bytes = head
        .u64s([payload.len() as u64, xxh3_64(&payload)])
        .sealed();
    bytes.extend_from_slice(&payload);
    bytes
}

/// Decodes the remote pages of one owner, which has `pages` pages.
fn read_pages(rest: &mut &[u8], range: &Range<u64>, pages: u64) -> Option<Vec<Remote>> {
    let count = usize::try_from(take(rest)?).ok()?;
    // Each takes at least two bytes.
    if count > rest.len() / 2 {
        return None;
    }
    let mut remote = Vec::with_capacity(count);
    let (mut here, mut there) = (range.start, 0i64);
    for at in 0..count {
        let step = u64::try_from(take(rest)?).ok()?;
        here = here.checked_add(step)?;
        there = there.checked_add(unzigzag(u64::try_from(take(rest)?).ok()?))?;
        let is_right = here < range.end && (at == 0 || step > 0) && there >= 0;
        if !is_right || there as u64 >= pages {
            return None;
        }
        remote.push(Remote {
            there: u32::try_from(there).ok()?,
            here: u32::try_from(here).ok()?,
        });
    }
    Some(remote)
}

/// Checks the file of a shard's store, if there is one. A block that a stopped command left incomplete is not damage.
pub fn verify_remote(disk: &dyn Disk, view: &View, depth: Depth) -> Result<()> {
    let Some(shard) = view.settings().input.shard else {
        return Ok(());
    };
    let (log, flaw) = RemoteLog::read(disk, view.dir(), view.identity(), shard);
    if let Some(Flaw::Damaged(error)) = flaw {
        return Err(error);
    }
    let (names, pages) = (view.names(), view.totals().pages);
    if !log.state_of(shard.number()).begins(names, pages)? {
        return Err(log.damaged("it is not of the pages of this store"));
    }
    match depth {
        Depth::Quick => Ok(()),
        Depth::Deep => log.verify_owners(names, shard),
    }
}

impl RemoteLog {
    /// Checks that the remote pages agree with the names.
    fn verify_owners(&self, names: &NameReader, shard: Shard) -> Result<()> {
        let mut next: Vec<_> = self.remote.iter().map(|pages| pages.iter()).collect();
        let (mut page, mut wrong) = (0, None);
        names.each(0..self.covered, &mut |name| {
            let owner = shard.owner_of(name.as_bytes());
            if owner != shard.number() {
                let found = next[owner as usize]
                    .next()
                    .map(|remote| u64::from(remote.here));
                if found != Some(page) {
                    wrong = wrong.or(Some(page));
                }
            }
            page += 1;
        })?;
        let rest = next.iter_mut().find_map(|pages| pages.next());
        match wrong.or(rest.map(|remote| remote.here.into())) {
            None => Ok(()),
            Some(page) => Err(self.damaged(format!(
                "what it has of page {page} is not what the page's name says"
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
