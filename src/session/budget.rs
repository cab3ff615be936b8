//! A memory budget: how many pages fit, found again as they grow.

use crate::engine::Engine;
use crate::memory::{Need, enough, largest};
use crate::store::Store;
use crate::{Error, Limits, Result};

/// From so many pages on, each doubling of them is reported.
const TOLD_FROM: u64 = 1 << 20;

fn pages_of(engine: &Engine<Store>) -> u64 {
    engine.ledger().totals().pages
}

/// The memory budget and its use.
pub(crate) struct Budget {
    pub bytes: Option<u64>,
    /// Pages that fit, as far as the other parts of the need were known when that was found.
    pub fits: u64,
    /// Those of them up to which importance can be settled beside them.
    pub settles: u64,
    /// Pages from which on it is found again: the bound gets closer on the way.
    pub again_at: u64,
    /// Pages from which on it is reported again.
    pub tell_at: u64,
    /// It was told that the page numbers of kept links will not suffice for long.
    pub told_limit: bool,
    /// The need, and the pages that would have fitted, once no more records are applied.
    rested: Option<(Need, u64)>,
    /// Most pages that there may be, also if memory has no room for them.
    limit: u64,
}

impl Budget {
    /// Of an engine.
    pub fn new(limits: &Limits, engine: &Engine<Store>) -> Budget {
        let mut budget = Budget {
            bytes: limits.memory,
            fits: 0,
            settles: 0,
            again_at: 0,
            told_limit: false,
            tell_at: TOLD_FROM.max(pages_of(engine).saturating_mul(2)),
            rested: None,
            limit: limits.pages,
        };
        budget.find(engine);
        budget
    }

    /// Finds how many pages fit.
    pub fn find(&mut self, engine: &Engine<Store>) {
        let limit = engine.page_limit();
        let pages = pages_of(engine);
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

    pub fn need(&self, engine: &Engine<Store>, pages: u64) -> Need {
        Need::of(engine, pages.max(pages_of(engine)), self.bytes)
    }

    /// The need now, and how many pages fit.
    pub fn now(&self, engine: &Engine<Store>) -> (Need, u64) {
        self.rested
            .unwrap_or_else(|| (self.need(engine, pages_of(engine)), self.fits))
    }

    /// Gives up what only more records would need: settling has its memory.
    pub fn rest(&mut self, engine: &mut Engine<Store>) -> Result<()> {
        self.rested = Some(self.now(engine));
        engine.rest()
    }

    /// Returns whether that was given up.
    pub fn is_at_rest(&self) -> bool {
        self.rested.is_some()
    }

    /// Bytes that are left; `None`: there is no budget.
    pub fn left(&self, engine: &Engine<Store>) -> Option<u64> {
        let (mut need, _) = self.now(engine);
        if self.rested.is_some() {
            need = need.at_rest();
        }
        Some(self.bytes?.saturating_sub(need.total()))
    }

    /// Finds how many pages fit, if it is time to.
    pub fn look(&mut self, engine: &Engine<Store>) {
        if self.bytes.is_some() && pages_of(engine) >= self.again_at {
            self.find(engine);
        }
    }

    /// Most pages that there may be: those that fit both the limit and the budget.
    pub fn page_limit(&self, engine: &Engine<Store>) -> u64 {
        engine.page_limit().min(self.fits)
    }

    /// The error of the next record, if it was the budget that made [`Budget::page_limit`] as it is.
    pub fn blamed(&self, engine: &Engine<Store>, error: Error) -> Error {
        match error {
            Error::TooManyPages { limit, .. } if limit < self.limit.min(engine.page_limit()) => {
                self.exceeded(engine)
            }
            other => other,
        }
    }

    /// That the next record does not fit.
    pub fn exceeded(&self, engine: &Engine<Store>) -> Error {
        let pages = pages_of(engine);
        let budget = self.bytes.unwrap_or(u64::MAX);
        let next = pages.max(self.fits) + 1;
        let needed = enough(|bytes| Need::of(engine, next, Some(bytes)).total());
        Error::OverBudget {
            pages,
            // One record may bring many pages: those that fit need no more than the budget.
            need: needed.max(budget.saturating_add(1)),
            budget,
        }
    }
}
