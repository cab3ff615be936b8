//! The input that comes next, begun while the last pieces of the one before are applied: else the engine would
//! wait at the start of every pass for the first piece, and all others at its end for the engine.
//!
//! Only regular files that are read again, and have been as they are for a while: of them format and names are known,
//! and opening them neither waits nor has anything to say. What cannot be begun is left to its turn,
//! and so are its errors. An archive's names are known once all of it was applied, and not before: what decoders leave out
//! must not depend on how far the engine has come. So an archive that is read with its names, as a run does that goes on
//! inside it, is begun again at its turn only.

use super::Run;
use super::begin::OpenInput;
use super::unchanged::Stamp;
use crate::formats::Format;
use crate::pipeline::{Piece, Records, Start};

/// An input, and when its turn is.
pub(super) struct Ahead {
    pass: u32,
    input: u64,
    begun: OpenInput,
}

impl Run<'_> {
    /// Begins the next input if the threads of this one, of which `piece` is, have little left to do.
    pub(super) fn look_further(&mut self, piece: &Piece, records: &Records) {
        if self.feed.ahead.is_none() && records.is_ending(piece) {
            self.feed.ahead = self.begin_ahead(records);
        }
    }

    /// The input whose turn it is, if it was begun.
    pub(super) fn take_ahead(&mut self) -> Option<OpenInput> {
        let ahead = self.feed.ahead.take()?;
        let at = (self.progress.pass, self.progress.input);
        ((ahead.pass, ahead.input) == at && self.progress.place.offset == 0).then_some(ahead.begun)
    }

    /// Pass and number of the input that follows.
    fn next_input(&self) -> Option<(u32, u64)> {
        let (pass, next) = (self.progress.pass, self.progress.input + 1);
        if next < self.feed.inputs.len() as u64 {
            return Some((pass, next));
        }
        (pass < self.progress.repeat && self.job.until.is_none()).then_some((pass + 1, 0))
    }

    fn begin_ahead(&self, records: &Records) -> Option<Ahead> {
        if self.progress.pass == 1 || self.job.source.preverify {
            return None;
        }
        let (pass, input) = self.next_input()?;
        let name = self.feed.inputs[input as usize].clone();
        let stamp = Stamp::of(&name)?;
        let format: Format = self
            .progress
            .inputs
            .get(input as usize)?
            .format
            .parse()
            .ok()?;
        let known = if input == self.progress.input {
            records.known
        } else {
            self.feed.known_names(input)
        };
        if format == Format::Cza && known == 0 {
            return None;
        }
        let start = Start {
            known,
            turn: self.turn(),
            ..Start::default()
        };
        let source = self.feed.reader.open(&name).ok()?;
        let records = self.feed.reader.read(source, format, start).ok()?;
        let stamp = Some(stamp);
        let begun = OpenInput { stamp, records };
        Some(Ahead { pass, input, begun })
    }
}
