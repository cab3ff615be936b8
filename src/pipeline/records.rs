//! One input as its records, in order: opened, its format found, and read on from where an earlier run stopped.

use std::io::Read;

use xxhash_rust::xxh3::Xxh3;

use super::look::{Look, Remark};
use super::{BufferPool, Next, Piece, Pipeline};
use crate::batch::Rules;
use crate::decode::Names;
use crate::formats::{Format, check_names, check_text, guess, is_decided};
use crate::source::{
    Chunk, Compression, HEAD_BYTES, InputName, KnownFormat, Restart, Source, SourceOptions, Summary,
};
use crate::store::Place;
use crate::{Error, Result};

/// Where chunks are larger, those of two inputs at a time would take much memory.
const LARGE: usize = 8 << 20;

/// Finds the format of an input, and how it was recognised, for people. `None`: the input is empty.
///
/// # Errors
/// [`Error::Unsupported`] if it cannot be guessed; those of reading.
pub(crate) fn format_of(
    source: &mut Source,
    asked: Option<Format>,
) -> Result<Option<(Format, String)>> {
    if let Some(known) = source.known_format() {
        return table_format(source.name(), known, asked).map(Some);
    }
    let is_live = source.is_live();
    let head = source.head_until(is_decided)?;
    if head.is_empty() {
        return Ok(None);
    }
    let found = match asked {
        Some(format) => Ok((format, "as `format` says".into())),
        None => guess(head),
    };
    let of_lines = found.as_ref().is_ok_and(|(format, _)| format.ends_lines());
    if asked.is_none() && of_lines && is_live && !head.contains(&b'\n') {
        return Err(Error::Unsupported(
            "-: the stream ends inside its first line, by which its format is known: send it again whole, or name it with \
             `format`"
                .into(),
        ));
    }
    found
        .map(Some)
        .map_err(|error| Error::Unsupported(format!("{}: {error}", source.name())))
}

/// The format of a stream that is read on, of which `read` bytes were read as `before`. Where that was guessed by less than
/// there is now, it is guessed again: by a front of a stream, a WAT may be a WARC, and an adjacency list edges.
///
/// # Errors
/// [`Error::Unsupported`] if nothing was read and it cannot be guessed; those of reading.
pub(crate) fn format_again(source: &mut Source, before: Format, read: u64) -> Result<Format> {
    if !source.is_at_start() || read > HEAD_BYTES as u64 {
        return Ok(before);
    }
    let input = source.name().clone();
    let head = source.head_until(is_decided)?;
    let front = &head[..head.len().min(read as usize)];
    if head.is_empty() || (read > 0 && guess(front).is_ok_and(|(front, _)| front != before)) {
        return Ok(before);
    }
    match guess(head) {
        Ok((format, _)) => Ok(format),
        Err(_) if read > 0 => Ok(before),
        Err(error) => Err(Error::Unsupported(format!("{input}: {error}"))),
    }
}

/// The format of a table, which can be read as that only.
fn table_format(
    input: &InputName,
    known: &KnownFormat,
    asked: Option<Format>,
) -> Result<(Format, String)> {
    let format: Format = known.format.parse()?;
    match asked {
        Some(asked) if asked != format => Err(Error::Unsupported(format!(
            "{input}: {}, which is read as `format` {}, not {}; leave `format` out",
            known.why,
            format.name(),
            asked.name()
        ))),
        _ => Ok((format, known.why.clone())),
    }
}

/// As [`format_of`]; refuses what is no text where a text format was asked for, and what by a guess has other names than
/// those `before`.
pub(crate) fn checked_format_of(
    source: &mut Source,
    asked: Option<Format>,
    before: Option<Names>,
) -> Result<Option<(Format, String)>> {
    let found = format_of(source, asked)?;
    if let (Some((format, why)), None) = (&found, asked) {
        check_names(*format, why, before)
            .map_err(|error| Error::Unsupported(format!("{}: {error}", source.name())))?;
    }
    if let Some(format) = asked {
        let head = source.head_until(is_decided)?;
        check_text(format, head)
            .map_err(|error| Error::Unsupported(format!("{}: {error}", source.name())))?;
    }
    Ok(found)
}

/// Where reading an input begins, and what is known of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Start {
    /// Where an earlier run stopped.
    pub place: Place,
    /// All before the place is known to be the same.
    pub trusted: bool,
    /// Tells pipelines apart whose threads are delayed, for tests.
    pub turn: u64,
    /// It is not its turn: it is not begun where no thread can be started.
    pub ahead: bool,
}

impl Start {
    /// Passes over what is before the place, which may take long.
    ///
    /// # Errors
    /// Those of [`Source::skip_to`].
    pub fn skip(&self, mut source: Source, format: Format) -> Result<Source> {
        let Place { offset, prefix, .. } = self.place;
        let shows_lines = source.is_at_start() || source.compression() == Compression::Plain;
        if offset == 0 {
        } else if format.ends_lines() && shows_lines {
            // The last record that counted is read again: it may have more lines by now. A member that is not the first may
            // begin inside a line.
            let expected = (!self.trusted).then_some(prefix);
            source.pass_whole_to(offset, expected, format.decoder())?;
        } else if self.trusted {
            source.pass_to(offset)?;
        } else {
            source.skip_to(offset, prefix)?;
        }
        if matches!(format, Format::Records | Format::NodeRecords) {
            // An object counts without its line end where a stream ended behind it.
            source.pass_line_end()?;
        }
        Ok(source)
    }
}

/// The rules for all inputs, and the memory that is passed from one to the next.
#[derive(Clone)]
pub(crate) struct InputReader {
    pub rules: Rules,
    options: SourceOptions,
    pub(super) threads: usize,
    pub(super) pool: BufferPool,
    /// Batches tell what records say as it is written.
    pub keeps_written: bool,
    /// Batches have their records as lines of JSON.
    pub keeps_lines: bool,
    /// For tests: a seed of delays at the hand-overs between threads.
    pub delays: Option<u64>,
}

impl InputReader {
    /// A reader with `threads` decoders, at least one.
    pub fn new(rules: Rules, options: &SourceOptions, threads: usize) -> InputReader {
        InputReader {
            options: options.with_rules(&rules.input),
            rules,
            threads,
            pool: BufferPool::new(threads),
            keeps_written: false,
            keeps_lines: false,
            delays: None,
        }
    }

    /// Opens an input.
    ///
    /// # Errors
    /// Those of [`Source::open`].
    pub fn open(&self, input: &InputName) -> Result<Source> {
        Source::open(input, &self.rules.limits, &self.options)
    }

    /// Opens standard input, from `from` on.
    ///
    /// # Errors
    /// Those of [`Source::live`].
    pub fn live(&self, stream: Box<dyn Read + Send>, from: Option<Restart>) -> Result<Source> {
        let limits = &self.rules.limits;
        Source::live(InputName::Stdin, stream, from, limits, &self.options)
    }

    /// Starts to read and decode `source`, which stands at the place to start from ([`Start::skip`]).
    ///
    /// # Errors
    /// Those of starting threads.
    pub fn read(&self, source: Source, format: Format, start: Start) -> Result<Records> {
        Ok(Records {
            input: source.name().clone(),
            format,
            compression: source.compression(),
            compressed_len: source.compressed_len(),
            read: start.place.records,
            look: Look::new(format, &self.rules),
            hash: None,
            again: source.shown_again(),
            pipeline: Pipeline::start(self, source, format, start)?,
        })
    }
}

/// An input that is being read.
pub(crate) struct Records {
    pipeline: Pipeline,
    pub input: InputName,
    pub format: Format,
    pub compression: Compression,
    pub compressed_len: Option<u64>,
    look: Look,
    /// How many of the next records were read before, up to the place to start from.
    pub again: u64,
    /// Records handed out, and those before them.
    read: u64,
    /// Of the chunk at this offset: the hash of the input up to so many bytes into it.
    hash: Option<(u64, Xxh3, usize)>,
}

impl Records {
    /// The next piece in order. The one before counts as dealt with: best recycle it first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] and others of reading, after all records before. Then nothing comes but [`Records::summary`].
    pub fn next(&mut self) -> Result<Next> {
        let next = self.pipeline.next();
        let next = next.map_err(|error| error.after_record(self.read))?;
        match &next {
            Next::Piece(piece) => {
                self.read += piece.batch.entries.len() as u64;
                self.look.piece(piece);
            }
            Next::End(_) => self.look.end(),
            Next::Idle => {}
        }
        Ok(next)
    }

    /// Remarks about the input so far that were not returned before.
    pub fn remarks(&mut self) -> Vec<Remark> {
        self.look.take()
    }

    /// After an error: how far the input was read, if that is known.
    pub fn summary(&mut self) -> Option<Summary> {
        match self.pipeline.next() {
            Ok(Next::End(summary)) => Some(summary),
            _ => None,
        }
    }

    /// Takes back a piece's memory.
    pub fn recycle(&self, piece: Box<Piece>) {
        self.pipeline.recycle(piece);
    }

    /// Returns whether the threads have little left to do and, as `piece` shows, there is memory for those of another
    /// input.
    pub fn is_ending(&self, piece: &Piece) -> bool {
        self.pipeline.is_ending() && piece.chunk.bytes.len() <= LARGE
    }

    /// Hash of the input up to `offset`, which lies in the chunk or at its end. `None`: it lies before. Offsets may not go
    /// back.
    pub fn prefix_at(&mut self, chunk: &Chunk, offset: u64) -> Option<u128> {
        let upto = offset.checked_sub(chunk.offset)?;
        if upto == chunk.bytes.len() as u64 + chunk.oversize {
            // The reader has hashed it already.
            return Some(chunk.prefix_after);
        }
        let hash = self.hash.take().filter(|(of, ..)| *of == chunk.offset);
        let (of, mut hash, hashed) = hash.unwrap_or((chunk.offset, chunk.prefix.clone(), 0));
        let upto = upto as usize;
        hash.update(chunk.bytes.get(hashed..upto).unwrap_or_default());
        let prefix = hash.digest128();
        self.hash = Some((of, hash, upto));
        Some(prefix)
    }
}
