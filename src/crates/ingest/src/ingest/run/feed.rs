//! Inputs of a run, and the state that is kept between inputs and passes. An input begins here: it is opened, its format is known or
//! guessed, what was applied of it before is passed over, and its threads start.

use std::sync::atomic::Ordering;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::cursor::Cursor;
use super::kept;
use super::stream::InputSigner;
use crate::batch::Rules;
use crate::decode::Names;
use crate::formats::{Format, is_decided};
use crate::ingest::input::report_format;
use crate::ingest::spooling::Spooling;
use crate::ingest::{IngestEvent, IngestJob, Observer};
use crate::model::InputPosition;
use crate::pipeline::{InputReader, InputRecords, PATIENCE, ReadStart, format_again};
use crate::source::{HEAD_BYTES, InputName, Restart, Source};
use crate::store::Input;
use crate::threads::spawn;
use crate::{Error, Result};

/// Start of an input.
pub(super) enum InputStart {
    Ready(Box<InputRecords>),
    /// Stopped from outside.
    Stopped,
    /// The whole input was read before.
    ReadBefore,
}

/// Opened input.
pub(super) enum InputSource {
    Source(Source),
    /// Stream that begins with all of the previous one: only what follows is another.
    Longer(Source),
    /// Stream of which all was read before.
    ReadBefore,
}

/// Inputs of a run and what reading them needs.
pub(super) struct Feed<'a> {
    pub job: &'a IngestJob,
    pub inputs: Vec<InputName>,
    pub reader: InputReader,
    /// Number of records at the ends of streams that were cut short; the store does not count them.
    pub torn: u64,
    pub spooling: Option<Spooling>,
    /// Signer of the current or last stream, if it was read from its first byte.
    pub signer: Option<InputSigner>,
    /// Kind of names in a store that was not written from inputs.
    pub kind: Option<Names>,
}

impl<'a> Feed<'a> {
    pub fn new(
        job: &'a IngestJob,
        inputs: Vec<InputName>,
        spooling: Option<Spooling>,
        rules: Rules,
    ) -> Feed<'a> {
        let mut reader = InputReader::new(rules, &job.source, job.threads);
        reader.delays = job.delays;
        Feed {
            job,
            reader,
            torn: 0,
            inputs,
            spooling,
            signer: None,
            kind: None,
        }
    }

    /// Returns true if the spool is for this input.
    pub fn is_spooling(&self, input: u64) -> bool {
        let spooling = self.spooling.as_ref();
        spooling.is_some_and(|spooling| spooling.input == input)
    }

    /// Checks the concurrent spool for errors.
    pub fn check_beside(&self) -> Result<()> {
        self.spooling.as_ref().map_or(Ok(()), Spooling::check)
    }

    pub fn stop_asked(&self) -> bool {
        self.job.stop.load(Ordering::Relaxed)
    }

    /// Returns a function that waits for an input's first bytes if its format has to be guessed.
    pub(super) fn to_head(
        &self,
        cursor: &Cursor,
    ) -> impl FnOnce(Source) -> Result<Source> + Send + use<> {
        let known = self.job.format.is_some()
            || cursor.input().is_some() && cursor.progress.place.offset > HEAD_BYTES as u64;
        move |mut source| {
            if !known {
                source.head_until(is_decided)?;
            }
            Ok(source)
        }
    }

    /// Runs work that may wait for an input on another thread, so that a stop is noticed meanwhile. Returns `None` if
    /// stopped from outside.
    pub fn patiently<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let (give, take) = bounded(1);
        spawn("open", move || drop(give.send(work())))?;
        loop {
            match take.recv_timeout(PATIENCE) {
                Ok(done) => return done.map(Some),
                Err(RecvTimeoutError::Timeout) if self.stop_asked() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.check_beside()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("a reading thread failed"));
                }
            }
        }
    }
}

impl Feed<'_> {
    /// Begins an input at the current place. `counted`: pages are known.
    pub(super) fn begin(
        &mut self,
        name: &InputName,
        cursor: &mut Cursor,
        counted: bool,
        observer: &mut dyn Observer,
    ) -> Result<InputStart> {
        let at = cursor.progress.input;
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
            observer.note(IngestEvent::Resuming {
                input: name,
                pass: cursor.progress.pass,
                records: place.records,
                offset: place.offset,
            });
        }
        let start = ReadStart {
            place,
            // What was compared with the stream before is known to be the same, and a spool holds what was read.
            trusted: longer || cursor.is_spooled(),
            turn: cursor.turn(),
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
        Ok(InputStart::Ready(Box::new(records)))
    }

    /// The kind of names that the store has, if it has any. All inputs have the same, unless their formats were named.
    fn names_before(&self, cursor: &Cursor) -> Option<Names> {
        let holds_some = |end: Option<InputPosition>| end.is_none_or(|end| end.records > 0);
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
            // What nothing was read of may be anything.
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
        // A stream's first bytes may be long in coming.
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
