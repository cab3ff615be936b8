//! Partitions that take turns in memory while records are read. Those that are not there have their cash and index on disk
//! (`aside`). Records wait there, too, until there are enough of them that it is worth having each partition in memory once:
//! its records are applied then, in their order, and what is new is handed on when all had their turn.
//!
//! What comes of it is the same, to the byte, as if all were in memory: each partition applies the same records in the same
//! order, and what it hears of others are numbers of pages, which do not change.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::aside::Aside;
use super::numbers::Known;
use super::own::{New, OwnParts, Part};
use super::wire;
use crate::Result;
use crate::batch::split::PartBatch;
use crate::engine::{Engine, Fingerprint, PageId};
use crate::memory::{CASH, in_memory};
use crate::snapshot::Residency;
use crate::store::{Store, packed, unpacked};
use crate::threads::dealt;

/// Fewer bytes of records wait at least, however few the partitions take.
const WAITING_LEAST: u64 = 64 << 20;

/// Bytes of records that are worth a turn of all partitions, which take so many themselves: each turn reads and writes them, so
/// half as many make that four bytes for each byte of records.
pub(super) fn worth_a_turn(state: u64) -> u64 {
    WAITING_LEAST.max(state / 2)
}

/// How pages grow until it is looked again how many partitions there is room for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Grows {
    /// Records are applied at once: by those of a batch.
    AtOnce,
    /// Records wait.
    InTurns,
}

/// Pages that a batch brings at most, or nearly.
const A_BATCH: u64 = 1 << 16;

impl Grows {
    /// So many pages, and as many as there are then.
    pub fn of(self, pages: u64) -> (u64, u64) {
        let more = match self {
            Grows::AtOnce => A_BATCH,
            Grows::InTurns => 16 * A_BATCH + pages / 4,
        };
        (pages, pages + more)
    }
}

/// Partitions that were opened, and stay in memory until it is known how many there is room for.
#[derive(Default)]
pub(super) struct OpenedInMemory {
    count: AtomicUsize,
    bytes: AtomicU64,
}

impl OpenedInMemory {
    /// Returns whether one of so many bytes may stay.
    pub fn has_room(&self, within: Residency, bytes: u64) -> bool {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        within.partitions.is_none_or(|most| count <= most.get())
            && within.memory.is_none_or(|most| bytes <= most / 2)
    }
}

impl OwnParts {
    /// Returns whether they take turns.
    pub fn take_turns(&self) -> bool {
        self.resident < self.parts.len()
    }

    /// How many stay in memory all the time, and on how many threads the others take turns.
    pub fn at_a_time(&self) -> (usize, usize) {
        in_memory(self.resident, self.parts.len(), self.workers.threads)
    }

    /// Has at most so many in memory at a time from now on.
    ///
    /// # Errors
    /// Those of putting the others aside, which are final.
    pub fn reside(&mut self, most: usize) -> Result<()> {
        self.resident = self.resident.min(most).max(1);
        let (stay, threads) = self.at_a_time();
        let (those, others) = self.parts.split_at_mut(stay);
        others.iter_mut().try_for_each(Part::leave)?;
        dealt(threads, those, |_, part| part.come_back()).map(drop)
    }

    /// Puts records of a piece aside, which `pack` gives for each partition with the count of their names; whether numbers of
    /// names restarts with it.
    ///
    /// # Errors
    /// Those of writing, which are final.
    pub fn wait(
        &mut self,
        begins: bool,
        pack: impl Fn(u32) -> Result<(Vec<u8>, usize)> + Sync,
    ) -> Result<u64> {
        self.pieces.push(begins);
        let put = dealt(self.workers.threads, &mut self.parts, |_, part| {
            let (records, names) = pack(part.number)?;
            let some = Some(&*records).filter(|_| names > 0);
            part.aside()?.put(some, names)?;
            Ok(some.map_or(0, |some| some.len() as u64))
        });
        put.map(|bytes| bytes.into_iter().sum())
    }

    /// Has each partition in memory once, and applies the records that wait. How many pieces were waiting; what came of each is
    /// to be [met](OwnParts::meet).
    ///
    /// # Errors
    /// Those of applying, reading and writing, which are final.
    pub fn take_a_turn(&mut self) -> Result<usize> {
        let (stay, at_a_time) = self.at_a_time();
        let (limit, prints, pieces) = (self.page_limit, self.prints.clone(), self.pieces.len());
        let none = Known::default();
        let turn = |part: &mut Part, stays: bool| {
            let aside = part.aside()?;
            let has_records = aside.has_records();
            if has_records {
                part.come_back()?;
            }
            for piece in 0..pieces {
                let mut result = Vec::new();
                if let Some(records) = part.aside()?.records(piece)? {
                    let made: PartBatch = wire::take(&records, part.number, (&none, &prints))?;
                    result = packed(&part.apply(&made, limit)?)?;
                }
                part.aside()?.put_result(&result)?;
            }
            if has_records && !stays {
                part.leave()?;
            }
            Ok(())
        };
        let (those, others) = self.parts.split_at_mut(stay);
        let threads = self.workers.threads;
        dealt(threads, those, |_, part| turn(part, true))?;
        dealt(at_a_time, others, |_, part| turn(part, false))?;
        Ok(pieces)
    }

    /// What came of the records of a piece.
    ///
    /// # Errors
    /// Those of reading.
    pub fn result(&mut self, piece: usize) -> Result<Vec<New>> {
        if self.pieces.get(piece) == Some(&true) {
            self.forget_names();
        }
        let parts = self.parts.iter_mut();
        let results = parts.map(|part| match part.aside()?.result(piece)? {
            Some(result) => unpacked(&result),
            None => Ok(New::default()),
        });
        results.collect()
    }

    /// No records wait any more.
    ///
    /// # Errors
    /// Those of emptying files.
    pub fn end_turn(&mut self) -> Result<()> {
        self.pieces.clear();
        let mut parts = self.parts.iter_mut();
        parts.try_for_each(|part| part.aside()?.clear())
    }
}

impl Part {
    fn aside(&mut self) -> Result<&mut Aside> {
        let Part { aside, engine, .. } = self;
        match aside {
            Some(aside) => Ok(aside),
            None => Ok(aside.insert(Aside::of(engine.storage())?)),
        }
    }

    /// Bytes that it takes in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.engine.ledger().totals().pages * CASH + self.index_bytes()
    }

    /// Bytes of its index, in memory or if it were there.
    pub(super) fn index_bytes(&self) -> u64 {
        let pages = self.engine.ledger().totals().pages;
        let away = self.aside.as_ref().and_then(Aside::index_bytes);
        away.unwrap_or_else(|| self.engine.index_bytes_at(pages))
    }

    /// Puts cash and index aside.
    pub(super) fn leave(&mut self) -> Result<()> {
        if self.aside()?.is_away() {
            return Ok(());
        }
        let Part { aside, engine, .. } = self;
        aside.iter_mut().try_for_each(|aside| aside.take(engine))
    }

    fn come_back(&mut self) -> Result<()> {
        let Part { aside, engine, .. } = self;
        let mut aside = aside.iter_mut().filter(|aside| aside.is_away());
        aside.try_for_each(|aside| aside.give_back(engine))
    }

    /// Does what needs the cash, and may change it, but not how many pages there are.
    pub(super) fn change_cash<T>(
        &mut self,
        work: impl FnOnce(&mut Part) -> Result<T>,
    ) -> Result<T> {
        let Part { aside, engine, .. } = self;
        aside.iter().try_for_each(|aside| aside.lend_cash(engine))?;
        let done = work(self)?;
        let Part { aside, engine, .. } = self;
        aside
            .iter_mut()
            .try_for_each(|aside| aside.take_cash(engine))?;
        Ok(done)
    }

    /// Does what needs the cash, and does not change it.
    pub(super) fn with_cash(
        &mut self,
        work: impl FnOnce(&mut Engine<Store>) -> Result<()>,
    ) -> Result<()> {
        self.with_lent(Aside::lend_cash, Engine::drop_cash, work)
    }

    /// Does what needs the index, and does not change it.
    pub(super) fn with_index(
        &mut self,
        work: impl FnOnce(&mut Engine<Store>) -> Result<()>,
    ) -> Result<()> {
        self.with_lent(Aside::lend_index, Engine::drop_index, work)
    }

    /// Does what needs something that is lent, and then given up again, if it is not there.
    fn with_lent(
        &mut self,
        lend: impl FnOnce(&Aside, &mut Engine<Store>) -> Result<()>,
        give_up: impl FnOnce(&mut Engine<Store>),
        work: impl FnOnce(&mut Engine<Store>) -> Result<()>,
    ) -> Result<()> {
        let Part { aside, engine, .. } = self;
        let Some(away) = aside.as_ref().filter(|aside| aside.is_away()) else {
            return work(engine);
        };
        lend(away, engine)?;
        let done = work(engine);
        give_up(engine);
        done
    }

    /// Gives up what only more records would need.
    pub(super) fn rest(&mut self) -> Result<()> {
        let aside = self.aside.iter_mut();
        aside
            .filter(|aside| aside.is_away())
            .try_for_each(Aside::forget)?;
        self.engine.rest()
    }

    /// The page with a fingerprint.
    pub(super) fn find(&self, print: Fingerprint) -> Result<Option<PageId>> {
        let away = self.aside.as_ref().and_then(|aside| aside.find(print));
        away.unwrap_or_else(|| Ok(self.engine.page(print)))
    }
}
