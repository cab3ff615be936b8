//! One input as its records, in order: opened, its format determined, and resumed where an earlier run stopped.

use std::io::Read;

use xxhash_rust::xxh3::Xxh3;

use super::look::{Look, Remark};
use super::{BufferPool, Piece, Pipeline, PipelineItem};
use crate::batch::Rules;
use crate::decode::Names;
use crate::formats::{Format, check_names, check_text, guess, is_decided};
use crate::model::InputPosition;
use crate::source::{
    Chunk, Compression, HEAD_BYTES, InputName, InputSummary, Restart, Source, SourceOptions,
};
use crate::{Error, Result};

/// Determines the format of an input, and how it was recognised, for messages. `None`: the input is empty. Fails with
/// [`Error::Unsupported`] if it cannot be guessed.
pub fn format_of(source: &mut Source, asked: Option<Format>) -> Result<Option<(Format, String)>> {
    if let Some((format, why)) = source.known_format() {
        let Some(asked) = asked.filter(|asked| asked != format) else {
            return Ok(Some((*format, why.clone())));
        };
        return Err(Error::Unsupported(format!(
            "{}: {why}, which is read as `format` {}, not {}; leave `format` out",
            source.name(),
            format.name(),
            asked.name()
        )));
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

/// Returns the format of a resumed stream, of which `read` bytes were read as `before`. If that was guessed from fewer
/// bytes than there are now, it is guessed again: judged by the front of a stream, a WAT may look like a WARC, and an
/// adjacency list like edges. Fails with [`Error::Unsupported`] if nothing was read and it cannot be guessed.
pub fn format_again(source: &mut Source, before: Format, read: u64) -> Result<Format> {
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

/// Determines the format like [`format_of`]; rejects an input that is not text if a text format was requested, and a
/// guessed format whose kind of names differs from `before`.
pub fn checked_format_of(
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

/// Position at which reading an input starts.
#[derive(Clone, Copy, Default)]
pub struct ReadStart {
    /// Position where an earlier run stopped.
    pub place: InputPosition,
    /// True if everything before the position is known to be unchanged.
    pub trusted: bool,
    /// Number of the pipeline, which selects its delays in tests.
    pub turn: u64,
}

impl ReadStart {
    /// Passes over everything before the position, which may take long.
    pub fn skip(&self, mut source: Source, format: Format) -> Result<Source> {
        let InputPosition { offset, prefix, .. } = self.place;
        let shows_lines = source.is_at_start() || source.compression() == Compression::Plain;
        if offset == 0 {
        } else if format.ends_lines() && shows_lines {
            // The last record that counted is read again: it may have more lines by now. A member other than the first
            // may begin inside a line.
            let expected = (!self.trusted).then_some(prefix);
            source.pass_whole_to(offset, expected, format.decoder())?;
        } else if self.trusted {
            source.pass_to(offset)?;
        } else {
            source.skip_to(offset, prefix)?;
        }
        if matches!(format, Format::Records | Format::NodeRecords) {
            // An object counts without its line end if a stream ended after it.
            source.pass_line_end()?;
        }
        Ok(source)
    }
}

/// Rules for all inputs, and the memory that is passed from one to the next.
#[derive(Clone)]
pub struct InputReader {
    pub rules: Rules,
    options: SourceOptions,
    pub(super) threads: usize,
    pub(super) pool: BufferPool,
    /// Keeps redirects and bases as written in batches.
    pub keeps_written: bool,
    /// Keeps records as lines of JSON in batches.
    pub keeps_lines: bool,
    /// Seed of delays at the hand-overs between threads, for tests.
    pub delays: Option<u64>,
}

impl InputReader {
    /// Returns a reader with `threads` decoders, at least one.
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

    pub fn open(&self, input: &InputName) -> Result<Source> {
        Source::open(input, &self.rules.limits, &self.options)
    }

    /// Opens standard input, from `from` on.
    pub fn live(&self, stream: Box<dyn Read + Send>, from: Option<Restart>) -> Result<Source> {
        let limits = &self.rules.limits;
        Source::live(InputName::Stdin, stream, from, limits, &self.options)
    }

    /// Starts to read and decode `source`, which has been skipped to the starting position ([`ReadStart::skip`]).
    pub fn read(&self, source: Source, format: Format, start: ReadStart) -> Result<InputRecords> {
        Ok(InputRecords {
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

/// Input being read, as its records.
pub struct InputRecords {
    pipeline: Pipeline,
    pub input: InputName,
    pub format: Format,
    pub compression: Compression,
    pub compressed_len: Option<u64>,
    look: Look,
    /// Number of the next records that were read before, up to the starting position.
    pub again: u64,
    /// Number of records handed out, and those before them.
    read: u64,
    /// Offset of a chunk, hash of the input up to a point in it, and number of its bytes hashed.
    hash: Option<(u64, Xxh3, usize)>,
}

impl InputRecords {
    /// Returns the next piece in order. The previous one then counts as done: best recycle it first. After an error
    /// nothing comes but [`InputRecords::summary`].
    pub fn next_piece(&mut self) -> Result<PipelineItem> {
        let next = self.pipeline.next();
        let next = next.map_err(|error| error.after_record(self.read))?;
        match &next {
            PipelineItem::Piece(piece) => {
                self.read += piece.batch.entries.len() as u64;
                self.look.piece(piece);
            }
            PipelineItem::End(_) => self.look.end(),
            PipelineItem::Idle => {}
        }
        Ok(next)
    }

    /// Returns the remarks about the input since the last call.
    pub fn remarks(&mut self) -> Vec<Remark> {
        self.look.take()
    }

    /// Returns how far the input was read, after an error, if known.
    pub fn summary(&mut self) -> Option<InputSummary> {
        match self.pipeline.next() {
            Ok(PipelineItem::End(summary)) => Some(summary),
            _ => None,
        }
    }

    /// Takes back a piece's memory.
    pub fn recycle(&self, piece: Box<Piece>) {
        self.pipeline.pool.take(*piece);
    }

    /// Returns the hash of the input up to `offset`, which lies in the chunk or at its end. `None`: it lies before.
    /// Offsets must not decrease.
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
