//! Parsers, one per format, from the bytes of whole records to [`Record`]s.
//!
//! A decoder opens no file, resolves no URL and keeps no state between chunks, so results cannot depend on where chunks
//! are cut.

pub mod adjacency;
pub mod arc;
pub mod crawl_log;
pub mod csv_links;
pub mod edges;
mod exchange;
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

/// Callback for each record of a chunk, in order, with the offset in the chunk at which the record ends;
/// [`Parsed::Large`] with the same offset precedes a large record. Returns `false` to stop decoding the chunk.
///
/// Offsets never decrease. One that has not grown (0 for the first of a chunk) belongs to a part of the next record,
/// such as a comment within an `edges` group. Reading may resume only at an offset that grew.
pub type Sink<'s> = dyn for<'r, 'a> FnMut(usize, Parsed<'r, 'a>) -> bool + 's;

pub trait Decoder: Send + Sync {
    /// Returns what names are: URLs, unless the format says otherwise.
    fn names(&self) -> Names {
        Names::Url
    }

    /// Returns whether links may be relative to their page; if not, a relative link is not a URL.
    fn joins_links(&self) -> bool {
        true
    }

    /// Returns the length of the longest front of `buf` that holds only whole records; 0 if even the first is
    /// incomplete. `buf` starts at a record boundary. At an input's end all of it counts as whole. A record is a line
    /// unless the format says otherwise.
    fn whole(&self, buf: &[u8]) -> usize {
        lines::whole(buf)
    }

    /// Returns whether a stream that ends in `rest`, which is not whole, was cut inside a record.
    fn is_cut(&self, rest: &[u8]) -> bool {
        !rest.ends_with(b"\n")
    }

    /// Returns whether a stream that ends in `rest` and is not cut may lack the request of its last record.
    fn may_lack_request(&self, _rest: &[u8]) -> bool {
        false
    }

    /// Returns a skipper for a record over the line limit, which is skipped without being held.
    fn skipper(&self) -> Skipper {
        Box::new(lines::skip)
    }

    /// Parses all records of `chunk` (whole records only) and passes each to `sink`.
    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>);
}

/// Name, help and decoder of a format. Each format's file defines one; [`crate::formats`] lists all of them.
pub struct FormatSpec {
    pub name: &'static str,
    pub about: &'static str,
    /// Returns the decoder. Of the limits, `line_bytes` bounds the size to which a record may expand.
    pub by: fn(&InputRules, &Limits) -> Arc<dyn Decoder>,
}

/// Finder of a record's end. Examines the next bytes, first those at the record's start; with `true` they are the last.
pub type Skipper = Box<dyn FnMut(&[u8], bool) -> Skipped + Send>;

/// Result of a [`Skipper`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// The first `n` bytes are inside the record: the caller drops them, appends more to the rest, and calls again.
    Inside(usize),
    Ended(usize),
}

/// Maximum number of bytes that a [`Skipper`] asks to see again.
pub const HELD_MAX: usize = 1 << 20;

fn skips_links(shard: Option<Shard>, url: &[u8], names: Names) -> bool {
    shard.is_some_and(|shard| shard.passes_over(url, names))
}

/// Returns the name in lower case; empty if it does not fit into the buffer.
fn lower_case<'n>(name: &[u8], lower: &'n mut [u8]) -> &'n [u8] {
    let Some(lower) = lower.get_mut(..name.len()) else {
        return &[];
    };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    lower
}

/// Returns the first 40 characters of a text, for a message.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(40).collect()
}

/// Time of a record, if it has one, or a one-line message about an invalid time.
type RecordTime = Result<Option<Time>, String>;

fn put_time(record: &mut Record<'_>, told: RecordTime) {
    (record.fetched_at, record.bad_time) = parted(told);
}

fn parted(told: RecordTime) -> (Option<Time>, Option<String>) {
    match told {
        Ok(time) => (time, None),
        Err(detail) => (None, Some(detail)),
    }
}

/// Reason why a record cannot be used; becomes [`Parsed::Bad`].
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

    fn utf8(error: std::str::Utf8Error) -> Bad {
        let detail = format!("not UTF-8 after {} bytes", error.valid_up_to());
        Bad::new(Reason::InvalidUtf8, detail)
    }
}

/// Checks that bytes are UTF-8, by SIMD; the standard library then locates an error.
fn utf8(bytes: &[u8]) -> Result<&str, std::str::Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes))
}

/// Result of reading into a record. `Some(kind)`: valid, but not a crawl record, or not about a fetch.
type ReadResult = Result<Option<&'static str>, Bad>;

fn parsed<'r, 'a>(read: ReadResult, record: &'r Record<'a>) -> Parsed<'r, 'a> {
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
