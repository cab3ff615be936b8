//! One pure parser a format: bytes of whole records in, [`Record`]s out.
//!
//! A decoder knows two things: where whole records end ([`Decoder::whole`], used by the
//! reader to cut the stream into chunks) and what they say ([`Decoder::decode`], run on each
//! chunk by itself, on any thread). It opens no file, resolves no URL and keeps no state
//! between chunks, so results cannot depend on where chunks were cut.

pub(crate) mod adjacency;
pub(crate) mod arc;
pub(crate) mod crawl_log;
pub(crate) mod csv_links;
pub(crate) mod edges;
pub(crate) mod frame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub(crate) mod groups;
pub mod html;
mod http;
mod json;
pub(crate) mod lines;
pub(crate) mod nutch;
pub(crate) mod records;
mod time;
pub(crate) mod warc;
pub(crate) mod wat;

use std::sync::Arc;

use crate::model::Limits;
use crate::rules::{InputRules, Shard};

pub(crate) use crate::model::is_redirect;
pub use crate::model::{Link, Names, Parsed, Reason, Record, Time, utc};
pub(crate) use json::put_string;
pub use records::unread::Missing;
pub(crate) use records::unread::Unread;
#[cfg(feature = "parquet")]
pub(crate) use records::{FieldKind, field_kind};
pub(crate) use time::{from_fraction as time_of_seconds, from_text as time_of};

/// Called once for each record of a chunk, in order, with the offset in the chunk at which the
/// record ends; before one that is [`Parsed::Large`] also with that. Return `false` to stop decoding the
/// chunk.
///
/// Offsets never fall. One that has not grown (0 for the first of a chunk) belongs to something
/// inside the record that comes next: a comment within an `edges` group, a `request` in a WARC capture's
/// tail. Reading may be continued from an offset only if the call that gave it made it grow.
pub type Sink<'s> = dyn for<'r, 'a> FnMut(usize, Parsed<'r, 'a>) -> bool + 's;

/// A format's parser.
pub trait Decoder: Send + Sync {
    /// Returns whether names are URLs.
    fn names(&self) -> Names;

    /// Length of the longest front of `buf` that holds whole records only. `buf` starts at a
    /// record boundary. 0: not even the first record is whole yet. With `at_end` nothing follows
    /// `buf`, and what is left counts as whole (`decode` will say what is wrong with it).
    fn whole(&self, buf: &[u8], at_end: bool) -> usize;

    /// Returns whether a stream that ends after `rest`, which [`Decoder::whole`] does not count as whole, was cut inside a
    /// record: its last one cannot be used, or shows that it is not whole.
    fn is_cut(&self, rest: &[u8]) -> bool {
        last_bad(|sink| self.decode(rest, sink)).is_some()
    }

    /// Finds the end of one record that is over the line limit, so that it can be skipped
    /// without being held. Call it with the bytes at the record's start, then as
    /// [`Skipped`] says.
    fn skipper(&self) -> Box<dyn Skipper>;

    /// Parses all records of `chunk` (whole records only) and hands each to `sink`.
    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>);

    /// Looks for fields that are not read, if records have fields that users name.
    #[doc(hidden)]
    fn unread(&self) -> Option<Box<Unread>> {
        None
    }
}

/// Returns why the last of some records cannot be used; `None`: it can.
fn last_bad(decode: impl FnOnce(&mut Sink<'_>)) -> Option<Reason> {
    let mut bad = None;
    decode(&mut |_, parsed| {
        bad = match parsed {
            Parsed::Bad { reason, .. } => Some(reason),
            _ => None,
        };
        true
    });
    bad
}

/// A format's name, help and decoder, from its own file; [`crate::formats`] lists all of them.
pub(crate) struct FormatSpec {
    /// The name used on the command line.
    pub name: &'static str,
    /// A description in a few words, for help.
    pub about: &'static str,
    /// Whether a record is a run of lines with a link each.
    pub is_grouped: bool,
    /// A caveat about every ranking made from it, in one line.
    pub caveat: Option<&'static str>,
    /// Its parser by the default rules,
    pub usual: &'static dyn Decoder,
    /// and by others. Of the limits, `line_bytes` bounds what a record may unpack to.
    pub by: fn(&InputRules, &Limits) -> Arc<dyn Decoder>,
}

/// See [`Decoder::skipper`].
pub trait Skipper: Send {
    /// Looks at the next bytes of the stream. With `at_end` nothing follows them, and the answer
    /// is [`Skipped::Ended`].
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped;
}

/// The result of [`Skipper::skip`]. Where a record ends may show only some bytes later (the next
/// source of an `edges` file), so a skipper may want the last bytes of `buf` once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// The first `n` bytes are inside the record: drop them, read more behind the others, and
    /// call again. At most [`HELD_MAX`] bytes are left over; `n` may be 0.
    Inside(usize),
    /// The record ends after the first `n` bytes.
    Ended(usize),
}

/// Most bytes that a [`Skipper`] asks to see once more: 1 MiB.
pub const HELD_MAX: usize = 1 << 20;

/// Returns whether the links of a record need not be read: its page is another shard's.
fn skips_links(shard: Option<Shard>, url: &[u8], names: Names) -> bool {
    shard.is_some_and(|shard| shard.passes_over(url, names))
}

/// The time that a record gives, if it gives one, or what is wrong with that: for people, one line.
type RecordTime = Result<Option<Time>, String>;

/// Puts the time into a record. One that cannot be read costs the record nothing but the time.
fn put_time(record: &mut Record<'_>, told: RecordTime) {
    (record.fetched_at, record.bad_time) = parted(told);
}

/// The time, and what is wrong with it.
fn parted(told: RecordTime) -> (Option<Time>, Option<String>) {
    match told {
        Ok(time) => (time, None),
        Err(detail) => (None, Some(detail)),
    }
}

/// Why a record cannot be used, before it becomes [`Parsed::Bad`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    reason: Reason,
    detail: String,
}

impl Bad {
    fn new(reason: Reason, detail: impl Into<String>) -> Bad {
        Bad {
            reason,
            detail: detail.into(),
        }
    }

    fn malformed(detail: impl Into<String>) -> Bad {
        Bad::new(Reason::Malformed, detail)
    }

    /// For text that must be UTF-8.
    fn utf8(error: std::str::Utf8Error) -> Bad {
        let detail = format!("not UTF-8 after {} bytes", error.valid_up_to());
        Bad::new(Reason::InvalidUtf8, detail)
    }
}

/// The bytes as text, looked through many at a time; the standard library finds what is wrong.
fn utf8(bytes: &[u8]) -> Result<&str, std::str::Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes))
}

impl<'r, 'a> Parsed<'r, 'a> {
    /// The result of reading into `record`; `Some(kind)`: it is not a crawl record, and need not be.
    fn of(read: Result<Option<&'static str>, Bad>, record: &'r Record<'a>) -> Parsed<'r, 'a> {
        match read {
            Ok(None) => Parsed::Record(record),
            Ok(Some(kind)) => Parsed::Other { kind },
            Err(bad) => bad.into(),
        }
    }
}

impl From<Bad> for Parsed<'_, '_> {
    fn from(bad: Bad) -> Self {
        Parsed::Bad {
            reason: bad.reason,
            detail: bad.detail,
        }
    }
}
