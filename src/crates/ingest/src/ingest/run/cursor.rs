//! Position of an ingest, and its next step.

use crate::formats::Format;
use crate::model::InputPosition;
use crate::source::{InputName, Restart};
use crate::store::{Input, InputProgress};
use crate::{Error, Result};

/// Next step of a pass.
pub(super) enum Phase {
    /// An input is read, or pages are visited by kept links.
    Reading,
    /// Pages known as link targets only are visited, from this one on.
    Completing(u64),
    Over,
}

/// Position of a run: pass, input, position in it, and the page that a completion has reached.
pub(super) type RunPosition = (u32, u64, InputPosition, Option<u64>);

/// Position that a run has reached.
pub(super) struct Cursor {
    /// Part that a checkpoint stores.
    pub progress: InputProgress,
    /// Number of inputs in a pass.
    inputs: u64,
    /// True if an input was begun, so that more is known than the last checkpoint has.
    pub begun: bool,
}

impl Cursor {
    pub fn new(progress: InputProgress, inputs: usize) -> Cursor {
        Cursor {
            progress,
            inputs: inputs as u64,
            begun: false,
        }
    }

    /// Returns true if all passes are done.
    pub fn is_finished(&self) -> bool {
        self.progress.finished || self.progress.pass > self.progress.repeat
    }

    pub fn phase(&self) -> Phase {
        let progress = &self.progress;
        match progress.completing {
            Some(from) => Phase::Completing(from),
            None if progress.input < self.inputs => Phase::Reading,
            None if progress.complete => Phase::Completing(0),
            None => Phase::Over,
        }
    }

    /// Returns true if records are replayed.
    pub fn is_repeating(&self) -> bool {
        self.progress.pass > 1
    }

    /// Returns true inside an input that is read again.
    pub fn is_rereading(&self) -> bool {
        self.is_repeating() && self.progress.place.offset > 0
    }

    /// Returns true if a pass other than the first is about to begin.
    pub fn is_between_passes(&self) -> bool {
        let progress = &self.progress;
        let begun = progress.input > 0 || progress.place != InputPosition::start();
        self.is_repeating()
            && progress.pass <= progress.repeat
            && !begun
            && progress.completing.is_none()
    }

    pub fn reached(&self) -> RunPosition {
        let progress = &self.progress;
        (
            progress.pass,
            progress.input,
            progress.place,
            progress.completing,
        )
    }

    /// Returns a number that distinguishes pipelines whose threads are delayed, for tests.
    pub fn turn(&self) -> u64 {
        (u64::from(self.progress.pass) << 32) + self.progress.input
    }

    /// Returns the current input, if it was begun.
    pub fn input(&self) -> Option<&Input> {
        self.progress.inputs.get(self.progress.input as usize)
    }

    /// Returns the current input, if it was begun, for changes.
    pub fn input_mut(&mut self) -> Option<&mut Input> {
        self.progress.inputs.get_mut(self.progress.input as usize)
    }

    /// Returns true if the current input is spooled.
    pub fn is_spooled(&self) -> bool {
        self.restart().is_some()
    }

    /// Returns the position from which the current input is needed, if it is spooled.
    pub fn restart(&self) -> Option<Restart> {
        Some(self.input()?.spooled?.restart)
    }

    /// Returns true if the current input is a stream that had requests so far.
    pub fn has_requests(&self) -> bool {
        self.progress.requests == Some(self.progress.input)
    }

    /// Notes that the current input, a stream, has requests.
    pub fn note_request(&mut self) {
        if !self.is_repeating() {
            self.progress.requests = Some(self.progress.input);
        }
    }

    /// Moves to the end of the last stream that was read. Returns its format.
    pub fn pass_over_last(&mut self) -> Result<Format> {
        let stream = self.progress.stream.as_ref();
        let last = stream.map(|stream| stream.input);
        if last.is_some() && self.progress.requests == last {
            self.progress.requests = Some(self.progress.input);
        }
        let before = stream.and_then(|stream| self.progress.inputs.get(stream.input as usize));
        let (end, format) = before
            .and_then(|before| Some((before.end?, before.format.parse())))
            .ok_or_else(|| Error::Conflict("-: no stream was read before".into()))?;
        self.progress.place = end;
        format
    }

    /// Ends the current input at `end`, as in the first pass, and moves to the next one.
    ///
    /// # Errors
    /// [`Error::InputChanged`] if it ended elsewhere in the first pass.
    pub fn end_input(&mut self, name: &InputName, end: InputPosition) -> Result<()> {
        let Some(input) = self.input_mut() else {
            return Err(Error::internal("an input ended that was not begun"));
        };
        let before = *input.end.get_or_insert(end);
        if before != end {
            return Err(Error::InputChanged(format!(
                "{name}: has changed since pass 1: {} bytes in {} records then, {} bytes in {} now; \
                 put it back, or use another store",
                before.offset, before.records, end.offset, end.records
            )));
        }
        self.progress.unverified = None;
        self.go_to(self.progress.input + 1);
        Ok(())
    }

    /// Drops the last input, which just ended, unless there are or were several passes.
    pub fn forget_input(&mut self) {
        if self.progress.repeat == 1 && !self.progress.complete {
            self.progress.inputs.pop();
            self.progress.input = self.progress.inputs.len() as u64;
            self.inputs = self.progress.input;
        }
    }

    /// Moves to the end of all inputs of the pass.
    pub fn end_inputs(&mut self) {
        self.go_to(self.inputs);
    }

    /// Moves to the next pass.
    pub fn end_pass(&mut self) {
        self.progress.pass += 1;
        self.go_to(0);
    }

    /// Leaves out the current pass and all after it.
    pub fn leave_out_passes(&mut self) {
        self.progress.repeat = self.progress.pass - 1;
        self.go_to(0);
    }

    fn go_to(&mut self, input: u64) {
        self.progress.input = input;
        self.progress.place = InputPosition::start();
    }
}
