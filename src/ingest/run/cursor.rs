//! How far an ingest has come, and what comes next.

use crate::formats::Format;
use crate::source::{InputName, Restart};
use crate::store::{Input, Place, Progress};
use crate::{Error, Result};

/// The next step of a pass.
pub(super) enum Phase {
    /// An input is read, or what was kept of all.
    Reading,
    /// Pages known as targets only are visited, from this one on.
    Completing(u64),
    /// Nothing: the pass is over.
    Over,
}

/// How far the inputs were read: pass, input, place, and the page that a completion has reached.
pub(super) type RunPosition = (u32, u64, Place, Option<u64>);

/// The place that a run has reached.
pub(super) struct Cursor {
    /// The part that a checkpoint keeps.
    pub progress: Progress,
    /// Inputs of a pass.
    inputs: u64,
    /// An input was begun: what is known is more than the last checkpoint.
    pub begun: bool,
}

impl Cursor {
    pub fn new(progress: Progress, inputs: usize) -> Cursor {
        Cursor {
            progress,
            inputs: inputs as u64,
            begun: false,
        }
    }

    /// Returns whether all passes are done.
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

    /// Returns whether it goes over records again.
    pub fn is_repeating(&self) -> bool {
        self.progress.pass > 1
    }

    /// Returns whether a pass but the first is about to begin.
    pub fn is_between_passes(&self) -> bool {
        let progress = &self.progress;
        let begun = progress.input > 0 || progress.place != Place::start();
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

    /// Pass and number of the input that follows; `None`: there is none, or another pass that may yet be left out.
    pub fn next_input(&self, passes_are_certain: bool) -> Option<(u32, u64)> {
        let Progress {
            pass,
            input,
            repeat,
            ..
        } = self.progress;
        if input + 1 < self.inputs {
            return Some((pass, input + 1));
        }
        (pass < repeat && passes_are_certain).then_some((pass + 1, 0))
    }

    /// Tells pipelines apart whose threads are delayed, for tests.
    pub fn turn(&self) -> u64 {
        (u64::from(self.progress.pass) << 32) + self.progress.input
    }

    /// The running input, if it was begun.
    pub fn input(&self) -> Option<&Input> {
        self.progress.inputs.get(self.progress.input as usize)
    }

    /// The running input, if it was begun.
    pub fn input_mut(&mut self) -> Option<&mut Input> {
        self.progress.inputs.get_mut(self.progress.input as usize)
    }

    /// Returns whether the running input is a spooled one.
    pub fn is_spooled(&self) -> bool {
        self.restart().is_some()
    }

    /// From where on the running input is needed, if it is spooled.
    pub fn restart(&self) -> Option<Restart> {
        Some(self.input()?.spooled?.restart)
    }

    /// Goes to the end of the last stream that was read; its format.
    pub fn pass_over_last(&mut self) -> Result<Format> {
        let stream = self.progress.stream.as_ref();
        let before = stream.and_then(|stream| self.progress.inputs.get(stream.input as usize));
        let (end, format) = before
            .and_then(|before| Some((before.end?, before.format.parse())))
            .ok_or_else(|| Error::Conflict("-: no stream was read before".into()))?;
        self.progress.place = end;
        format
    }

    /// The running input ends here, as it did in the first pass: the next one comes.
    ///
    /// # Errors
    /// [`Error::InputChanged`] if it ended elsewhere then.
    pub fn end_input(&mut self, name: &InputName, end: Place) -> Result<()> {
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

    /// Forgets the last input, which just ended, unless there are or were several passes.
    pub fn forget_input(&mut self) {
        if self.progress.repeat == 1 && !self.progress.complete {
            self.progress.inputs.pop();
            self.progress.input = self.progress.inputs.len() as u64;
            self.inputs = self.progress.input;
        }
    }

    /// All inputs of the pass were read.
    pub fn end_inputs(&mut self) {
        self.go_to(self.inputs);
    }

    /// The next pass comes.
    pub fn end_pass(&mut self) {
        self.progress.pass += 1;
        self.go_to(0);
    }

    /// The running pass and all after it are left out.
    pub fn leave_out_passes(&mut self) {
        self.progress.repeat = self.progress.pass - 1;
        self.go_to(0);
    }

    fn go_to(&mut self, input: u64) {
        self.progress.input = input;
        self.progress.place = Place::start();
    }
}
