//! Numbers of names, by which processes speak of them: each is sent once, with its text or what indexes look at of its
//! fingerprint, and then named by its number.
//!
//! Process 0 numbers names as they first appear ([`Numbers`]), and knows which of them each other process was sent; that one keeps
//! what it was sent ([`Known`]). Once they are many, numbering restarts. A process alone numbers the names of each batch.
//!
//! ```text
//! new names: numbers, how many come between each and the one before (planes) | partitions (planes) | lengths of the texts of
//!            those that are the process's own (planes) | length varint, zstd of the texts | prints of the others
//! ```

use super::wire::{compress, unknown};
use crate::Result;
use crate::codec::{planes, varint};
use crate::engine::Index;
use crate::model::{Batch, Fingerprint, Fingerprints};
use crate::rank::settle::Peers;
use crate::rows::Bits;
use crate::store::{PRINT, print_bytes, read_print};

/// Numbering restarts with a batch that has more names than are left of these: they take some 40 bytes each in every process.
const NAMES: u64 = 1 << 19;
/// See the head of the file.
pub(super) struct Numbers {
    /// So many names at most, but for those of one batch.
    most: u64,
    /// Numbers of fingerprints, if there are other processes.
    index: Option<Index>,
    /// Those of the names of the batch.
    numbers: Vec<u32>,
    /// By process: which it was sent.
    sent: Vec<Bits>,
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers::of_at_most(NAMES)
    }
}

impl Numbers {
    pub fn of_at_most(names: u64) -> Numbers {
        Numbers {
            most: names,
            index: None,
            numbers: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// Numbers the names of a batch. Whether numbering restarts with it.
    ///
    /// # Errors
    /// There is no memory.
    pub fn begin(&mut self, batch: &Batch, peers: &Peers) -> Result<bool> {
        let names = batch.fingerprints.len();
        self.numbers.clear();
        if peers.processes() == 1 {
            self.numbers.extend(0..names as u32);
            return Ok(true);
        }
        let room = |index: &Index| self.most.saturating_sub(index.pages());
        let restarts = self.index.as_ref().map_or(0, room) < names as u64;
        if restarts {
            self.index = None;
            self.sent = (0..peers.processes()).map(|_| Bits::default()).collect();
        }
        let index = match &mut self.index {
            Some(index) => index,
            none => none.insert(Index::new()?),
        };
        let numbers = &mut self.numbers;
        index.admit_all(&batch.fingerprints, 0..names, |_, number, _| {
            numbers.push(number.0 as u32);
            Ok(())
        })?;
        self.sent
            .iter_mut()
            .for_each(|sent| sent.grow(index.pages()));
        Ok(restarts)
    }

    /// The number of a name of the batch.
    pub fn of(&self, name: u32) -> u32 {
        self.numbers[name as usize]
    }

    /// Returns whether a process was sent a name of the batch.
    pub fn is_known(&self, process: usize, name: u32) -> bool {
        let sent = self.sent.get(process);
        sent.is_some_and(|sent| sent.get(self.of(name).into()))
    }

    /// What a process is to be sent of names of the batch, with the partition of each; it knows them then.
    ///
    /// # Errors
    /// Those of compressing.
    pub fn introduce(
        &mut self,
        batch: &Batch,
        names: impl Iterator<Item = u32>,
        (peers, process): (&Peers, usize),
    ) -> Result<Vec<u8>> {
        let (numbers, sent) = (&self.numbers, &mut self.sent[process]);
        let number = |name: u32| numbers[name as usize];
        let mut new: Vec<u32> = names
            .filter(|&name| sent.set(number(name).into()))
            .collect();
        new.sort_unstable_by_key(|&name| number(name));
        let mut columns = [const { Vec::<u64>::new() }; 2];
        let (mut text, mut prints) = (Vec::new(), Vec::new());
        for &name in &new {
            let owner = batch.owners[name as usize];
            columns[0].push(owner.into());
            if peers.process_of(owner as usize) == process {
                columns[1].push(batch.name(name).len() as u64);
                text.extend_from_slice(batch.name(name));
            } else {
                prints.extend(print_bytes(batch.fingerprints[name as usize]));
            }
        }
        let mut message = Vec::new();
        planes::put_ascending(&mut message, new.iter().map(|&name| number(name).into()))?;
        columns
            .iter()
            .try_for_each(|column| planes::put(&mut message, column))?;
        let text = compress(&text)?;
        varint::put(&mut message, text.len() as u128);
        message.extend(text);
        message.extend(prints);
        Ok(message)
    }
}

/// What a process knows of names that it was sent. See the head of the file.
#[derive(Default)]
pub(super) struct Known {
    /// By number.
    prints: Vec<[u8; PRINT]>,
    owners: Vec<u32>,
    /// Of this process's pages that were sent last: their numbers, ascending, and where their texts end.
    new: Vec<(u32, u32)>,
    text: Vec<u8>,
}

impl Known {
    /// Numbering restarts.
    pub fn forget(&mut self) {
        *self = Known::default();
    }

    /// Takes names from the front of a message.
    ///
    /// # Errors
    /// These are none.
    pub fn learn(
        &mut self,
        message: &mut &[u8],
        prints: &Fingerprints,
        peers: &Peers,
    ) -> Result<()> {
        self.try_learn(message, prints, peers).ok_or_else(unknown)
    }

    fn try_learn(
        &mut self,
        message: &mut &[u8],
        prints: &Fingerprints,
        peers: &Peers,
    ) -> Option<()> {
        let most = message.len().saturating_mul(1 << 16);
        let numbers = planes::take_ascending(message, most, u32::MAX)?;
        let owners = planes::take(message, numbers.len())?;
        let lengths = planes::take(message, numbers.len())?;
        let packed = usize::try_from(varint::take(message)?).ok()?;
        let (packed, rest) = message.split_at_checked(packed)?;
        self.text = zstd::decode_all(packed).ok()?;
        *message = rest;
        if owners.len() != numbers.len() {
            return None;
        }
        self.new.clear();
        let (mut lengths, mut end) = (lengths.into_iter(), 0u32);
        for (number, owner) in numbers.into_iter().zip(owners) {
            let owner = u32::try_from(owner).ok()?;
            let print = if peers.has(owner as usize) {
                let start = end as usize;
                end = end.checked_add(u32::try_from(lengths.next()?).ok()?)?;
                self.new.push((number, end));
                print_bytes(prints.of(self.text.get(start..end as usize)?))
            } else {
                let (print, rest) = message.split_first_chunk()?;
                *message = rest;
                *print
            };
            let at = number as usize;
            if self.prints.len() <= at {
                self.prints.resize(at + 1, [0; PRINT]);
                self.owners.resize(at + 1, u32::MAX);
            }
            (self.prints[at], self.owners[at]) = (print, owner);
        }
        (end as usize == self.text.len() && lengths.next().is_none()).then_some(())
    }

    /// What indexes look at of a name's fingerprint, and its partition; `None`: it was not sent.
    pub fn name(&self, number: u32) -> Option<(Fingerprint, u32)> {
        let owner = *self.owners.get(number as usize)?;
        let print = read_print(self.prints[number as usize]);
        (owner != u32::MAX).then_some((print, owner))
    }

    /// The text of a name of this process, if it was sent last: of others it is known already.
    pub fn text(&self, number: u32) -> &[u8] {
        let Ok(at) = self
            .new
            .binary_search_by_key(&number, |(number, _)| *number)
        else {
            return &[];
        };
        let start = at.checked_sub(1).map_or(0, |before| self.new[before].1);
        &self.text[start as usize..self.new[at].1 as usize]
    }
}
