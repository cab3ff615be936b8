//! What blocks hand on to pages of each other at the end of a sweep.
//!
//! Inside a process a page is named by its number in its block. To another process it is named by its place among the
//! ghosts that the sending block has of the receiving one; which pages these are is sent once, before the first sweep:
//!
//! ```text
//! message: (sending block, receiving block, length of what follows, entries)*, all varints
//! entry at first: the ghost's number in its block, less that of the one before, zigzag
//! entry of a sweep: places between this ghost and the one before, units zigzag
//! ```

use std::collections::BTreeMap;

use super::block::Block;
use super::peers::{Peers, nonsense};
use crate::codec::varint;
use crate::threads::dealt;
use crate::{Error, Result};

/// What is handed on to pages of one block: their numbers there, or their places among its ghosts, and units.
pub(super) type Mail = Vec<(u32, i64)>;

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
    /// Checks that each ghost is a page of the block whose it should be, and tells other processes which these are.
    pub fn new(peers: &Peers, blocks: &[Block]) -> Result<Routes> {
        let mut count = [blocks.len() as i128];
        peers.sum(&mut count)?;
        let mut routes = Routes {
            peers: peers.clone(),
            blocks: count[0] as usize,
            places: blocks.iter().map(|_| BTreeMap::new()).collect(),
        };
        let mut messages = vec![Vec::new(); peers.processes()];
        for (at, block) in blocks.iter().enumerate() {
            let from = peers.number(at);
            let mut ghosts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for ghost in block.ghosts() {
                let owner = ghost.owner as usize;
                let known = peers.has(owner).then(|| blocks.get(peers.place(owner)));
                let owns = match known {
                    Some(owner) => owner.is_some_and(|owner| owner.owns(ghost.at)),
                    None => owner < routes.blocks,
                };
                if !owns || owner == from {
                    return Err(no_page_of(from, ghost.page, ghost.owner, ghost.at));
                }
                if known.is_none() {
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
                put(
                    &mut messages[peers.process_of(to as usize)],
                    from,
                    to,
                    &entries,
                );
            }
        }
        let received = routes.peers.exchange(messages)?;
        for (process, message) in received.iter().enumerate() {
            let mut rest = message.as_slice();
            while !rest.is_empty() {
                let (from, at, entries) = routes.take(process, &mut rest)?;
                let places = unpack_numbers(entries).ok_or_else(|| nonsense(process))?;
                if let Some(&page) = places.iter().find(|&&page| !blocks[at].owns(page)) {
                    return Err(no_page_of(
                        from as usize,
                        page,
                        peers.number(at) as u32,
                        page,
                    ));
                }
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

    /// Takes what blocks handed on to pages of others, and delivers it.
    pub fn deliver(&self, blocks: &mut [Block], threads: usize) -> Result<()> {
        if self.blocks <= 1 {
            return Ok(());
        }
        let sent = dealt(threads, blocks, |_, block| {
            let mut mail = block.drain(self.blocks, |owner| self.peers.has(owner as usize));
            let all = mail.iter_mut().enumerate();
            let others = all.filter(|(to, mail)| !mail.is_empty() && !self.peers.has(*to));
            let packed = others.map(|(to, mail)| (to, pack(&std::mem::take(mail))));
            let packed: Vec<(usize, Vec<u8>)> = packed.collect();
            (mail, packed)
        });
        let own = &sent;
        dealt(threads, blocks, |at, block| {
            let to = self.peers.number(at);
            own.iter().for_each(|(mail, _)| block.deliver(&mail[to]));
        });
        if self.peers.processes() == 1 {
            return Ok(());
        }
        let mut messages = vec![Vec::new(); self.peers.processes()];
        for (at, (_, packed)) in sent.into_iter().enumerate() {
            for (to, entries) in packed {
                let message = &mut messages[self.peers.process_of(to)];
                put(message, self.peers.number(at), to as u32, &entries);
            }
        }
        let received = self.peers.exchange(messages)?;
        let mut mail: Vec<Vec<(usize, u32, &[u8])>> = vec![Vec::new(); blocks.len()];
        for (process, message) in received.iter().enumerate() {
            let mut rest = message.as_slice();
            while !rest.is_empty() {
                let (from, at, entries) = self.take(process, &mut rest)?;
                mail[at].push((process, from, entries));
            }
        }
        let delivered = dealt(threads, blocks, |at, block| {
            mail[at].iter().try_for_each(|&(process, from, entries)| {
                let places = self.places[at].get(&from);
                let mail = places.and_then(|places| unpack(entries, places));
                block.deliver(&mail.ok_or_else(|| nonsense(process))?);
                Ok(())
            })
        });
        delivered.into_iter().collect()
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

/// Of ghosts in ascending places.
fn pack(mail: &Mail) -> Vec<u8> {
    let mut entries = Vec::with_capacity(mail.len() * 8);
    let mut next = 0;
    for &(place, units) in mail {
        varint::put(&mut entries, (place - next).into());
        varint::put(&mut entries, varint::zigzag(units).into());
        next = place + 1;
    }
    entries
}

/// With the numbers of pages for places.
fn unpack(mut entries: &[u8], places: &[u32]) -> Option<Mail> {
    let mut mail = Mail::with_capacity(entries.len() / 4);
    let mut next = 0usize;
    while !entries.is_empty() {
        let between = usize::try_from(varint::take(&mut entries)?).ok()?;
        let units = u64::try_from(varint::take(&mut entries)?).ok()?;
        let place = next.checked_add(between)?;
        mail.push((*places.get(place)?, varint::unzigzag(units)));
        next = place + 1;
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

fn no_page_of(block: usize, page: u32, owner: u32, at: u32) -> Error {
    Error::internal(format!(
        "page {page} of partition {block} should be page {at} of partition {owner}"
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
            prop_assert_eq!(unpack(&pack(&mail), &places), Some(named));
        }

        #[test]
        fn nonsense_is_refused(entries in proptest::collection::vec(any::<u8>(), 0..50)) {
            let places = [3, 1, 2];
            if let Some(mail) = unpack(&entries, &places) {
                prop_assert!(mail.len() <= 3 && mail.iter().all(|(page, _)| places.contains(page)));
            }
            let _ = unpack_numbers(&entries);
        }
    }
}
