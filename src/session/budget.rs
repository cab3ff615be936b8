//! A memory budget: how many pages fit, found again as they grow.

use crate::engine::{Engine, Storage};
use crate::memory::{Need, enough, largest};
use crate::{Error, Limits, Result};

/// From so many pages on, each doubling of them is reported.
const TOLD_FROM: u64 = 1 << 20;

/// What holds pages in memory: an engine, or partitions.
pub(crate) trait Holder {
    /// Pages known.
    fn pages(&self) -> u64;
    /// Most pages that it takes, whatever memory there is.
    fn page_limit(&self) -> u64;
    /// The memory that it needs with `pages` pages, no fewer than it knows, and `names` bytes for names of archives.
    fn need(&self, pages: u64, names: u64, budget: Option<u64>) -> Need;
    /// Gives up what only more records would need.
    ///
    /// # Errors
    /// Those of writing what waits.
    fn rest(&mut self) -> Result<()>;
}

impl<S: Storage> Holder for Engine<S> {
    fn pages(&self) -> u64 {
        self.ledger().totals().pages
    }

    fn page_limit(&self) -> u64 {
        Engine::page_limit(self)
    }

    fn need(&self, pages: u64, names: u64, budget: Option<u64>) -> Need {
        Need::of(self, pages, names, budget)
    }

    fn rest(&mut self) -> Result<()> {
        Engine::rest(self)
    }
}

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
    /// It was told that the page numbers of kept links will not suffice for long.
    pub told_limit: bool,
    /// The need, and the pages that would have fitted, once no more records are applied.
    rested: Option<(Need, u64)>,
    /// Most pages that there may be, also if memory has no room for them.
    limit: u64,
}

impl Budget {
    /// Of what holds pages.
    pub fn new(limits: &Limits, holder: &dyn Holder) -> Budget {
        let mut budget = Budget {
            bytes: limits.memory,
            fits: 0,
            settles: 0,
            names: 0,
            again_at: 0,
            told_limit: false,
            tell_at: TOLD_FROM.max(holder.pages().saturating_mul(2)),
            rested: None,
            limit: limits.pages,
        };
        budget.find(holder, 0);
        budget
    }

    /// Finds how many pages fit beside `names` bytes of names.
    pub fn find(&mut self, holder: &dyn Holder, names: u64) {
        let limit = holder.page_limit();
        let pages = holder.pages();
        self.names = names;
        self.again_at = pages + (pages / 8).max(TOLD_FROM);
        self.fits = match self.bytes {
            None => limit,
            Some(bytes) => largest(limit, |pages| self.need(holder, pages).total() <= bytes),
        };
        self.settles = match self.bytes {
            None => self.fits,
            Some(bytes) => largest(self.fits, |pages| {
                let need = self.need(holder, pages);
                need.total() + need.settling <= bytes
            }),
        };
    }

    pub fn need(&self, holder: &dyn Holder, pages: u64) -> Need {
        holder.need(pages.max(holder.pages()), self.names, self.bytes)
    }

    /// The need now, and how many pages fit.
    pub fn now(&self, holder: &dyn Holder) -> (Need, u64) {
        self.rested
            .unwrap_or_else(|| (self.need(holder, holder.pages()), self.fits))
    }

    /// Gives up what only more records would need: settling has its memory.
    pub fn rest(&mut self, holder: &mut dyn Holder) -> Result<()> {
        self.rested = Some(self.now(holder));
        holder.rest()
    }

    /// Returns whether that was given up.
    pub fn is_at_rest(&self) -> bool {
        self.rested.is_some()
    }

    /// Bytes that are left; `None`: there is no budget.
    pub fn left(&self, holder: &dyn Holder) -> Option<u64> {
        let (mut need, _) = self.now(holder);
        if self.rested.is_some() {
            need = need.at_rest();
        }
        Some(self.bytes?.saturating_sub(need.total()))
    }

    /// Finds how many pages fit, if it is time to, where there are no names of archives.
    pub fn look(&mut self, holder: &dyn Holder) {
        if self.bytes.is_some() && holder.pages() >= self.again_at {
            self.find(holder, 0);
        }
    }

    /// Most pages that there may be: those that fit both the limit and the budget.
    pub fn page_limit(&self, holder: &dyn Holder) -> u64 {
        holder.page_limit().min(self.fits)
    }

    /// The error of the next record, if it was the budget that made [`Budget::page_limit`] as it is.
    pub fn blamed(&self, holder: &dyn Holder, error: Error) -> Error {
        match error {
            Error::TooManyPages { limit, .. } if limit < self.limit.min(holder.page_limit()) => {
                self.exceeded(holder)
            }
            other => other,
        }
    }

    /// That the next record does not fit.
    pub fn exceeded(&self, holder: &dyn Holder) -> Error {
        let pages = holder.pages();
        let budget = self.bytes.unwrap_or(u64::MAX);
        let next = pages.max(self.fits) + 1;
        let needed = enough(|bytes| holder.need(next, self.names, Some(bytes)).total());
        Error::OverBudget {
            pages,
            // One record may bring many pages: those that fit need no more than the budget.
            need: needed.max(budget.saturating_add(1)),
            budget,
        }
    }
}
