//! `--until`: passes end when the certified bound is low enough.

use super::Run;
use crate::Result;
use crate::engine::Estimation;
use crate::ingest::Note;

impl Run<'_> {
    /// Returns true, before another pass, if the bound of the durable state is low enough to leave it out. The same
    /// command on a store that stopped in this way gives the same result.
    pub(super) fn is_near_enough(&mut self) -> Result<bool> {
        let Some(until) = self.job.until else {
            return Ok(false);
        };
        let bound = self.session.view().and_then(|view| {
            let estimation = Estimation::begin(&view, self.session.engine.config())?;
            let rounding = self.session.engine.config().damping_bound();
            Ok(estimation.window().bound_l1().map(|bound| bound + rounding))
        })?;
        self.observer.note(Note::Bound {
            pass: self.cursor.progress.pass - 1,
            bound,
        });
        Ok(bound.is_some_and(|bound| bound <= until))
    }
}
