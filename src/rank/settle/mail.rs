//! What blocks hand on to pages of each other at the end of a sweep.
//!
//! Inside a process a page is named by its number in its block. To another process it is named by its place among the
//! ghosts that the sending block has of the receiving one; which pages these are is sent once, before the first sweep:
//!
//! ```text
//! message: (sending block, receiving block, length of what follows, entries)*, all varints
//! entry at first: the ghost's number in its block, less that of the one before, zigzag
//! entry of a sweep: the page's name, less the name behind the one before, zigzag; units zigzag
//! ```
//! Where blocks take turns, what is for blocks of the same process waits in a file, packed likewise.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::aside::Aside;
use super::block::Block;
use super::ghosts::ByOwner;
use super::ledger::Part;
use super::peers::{Peers, nonsense};
use crate::codec::varint;
use crate::{Error, Result};

/// What is handed on to pages of one block: their numbers there, or their places among its ghosts, and units.
type Mail = Vec<(u32, i64)>;

/// What a block handed on to pages of others.
#[derive(Default)]
pub(super) struct Sent {
    /// Its ghosts, and what is for each, if that is held in memory.
    ghosts: Arc<ByOwner>,
    pub units: Vec<i64>,
    /// Where it lies aside, by the block that it is for, and its length.
    aside: BTreeMap<usize, (u64, usize)>,
    /// What is for blocks of other processes.
    packed: Vec<(usize, Vec<u8>)>,
}

/// What is for a block of this process: the block that it is from, and from which process; and entries.
type Received<'m> = (usize, u32, &'m [u8]);

/// The way between all blocks, those of other processes as well.
#[derive(Default)]
pub(super) struct Routes {
    pub peers: Peers,
    /// All blocks.
    blocks: usize,
    /// By block of this process: its pages that are ghosts of another process's block, in the order of that one's.
    places: Vec<BTreeMap<u32, Vec<u32>>>,
}

impl Routes {
    /// Tells other processes which of their pages are ghosts here.
    pub fn new(peers: &Peers, parts: &[Part<'_>]) -> Result<Routes> {
        let mut count = [parts.len() as i128];
        peers.sum(&mut count)?;
        let mut routes = Routes {
            peers: peers.clone(),
            blocks: count[0] as usize,
            places: parts.iter().map(|_| BTreeMap::new()).collect(),
        };
        if peers.processes() == 1 {
            return Ok(routes);
        }
        let mut messages = vec![Vec::new(); peers.processes()];
        for (at, part) in parts.iter().enumerate() {
            let from = peers.number(at);
            let mut ghosts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for ghost in part.ghosts.read()? {
                if ghost.owner as usize >= routes.blocks {
                    return Err(no_page_of(from, ghost.owner, ghost.at));
                }
                if !peers.has(ghost.owner as usize) {
                    ghosts.entry(ghost.owner).or_default().push(ghost.at);
                }
            }
            for (to, numbers) in ghosts {
                let mut entries = Vec::new();
                let mut last = 0;
                for number in numbers {
                    let change = i64::from(number) - last;
                    varint::put(&mut entries, varint::zigzag(change).into());
                    last = number.into();
                }
                let message = &mut messages[peers.process_of(to as usize)];
                put(message, from, to, &entries);
            }
        }
        let received = routes.peers.exchange(messages)?;
        for (process, message) in received.iter().enumerate() {
            let mut rest = message.as_slice();
            while !rest.is_empty() {
                let (from, at, entries) = routes.take(process, &mut rest)?;
                let places = unpack_numbers(entries).ok_or_else(|| nonsense(process))?;
                if routes.places[at].insert(from, places).is_some() {
                    return Err(nonsense(process));
                }
            }
        }
        Ok(routes)
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Takes what block `at` of this process handed on to pages of others.
    pub fn drain(&self, at: usize, block: &mut Block, aside: Option<&Aside>) -> Result<Sent> {
        let from = self.peers.number(at);
        let ghosts = block.ghosts.clone();
        if ghosts.is_empty() {
            return Ok(Sent::default());
        }
        for owner in (self.blocks..ghosts.blocks()).chain([from]) {
            if let Some(&at) = ghosts.ats[ghosts.of(owner)].first() {
                return Err(no_page_of(from, owner as u32, at));
            }
        }
        let mut sent = Sent {
            units: block.drain(),
            ..Sent::default()
        };
        for owner in 0..self.blocks {
            let range = ghosts.of(owner);
            let units = sent.units[range.clone()].iter().copied();
            if !self.peers.has(owner) {
                sent.packed.push((owner, pack((0..).zip(units))));
            } else if let Some(aside) = aside {
                let packed = pack(ghosts.ats[range].iter().copied().zip(units));
                if !packed.is_empty() {
                    let place = (aside.post(&packed)?, packed.len());
                    sent.aside.insert(owner, place);
                }
            }
        }
        match aside {
            Some(_) => block.spare = std::mem::take(&mut sent.units),
            None => sent.ghosts = ghosts,
        }
        Ok(sent)
    }

    /// Exchanges what is for other processes.
    pub fn exchange(&self, sent: &mut [Sent]) -> Result<Vec<Vec<u8>>> {
        if self.peers.processes() == 1 {
            return Ok(Vec::new());
        }
        let mut messages = vec![Vec::new(); self.peers.processes()];
        for (at, sent) in sent.iter_mut().enumerate() {
            for (to, entries) in std::mem::take(&mut sent.packed) {
                if !entries.is_empty() {
                    let message = &mut messages[self.peers.process_of(to)];
                    put(message, self.peers.number(at), to as u32, &entries);
                }
            }
        }
        self.peers.exchange(messages)
    }

    /// What other processes have for each block of this one.
    pub fn sorted<'m>(&self, messages: &'m [Vec<u8>]) -> Result<Vec<Vec<Received<'m>>>> {
        let mut sorted = vec![Vec::new(); self.places.len()];
        for (process, message) in messages.iter().enumerate() {
            let mut rest = message.as_slice();
            while !rest.is_empty() {
                let (from, at, entries) = self.take(process, &mut rest)?;
                sorted[at].push((process, from, entries));
            }
        }
        Ok(sorted)
    }

    /// Delivers to block `at` of this process what blocks of this one sent, and what was received from others.
    pub fn deliver(
        &self,
        (at, block): (usize, &mut Block),
        sent: &[Sent],
        received: &[Received<'_>],
        aside: Option<&Aside>,
    ) -> Result<()> {
        let to = self.peers.number(at);
        let no_page = |from| move |page| no_page_of(from, to as u32, page);
        for (from, sent) in sent.iter().enumerate() {
            let from = self.peers.number(from);
            if let Some(&(at, len)) = sent.aside.get(&to) {
                let (packed, aside) = Aside::take(aside, at, len)?;
                let mail = unpack(&packed, None).ok_or_else(|| aside.damaged())?;
                block.deliver(mail.into_iter()).map_err(no_page(from))?;
            } else if !sent.units.is_empty() {
                let range = sent.ghosts.of(to);
                let pages = sent.ghosts.ats[range.clone()].iter().copied();
                let mail = pages.zip(sent.units[range].iter().copied());
                block.deliver(mail).map_err(no_page(from))?;
            }
        }
        for &(process, from, entries) in received {
            let places = self.places[at].get(&from);
            let mail = places.and_then(|places| unpack(entries, Some(places)));
            let mail = mail.ok_or_else(|| nonsense(process))?.into_iter();
            block.deliver(mail).map_err(no_page(from as usize))?;
        }
        Ok(())
    }

    /// Takes the next part of a message of a process: the sending block, where the receiving one is, and entries.
    fn take<'m>(&self, process: usize, rest: &mut &'m [u8]) -> Result<(u32, usize, &'m [u8])> {
        let mut part = || {
            let from = u32::try_from(varint::take(rest)?).ok()?;
            let to = usize::try_from(varint::take(rest)?).ok()?;
            let len = usize::try_from(varint::take(rest)?).ok()?;
            let (entries, after) = rest.split_at_checked(len)?;
            *rest = after;
            let is_theirs = self.peers.process_of(from as usize) == process;
            let place = self.peers.place(to);
            let is_ours = self.peers.has(to) && place < self.places.len();
            (is_theirs && is_ours).then_some((from, place, entries))
        };
        part().ok_or_else(|| nonsense(process))
    }
}

fn put(message: &mut Vec<u8>, from: usize, to: u32, entries: &[u8]) {
    for number in [from as u128, to.into(), entries.len() as u128] {
        varint::put(message, number);
    }
    message.extend_from_slice(entries);
}

/// Those that have anything.
pub(crate) fn pack(mail: impl Iterator<Item = (u32, i64)>) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut next = 0;
    for (name, units) in mail.filter(|(_, units)| *units != 0) {
        varint::put(&mut entries, varint::zigzag(i64::from(name) - next).into());
        varint::put(&mut entries, varint::zigzag(units).into());
        next = i64::from(name) + 1;
    }
    entries
}

/// With the numbers of pages for places, if names are places.
pub(crate) fn unpack(mut entries: &[u8], places: Option<&[u32]>) -> Option<Vec<(u32, i64)>> {
    let mut mail = Mail::with_capacity(entries.len() / 4);
    let mut next = 0i64;
    while !entries.is_empty() {
        let change = u64::try_from(varint::take(&mut entries)?).ok()?;
        let units = u64::try_from(varint::take(&mut entries)?).ok()?;
        let name = u32::try_from(next.checked_add(varint::unzigzag(change))?).ok()?;
        let page = match places {
            None => name,
            Some(places) => *places.get(name as usize)?,
        };
        mail.push((page, varint::unzigzag(units)));
        next = i64::from(name) + 1;
    }
    Some(mail)
}

fn unpack_numbers(mut entries: &[u8]) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    let mut last = 0i64;
    while !entries.is_empty() {
        let change = varint::unzigzag(u64::try_from(varint::take(&mut entries)?).ok()?);
        last = last.checked_add(change)?;
        numbers.push(u32::try_from(last).ok()?);
    }
    Some(numbers)
}

fn no_page_of(block: usize, owner: u32, at: u32) -> Error {
    Error::internal(format!(
        "a page of partition {block} should be page {at} of partition {owner}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(cells in proptest::collection::vec(any::<i64>(), 0..50)) {
            let mail: Mail = (0..).zip(cells).filter(|(_, units)| units % 3 != 0).collect();
            let places: Vec<u32> = (0..50).map(|place| 1000 - place).collect();
            let named: Mail = mail.iter().map(|&(place, units)| (1000 - place, units)).collect();
            prop_assert_eq!(unpack(&pack(mail.into_iter()), Some(&places)), Some(named.clone()));
            prop_assert_eq!(unpack(&pack(named.iter().copied()), None), Some(named));
        }

        #[test]
        fn nonsense_is_refused(entries in proptest::collection::vec(any::<u8>(), 0..50)) {
            let places = [3, 1, 2];
            if let Some(mail) = unpack(&entries, Some(&places)) {
                prop_assert!(mail.len() <= 3 && mail.iter().all(|(page, _)| places.contains(page)));
            }
            let _ = unpack_numbers(&entries);
        }
    }
}
