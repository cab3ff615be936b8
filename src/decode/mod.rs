//! One pure parser a format: bytes of whole records in, [`Record`]s out.
//!
//! A decoder knows two things: where whole records end ([`Decoder::whole`], used by the
//! reader to cut the stream into chunks) and what they say ([`Decoder::decode`], run on each
//! chunk by itself, on any thread). It opens no file, resolves no URL and keeps no state
//! between chunks, so results cannot depend on where chunks were cut.

mod record;

pub use record::{Link, Parsed, Reason, Record, Time};

/// Called once for each record of a chunk, in order, with the offset in the chunk at which the
/// record ends. Return `false` to stop decoding the chunk.
pub type Sink<'s> = dyn for<'r, 'a> FnMut(usize, Parsed<'r, 'a>) -> bool + 's;

/// How names are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// URLs: put in canonical form, relative links joined.
    Url,
    /// Opaque node names, taken byte for byte.
    Opaque,
}

/// A format's parser.
pub trait Decoder: Send + Sync {
    /// Whether names are URLs.
    fn names(&self) -> Names;

    /// Length of the longest front of `buf` that holds whole records only. `buf` starts at a
    /// record boundary. 0: not even the first record is whole yet. With `at_end` nothing follows
    /// `buf`, and what is left counts as whole (`decode` will say what is wrong with it).
    fn whole(&self, buf: &[u8], at_end: bool) -> usize;

    /// Finds the end of one record that is over the line limit, so that it can be skipped
    /// without being held. Call it with each further piece of the stream, beginning with the
    /// bytes at the record's start; `Some(n)`: the record ends `n` bytes into this piece.
    fn skipper(&self) -> Box<dyn Skipper>;

    /// Parses all records of `chunk` (whole records only) and hands each to `sink`.
    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>);
}

/// See [`Decoder::skipper`].
pub trait Skipper: Send {
    /// `Some(n)`: the record ends before byte `n` of `piece`; `None`: all of `piece` is inside it.
    fn skip(&mut self, piece: &[u8]) -> Option<usize>;
}
