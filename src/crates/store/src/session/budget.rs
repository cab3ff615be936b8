//! Memory budget of a store that is open for writing: the number of pages that fit, recomputed as they grow.

use super::Writer;
use crate::engine::{Engine, Resolver};
use crate::memory::{Need, enough, largest};
use crate::model::Batch;
use crate::store::StoreWriter;
use crate::{Error, Limits, Result};

/// Number of pages from which each doubling is reported.
const TOLD_FROM: u64 = 1 << 20;

fn pages_of(engine: &Engine<StoreWriter>) -> u64 {
    engine.ledger().totals().pages
}

pub struct Budget {
    pub bytes: Option<u64>,
    /// Number of pages that fit, given the other parts of the need at the last computation.
    pub fits: u64,
    /// Number of those pages up to which settling fits in addition.
    pub settles: u64,
    /// Number of pages at which the budget is recomputed, as the bound gets tighter.
    again_at: u64,
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

    fn find(&mut self, engine: &Engine<StoreWriter>) {
        let limit = engine.page_limit();
        let pages = pages_of(engine);
        self.again_at = pages + (pages / 8).max(TOLD_FROM);
        (self.fits, self.settles) = (limit, limit);
        if let Some(bytes) = self.bytes {
            let need = |pages| self.need(engine, pages);
            self.fits = largest(limit, |pages| need(pages).total() <= bytes);
            self.settles = largest(self.fits, |pages| {
                let need = self.need(engine, pages);
                need.total() + need.settling <= bytes
            });
        }
    }

    fn need(&self, engine: &Engine<StoreWriter>, pages: u64) -> Need {
        Need::of(engine, pages.max(pages_of(engine)), self.bytes)
    }
}

#[doc(hidden)]
impl Writer {
    /// Recomputes how many pages fit, if it is due.
    pub fn find_fits(&mut self) {
        if self.budget.bytes.is_some() && self.pages() >= self.budget.again_at {
            self.budget.find(&self.engine);
        }
    }

    /// Returns the present need of memory, and how many pages fit.
    pub fn memory(&self) -> (Need, u64) {
        let budget = &self.budget;
        let now = || (budget.need(&self.engine, 0), budget.fits);
        budget.rested.unwrap_or_else(now)
    }

    /// Releases memory that only further records need, for settling. After an error the store accepts no more of them.
    pub fn rest(&mut self) -> Result<()> {
        self.budget.rested = Some(self.memory());
        self.engine.rest()
    }

    /// Returns true after `rest`.
    pub fn is_at_rest(&self) -> bool {
        self.budget.rested.is_some()
    }

    /// Returns the bytes of memory that are left; `None` without a budget.
    pub fn memory_left(&self) -> Option<u64> {
        let (mut need, _) = self.memory();
        if self.is_at_rest() {
            need = need.at_rest();
        }
        Some(self.budget.bytes?.saturating_sub(need.total()))
    }

    /// Checks that the pages of a batch's names up to `names_end` fit.
    pub fn check_room(&self, names: &Resolver, batch: &Batch, names_end: u32) -> Result<()> {
        let limit = self.engine.page_limit();
        let most = limit.min(self.budget.fits);
        let room = names.check_room(&self.engine, batch, names_end, most);
        room.map_err(|error| match error {
            // The budget determined it.
            Error::TooManyPages { limit: most, .. } if most < self.budget.limit.min(limit) => {
                self.over_budget()
            }
            other => other,
        })
    }

    /// Returns the error that the next record does not fit.
    fn over_budget(&self) -> Error {
        let pages = self.pages();
        let budget = self.budget.bytes.unwrap_or(u64::MAX);
        let next = pages.max(self.budget.fits) + 1;
        let needed = enough(|bytes| Need::of(&self.engine, next, Some(bytes)).total());
        Error::OverBudget {
            pages,
            // One record may bring many pages: those that fit need no more than the budget.
            need: needed.max(budget.saturating_add(1)),
            budget,
        }
    }
}
