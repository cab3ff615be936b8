//! The memory budget of a run: how many pages fit, reported at the start and as they grow, and the stop
//! before it would be exceeded.

use super::Run;
use crate::Result;
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
    pub(super) fn look_at_budget(&mut self) {
        if self.session.budget.bytes.is_none() {
            return;
        }
        self.session.find_fits();
        let pages = self.session.pages();
        if pages >= self.session.budget.tell_at {
            self.session.budget.tell_at = pages.saturating_mul(2);
            self.report_memory();
        }
    }
}
