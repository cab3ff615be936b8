//! One pure parser per format: bytes of whole records in, [`Record`]s out.
//!
//! A decoder knows two things: where whole records end ([`Decoder::whole`], used by the reader to cut the stream into
//! chunks) and how to parse them ([`Decoder::decode`], run on each chunk by itself, on any thread). It opens no file,
//! resolves no URL and keeps no state between chunks, so results cannot depend on where chunks were cut.

pub mod adjacency;
pub mod arc;
pub mod crawl_log;
pub mod csv_links;
pub mod edges;
pub mod frame;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
pub mod groups;
pub mod html;
mod http;
mod json;
pub mod lines;
pub mod nutch;
pub mod records;
mod time;
pub mod warc;
pub mod wat;

use std::sync::Arc;

use crate::model::Limits;
use crate::rules::{InputRules, Shard};

pub use crate::model::is_redirect;
pub use crate::model::{Link, Names, Parsed, Reason, Record, Time, utc};
pub use json::put_string;
pub use records::unread::Missing;
pub use records::unread::Unread;
pub use time::{from_fraction as time_of_seconds, from_text as time_of};

/// Callback for each record of a chunk, in order, with the offset in the chunk at which the record ends; a large record
/// is preceded by [`Parsed::Large`] with the same offset. Return `false` to stop decoding the chunk.
///
/// Offsets never decrease. An offset that has not grown (0 for the first of a chunk) belongs to something inside the
/// next record: a comment within an `edges` group, a `request` in a WARC capture's tail. Reading may resume only at an
/// offset that grew in the call that passed it.
pub type Sink<'s> = dyn for<'r, 'a> FnMut(usize, Parsed<'r, 'a>) -> bool + 's;

/// Parser of a format.
pub trait Decoder: Send + Sync {
    /// Returns the kind of names: URLs or opaque.
    fn names(&self) -> Names;

    /// Returns whether links may be relative to their page; otherwise a relative one is not a URL.
    fn joins_links(&self) -> bool {
        true
    }

    /// Returns the length of the longest front of `buf` that holds only whole records; 0 if even the first is
    /// incomplete. `buf` starts at a record boundary. (At the end of an input all of it counts as whole: `decode` reports
    /// what is wrong with it.)
    fn whole(&self, buf: &[u8]) -> usize;

    /// Returns whether a stream that ends in `rest`, which [`Decoder::whole`] does not count as whole, was cut inside a
    /// record: the last one is unusable or shows that it is incomplete.
    fn is_cut(&self, rest: &[u8]) -> bool {
        last_bad(|sink| self.decode(rest, sink)).is_some()
    }

    /// Returns whether a stream that ends in `rest`, which [`Decoder::is_cut`] says is complete, may have been cut before
    /// the request of its last record: it may, if the stream has requests.
    fn may_lack_request(&self, _rest: &[u8]) -> bool {
        false
    }

    /// Returns a skipper that finds the end of a record over the line limit, so that it can be skipped without being
    /// held. Call it with the bytes at the record's start, then as [`Skipped`] says.
    fn skipper(&self) -> Box<dyn Skipper>;

    /// Parses all records of `chunk` (whole records only) and passes each to `sink`.
    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>);
}

/// Implements [`Decoder::whole`]; `first` returns the length of the first record, if it is whole.
fn whole_by<'a>(buf: &'a [u8], first: impl Fn(&'a [u8]) -> Option<usize>) -> usize {
    let mut end = 0;
    while let Some(len) = first(&buf[end..]) {
        end += len;
    }
    end
}

/// Returns why the last of some records cannot be used; `None` if it can.
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

/// Name, help and decoder of a format, defined in its own file; [`crate::formats`] lists all of them.
pub struct FormatSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in a few words, for help.
    pub about: &'static str,
    /// Returns the decoder by these rules. Of the limits, `line_bytes` bounds what a record may expand to.
    pub by: fn(&InputRules, &Limits) -> Arc<dyn Decoder>,
}

/// Finds the end of a record: see [`Decoder::skipper`].
pub trait Skipper: Send {
    /// Examines the next bytes of the stream. With `at_end` nothing follows them, and the answer is [`Skipped::Ended`].
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped;
}

/// Result of [`Skipper::skip`]. Later bytes may decide where a record ends (the next source of an `edges` file), so a
/// skipper may ask to see the last bytes of `buf` again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// The first `n` bytes are inside the record: drop them, append more to the others, and call again. At most
    /// [`HELD_MAX`] bytes are left over; `n` may be 0.
    Inside(usize),
    /// The record ends after the first `n` bytes.
    Ended(usize),
}

/// Maximum number of bytes that a [`Skipper`] asks to see again: 1 MiB.
pub const HELD_MAX: usize = 1 << 20;

/// Returns whether a record's links can be skipped because its page belongs to another shard.
fn skips_links(shard: Option<Shard>, url: &[u8], names: Names) -> bool {
    shard.is_some_and(|shard| shard.passes_over(url, names))
}

/// Returns the front of a text for a message.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(40).collect()
}

/// Time of a record, if it has one, or a one-line message about an invalid one.
type RecordTime = Result<Option<Time>, String>;

/// Stores the time in a record. An invalid time is reported, and the record is used without it.
fn put_time(record: &mut Record<'_>, told: RecordTime) {
    (record.fetched_at, record.bad_time) = parted(told);
}

/// Splits a result into the time and the message about it.
fn parted(told: RecordTime) -> (Option<Time>, Option<String>) {
    match told {
        Ok(time) => (time, None),
        Err(detail) => (None, Some(detail)),
    }
}

/// Reason why a record cannot be used, before it becomes [`Parsed::Bad`].
#[derive(Debug, PartialEq, Eq)]
pub struct Bad {
    pub(crate) reason: Reason,
    pub(crate) detail: String,
}

impl Bad {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Bad {
        Bad {
            reason,
            detail: detail.into(),
        }
    }

    fn malformed(detail: impl Into<String>) -> Bad {
        Bad::new(Reason::Malformed, detail)
    }

    /// Returns the error for text that is not UTF-8.
    fn utf8(error: std::str::Utf8Error) -> Bad {
        let detail = format!("not UTF-8 after {} bytes", error.valid_up_to());
        Bad::new(Reason::InvalidUtf8, detail)
    }
}

/// Checks that bytes are UTF-8, by SIMD; the standard library then locates an error.
fn utf8(bytes: &[u8]) -> Result<&str, std::str::Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes))
}

/// Returns the result of reading into `record`; `Some(kind)`: it is not a crawl record, and need not be.
fn parsed<'r, 'a>(
    read: Result<Option<&'static str>, Bad>,
    record: &'r Record<'a>,
) -> Parsed<'r, 'a> {
    match read {
        Ok(None) => Parsed::Record(record),
        Ok(Some(kind)) => Parsed::Other { kind },
        Err(bad) => bad.into(),
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
