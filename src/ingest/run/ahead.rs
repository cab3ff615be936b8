//! Prefetching of the next input while the last pieces of the current one are applied; otherwise the engine would wait
//! at the start of every pass for the first piece, and all other threads at its end for the engine.
//!
//! Only regular files that are read again and have been unchanged for a while are prefetched: their format and names
//! are known, and opening them neither waits nor reports anything. Anything that cannot be begun is left to its turn,
//! including its errors.

use super::cursor::Cursor;
use super::feed::Feed;
use super::opened::{Ahead, OpenInput};
use super::stamp::Stamp;
use crate::formats::Format;
use crate::pipeline::{Piece, Records, Start};

impl Feed<'_> {
    /// Begins the next input if the threads of the current one, to which `piece` belongs, have little left to do.
    pub(super) fn look_further(&mut self, cursor: &Cursor, piece: &Piece, records: &Records) {
        if self.ahead.is_none() && records.is_ending(piece) {
            self.ahead = self.begin_ahead(cursor);
        }
    }

    /// Returns the current input, if it was prefetched.
    pub(super) fn take_ahead(&mut self, cursor: &Cursor) -> Option<OpenInput> {
        let ahead = self.ahead.take()?;
        let progress = &cursor.progress;
        let at = (progress.pass, progress.input);
        ((ahead.pass, ahead.input) == at && progress.place.offset == 0).then_some(ahead.begun)
    }

    fn begin_ahead(&self, cursor: &Cursor) -> Option<Ahead> {
        if !cursor.is_repeating() || self.job.source.preverify {
            return None;
        }
        let (pass, input) = cursor.next_input(self.job.until.is_none())?;
        let name = &self.inputs[input as usize];
        let stamp = Stamp::of(name)?;
        let begun = cursor.progress.inputs.get(input as usize)?;
        let format: Format = begun.format.parse().ok()?;
        let start = Start {
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
