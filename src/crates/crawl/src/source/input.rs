//! Source of compressed bytes: a file, standard input, or any reader.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

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

    pub(super) fn path(&self) -> &Path {
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
pub(super) fn open_file(path: &Path) -> Result<(File, Option<u64>)> {
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
pub(super) struct PeekReader {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader of one byte at a time, with an interruption before each, and an end that a further read would contradict.
    struct Trickle(Vec<u8>, bool, bool);

    impl Read for Trickle {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            assert!(!self.2, "read again after the end");
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::Interrupted.into());
            }
            if self.0.is_empty() {
                self.2 = true;
                return Ok(0);
            }
            buf[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn interrupted_reads_are_retried_and_the_end_is_final() {
        let mut raw = PeekReader::new(Box::new(Trickle(b"abcdef".to_vec(), false, false)));
        assert_eq!(raw.peek(2).unwrap(), b"ab");
        raw.consume(1);
        let mut out = Vec::with_capacity(3);
        assert_eq!(raw.read_into(&mut out).unwrap(), 3);
        assert_eq!(out, b"bcd");
        assert_eq!(raw.peek(9).unwrap(), b"ef");
        assert_eq!(raw.consumed, 4);
        let mut out = Vec::with_capacity(9);
        assert_eq!(raw.read_into(&mut out).unwrap(), 2);
        assert_eq!(raw.read_into(&mut out).unwrap(), 0);
        assert_eq!(raw.peek(1).unwrap(), b"");
        assert_eq!(raw.consumed, 6);
    }

    #[test]
    fn names() {
        assert_eq!(InputName::parse(OsStr::new("-")), InputName::Stdin);
        assert_eq!(InputName::Stdin.to_string(), "-");
        let file = InputName::parse(OsStr::new("a/b.gz"));
        assert_eq!(file, InputName::File("a/b.gz".into()));
        assert_eq!(file.to_string(), "a/b.gz");
    }
}
