//! The end of an epoch: cash crosses from partition to partition, and the virtual page pays. See `engine/joint.rs`.
//!
//! Between processes go the transfers for the partitions of each, what each partition hands in, and from process 0 what the next
//! epoch begins with: three rounds of messages.
//!
//! ```text
//! transfers: for each partition of the process: length of entries, varint | entries, as settling has them
//! ```

use super::{OwnParts, Part};
use crate::codec::varint;
use crate::engine::{Engine, Epoch, HandedIn, Transfer};
use crate::rank::settle::{pack_units, unpack_units};
use crate::store::{Store, packed, unpacked};
use crate::threads::dealt;
use crate::{Error, Result};

/// A fault, for the campaign of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoiled {
    /// What is sent at the end of the next epoch arrives twice.
    SentTwice,
    /// A partition that only got cash is not committed.
    NotCommitted,
}

/// For partitions, what is to be added to their pages.
type Mail = Vec<Vec<Transfer>>;

impl OwnParts {
    /// Ends an epoch with so many pages in all, and with it a round, if that `ends_round`. All processes do this at the same time:
    /// this is process 0.
    ///
    /// # Errors
    /// Those of writing, and of putting partitions aside, which are final.
    pub fn end_epoch(
        &mut self,
        whole: &mut Engine<Store>,
        pages: u64,
        ends_round: bool,
    ) -> Result<()> {
        let handed = self.close_epoch(ends_round)?;
        let epoch = whole.end_epoch(pages, ends_round, &handed)?;
        if self.workers.peers.processes() > 1 {
            self.workers.peers.hear(packed(&epoch)?)?;
        }
        self.begin_epoch(&epoch)
    }

    /// The same in the other processes.
    ///
    /// # Errors
    /// As there.
    pub fn follow_epoch(&mut self, ends_round: bool) -> Result<()> {
        self.close_epoch(ends_round)?;
        let epoch = unpacked(&self.workers.peers.hear(Vec::new())?)?;
        self.begin_epoch(&epoch)
    }

    /// What waits for pages of other partitions reaches them. What the partitions of all processes hand in.
    fn close_epoch(&mut self, ends_round: bool) -> Result<Vec<HandedIn>> {
        let count = self.count;
        let sent = self.each_with_cash(|_, part| {
            let mut mail = vec![Vec::new(); count];
            part.engine.send_cash(&part.ghosts, &mut mail)?;
            Ok(mail)
        })?;
        let mut mail = self.cross(sent)?;
        if self.spoiled == Some(Spoiled::SentTwice) {
            self.spoiled = None;
            mail.extend(mail.clone());
        }
        let handed = self.each_with_cash(|at, part| {
            let mut mail = mail.iter().filter_map(|mail| mail.get(at));
            mail.try_for_each(|transfers| part.engine.receive_cash(transfers))?;
            part.engine.close_epoch(ends_round)
        })?;
        self.workers.peers.all(handed)
    }

    fn begin_epoch(&mut self, epoch: &Epoch) -> Result<()> {
        let is_changed = self.spoiled != Some(Spoiled::NotCommitted);
        let begin = |_, part: &mut Part| {
            part.is_changed |= is_changed;
            part.engine.begin_epoch(epoch, &part.ghosts)
        };
        self.each_with_cash(begin).map(drop)
    }

    /// Of what partitions of this process send to all, makes what those of this process are sent, by who sends it.
    fn cross(&self, sent: Vec<Mail>) -> Result<Vec<Mail>> {
        let peers = &self.workers.peers;
        if peers.processes() == 1 {
            return Ok(sent);
        }
        let mut messages = vec![Vec::new(); peers.processes()];
        for (number, transfers) in together(sent, self.count).into_iter().enumerate() {
            pack(&mut messages[peers.process_of(number)], transfers);
        }
        let heard = peers.exchange(messages)?.into_iter().enumerate();
        let mail = heard.map(|(process, message)| {
            let mail = unpack(&message, self.parts.len());
            mail.ok_or_else(|| Error::internal(format!("process {process} sent cash in no form")))
        });
        mail.collect()
    }

    /// Does something that needs the cash of each partition, and may change it.
    fn each_with_cash<T: Send>(
        &mut self,
        work: impl Fn(usize, &mut Part) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (_, threads) = self.at_a_time();
        dealt(threads, &mut self.parts, |at, part| {
            part.change_cash(|part| work(at, part))
        })
    }
}

/// By partition what others send to it, one number for each page.
fn together(sent: Vec<Mail>, count: usize) -> Mail {
    let mut all = Mail::new();
    all.resize_with(count, Vec::new);
    for mail in sent {
        for (all, mut transfers) in all.iter_mut().zip(mail) {
            all.append(&mut transfers);
        }
    }
    for transfers in &mut all {
        transfers.sort_unstable_by_key(|&(page, _)| page);
        transfers.dedup_by(|(page, units), (before, sum)| {
            let is_same = page == before;
            *sum += if is_same { *units } else { 0 };
            is_same
        });
    }
    all
}

/// Adds what is for a partition to a message.
fn pack(message: &mut Vec<u8>, transfers: Vec<Transfer>) {
    let transfers = transfers.into_iter();
    let entries = pack_units(transfers.map(|(page, units)| (page, units.cast_signed())));
    varint::put(message, entries.len() as u128);
    message.extend(entries);
}

/// What is for so many partitions in a message.
fn unpack(mut message: &[u8], partitions: usize) -> Option<Mail> {
    let mut mail = Mail::new();
    for _ in 0..partitions {
        let len = usize::try_from(varint::take(&mut message)?).ok()?;
        let (entries, rest) = message.split_at_checked(len)?;
        let transfers = unpack_units(entries)?.into_iter();
        mail.push(
            transfers
                .map(|(page, units)| (page, units.cast_unsigned()))
                .collect(),
        );
        message = rest;
    }
    message.is_empty().then_some(mail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn transfers_arrive_as_they_were_sent(
            mail in proptest::collection::vec(proptest::collection::vec((any::<u32>(), 1..=u64::MAX), 0..9), 0..5),
            byte in any::<u8>(),
        ) {
            let mut message = Vec::new();
            for transfers in &mail {
                pack(&mut message, transfers.clone());
            }
            prop_assert_eq!(unpack(&message, mail.len()), Some(mail.clone()));
            prop_assert_eq!(unpack(&message, mail.len() + 1), None);
            message.push(byte);
            prop_assert_eq!(unpack(&message, mail.len()), None);
        }
    }

    #[test]
    fn what_goes_to_a_page_is_added_up() {
        let sent = vec![
            vec![vec![], vec![(7, 1), (2, 10)]],
            vec![vec![(5, 3)], vec![(2, 100), (9, 4), (7, 20)]],
        ];
        let all = together(sent, 2);
        assert_eq!(all, [vec![(5, 3)], vec![(2, 110), (7, 21), (9, 4)]]);
    }
}
