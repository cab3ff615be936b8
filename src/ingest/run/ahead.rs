//! The input that comes next, begun while the last pieces of the one before are applied: else the engine would
//! wait at the start of every pass for the first piece, and all others at its end for the engine.
//!
//! Only regular files that are read again, and have been as they are for a while: of them format and names are known,
//! and opening them neither waits nor has anything to say. What cannot be begun is left to its turn,
//! and so are its errors. An archive's names are known once all of it was applied, and not before: what decoders leave out
//! must not depend on how far the engine has come. So an archive that is read with its names, as a run does that goes on
//! inside it, is begun again at its turn only.

use super::cursor::Cursor;
use super::feed::Feed;
use super::opened::{Ahead, OpenInput};
use super::stamp::Stamp;
use crate::formats::Format;
use crate::pipeline::{Piece, Records, Start};

impl Feed<'_> {
    /// Begins the next input if the threads of this one, of which `piece` is, have little left to do.
    pub(super) fn look_further(&mut self, cursor: &Cursor, piece: &Piece, records: &Records) {
        if self.ahead.is_none() && records.is_ending(piece) {
            self.ahead = self.begin_ahead(cursor, records);
        }
    }

    /// The input whose turn it is, if it was begun.
    pub(super) fn take_ahead(&mut self, cursor: &Cursor) -> Option<OpenInput> {
        let ahead = self.ahead.take()?;
        let progress = &cursor.progress;
        let at = (progress.pass, progress.input);
        ((ahead.pass, ahead.input) == at && progress.place.offset == 0).then_some(ahead.begun)
    }

    fn begin_ahead(&self, cursor: &Cursor, records: &Records) -> Option<Ahead> {
        if !cursor.is_repeating() || self.job.source.preverify {
            return None;
        }
        let (pass, input) = cursor.next_input(self.job.until.is_none())?;
        let name = &self.inputs[input as usize];
        let stamp = Stamp::of(name)?;
        let begun = cursor.progress.inputs.get(input as usize)?;
        let format: Format = begun.format.parse().ok()?;
        let known = if input == cursor.progress.input {
            records.known
        } else {
            self.known_names(input)
        };
        if format == Format::Cza && known == 0 {
            return None;
        }
        let start = Start {
            known,
            turn: cursor.turn(),
            ahead: true,
            ..Start::default()
        };
        let source = self.reader.open(name).ok()?;
        let records = self.reader.read(source, format, start).ok()?;
        let stamp = Some(stamp);
        let begun = OpenInput { stamp, records };
        Some(Ahead { pass, input, begun })
    }
}
