//! Inputs: opens, recognises and decompresses them, and cuts the bytes into chunks of whole records.
//!
//! Promises:
//! - The records handed out, their offsets and the prefix hashes depend only on the decompressed bytes: not on the
//!   compression, the sizes of reads, or the size of chunks.
//! - No record is ever torn: a record that the input cuts short is not handed out. Only at the sound end of an input
//!   may the last record lack its line end.
//! - Nothing is handed out as verified before its checksum was (see [`SourceOptions`]).
//! - Memory stays within [`Limits`](crate::Limits): `held_bytes` and `line_bytes` (each perhaps twice, while a buffer
//!   grows or is half used), the zstd window and dictionary, and a few chunks.

mod chunk;
mod decompress;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod stream;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::decode::lines;
use crate::formats::Format;
use crate::model::Limits;
pub use crate::model::{Compression, Damage, DamageKind, Member, Restart};
use crate::rules::{FieldNames, InputRules};
use crate::{Error, Result};
pub use stream::{HEAD_BYTES, Source};
pub use table::{PARQUET, is_graph};

#[derive(Clone)]
pub struct Chunk {
    /// Whole records, decompressed, none of them over the line limit. Empty only if `oversize` is not 0.
    pub bytes: Vec<u8>,
    pub offset: u64,
    /// Hash (XXH3-128, seed 0) of the decompressed input before `bytes`.
    pub prefix: Xxh3,
    /// Hash of the decompressed input up to the end of `bytes`, or of the record that was dropped.
    pub prefix_after: u128,
    /// Length of a dropped record over the line limit, which leaves `bytes` empty; 0 if there is none.
    pub oversize: u64,
    /// True if a stream ended inside the chunk's only record, which may be complete when the stream is sent again.
    pub cut: bool,
    /// True if a stream ended before a request that may belong to the chunk's record: with requests it counts as cut.
    pub may_lack_request: bool,
    /// Number of compressed bytes read so far: an upper bound of the number that `bytes` needed.
    pub compressed: u64,
    /// True if all of it counts as verified (module `chunk`).
    pub verified: bool,
    /// Member or frame with the first of `bytes`, or one slightly before it, from which the input can be read again; with a
    /// zstd dictionary, the start of the input. `None`: the input is plain.
    pub member: Option<Member>,
}

impl Chunk {
    /// Returns the hash of the decompressed input up to `offset`; `None` if that is before the chunk.
    pub fn prefix_at(&self, offset: u64) -> Option<u128> {
        let upto = offset.checked_sub(self.offset)?;
        if upto == self.bytes.len() as u64 + self.oversize {
            return Some(self.prefix_after);
        }
        let mut hash = self.prefix.clone();
        hash.update(self.bytes.get(..upto as usize).unwrap_or_default());
        Some(hash.digest128())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceOptions {
    /// Hands out the whole records before damage, even of a member that would be held back.
    pub accept_unverified: bool,
    /// Usual size of a chunk in bytes, 1 MiB by default, at most little more than `line_bytes`. Long records exceed it.
    pub chunk_bytes: usize,
    pub fields: FieldNames,
}

impl SourceOptions {
    /// Returns these options with the rules' names of fields.
    pub fn with_rules(&self, rules: &InputRules) -> SourceOptions {
        SourceOptions {
            fields: rules.fields.clone(),
            ..self.clone()
        }
    }
}

impl Default for SourceOptions {
    fn default() -> Self {
        SourceOptions {
            accept_unverified: false,
            chunk_bytes: 1 << 20,
            fields: FieldNames::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSummary {
    /// Number of decompressed bytes handed out, or dropped as records over the line limit.
    pub bytes: u64,
    pub compressed: u64,
    /// Hash (XXH3-128, seed 0) of the first `bytes` bytes of the decompressed input.
    pub prefix: u128,
    pub members: u64,
    /// Number of members and frames without a checksum: nothing in them could be verified.
    pub unchecked: u64,
    pub damage: Option<Damage>,
}

pub struct Plain {
    source: Source,
    chunk: Vec<u8>,
    at: usize,
}

/// Opens a file of lines (plain, gzip or zstd), or standard input for `-`, for reading its decompressed bytes. Errors
/// while reading are an [`enum@Error`] wrapped in an [`io::Error`]; a line over `--limit-line` is one of them.
pub fn open_plain(path: &Path, limits: &Limits) -> Result<Plain> {
    let name = InputName::parse(path.as_os_str());
    Ok(Plain {
        source: Source::open_bytes(&name, limits, &SourceOptions::default())?,
        chunk: Vec::new(),
        at: 0,
    })
}

impl Plain {
    /// Returns the next line, without its end and a byte order mark; `None` after the last.
    fn next_line(&mut self) -> Result<Option<&[u8]>> {
        if self.at == self.chunk.len() && !self.read_chunk()? {
            return Ok(None);
        }
        let rest = &self.chunk[self.at..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.at = self.chunk.len().min(self.at + end + 1);
        Ok(Some(lines::trim(&rest[..end])))
    }

    fn read_chunk(&mut self) -> Result<bool> {
        // Any decoder of lines cuts where lines end.
        let buffer = std::mem::take(&mut self.chunk);
        self.at = 0;
        match self
            .source
            .next_chunk(Format::Adjacency.decoder(), buffer)?
        {
            None => Ok(false),
            Some(chunk) if chunk.oversize > 0 => {
                let what = format!("a line of {} bytes is over the limit", chunk.oversize);
                Err(Error::Unsupported(what))
            }
            Some(chunk) => {
                self.chunk = chunk.bytes;
                Ok(true)
            }
        }
    }
}

impl Read for Plain {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() && !self.read_chunk().map_err(io::Error::other)? {
            return Ok(0);
        }
        let len = out.len().min(self.chunk.len() - self.at);
        out[..len].copy_from_slice(&self.chunk[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// Size of the look-ahead: several of the largest zstd blocks (128 KiB), so that one is rarely moved to make room.
const LOOK_AHEAD: usize = 512 << 10;

/// Usual capacity of a pipe: a shorter read has emptied it.
pub const PIPE_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InputName {
    /// Standard input, written `-`.
    Stdin,
    /// File, or folder with a graph.
    File(PathBuf),
}

impl InputName {
    /// Parses a command-line argument: `-` is standard input, anything else a path.
    pub fn parse(argument: &OsStr) -> InputName {
        if argument == "-" {
            InputName::Stdin
        } else {
            InputName::File(PathBuf::from(argument))
        }
    }

    /// Returns whether the input can be read only once: standard input, a pipe, a device or a socket.
    pub fn is_stream(&self) -> bool {
        match self {
            InputName::Stdin => true,
            InputName::File(path) => {
                fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            InputName::Stdin => Path::new("-"),
            InputName::File(path) => path,
        }
    }
}

impl fmt::Display for InputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

/// Opens a file for reading, and returns its length if it is a regular file. Fails for a directory.
fn open_file(path: &Path) -> Result<(File, Option<u64>)> {
    let file = File::open(path).map_err(Error::io(path, "open"))?;
    let metadata = file.metadata().map_err(Error::io(path, "open"))?;
    if metadata.is_dir() {
        let source = io::Error::from(ErrorKind::IsADirectory);
        return Err(Error::io(path, "read")(source));
    }
    let length = metadata.is_file().then_some(metadata.len());
    Ok((file, length))
}

/// Reader with a look-ahead buffer. Retries interrupted reads, counts consumed bytes, and never reads after the end.
struct PeekReader {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    pub consumed: u64,
    /// True if the writer may pause: available bytes are passed on without waiting for more.
    pub live: bool,
    /// True if a live reader had no more bytes at the last [`PeekReader::read_into`], until it is used.
    pub lull: bool,
}

impl PeekReader {
    pub fn new(reader: Box<dyn Read + Send>) -> PeekReader {
        PeekReader {
            reader,
            buffer: vec![0; LOOK_AHEAD],
            start: 0,
            end: 0,
            ended: false,
            consumed: 0,
            live: false,
            lull: false,
        }
    }

    /// Returns all buffered bytes: at least `n`, which is at most the look-ahead, unless the input ends before.
    pub fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        debug_assert!(n <= self.buffer.len());
        while self.end - self.start < n && !self.ended {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.start + n > self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.end - self.start, "consumed more than was shown");
        self.start += n;
        self.consumed += n as u64;
    }

    /// Passes the next `n` bytes to `see` and drops them; returns `false` if the input ends before.
    pub fn pass(&mut self, mut n: usize, mut see: impl FnMut(&[u8])) -> io::Result<bool> {
        while n > 0 {
            let bytes = self.peek(1)?;
            let piece = bytes.len().min(n);
            if piece == 0 {
                return Ok(false);
            }
            see(&bytes[..piece]);
            self.consume(piece);
            n -= piece;
        }
        Ok(true)
    }

    /// Fills the capacity of `out`, or reads to the end. Returns the number of bytes added; 0 means the end.
    pub fn read_into(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        let room = out.capacity() - out.len();
        if self.live {
            let at_hand = self.peek(1)?;
            let added = at_hand.len().min(room);
            out.extend_from_slice(&at_hand[..added]);
            let lull = added == at_hand.len() && added < PIPE_BYTES;
            self.consume(added);
            self.lull = lull;
            return Ok(added);
        }
        let at_hand = &self.buffer[self.start..self.end];
        let mut added = at_hand.len().min(room);
        out.extend_from_slice(&at_hand[..added]);
        self.consume(added);
        if added < room && !self.ended {
            let left = room - added;
            // `read_to_end` retries interrupted reads, and writes to the spare capacity without clearing it.
            let read = (&mut self.reader).take(left as u64).read_to_end(out)?;
            self.ended = read < left;
            self.consumed += read as u64;
            added += read;
        }
        Ok(added)
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }
}
