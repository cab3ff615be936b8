//! Numbers of remote pages in their owners' stores.
//!
//! Each shard reads the names of its pages that its file (`remote_pages.rs`) does not cover, and sends those of remote
//! pages to their owners, in rounds. An owner looks them up, admits unknown ones as pages known from links, in the
//! order (round, shard, page), and answers with its page numbers.
//!
//! Owners commit, then all processes synchronise, then the senders write the numbers to their files. Page numbers never
//! change: after a crash at any point, repeating the step gives the same numbers and the same files.

use std::sync::Arc;

use super::remote_pages::{KnownRemote, NamesState, foreign, unowned};
use super::{LocalShard, Peers, RemotePages, gather_values};
use crate::batch::Batch;
use crate::codec::prefix;
use crate::disk::Disk;
use crate::engine::HistoryView;
use crate::memory::check_room;
use crate::model::PageId;
use crate::rules::Shard;
use crate::session::Writer;
use crate::store::{NameReader, View, open_view_to_publish};
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

/// Finds the numbers of all remote pages in their owners' stores, which admit unknown ones. `local` are the stores of
/// this process, in the order of [`Peers::local`]. A store that is not asked for a name is not opened for writing. Those
/// that are take at most `memory` bytes together.
///
/// # Errors
/// [`Error::Conflict`] if an ingest of a store's inputs has not finished; [`Error::TooManyPages`] and
/// [`Error::TooLarge`], with nothing admitted to any store.
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

/// Forgets the remote pages of files that refer to pages that a store, created again or restored, does not have.
/// Returns a warning about each.
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

#[cfg(test)]
pub(super) mod tests;
