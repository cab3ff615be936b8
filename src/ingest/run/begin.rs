//! Beginning an input: it is opened, its format known or guessed, what was applied of it before is passed over, and
//! its threads start.

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::unchanged::Stamp;
use super::{Run, kept};
use crate::formats::{Format, is_decided};
use crate::ingest::Note;
use crate::ingest::input::told_format;
use crate::pipeline::{PATIENCE, Records, Start};
use crate::source::{InputName, Restart, Source};
use crate::store::Input;
use crate::threads::spawn;
use crate::{Error, Result};

/// An input that is being read and decoded; nothing of it is applied yet.
pub(super) struct OpenInput {
    /// The file before it was opened.
    pub stamp: Option<Stamp>,
    pub records: Records,
}

/// How an input began.
pub(super) enum InputStart {
    Ready(Box<OpenInput>),
    /// Not: stopped from outside.
    Stopped,
    /// Not: all of it was read before.
    ReadBefore,
}

/// An input that was opened.
pub(super) enum InputSource {
    Source(Source),
    /// A stream that begins with all of the one before: only what follows is another.
    Longer(Source),
    /// A stream, and all of it was read before.
    ReadBefore,
}

impl Run<'_> {
    /// Begins an input at the current place.
    pub(super) fn begin_here(&mut self, name: &InputName) -> Result<InputStart> {
        let at = self.progress.input;
        let stamp = Stamp::of(name);
        let (mut source, longer) = match self.open(name)? {
            None => return Ok(InputStart::Stopped),
            Some(InputSource::ReadBefore) => return Ok(InputStart::ReadBefore),
            Some(InputSource::Longer(source)) => (source, true),
            Some(InputSource::Source(source)) => (source, false),
        };
        let format = if longer {
            self.pass_over_last()?
        } else {
            self.format(name, &mut source)?
        };
        let place = self.progress.place;
        if place.offset > 0 {
            self.observer.note(Note::Resuming {
                input: name,
                pass: self.progress.pass,
                records: place.records,
                offset: place.offset,
            });
        }
        let start = Start {
            place,
            // What was compared with the stream before is known to be the same, and a spool holds what was read.
            trusted: longer || self.spooled(at),
            known: self.feed.known_names(at),
            turn: self.turn(),
        };
        match self.patiently(move || start.skip(source, format))? {
            Some(skipped) => source = skipped,
            None => return Ok(InputStart::Stopped),
        }
        if at == self.progress.inputs.len() as u64 {
            self.progress.inputs.push(Input {
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
        let records = self.feed.reader.read(source, format, start)?;
        Ok(InputStart::Ready(Box::new(OpenInput { stamp, records })))
    }

    /// Goes to the end of the last stream that was read; its format.
    fn pass_over_last(&mut self) -> Result<Format> {
        let stream = self.progress.stream.as_ref();
        let before = stream.and_then(|stream| self.progress.inputs.get(stream.input as usize));
        let (end, format) = before
            .and_then(|before| Some((before.end?, before.format.parse())))
            .ok_or_else(|| Error::Conflict("-: no stream was read before".into()))?;
        self.progress.place = end;
        format
    }

    /// Tells pipelines apart whose threads are delayed, for tests.
    pub(super) fn turn(&self) -> u64 {
        (u64::from(self.progress.pass) << 32) + self.progress.input
    }

    /// Opens an input, and waits for its first bytes if its format is to be guessed. `None`:
    /// stopped from outside.
    fn open(&mut self, name: &InputName) -> Result<Option<InputSource>> {
        let begun = self.progress.inputs.get(self.progress.input as usize);
        let known = self.job.format.is_some() || begun.is_some();
        let to_head = move |mut source: Source| {
            if !known {
                source.head_until(is_decided)?;
            }
            Ok(source)
        };
        if *name == InputName::Stdin {
            return self.open_stream(to_head);
        }
        let (name, reader) = (name.clone(), self.feed.reader.clone());
        let opened = self.patiently(move || reader.open(&name).and_then(to_head))?;
        Ok(opened.map(InputSource::Source))
    }

    /// Does what may wait for an input on a thread of its own, so that a stop is heard meanwhile.
    /// `None`: stopped from outside.
    pub(super) fn patiently<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let (give, take) = bounded(1);
        spawn("open", move || drop(give.send(work())))?;
        loop {
            match take.recv_timeout(PATIENCE) {
                Ok(done) => return done.map(Some),
                Err(RecvTimeoutError::Timeout) if self.stop_asked() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.check_spool()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::internal("a reading thread failed"));
                }
            }
        }
    }

    fn format(&mut self, name: &InputName, source: &mut Source) -> Result<Format> {
        let begun = self.progress.inputs.get(self.progress.input as usize);
        if let Some(begun) = begun {
            let format: Format = begun.format.parse()?;
            if let Some(asked) = self.job.format.filter(|asked| *asked != format) {
                return Err(Error::Conflict(format!(
                    "{name}: was read as {}, not {}; leave `format` out or give it as before",
                    format.name(),
                    asked.name()
                )));
            }
            return Ok(format);
        }
        // A stream's first bytes may be long in coming.
        if let Some(format) = self.job.format.filter(|_| *name == InputName::Stdin) {
            return Ok(format);
        }
        let found = told_format(source, self.job.format, self.observer)?;
        Ok(found.or(self.job.format).unwrap_or(Format::Records))
    }
}
