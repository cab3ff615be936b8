//! Standard input: opened, signed while it is read, and recognised if it was read before
//! ([`stream_match`](crate::ingest::stream_match)). A pipe, a device or a socket that is named as an input is read as standard
//! input is: what comes from there comes once, and is recognised by its bytes if they come again.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::IngestRun;
use super::cursor::Cursor;
use super::feed::{Feed, InputSource};
use crate::ingest::stream_match::{SharedSigner, SignedStream, StreamMatch, look};
use crate::ingest::{
    IngestEvent, IngestJob, IngestOutcome, Observer, OldFault, StandardInput, Stream,
};
use crate::model::{InputSignature, Signature};
use crate::source::InputName;
use crate::store::{InputProgress, remove_spool};
use crate::{Error, Result};

/// The job with its stream, if it has one, as standard input.
///
/// # Errors
/// [`Error::Usage`] if there are several.
pub(super) fn with_stream(job: &IngestJob) -> Result<Cow<'_, IngestJob>> {
    let mut streams = job.inputs.iter().enumerate().filter(|(_, i)| i.is_stream());
    let Some((at, first)) = streams.next() else {
        return Ok(Cow::Borrowed(job));
    };
    if let Some((_, second)) = streams.next() {
        return Err(Error::Usage(format!(
            "{first} and {second} are streams, and a run reads one: join them (`cat A B | cashrank ingest -`), or run \
            the command for each"
        )));
    }
    let InputName::File(path) = first.clone() else {
        return Ok(Cow::Borrowed(job));
    };
    let mut job = job.clone();
    job.inputs[at] = InputName::Stdin;
    job.stdin = StandardInput::new(move || Box::new(Late::Closed(path.clone())));
    Ok(Cow::Owned(job))
}

/// Opened when it is first read: a FIFO waits for its writer.
enum Late {
    Closed(PathBuf),
    Open(File),
}

impl Read for Late {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Late::Open(file) => return file.read(out),
                Late::Closed(path) => *self = Late::Open(File::open(path)?),
            }
        }
    }
}

/// The signer of a stream, and its number among the inputs.
pub(super) struct InputSigner {
    pub input: u64,
    pub signer: SharedSigner,
}

impl Feed<'_> {
    /// Opens standard input at the current position, and determines whether it was read before. Returns `None` if
    /// stopped from outside.
    pub(super) fn open_stream(
        &mut self,
        cursor: &Cursor,
        counted: bool,
        observer: &mut dyn Observer,
    ) -> Result<Option<InputSource>> {
        let (stream, from) = match &self.spooling {
            None => (self.job.stdin.open(), None),
            Some(spooling) => {
                let begun = cursor.input().and_then(|begun| begun.spooled);
                spooling.reader(self.job, begun)?
            }
        };
        let to_head = self.to_head(cursor);
        let reader = self.reader.clone();
        let live = move |stream| reader.live(stream, from).and_then(to_head);
        if from.is_some_and(|from| from.raw > 0) {
            self.signer = None;
            let opened = self.patiently(move || live(stream))?;
            return Ok(opened.map(InputSource::Source));
        }
        let mut signed = SignedStream::new(stream);
        let signer = signed.signer();
        let known = self.signature_before(cursor, counted);
        let is_known = known.is_some();
        let opened = self.patiently(move || {
            let found = known.map_or(Ok(StreamMatch::Different), |known| signed.compare(&known))?;
            match found {
                StreamMatch::Same => Ok((None, found)),
                _ => Ok((Some(live(Box::new(signed))?), found)),
            }
        })?;
        let Some((source, found)) = opened else {
            return Ok(None);
        };
        let bytes = look(&signer).signature().whole.map_or(0, |(len, _)| len);
        self.signer = Some(InputSigner {
            input: cursor.progress.input,
            signer,
        });
        let note = match found {
            StreamMatch::Different => None,
            StreamMatch::Same => Some(IngestEvent::ReadBefore { bytes }),
            StreamMatch::Extends => Some(IngestEvent::GoesOn),
        };
        if let Some(note) = note.filter(|_| is_known) {
            observer.note(note);
        }
        Ok(Some(match (source, found) {
            (None, _) => InputSource::ReadBefore,
            (Some(source), StreamMatch::Extends) => InputSource::Longer(source),
            (Some(source), _) => InputSource::Source(source),
        }))
    }

    /// Returns the signature of the stream that was read last, if the one to be read may equal it.
    fn signature_before(&self, cursor: &Cursor, counted: bool) -> Option<Signature> {
        let progress = &cursor.progress;
        let stream = progress.stream.as_ref()?;
        // Later files and empty streams make no difference.
        let before = progress.inputs.get(stream.input as usize)?;
        let follows = progress.inputs.len() as u64 == progress.input && before.end.is_some();
        // With another format the records differ, and a stream without pages did no harm.
        let format = self.job.format.map(|format| format.name());
        let alike = format.is_none_or(|format| before.format == format);
        let asked =
            self.job.stream == Stream::Auto && self.job.fault != Some(OldFault::StreamForgotten);
        (asked && follows && alike && counted && before.name == "-")
            .then(|| stream.signature.clone())
    }

    /// Records what is known of the current stream. An empty one does not count: the one before it may still be sent
    /// again.
    pub(super) fn note_signature(&self, progress: &mut InputProgress) {
        if let Some(InputSigner { input, signer }) = &self.signer
            && *input < progress.inputs.len() as u64
        {
            let signature = look(signer).signature().clone();
            if !signature.head.is_empty() || progress.stream.is_none() {
                let input = *input;
                progress.stream = Some(InputSignature { input, signature });
            }
        }
    }

    /// Records the end of a stream of which `taken` bytes were read in total. If another run read its start, only that
    /// number is known.
    pub(super) fn end_signature(&self, progress: &mut InputProgress, taken: Option<u64>) {
        if self.signer.is_none()
            && let Some(stream) = &mut progress.stream
            && stream.signature.whole.map(|(len, _)| len) != taken
        {
            stream.signature.whole = None;
        }
    }
}

impl IngestRun<'_> {
    /// Ends the run for a stream that was read before: nothing is counted.
    pub(super) fn read_before(mut self) -> Result<IngestOutcome> {
        if let Some(spooling) = self.feed.spooling.take() {
            spooling.end();
            remove_spool(&**self.session.disk(), &self.job.store)?;
        }
        Ok(self.outcome(true, false))
    }

    /// Expects standard input to be the stream that was read before, or empty. Returns false if stopped from outside.
    ///
    /// # Errors
    /// The message `refusal` if it is another stream.
    pub(super) fn expect_read_before(&mut self, refusal: String) -> Result<bool> {
        let stream = self.cursor.progress.stream.clone();
        let known = stream.map(|stream| stream.signature).unwrap_or_default();
        let mut signed = SignedStream::new(self.job.stdin.open());
        let signer = signed.signer();
        let Some(found) = self.feed.patiently(move || signed.compare(&known))? else {
            return Ok(false);
        };
        match look(&signer).signature().whole {
            Some((0, _)) => {}
            Some((bytes, _)) if found == StreamMatch::Same => {
                self.observer.note(IngestEvent::ReadBefore { bytes });
            }
            _ => return Err(Error::Conflict(refusal)),
        }
        Ok(true)
    }
}
