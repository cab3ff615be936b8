//! Numbers of a shard's remote pages in their owners' stores: the file `remote` in its folder.
//!
//! Page numbers never change, so each is asked for once. The file is a cache outside of the commit: if it is absent or
//! damaged, numbers are asked for again, with the same result. A new one replaces it by a rename.
//!
//! It is a file of blocks (`snapshot/blocks.rs`) with a row for each remote page, owner by owner, in the order of the
//! numbers there. Its info says which pages of the store it covers, and which names each shard had when it was written,
//! by their number and a hash: so the file tells whether the stores still have the pages it refers to, after a restore
//! from a copy or a new start.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RemotePages;
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, HistoryView};
use crate::rows::Bits;
use crate::rules::Shard;
use crate::snapshot::blocks::{BlockFile, BlockWriter, FileInfo, Magic, version_of};
use crate::store::{NameReader, TempFile, View};
use crate::{Error, Result};

const REMOTE: &str = "remote";

/// Identification of the names that a shard had at a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamesState {
    pub pages: u64,
    pub sum: u64,
}

impl NamesState {
    pub fn of(view: &View) -> Result<NamesState> {
        let pages = view.totals().pages;
        let Some(last) = pages.checked_sub(1) else {
            return Ok(NamesState::default());
        };
        let sum = view.names.sum_of_prints(last)?;
        let none = || Error::internal(format!("no block of fingerprints ends with page {last}"));
        let sum = sum.ok_or_else(none)?;
        Ok(NamesState { pages, sum })
    }

    /// Returns true if these are the first names of a store with `pages` pages.
    pub fn begins(self, names: &NameReader, pages: u64) -> Result<bool> {
        match self.pages.checked_sub(1) {
            None => Ok(self.sum == 0),
            Some(last) if last < pages => Ok(names.sum_of_prints(last)? == Some(self.sum)),
            Some(_) => Ok(false),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct RemoteInfo {
    version: u32,
    store: u64,
    /// Number of the store's first pages that the file covers.
    covered: u64,
    states: Vec<NamesState>,
    pages: Vec<u64>,
}

/// Columns: numbers of remote pages here, and in their owners' stores.
const HERE: usize = 0;
const THERE: usize = 1;

impl FileInfo for RemoteInfo {
    type Column = usize;
    const NAME: &'static str = "file of remote pages";
    const MAGIC: Magic = *b"CRREMO03";
    const COLUMNS: Option<usize> = Some(2);
    const REMEDY: &'static str = "delete it: the next ranking of all shards writes another";

    fn fits(&self, rows: u64, _: usize) -> bool {
        let mut pages = self.pages.iter();
        let sum = pages.try_fold(0u64, |sum, pages| sum.checked_add(*pages));
        sum == Some(rows) && self.pages.len() == self.states.len()
    }
}

#[derive(Debug, Default)]
pub(super) struct KnownRemote {
    /// Number of the store's first pages that were searched for remote ones.
    pub covered: u64,
    /// Names of all shards when the file was written; empty without a file.
    pub states: Vec<NamesState>,
    /// Remote pages by owner; empty without a file. Those that have no numbers there yet come last.
    pub remote: Vec<RemotePages>,
}

impl KnownRemote {
    #[cfg(any(test, feature = "testing"))]
    pub fn of(covered: u64, remote: Vec<RemotePages>) -> KnownRemote {
        KnownRemote {
            covered,
            remote,
            ..KnownRemote::default()
        }
    }

    /// Reads the file in `dir` of the store with this identity; without a file there are none.
    pub fn read(disk: &dyn Disk, dir: &Path, store: u64, shard: Shard) -> Result<KnownRemote> {
        let path = path_of(dir);
        let damaged = |what: &str| Error::damaged(&path, what);
        let Some(file) = BlockFile::<RemoteInfo>::open_any(disk, &path)? else {
            return Ok(KnownRemote::default());
        };
        let info = file.info();
        if info.store != store {
            return Err(damaged("it is of another store"));
        }
        let own = shard.number() as usize;
        let covers = |state: &NamesState| info.covered <= state.pages.min(1 << 32);
        if info.states.len() != shard.count() as usize
            || !info.states.get(own).is_some_and(covers)
            || info.pages[own] > 0
        {
            return Err(damaged("it is not of these shards"));
        }
        let mut remote = vec![RemotePages::default(); info.pages.len()];
        let mut owner = 0;
        let mut is_known = Bits::new(info.covered);
        let blocks = file.column_blocks(HERE);
        for (here, there) in blocks.zip(file.column_blocks(THERE)) {
            for (here, there) in here?.into_iter().zip(there?) {
                while remote[owner].here.len() as u64 == info.pages[owner] {
                    owner += 1;
                }
                let of_owner = &mut remote[owner];
                let is_next = of_owner
                    .there
                    .last()
                    .is_none_or(|last| u64::from(*last) < there);
                let is_there = there < info.states[owner].pages.min(1 << 32);
                if here >= info.covered || !is_known.set(here) || !is_there || !is_next {
                    return Err(damaged("its numbers are wrong"));
                }
                of_owner.here.push(here as u32);
                of_owner.there.push(there as u32);
            }
        }
        Ok(KnownRemote {
            covered: info.covered,
            states: info.states.clone(),
            remote,
        })
    }

    /// Returns the names that a shard had when the file was written.
    pub fn state_of(&self, shard: u32) -> NamesState {
        let state = self.states.get(shard as usize);
        state.copied().unwrap_or_default()
    }

    /// Covers all pages of a commit, and replaces the file durably unless it does so already. `view` holds the store's
    /// lock; `states` are the names of all shards.
    pub fn write(&mut self, disk: &dyn Disk, view: &View, states: &[NamesState]) -> Result<()> {
        let pages = view.totals().pages;
        if self.covered == pages {
            return Ok(());
        }
        self.covered = pages;
        self.put(disk, &view.dir, view.manifest.identity, states)
    }

    pub(super) fn put(
        &self,
        disk: &dyn Disk,
        dir: &Path,
        store: u64,
        states: &[NamesState],
    ) -> Result<()> {
        let file = TempFile::of(disk, path_of(dir));
        let mut writer = BlockWriter::create(disk, &file.path, 2)?;
        let pages = self.remote.iter().map(|of| of.here.len() as u64);
        let pages: Vec<u64> = pages.collect();
        let count: u64 = pages.iter().sum();
        let both = self
            .remote
            .iter()
            .flat_map(|of| of.here.iter().zip(&of.there));
        let mut both = both.map(|(here, there)| (u64::from(*here), u64::from(*there)));
        for block in 0..count.div_ceil(CHUNK_PAGES) as usize {
            let of_block = both.by_ref().take(CHUNK_PAGES as usize);
            let (here, there): (Vec<u64>, Vec<u64>) = of_block.unzip();
            writer.column(block, HERE, &here)?;
            writer.column(block, THERE, &there)?;
        }
        let info = RemoteInfo {
            version: version_of(&RemoteInfo::MAGIC),
            store,
            covered: self.covered,
            states: states.to_vec(),
            pages,
        };
        writer.finish(count, &info)?;
        file.put_in_place().map(drop)
    }
}

fn path_of(dir: &Path) -> PathBuf {
    dir.join(REMOTE)
}

pub(super) fn foreign(dir: &Path) -> Error {
    let what = "it is not of the pages of this store";
    Error::damaged(path_of(dir), what)
}

/// Returns the error that the file names pages that their owner does not have.
pub(super) fn unowned(dir: &Path, owner: usize, shards: u32) -> Error {
    let what = format!("shard {owner}/{shards} does not have the pages that it names");
    Error::damaged(path_of(dir), what)
}

/// Checks the file of remote pages of a shard's store, if there is one.
pub fn verify_remote(disk: &dyn Disk, view: &View) -> Result<()> {
    let Some(shard) = view.identity.settings.input.shard else {
        return Ok(());
    };
    let known = KnownRemote::read(disk, &view.dir, view.manifest.identity, shard)?;
    let own = known.state_of(shard.number());
    if own.begins(&view.names, view.totals().pages)? {
        Ok(())
    } else {
        Err(foreign(&view.dir))
    }
}

#[cfg(test)]
mod tests;
