//! Numbers of remote pages in their owners' stores, and the file `remote` that keeps them in the folder of a shard.
//!
//! Each shard reads the names of its pages that its file does not cover, and sends those of remote
//! pages to their owners, in rounds. An owner looks them up, admits unknown ones as pages known from links, in the
//! order (round, shard, page), and answers with its page numbers.
//!
//! Owners commit, then all processes synchronise, then the senders write the numbers to their files. Page numbers never
//! change: each is asked for once, and after a crash at any point, repeating the step gives the same numbers and the
//! same files.
//!
//! The file is a cache outside of the commit, and tells whether the stores still have the pages it refers to, after a
//! restore from a copy or a new start. Specified in `formats/store.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{LocalShard, Peers, RemotePages, gather_values};
use crate::batch::Batch;
use crate::codec::prefix;
use crate::disk::Disk;
use crate::engine::{CHUNK_PAGES, HistoryView};
use crate::memory::check_room;
use crate::model::PageId;
use crate::rows::Bits;
use crate::rules::Shard;
use crate::session::Writer;
use crate::snapshot::blocks::{BlockFile, BlockWriter, FileInfo, Magic, version_of};
use crate::store::{NameReader, TempFile, View, open_view_to_publish};
use crate::threads::par_map;
use crate::{Error, Result};

/// Limits of a shard's round. Results depend on it, so it is constant.
const ROUND: Round = Round {
    pages: 1 << 18,
    bytes: 1 << 24,
};
const STEP: u64 = 1 << 15;
/// Number of pages that 32-bit numbers distinguish.
const NUMBERS: u64 = 1 << 32;

/// Limits of a round: number of remote pages that a shard asks for, and bytes of their names.
#[derive(Clone, Copy)]
struct Round {
    pages: u64,
    bytes: u64,
}

pub struct NamedShard {
    /// Last committed state of the store, which holds its lock.
    pub view: View,
    pub remote: Vec<RemotePages>,
}

pub struct ExchangedNames {
    pub shards: Vec<NamedShard>,
    pub admitted: u64,
    /// Warnings about files of remote pages that could not be used or written.
    pub warnings: Vec<String>,
}

/// Finds the numbers of all remote pages in their owners' stores, which admit unknown ones. A store that is not asked
/// for a name is not opened for writing; those that are take at most `memory` bytes together.
pub fn exchange_names(
    disk: &Arc<dyn Disk>,
    local: &[LocalShard],
    peers: &mut dyn Peers,
    memory: Option<u64>,
) -> Result<ExchangedNames> {
    exchange_in_rounds(disk, local, peers, memory, ROUND)
}

fn exchange_in_rounds(
    disk: &Arc<dyn Disk>,
    local: &[LocalShard],
    peers: &mut dyn Peers,
    memory: Option<u64>,
    size: Round,
) -> Result<ExchangedNames> {
    let mut local: Vec<&LocalShard> = local.iter().collect();
    let opened = par_map(&mut local, |_, store| Asker::open(&**disk, store))?;
    let (mut askers, flaws): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let mut warnings: Vec<String> = flaws.into_iter().flatten().collect();
    warnings.extend(check_files(&mut askers, peers)?);
    while ask_owners(&mut askers, disk, memory, size, peers)? {}

    let (mut views, mut admitted) = (Vec::new(), 0);
    for asker in &mut askers {
        let view = match (asker.owner.take(), asker.view.take()) {
            (Some(writer), _) => writer.into_view()?,
            (None, Some(view)) => view,
            (None, None) => return Err(Error::internal("a store was closed too early")),
        };
        admitted += view.totals().pages - asker.pages;
        views.push(view);
    }
    par_map(&mut askers, |_, asker| {
        asker.known.remote.iter_mut().for_each(sort_by_number);
        Ok(())
    })?;
    // The states of all shards, once all have committed.
    let states = views.iter().map(NamesState::of);
    let states = gather_values(&states.collect::<Result<Vec<_>>>()?, peers)?;
    let shards = views.into_iter().zip(askers).map(|(view, mut asker)| {
        if let Err(error) = asker.known.write(&**disk, &view, &states) {
            let again = "the numbers of remote pages were not kept, and will be asked for again";
            warnings.push(format!("{error}; {again}"));
        }
        let remote = asker.known.remote;
        NamedShard { view, remote }
    });
    Ok(ExchangedNames {
        shards: shards.collect(),
        admitted,
        warnings,
    })
}

/// Shard of this process: asks for the numbers of its remote pages, and answers others.
struct Asker<'e> {
    store: &'e LocalShard,
    /// Last committed state, until the store is opened for writing.
    view: Option<View>,
    names: NameReader,
    /// The store open for writing, once it is asked for names.
    owner: Option<Writer>,
    pages: u64,
    known: KnownRemote,
    /// First page that was not searched for remote ones.
    next: u64,
}

impl<'e> Asker<'e> {
    /// Opens a store. Returns a warning with it if its file of remote pages cannot be used.
    fn open(disk: &dyn Disk, store: &'e LocalShard) -> Result<(Asker<'e>, Option<String>)> {
        let view = open_view_to_publish(disk, &store.dir)?;
        view.manifest.progress.check_finished(&store.dir)?;
        let pages = view.totals().pages;
        if pages > NUMBERS {
            return Err(too_many());
        }
        let known = KnownRemote::read(disk, &store.dir, view.manifest.identity, store.shard);
        let (known, warning) = match known {
            Ok(known) => (known, None),
            Err(flaw) => (KnownRemote::default(), Some(flaw.to_string())),
        };
        let asker = Asker {
            store,
            owner: None,
            names: NameReader::open(disk, &store.dir, view.manifest.names)?,
            pages,
            next: known.covered,
            known,
            view: Some(view),
        };
        Ok((asker, warning))
    }

    /// Begins a round: returns the names of remote pages to ask for, by owner, and their number.
    fn ask(&mut self, size: Round) -> Result<(Vec<Vec<u8>>, u64)> {
        let shard = self.store.shard;
        let shards = shard.count() as usize;
        let mut messages = vec![Vec::new(); shards];
        let mut last = vec![Vec::new(); shards];
        let remote = &mut self.known.remote;
        remote.resize_with(shards, RemotePages::default);
        let (mut asked, mut bytes) = (0, 0);
        let is_full = |asked, bytes| asked >= size.pages || bytes >= size.bytes;
        while self.next < self.pages && !is_full(asked, bytes) {
            let step = self.next..self.pages.min(self.next + STEP);
            let read = self.names.each(step.clone(), &mut |name| {
                if is_full(asked, bytes) {
                    return;
                }
                let owner = shard.owner_of(name);
                if owner != shard.number() {
                    let owner = owner as usize;
                    prefix::put(&mut messages[owner], &mut last[owner], name);
                    remote[owner].here.push(self.next as u32);
                    asked += 1;
                    bytes += name.len() as u64;
                }
                self.next += 1;
            })?;
            if read < step.end - step.start {
                let what = format!("no name for page {}", step.start + read);
                return Err(Error::damaged(self.store.dir.join("urls"), what));
            }
        }
        Ok((messages, asked))
    }

    /// Returns the numbers of the pages whose names shard `from` sent. Opens the store for writing, if it is not.
    fn answer(&mut self, disk: &Arc<dyn Disk>, from: u32, message: &[u8]) -> Result<Vec<u8>> {
        if message.is_empty() {
            return Ok(Vec::new());
        }
        let LocalShard { dir, shard, .. } = self.store;
        let writer = match &mut self.owner {
            Some(writer) => writer,
            none => {
                // The writer takes the lock.
                self.view = None;
                none.insert(Writer::open_on(disk.clone(), dir, &self.store.options())?)
            }
        };
        let batch = take_names(writer, *shard, message);
        let batch = batch.ok_or_else(|| wrong_message(from, *shard))?;
        let pages = writer.admit(&batch)?;
        if pages.iter().any(|page| page.0 >= NUMBERS) {
            return Err(too_many());
        }
        Ok(put_numbers(pages))
    }
}

/// Decodes the names of a message; `None` if one is not a name of this shard.
fn take_names(writer: &Writer, shard: Shard, mut message: &[u8]) -> Option<Batch> {
    let fingerprints = writer.rules().key.fingerprints();
    let (mut batch, mut name) = (Batch::default(), Vec::new());
    while !message.is_empty() {
        prefix::take(&mut message, &mut name)?;
        let is_own = !name.is_empty() && shard.has(&name);
        let has_room = batch.text.len() + name.len() <= u32::MAX as usize;
        if !is_own || !has_room || std::str::from_utf8(&name).is_err() {
            return None;
        }
        batch.push_name(&name, fingerprints.of(&name));
    }
    Some(batch)
}

/// Forgets remote pages that a store, created again or restored, does not have. Returns a warning about each file.
fn check_files(askers: &mut [Asker<'_>], peers: &mut dyn Peers) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let mut forget = |asker: &mut Asker<'_>, error: Error| {
        (asker.known, asker.next) = (KnownRemote::default(), 0);
        warnings.push(error.to_string());
    };
    for asker in &mut *askers {
        let own = asker.known.state_of(asker.store.shard.number());
        if !own.begins(&asker.names, asker.pages)? {
            forget(asker, foreign(&asker.store.dir));
        }
    }
    let states = askers.iter().map(|asker| asker.known.states.clone());
    let states = gather_values(&states.collect::<Vec<_>>(), peers)?;
    // For each shard, whether the states of it in the files of all shards are of its store.
    let begins = askers.iter().map(|asker| {
        let own = asker.store.shard.number() as usize;
        let of_own = states.iter().map(|states| states.get(own).copied());
        let begins = of_own.map(|of| of.unwrap_or_default().begins(&asker.names, asker.pages));
        begins.collect::<Result<Vec<bool>>>()
    });
    let begins = gather_values(&begins.collect::<Result<Vec<_>>>()?, peers)?;
    for asker in askers {
        let shard = asker.store.shard;
        let is_not = |begins: &Vec<bool>| begins.get(shard.number() as usize) == Some(&false);
        if let Some(owner) = begins.iter().position(is_not) {
            forget(asker, unowned(&asker.store.dir, owner, shard.count()));
        }
    }
    Ok(warnings)
}

fn ask_owners(
    askers: &mut [Asker<'_>],
    disk: &Arc<dyn Disk>,
    memory: Option<u64>,
    size: Round,
    peers: &mut dyn Peers,
) -> Result<bool> {
    let asked = askers.iter_mut().map(|asker| asker.ask(size));
    let (outgoing, asked): (Vec<_>, Vec<u64>) =
        asked.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let mut sum = [asked.into_iter().sum::<u64>().into()];
    peers.sum(&mut sum)?;
    if sum == [0] {
        return Ok(false);
    }
    let mut answers = Vec::new();
    for (at, messages) in peers.exchange(outgoing)?.iter().enumerate() {
        let of_all = (0..).zip(messages);
        let answered = of_all.map(|(from, message)| askers[at].answer(disk, from, message));
        answers.push(answered.collect::<Result<Vec<_>>>()?);
        // The stores open for writing fit in memory together.
        let open = askers.iter().filter_map(|asker| asker.owner.as_ref());
        check_room(
            memory,
            open.map(Writer::array_bytes).sum(),
            || "adding pages that other shards link to".into(),
            "give some of the shards to another process (`hosts`)",
        )?;
    }
    for (asker, answers) in askers.iter_mut().zip(peers.exchange(answers)?) {
        for ((from, pages), answer) in (0..).zip(&mut asker.known.remote).zip(&answers) {
            let heard = read_numbers(answer, pages);
            heard.ok_or_else(|| wrong_message(from, asker.store.shard))?;
        }
    }
    Ok(true)
}

fn sort_by_number(remote: &mut RemotePages) {
    if remote.there.is_sorted() {
        return;
    }
    let RemotePages { here, there } = std::mem::take(remote);
    let mut pages: Vec<(u32, u32)> = there.into_iter().zip(here).collect();
    // A stable sort merges what is in order already.
    pages.sort();
    (remote.there, remote.here) = pages.into_iter().unzip();
}

fn put_numbers(pages: &[PageId]) -> Vec<u8> {
    let numbers = pages.iter().map(|page| (page.0 as u32).to_le_bytes());
    numbers.flatten().collect()
}

/// Reads the numbers of those pages that have none yet; `None` if it does not match.
fn read_numbers(answer: &[u8], asked: &mut RemotePages) -> Option<()> {
    let (numbers, rest) = answer.as_chunks();
    let numbers = numbers.iter().map(|number| u32::from_le_bytes(*number));
    asked.there.extend(numbers);
    (rest.is_empty() && asked.there.len() == asked.here.len()).then_some(())
}

fn wrong_message(from: u32, to: Shard) -> Error {
    let count = to.count();
    Error::internal(format!(
        "shard {from}/{count} sent shard {to} what is none of its pages"
    ))
}

fn too_many() -> Error {
    Error::TooManyPages {
        limit: NUMBERS,
        keeps_links: true,
    }
}

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

    /// Covers all pages of a commit, and replaces the file durably unless it does so already.
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

fn foreign(dir: &Path) -> Error {
    let what = "it is not of the pages of this store";
    Error::damaged(path_of(dir), what)
}

/// Returns the error that the file names pages that their owner does not have.
fn unowned(dir: &Path, owner: usize, shards: u32) -> Error {
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
mod remote_tests;
#[cfg(test)]
pub(super) mod tests;
