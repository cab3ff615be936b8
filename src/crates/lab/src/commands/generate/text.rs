//! Text on its way to the output, written in pieces of fixed size: keeping part of a piece costs a few instructions,
//! while copying just that part would cost a call.

use std::io::{self, Write};
use std::ops::Range;

/// Buffer of appended bytes, with spare room.
pub struct Text {
    bytes: Vec<u8>,
    len: usize,
}

impl Text {
    /// Length at which the buffer is written out, in bytes.
    const FULL: usize = 1 << 19;

    pub fn new() -> Text {
        Text {
            bytes: vec![0; Text::FULL],
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes room for `more` bytes; `put` needs room for the whole piece.
    pub fn reserve(&mut self, more: usize) {
        if self.bytes.len() - self.len < more {
            self.bytes.resize(2 * self.bytes.len().max(more), 0);
        }
    }

    /// Appends the first `kept` bytes of a piece.
    #[inline]
    pub fn put<const N: usize>(&mut self, piece: &[u8; N], kept: usize) {
        self.bytes[self.len..self.len + N].copy_from_slice(piece);
        self.len += kept;
    }

    /// Appends a whole piece.
    #[inline]
    pub fn push<const N: usize>(&mut self, piece: &[u8; N]) {
        self.put(piece, N);
    }

    /// Appends the bytes at `range` once more.
    pub fn repeat(&mut self, range: Range<usize>) {
        self.reserve(range.len());
        let to = self.len;
        self.len += range.len();
        self.bytes.copy_within(range, to);
    }

    /// Drops all but the first `len` bytes.
    pub fn cut(&mut self, len: usize) {
        self.len = len;
    }

    /// Overwrites the byte at `at`.
    pub fn set(&mut self, at: usize, byte: u8) {
        self.bytes[at] = byte;
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Writes the buffer out if it is long enough, or at the `end`.
    pub fn flush(&mut self, out: &mut impl Write, end: bool) -> io::Result<()> {
        if end || self.len >= Text::FULL - 4096 {
            out.write_all(self.as_bytes())?;
            self.len = 0;
        }
        Ok(())
    }
}
