//! What blocks hand on to pages of each other at the end of a sweep.
//!
//! Inside a process a page is named by its number in its block. What all blocks of a process have for a page of another
//! process is added up before it is sent, and the page is named by its place among those of its block that are ghosts in the
//! sending process; which these are is sent once, before the first sweep:
//!
//! ```text
//! message: receiving block varint | length of what follows varint | what there is for it; and so on
//! at first: how many numbers come between each of the pages and the one before (planes)
//! of a sweep: places between each of those that have anything and the one before (planes) | units zigzag of each (planes)
//! ```
//! Where blocks take turns, what they have for others waits in a file: of each page, its number less the one behind the one
//! before, and units, zigzag varints.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::aside::Aside;
use super::block::Block;
use super::ghosts::ByOwner;
use super::ledger::{Part, Workers};
use super::peers::{Peers, nonsense};
use crate::codec::{planes, varint};
use crate::rows::{Bits, Ranked};
use crate::threads::dealt;
use crate::{Error, Result};

/// What is handed on to pages of one block: their numbers there, and units.
type Mail = Vec<(u32, i64)>;

/// What a block handed on to pages of others.
#[derive(Default)]
pub(super) struct Sent {
    /// Its ghosts, and what is for each, if that is held in memory.
    ghosts: Arc<ByOwner>,
    pub units: Vec<i64>,
    /// Where it lies aside, by the block that it is for, and its length.
    aside: BTreeMap<usize, (u64, usize)>,
}

impl Sent {
    /// Gives `take` what it has for a block; that may say that there is no such page.
    #[inline]
    fn each_for(
        &self,
        block: usize,
        aside: Option<&Aside>,
        take: impl FnMut((u32, i64)) -> Result<(), u32>,
    ) -> Result<Result<(), u32>> {
        if let Some(&(at, len)) = self.aside.get(&block) {
            let (packed, aside) = Aside::take(aside, at, len)?;
            let mail = unpack(&packed).ok_or_else(|| aside.damaged())?;
            return Ok(mail.into_iter().try_for_each(take));
        }
        if self.units.is_empty() {
            return Ok(Ok(()));
        }
        let range = self.ghosts.of(block);
        let pages = self.ghosts.ats[range.clone()].iter().copied();
        let mut mail = pages.zip(self.units[range].iter().copied());
        Ok(mail.try_for_each(take))
    }
}

/// What is for a block of this process, packed, and the process that it is from.
type Received<'m> = (usize, &'m [u8]);

/// The way between all blocks, those of other processes as well.
#[derive(Default)]
pub(super) struct Routes {
    pub peers: Peers,
    /// All blocks.
    blocks: usize,
    threads: usize,
    /// By block of another process: its pages that are ghosts here.
    theirs: BTreeMap<usize, Ranked>,
    /// By block of this process: its pages that are ghosts of another process, in ascending order.
    ours: Vec<BTreeMap<usize, Vec<u32>>>,
}

impl Routes {
    /// Tells other processes which of their pages are ghosts here.
    pub fn new(workers: &Workers, parts: &[Part<'_>]) -> Result<Routes> {
        let peers = &workers.peers;
        let mut count = [parts.len() as i128];
        peers.sum(&mut count)?;
        let mut routes = Routes {
            peers: peers.clone(),
            blocks: count[0] as usize,
            threads: workers.threads,
            theirs: BTreeMap::new(),
            ours: parts.iter().map(|_| BTreeMap::new()).collect(),
        };
        if peers.processes() == 1 {
            return Ok(routes);
        }
        let mut theirs: BTreeMap<usize, Bits> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            for ghost in part.ghosts.read()? {
                let owner = ghost.owner as usize;
                if owner >= routes.blocks {
                    return Err(no_page_of(peers.number(at), ghost.owner, ghost.at));
                }
                if !peers.has(owner) {
                    let pages = theirs.entry(owner).or_default();
                    pages.grow(u64::from(ghost.at) + 1);
                    pages.set(ghost.at.into());
                }
            }
        }
        let mut messages = vec![Vec::new(); peers.processes()];
        for (block, pages) in theirs {
            let mut packed = Vec::new();
            planes::put_ascending(&mut packed, pages.all())?;
            put(&mut messages[peers.process_of(block)], block, &packed);
            routes.theirs.insert(block, Ranked::new(&pages));
        }
        let messages = peers.exchange(messages)?;
        let sorted = routes.sorted(&messages)?;
        for ((received, ours), part) in sorted.into_iter().zip(&mut routes.ours).zip(parts) {
            for (process, mut packed) in received {
                let most = part.rows.pages() as usize;
                let pages = planes::take_ascending(&mut packed, most, u32::MAX);
                let pages = pages.filter(|_| packed.is_empty());
                let pages = pages.ok_or_else(|| nonsense(process))?;
                if ours.insert(process, pages).is_some() {
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
        match aside {
            None => sent.ghosts = ghosts,
            Some(aside) => {
                for owner in 0..self.blocks {
                    let range = ghosts.of(owner);
                    let units = sent.units[range.clone()].iter().copied();
                    let packed = pack(ghosts.ats[range].iter().copied().zip(units));
                    if !packed.is_empty() {
                        let place = (aside.post(&packed)?, packed.len());
                        sent.aside.insert(owner, place);
                    }
                }
                block.spare = std::mem::take(&mut sent.units);
            }
        }
        Ok(sent)
    }

    /// Exchanges what is for other processes.
    pub fn exchange(&self, sent: &[Sent], aside: Option<&Aside>) -> Result<Vec<Vec<u8>>> {
        if self.peers.processes() == 1 {
            return Ok(Vec::new());
        }
        let mut theirs: Vec<(usize, &Ranked)> = self.theirs.iter().map(|(b, p)| (*b, p)).collect();
        let packed = dealt(self.threads, &mut theirs, |_, &mut (block, pages)| {
            self.for_block((block, pages), sent, aside)
        })?;
        let mut messages = vec![Vec::new(); self.peers.processes()];
        for (&(block, _), packed) in theirs.iter().zip(packed) {
            if !packed.is_empty() {
                put(&mut messages[self.peers.process_of(block)], block, &packed);
            }
        }
        self.peers.exchange(messages)
    }

    /// What other processes have for each block of this one.
    pub fn sorted<'m>(&self, messages: &'m [Vec<u8>]) -> Result<Vec<Vec<Received<'m>>>> {
        let mut sorted = vec![Vec::new(); self.ours.len()];
        for (process, message) in messages.iter().enumerate() {
            let mut rest = message.as_slice();
            while !rest.is_empty() {
                let next = next(&mut rest).filter(|(block, _)| self.peers.has(*block));
                let (block, packed) = next.ok_or_else(|| nonsense(process))?;
                let ours = sorted.get_mut(self.peers.place(block));
                ours.ok_or_else(|| nonsense(process))?
                    .push((process, packed));
            }
        }
        Ok(sorted)
    }

    /// What all blocks of this process have for one of another, packed; nothing if they have nothing.
    fn for_block(
        &self,
        (block, pages): (usize, &Ranked),
        sent: &[Sent],
        aside: Option<&Aside>,
    ) -> Result<Vec<u8>> {
        let mut units = vec![0i64; pages.len()];
        for (at, sent) in sent.iter().enumerate() {
            let added = sent.each_for(block, aside, |(page, more)| {
                if more != 0 {
                    let place = pages.place(page.into()).ok_or(page)?;
                    units[place] = units[place].wrapping_add(more);
                }
                Ok(())
            })?;
            let from = self.peers.number(at);
            added.map_err(|page| no_page_of(from, block as u32, page))?;
        }
        pack_places(&units)
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
        for (from, sent) in sent.iter().enumerate() {
            let delivered = sent.each_for(to, aside, |(page, units)| block.deliver(page, units))?;
            let from = self.peers.number(from);
            delivered.map_err(|page| no_page_of(from, to as u32, page))?;
        }
        for &(process, packed) in received {
            let pages = self.ours[at].get(&process);
            let mail = pages.and_then(|pages| unpack_places(packed, pages));
            let mut mail = mail.ok_or_else(|| nonsense(process))?.into_iter();
            let delivered = mail.try_for_each(|(page, units)| block.deliver(page, units));
            delivered.map_err(|_| nonsense(process))?;
        }
        Ok(())
    }
}

/// Adds what there is for a block to a message.
fn put(message: &mut Vec<u8>, block: usize, packed: &[u8]) {
    varint::put(message, block as u128);
    varint::put(message, packed.len() as u128);
    message.extend_from_slice(packed);
}

/// Takes the next block, and what there is for it.
fn next<'m>(rest: &mut &'m [u8]) -> Option<(usize, &'m [u8])> {
    let block = usize::try_from(varint::take(rest)?).ok()?;
    let len = usize::try_from(varint::take(rest)?).ok()?;
    let (packed, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some((block, packed))
}

/// Those that have anything; nothing if none has.
fn pack_places(units: &[i64]) -> Result<Vec<u8>> {
    let mut packed = Vec::new();
    let some = || (0..).zip(units).filter(|(_, units)| **units != 0);
    let units: Vec<u64> = some().map(|(_, units)| varint::zigzag(*units)).collect();
    if !units.is_empty() {
        planes::put_ascending(&mut packed, some().map(|(place, _)| place))?;
        planes::put(&mut packed, &units)?;
    }
    Ok(packed)
}

/// The pages in these places, and units.
fn unpack_places(mut packed: &[u8], places: &[u32]) -> Option<Mail> {
    let found = planes::take_ascending(&mut packed, places.len(), places.len() as u32)?;
    let units = planes::take(&mut packed, found.len())?;
    if units.len() != found.len() || !packed.is_empty() {
        return None;
    }
    let pages = found.iter().map(|place| places[*place as usize]);
    Some(pages.zip(units.into_iter().map(varint::unzigzag)).collect())
}

/// Those that have anything.
pub(crate) fn pack(mail: impl Iterator<Item = (u32, i64)>) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut next = 0;
    for (page, units) in mail.filter(|(_, units)| *units != 0) {
        varint::put(&mut entries, varint::zigzag(i64::from(page) - next).into());
        varint::put(&mut entries, varint::zigzag(units).into());
        next = i64::from(page) + 1;
    }
    entries
}

pub(crate) fn unpack(mut entries: &[u8]) -> Option<Vec<(u32, i64)>> {
    let mut mail = Mail::with_capacity(entries.len() / 4);
    let mut next = 0i64;
    while !entries.is_empty() {
        let change = u64::try_from(varint::take(&mut entries)?).ok()?;
        let units = u64::try_from(varint::take(&mut entries)?).ok()?;
        let page = u32::try_from(next.checked_add(varint::unzigzag(change))?).ok()?;
        mail.push((page, varint::unzigzag(units)));
        next = i64::from(page) + 1;
    }
    Some(mail)
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
            let some = |units: i64| if units % 3 == 0 { 0 } else { units };
            let units: Vec<i64> = cells.into_iter().map(some).collect();
            let places: Vec<u32> = (0..50).map(|place| 1000 - place).collect();
            let mail: Mail = places.iter().copied().zip(units.iter().copied()).collect();
            let some: Mail = mail.iter().copied().filter(|(_, units)| *units != 0).collect();
            prop_assert_eq!(unpack(&pack(mail.into_iter())), Some(some.clone()));
            let packed = pack_places(&units).unwrap();
            prop_assert_eq!(packed.is_empty(), some.is_empty());
            if !packed.is_empty() {
                prop_assert_eq!(unpack_places(&packed, &places), Some(some));
                prop_assert_eq!(unpack_places(&packed[..packed.len() - 1], &places), None);
            }
        }

        #[test]
        fn nonsense_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            let places = [3, 1, 2];
            if let Some(mail) = unpack_places(&bytes, &places) {
                prop_assert!(mail.len() <= 3 && mail.iter().all(|(page, _)| places.contains(page)));
            }
            let _ = unpack(&bytes);
        }
    }
}
