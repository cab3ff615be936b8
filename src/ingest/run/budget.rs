//! The memory budget of a run: how many pages fit, reported at the start and as they grow, and the stop
//! before it would be exceeded.

use super::Run;
use crate::Result;
use crate::batch::Batch;
use crate::engine::{NameMap, Resolver};
use crate::ingest::Note;
use crate::memory::Need;

impl Run<'_> {
    /// The need now, and how many pages fit the budget.
    pub(super) fn memory(&self) -> (Need, u64) {
        self.session.budget.now(&self.session.engine)
    }

    /// Says what is needed now.
    pub(super) fn report_memory(&mut self) {
        let (need, fits) = self.memory();
        if let Some(budget) = self.session.budget.bytes {
            self.observer.note(Note::Memory {
                pages: self.session.pages(),
                need,
                budget,
                fits,
                settles: if self.job.settle.is_some() && self.session.keeps_rows() {
                    self.session.budget.settles
                } else {
                    fits
                },
            });
        }
    }

    /// Gives up what only more records would need: settling has its memory.
    pub(super) fn rest(&mut self) -> Result<()> {
        self.finish_publishing()?;
        self.session.rest()
    }

    /// Looks at the budget before a batch.
    pub(super) fn look_at_budget(&mut self, resolver: &Resolver, batch: &Batch) -> Result<()> {
        if self.session.budget.bytes.is_none() {
            return Ok(());
        }
        let pages = self.session.pages();
        let mut names = self.feed.names_bytes() + resolver.names_bytes();
        if batch.part().is_some() {
            names += NameMap::bytes_more(batch.text_ends.len() as u64);
        }
        if names > self.session.budget.names || pages >= self.session.budget.again_at {
            // The next batches are likely to want more names, too.
            let more = names + names / 16;
            self.session.find_fits(Some(more));
        }
        if pages >= self.session.budget.tell_at {
            self.session.budget.tell_at = pages.saturating_mul(2);
            self.session.find_fits(Some(self.session.budget.names));
            self.report_memory();
        }
        // Names of known pages take memory, too.
        if names > 0 && self.session.budget.fits < pages {
            Err(self.session.budget.exceeded(&self.session.engine))
        } else {
            Ok(())
        }
    }
}
