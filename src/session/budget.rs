//! A memory budget: how many pages fit, found again as they grow.

use crate::engine::{Engine, Storage};
use crate::memory::{Need, largest, log_rows};
use crate::{Error, Limits, Result};

/// From so many pages on, each doubling of them is reported.
const TOLD_FROM: u64 = 1 << 20;

/// The memory budget and its use.
pub(crate) struct Budget {
    pub bytes: Option<u64>,
    /// Pages that fit, as far as the other parts of the need were known when that was found.
    pub fits: u64,
    /// Those of them up to which importance can be settled beside them.
    pub settles: u64,
    /// Bytes that `fits` allows for names of archives.
    pub names: u64,
    /// Pages from which on it is found again: the bound gets closer on the way.
    pub again_at: u64,
    /// Pages from which on it is reported again.
    pub tell_at: u64,
    /// The need, and the pages that would have fitted, once no more records are applied.
    rested: Option<(Need, u64)>,
    /// Most pages that there may be, also if memory has no room for them.
    limit: u64,
}

impl Budget {
    /// Makes the engine keep to the budget, if there is one.
    pub fn new<S: Storage>(limits: &Limits, engine: &mut Engine<S>) -> Budget {
        let bytes = limits.memory;
        engine.cut_log_at(log_rows(engine.config(), bytes));
        let pages = engine.ledger().totals().pages;
        let mut budget = Budget {
            bytes,
            fits: 0,
            settles: 0,
            names: 0,
            again_at: 0,
            tell_at: TOLD_FROM.max(pages.saturating_mul(2)),
            rested: None,
            limit: limits.pages,
        };
        budget.find(engine, 0);
        budget
    }

    /// Finds how many pages fit beside `names` bytes of names.
    pub fn find<S: Storage>(&mut self, engine: &Engine<S>, names: u64) {
        let limit = engine.ledger().page_limit();
        let pages = engine.ledger().totals().pages;
        self.names = names;
        self.again_at = pages + (pages / 8).max(TOLD_FROM);
        self.fits = match self.bytes {
            None => limit,
            Some(bytes) => largest(limit, |pages| self.need(engine, pages).total() <= bytes),
        };
        self.settles = match self.bytes {
            None => self.fits,
            Some(bytes) => largest(self.fits, |pages| {
                let need = self.need(engine, pages);
                need.total() + need.settling <= bytes
            }),
        };
    }

    pub fn need<S: Storage>(&self, engine: &Engine<S>, pages: u64) -> Need {
        let known = engine.ledger().totals().pages;
        Need::of(engine, pages.max(known), self.names, self.bytes)
    }

    /// The need now, and how many pages fit.
    pub fn now<S: Storage>(&self, engine: &Engine<S>) -> (Need, u64) {
        self.rested.unwrap_or_else(|| {
            let pages = engine.ledger().totals().pages;
            (self.need(engine, pages), self.fits)
        })
    }

    /// Gives up what only more records would need: settling has its memory.
    pub fn rest<S: Storage>(&mut self, engine: &mut Engine<S>) -> Result<()> {
        self.rested = Some(self.now(engine));
        engine.rest()
    }

    /// Bytes that the engine leaves; `None`: there is no budget.
    pub fn left<S: Storage>(&self, engine: &Engine<S>) -> Option<u64> {
        let (mut need, _) = self.now(engine);
        if self.rested.is_some() {
            need = need.at_rest();
        }
        Some(self.bytes?.saturating_sub(need.total()))
    }

    /// Finds how many pages fit, if it is time to, where there are no names of archives.
    pub fn look<S: Storage>(&mut self, engine: &Engine<S>) {
        if self.bytes.is_some() && engine.ledger().totals().pages >= self.again_at {
            self.find(engine, 0);
        }
    }

    /// Most pages that there may be: those that fit both the limit and the budget.
    pub fn page_limit<S: Storage>(&self, engine: &Engine<S>) -> u64 {
        engine.ledger().page_limit().min(self.fits)
    }

    /// The error of the next record, if it was the budget that made [`Budget::page_limit`] as it is.
    pub fn blamed<S: Storage>(&self, engine: &Engine<S>, error: Error) -> Error {
        match error {
            Error::TooManyPages { limit } if limit < self.limit => self.exceeded(engine),
            other => other,
        }
    }

    /// That the next record does not fit.
    pub fn exceeded<S: Storage>(&self, engine: &Engine<S>) -> Error {
        let pages = engine.ledger().totals().pages;
        let budget = self.bytes.unwrap_or(u64::MAX);
        let next = self.need(engine, pages.max(self.fits) + 1);
        Error::OverBudget {
            pages,
            // One record may bring many pages: those that fit need no more than the budget.
            need: next.total().max(budget.saturating_add(1)),
            budget,
        }
    }
}
