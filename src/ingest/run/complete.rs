//! End of a pass with `--complete`: visits pages known as link targets only, with checkpoints in between and checks for
//! a stop.

use super::{InputEnd, Run};
use crate::Result;
use crate::ingest::Note;

/// Number of visits between two checks of the clock.
const UNHEARD: u64 = 1 << 12;

impl Run<'_> {
    /// Visits these pages from page `from` on, where a checkpoint left off.
    pub(super) fn complete(&mut self, mut from: u64) -> Result<InputEnd> {
        if from > 0 {
            self.observer.note(Note::Completing {
                pass: self.cursor.progress.pass,
            });
        }
        self.cursor.begun = true;
        self.cursor.progress.completing = Some(from);
        for visits in 1.. {
            let Some(next) = self.session.engine.complete_next(from)? else {
                break;
            };
            from = next;
            self.cursor.progress.completing = Some(from);
            if self.is_due() {
                self.on_records()?;
            }
            if self.feed.stop_asked() {
                return Ok(InputEnd::Stopped);
            }
            if visits % UNHEARD == 0 {
                self.on_time()?;
            }
        }
        self.cursor.progress.completing = None;
        Ok(InputEnd::Whole)
    }
}
