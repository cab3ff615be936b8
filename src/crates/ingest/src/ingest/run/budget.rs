//! Memory budget of a run: the number of pages that fit, reported at the start and as they grow, and the stop before it
//! would be exceeded.

use super::IngestRun;
use crate::Result;
use crate::ingest::IngestEvent;
use crate::memory::Need;

impl IngestRun<'_> {
    /// Returns the present need, and how many pages fit the budget.
    pub(super) fn memory(&self) -> (Need, u64) {
        self.session.budget.now(&self.session.engine)
    }

    /// Reports the present need.
    pub(super) fn report_memory(&mut self) {
        let (need, fits) = self.memory();
        if let Some(budget) = self.session.budget.bytes {
            self.observer.note(IngestEvent::Memory {
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

    /// Releases memory that only further records would need, for settling.
    pub(super) fn rest(&mut self) -> Result<()> {
        self.finish_publishing()?;
        self.session.rest()
    }

    /// Checks the budget before a batch.
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
