//! Memory budget of a store that is open for writing: the number of pages that fit, recomputed as they grow.

use crate::engine::Engine;
use crate::memory::{Need, enough, largest};
use crate::store::StoreWriter;
use crate::{Error, Limits, Result};

/// Number of pages from which each doubling is reported.
const TOLD_FROM: u64 = 1 << 20;

fn pages_of(engine: &Engine<StoreWriter>) -> u64 {
    engine.ledger().totals().pages
}

/// Memory budget and its use.
pub struct Budget {
    pub bytes: Option<u64>,
    /// Number of pages that fit, given the other parts of the need at the last computation.
    pub fits: u64,
    /// Number of those pages up to which settling fits in addition.
    pub settles: u64,
    /// Number of pages at which it is recomputed, as the bound gets tighter.
    pub again_at: u64,
    /// Number of pages at which the use is reported next.
    pub tell_at: u64,
    /// True if it was reported that the page numbers of kept links will soon run out.
    pub told_limit: bool,
    /// Need, and the pages that would have fitted, once no more records are applied.
    rested: Option<(Need, u64)>,
    /// Limit on the number of pages, apart from memory.
    limit: u64,
}

impl Budget {
    /// Creates the budget of an engine.
    pub fn new(limits: &Limits, engine: &Engine<StoreWriter>) -> Budget {
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

    /// Computes how many pages fit.
    pub fn find(&mut self, engine: &Engine<StoreWriter>) {
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

    pub fn need(&self, engine: &Engine<StoreWriter>, pages: u64) -> Need {
        Need::of(engine, pages.max(pages_of(engine)), self.bytes)
    }

    /// Returns the present need, and how many pages fit.
    pub fn now(&self, engine: &Engine<StoreWriter>) -> (Need, u64) {
        self.rested
            .unwrap_or_else(|| (self.need(engine, pages_of(engine)), self.fits))
    }

    /// Releases memory that only further records would need, for settling.
    pub fn rest(&mut self, engine: &mut Engine<StoreWriter>) -> Result<()> {
        self.rested = Some(self.now(engine));
        engine.rest()
    }

    /// Returns true if that memory was released.
    pub fn is_at_rest(&self) -> bool {
        self.rested.is_some()
    }

    /// Returns the bytes that are left; `None` without a budget.
    pub fn left(&self, engine: &Engine<StoreWriter>) -> Option<u64> {
        let (mut need, _) = self.now(engine);
        if self.rested.is_some() {
            need = need.at_rest();
        }
        Some(self.bytes?.saturating_sub(need.total()))
    }

    /// Recomputes how many pages fit, if it is due.
    pub fn look(&mut self, engine: &Engine<StoreWriter>) {
        if self.bytes.is_some() && pages_of(engine) >= self.again_at {
            self.find(engine);
        }
    }

    /// Returns the largest number of pages within both the limit and the budget.
    pub fn page_limit(&self, engine: &Engine<StoreWriter>) -> u64 {
        engine.page_limit().min(self.fits)
    }

    /// Replaces the error of the next record by one about the budget, if that determined [`Budget::page_limit`].
    pub fn blamed(&self, engine: &Engine<StoreWriter>, error: Error) -> Error {
        match error {
            Error::TooManyPages { limit, .. } if limit < self.limit.min(engine.page_limit()) => {
                self.exceeded(engine)
            }
            other => other,
        }
    }

    /// Returns the error that the next record does not fit.
    pub fn exceeded(&self, engine: &Engine<StoreWriter>) -> Error {
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
