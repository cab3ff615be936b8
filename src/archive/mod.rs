//! Crawl archives (`.cza`). Compact, seekable, checksummed; made to be replayed.
//!
//! Every name is in the archive once. Records and links refer to names by their number, in order of first
//! appearance. Blocks of some ten thousand records are unpacked independently, on any thread. Specified in
//! `formats/cza.md`.
//!
//! ```text
//! Writer: batches of any input -> numbers -> blocks -> packed on threads -> file
//! Reader: chunks of whole sections -> batches;  Chain: that they follow each other
//! ```
//!
//! Promises:
//! - What the engine makes of the archive is what it makes of the inputs that it was written from:
//!   the same pages in the same order, the same counts, under either policy of self-links.
//! - Nothing damaged is used: every byte is under a checksum that is verified before the bytes are.
//! - Memory is bounded: what a block unpacks to is known, and checked, before it is unpacked.

mod block;
mod column;
mod decoder;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod index;
mod lists;
mod names;
mod pack;
mod read;
mod section;
mod unpack;
mod write;

use crate::decode::Reason;

pub use crate::model::Part;
pub use decoder::Cza;
pub(crate) use decoder::FORMAT;
pub use index::{Index, Stretch};
pub use read::Chain;
pub(crate) use read::{Reader, memory};
pub use write::{Options, Writer, Written};

/// Version of the format, the only one that is read.
pub const VERSION: u32 = 4;
/// First bytes of an archive. Whatever rewrites line ends, or drops the high bit, breaks them.
pub const MAGIC: [u8; 8] = *b"\x89CZA\r\n\x1a\n";
/// Kinds of records: the table in `formats/cza.md`.
const KINDS: u64 = 5 + Reason::ALL.len() as u64;

/// A fault in the bytes of a section. The reader adds its place.
#[derive(Debug, PartialEq, Eq)]
struct Fault(String);

impl Fault {
    fn new(what: impl Into<String>) -> Fault {
        Fault(what.into())
    }

    fn other(error: std::io::Error) -> Fault {
        Fault(error.to_string())
    }
}
