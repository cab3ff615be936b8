//! The memory budget of a run: how many pages fit, told at the start and as they grow, and the stop
//! before it would be exceeded.

use super::{Reading, Run};
use crate::batch::Batch;
use crate::engine::{Engine, NameMap};
use crate::ingest::Note;
use crate::memory::{Need, largest, log_rows};
use crate::store::Store;
use crate::{Error, Result};

/// From so many pages on each doubling of them is told.
const TOLD_FROM: u64 = 1 << 20;

/// What is known of the budget.
pub(super) struct Budget {
    bytes: Option<u64>,
    /// Pages that fit, as far as the other parts of the need were known when that was found.
    fits: u64,
    /// Bytes that `fits` allows for names of archives.
    names: u64,
    /// Pages from which on it is found again: the bound gets closer on the way.
    again_at: u64,
    /// Pages from which on it is told again.
    tell_at: u64,
}

impl Budget {
    /// Makes the engine keep to the budget, if there is one.
    pub fn new(bytes: Option<u64>, engine: &mut Engine<Store>) -> Budget {
        engine.cut_log_at(log_rows(engine.config(), bytes));
        let pages = engine.ledger().totals().pages;
        let mut budget = Budget {
            bytes,
            fits: 0,
            names: 0,
            again_at: 0,
            tell_at: TOLD_FROM.max(pages.saturating_mul(2)),
        };
        budget.find(engine, 0);
        budget
    }

    /// Finds how many pages fit beside `names` bytes of names.
    fn find(&mut self, engine: &Engine<Store>, names: u64) {
        let limit = engine.ledger().page_limit();
        let pages = engine.ledger().totals().pages;
        self.names = names;
        self.again_at = pages + (pages / 8).max(TOLD_FROM);
        self.fits = match self.bytes {
            None => limit,
            Some(bytes) => largest(limit, |pages| self.need(engine, pages).total() <= bytes),
        };
    }

    fn need(&self, engine: &Engine<Store>, pages: u64) -> Need {
        let known = engine.ledger().totals().pages;
        Need::of(engine, pages.max(known), self.names, self.bytes)
    }
}

impl Run<'_> {
    /// What is needed now, and how many pages fit the budget.
    pub(super) fn memory(&self) -> (Need, u64) {
        let pages = self.engine.ledger().totals().pages;
        (self.budget.need(&self.engine, pages), self.budget.fits)
    }

    /// Says what is needed now.
    pub(super) fn tell_memory(&mut self) {
        let (need, fits) = self.memory();
        if let Some(budget) = self.budget.bytes {
            self.observer.note(Note::Memory {
                pages: self.engine.ledger().totals().pages,
                need,
                budget,
                fits,
            });
        }
    }

    /// Looks at the budget before a batch.
    pub(super) fn look_at_budget(&mut self, reading: &Reading<'_>, batch: &Batch) -> Result<()> {
        if self.budget.bytes.is_none() {
            return Ok(());
        }
        let pages = self.engine.ledger().totals().pages;
        let names = match &reading.archive {
            None => 0,
            Some(archive) => {
                let more = batch.text_ends.len().max(batch.sites.names.len()) as u64;
                self.names_bytes() + NameMap::bytes_more(more) + archive.bytes_with(more)
            }
        };
        if names > self.budget.names || pages >= self.budget.again_at {
            // The next batches are likely to want more names, too.
            let more = names + names / 16;
            self.budget.find(&self.engine, more);
        }
        if pages >= self.budget.tell_at {
            self.budget.tell_at = pages.saturating_mul(2);
            self.budget.find(&self.engine, self.budget.names);
            self.tell_memory();
        }
        // Names of known pages take memory, too.
        match reading.archive.is_some() && self.budget.fits < pages {
            true => Err(self.over_budget()),
            false => Ok(()),
        }
    }

    /// Most pages that there may be: those that fit both the limit and the budget.
    pub(super) fn page_limit(&self) -> u64 {
        self.engine.ledger().page_limit().min(self.budget.fits)
    }

    /// The error, if it was the budget that made [`Run::page_limit`] as it is.
    pub(super) fn blame_budget(&self, error: Error) -> Error {
        match error {
            Error::TooManyPages { limit } if limit < self.engine.ledger().page_limit() => {
                self.over_budget()
            }
            other => other,
        }
    }

    fn over_budget(&self) -> Error {
        let pages = self.engine.ledger().totals().pages;
        let budget = self.budget.bytes.unwrap_or(u64::MAX);
        let next = self
            .budget
            .need(&self.engine, pages.max(self.budget.fits) + 1);
        Error::OverBudget {
            pages,
            // One record may bring many pages: those that fit need no more than the budget.
            need: next.total().max(budget.saturating_add(1)),
            budget,
        }
    }

    fn names_bytes(&self) -> u64 {
        let kept: u64 = self.names.iter().map(NameMap::bytes).sum();
        kept + self.engine.names_bytes()
    }
}
