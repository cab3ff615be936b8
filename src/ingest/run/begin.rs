//! Beginning of an input: it is opened, its format known or guessed, what was applied of it before is skipped, and its
//! threads start.

use super::cursor::Cursor;
use super::feed::Feed;
use super::kept;
use super::opened::{InputSource, InputStart, OpenInput};
use super::stamp::Stamp;
use crate::decode::Names;
use crate::formats::Format;
use crate::ingest::input::report_format;
use crate::ingest::{Note, Observer};
use crate::pipeline::{Start, format_again};
use crate::source::{InputName, Restart, Source};
use crate::store::{Input, Place};
use crate::{Error, Result};

impl Feed<'_> {
    /// Begins an input at the current position. `counted` is true if pages are known.
    pub(super) fn begin(
        &mut self,
        name: &InputName,
        cursor: &mut Cursor,
        counted: bool,
        observer: &mut dyn Observer,
    ) -> Result<InputStart> {
        if let Some(begun) = self.take_ahead(cursor) {
            return Ok(InputStart::Ready(Box::new(begun)));
        }
        let at = cursor.progress.input;
        let stamp = Stamp::of(name);
        let opened = if *name == InputName::Stdin {
            self.open_stream(cursor, counted, observer)?
        } else {
            let (name, reader) = (name.clone(), self.reader.clone());
            let to_head = self.to_head(cursor);
            let opened = self.patiently(move || reader.open(&name).and_then(to_head))?;
            opened.map(InputSource::Source)
        };
        let (mut source, longer) = match opened {
            None => return Ok(InputStart::Stopped),
            Some(InputSource::ReadBefore) => return Ok(InputStart::ReadBefore),
            Some(InputSource::Longer(source)) => (source, true),
            Some(InputSource::Source(source)) => (source, false),
        };
        let format = if longer {
            let before = cursor.pass_over_last()?;
            match self.job.format {
                Some(asked) => asked,
                None => format_again(&mut source, before, cursor.progress.place.offset)?,
            }
        } else {
            self.format(&mut source, cursor, observer)?
        };
        let place = cursor.progress.place;
        if place.offset > 0 {
            observer.note(Note::Resuming {
                input: name,
                pass: cursor.progress.pass,
                records: place.records,
                offset: place.offset,
            });
        }
        let start = Start {
            place,
            // What was compared with the previous stream is known to be equal, and a spool holds what was read.
            trusted: longer || cursor.is_spooled(),
            turn: cursor.turn(),
            ahead: false,
        };
        if place.offset > 0 {
            match self.patiently(move || start.skip(source, format))? {
                Some(skipped) => source = skipped,
                None => return Ok(InputStart::Stopped),
            }
        }
        if let Some(begun) = cursor.input_mut() {
            begun.format = format.name().into();
        } else {
            cursor.progress.inputs.push(Input {
                name: name.to_string(),
                format: format.name().into(),
                end: None,
                spooled: self.is_spooling(at).then_some(kept(Restart {
                    raw: 0,
                    offset: 0,
                    compression: source.compression(),
                })),
            });
        }
        let records = self.reader.read(source, format, start)?;
        Ok(InputStart::Ready(Box::new(OpenInput { stamp, records })))
    }

    /// Returns the kind of names of the store, if it has any. All inputs have the same kind, unless their formats were
    /// named.
    fn names_before(&self, cursor: &Cursor) -> Option<Names> {
        let holds_some = |end: Option<Place>| end.is_none_or(|end| end.records > 0);
        let inputs = cursor.progress.inputs.iter();
        // A crawl archive, which older versions read, held names of either kind.
        let format = inputs
            .filter(|input| holds_some(input.end))
            .find_map(|input| input.format.parse::<Format>().ok());
        format.map(|format| format.decoder().names()).or(self.kind)
    }

    fn format(
        &self,
        source: &mut Source,
        cursor: &Cursor,
        observer: &mut dyn Observer,
    ) -> Result<Format> {
        if let Some(begun) = cursor.input() {
            let format: Format = begun.format.parse()?;
            let read = cursor.progress.place.offset;
            let Some(asked) = self.job.format else {
                return match source.name() {
                    InputName::Stdin => format_again(source, format, read),
                    InputName::File(_) => Ok(format),
                };
            };
            // An input of which nothing was read may have any format.
            if asked != format && (read > 0 || cursor.is_repeating()) {
                return Err(Error::Conflict(format!(
                    "{}: was read as {}, not {}; leave `format` out or give it as before",
                    source.name(),
                    format.name(),
                    asked.name()
                )));
            }
            return Ok(asked);
        }
        // The first bytes of a stream may take long to arrive.
        if let Some(format) = self
            .job
            .format
            .filter(|_| *source.name() == InputName::Stdin)
        {
            return Ok(format);
        }
        let before = self.names_before(cursor);
        let found = report_format(source, self.job.format, before, observer)?;
        Ok(found.or(self.job.format).unwrap_or(Format::Records))
    }
}
