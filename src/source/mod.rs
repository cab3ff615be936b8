//! Inputs: opening, recognising and decompressing them, and cutting the bytes into chunks of
//! whole records.
//!
//! ```text
//! input (Raw) -> decompress (Unpacker) -> cut (Cutter) -> hold (Hold) -> Chunk
//! table (Text) ------^
//! ```
//!
//! Promises:
//! - The records handed out, their offsets and the prefix hashes depend on the decompressed bytes
//!   only: not on the compression, the sizes of reads, or the size of chunks.
//! - No record is ever torn: one that the input cuts short is not handed out. Only at the sound end
//!   of an input may the last record lack its line end.
//! - Nothing is handed out as verified before its checksum was (see [`SourceOptions`]).
//! - Memory stays within [`Limits`](crate::Limits): `held_bytes` and `line_bytes` (each perhaps
//!   twice, while a buffer grows or is half used), the zstd window and dictionary, and a few chunks.

mod chunk;
mod decompress;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod hold;
mod input;
mod members;
mod plain;
mod position;
mod sniff;
mod stream;
mod table;

use xxhash_rust::xxh3::Xxh3;

pub use crate::model::{Compression, Damage, DamageKind, Member, Restart};
use crate::rules::{Fields, InputRules, Shard};
pub use input::InputName;
pub(crate) use input::PIPE_BYTES;
pub use plain::{Plain, open_plain};
pub(crate) use stream::HEAD_BYTES;
pub use stream::Source;
pub use table::KnownFormat;
pub(crate) use table::{PARQUET, is_graph};

/// A run of whole records, in stream order.
#[derive(Clone)]
pub struct Chunk {
    /// Whole records, decompressed. None of them is over the line limit. Empty only where
    /// `oversize` is not 0.
    pub bytes: Vec<u8>,
    /// Offset of `bytes` in the decompressed input.
    pub offset: u64,
    /// Hash (XXH3-128, seed 0) of the decompressed input before `bytes`.
    pub prefix: Xxh3,
    /// The same up to the end of `bytes`, or of the record that was dropped.
    pub prefix_after: u128,
    /// Length of a record over the line limit that was dropped, and stands here alone: `bytes` is empty; 0: none.
    pub oversize: u64,
    /// Whether a stream ends inside the record that it holds: all of that may be whole when the stream is sent again.
    pub cut: bool,
    /// Compressed bytes read so far (an upper bound of what `bytes` needed).
    pub compressed: u64,
    /// Whether the checksum of the gzip member or zstd frame was verified before this chunk was
    /// handed out. Plain inputs and frames without a checksum count as verified; the latter at
    /// their end.
    pub verified: bool,
    /// The gzip member or zstd frame that holds the first of `bytes`, or one a little before it:
    /// from there on the input can be read again. Of an input with a zstd dictionary, its start. `None`: a
    /// plain input.
    pub member: Option<Member>,
}

/// How an input is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceOptions {
    /// Hand out the whole records before damage even where nothing of a member would be.
    pub accept_unverified: bool,
    /// Read a file twice: first verify all of it, then hand it out, all as verified.
    pub preverify: bool,
    /// Usual size of a chunk in bytes, 1 MiB by default. Longer ones hold one long record, and
    /// perhaps some before it. Little above `line_bytes` at most.
    pub chunk_bytes: usize,
    /// Names of a table's columns, where they are not the usual ones of records.
    pub fields: Fields,
    /// Whose rows of a table are read with their links; `None`: all.
    pub shard: Option<Shard>,
    /// Read tables and graphs as text; else they are files like any other.
    pub tables: bool,
}

impl SourceOptions {
    /// The same, by the rules for inputs.
    pub(crate) fn with_rules(&self, rules: &InputRules) -> SourceOptions {
        SourceOptions {
            fields: rules.fields.clone(),
            shard: rules.shard,
            ..self.clone()
        }
    }
}

impl Default for SourceOptions {
    fn default() -> Self {
        SourceOptions {
            accept_unverified: false,
            preverify: false,
            chunk_bytes: 1 << 20,
            fields: Fields::default(),
            shard: None,
            tables: true,
        }
    }
}

/// A summary of reading an input; see [`Source::end`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Decompressed bytes handed out, or dropped as records over the line limit.
    pub bytes: u64,
    /// Compressed bytes read.
    pub compressed: u64,
    /// Hash (XXH3-128, seed 0) of the first `bytes` of the decompressed input.
    pub prefix: u128,
    /// gzip members and zstd frames that ended well.
    pub members: u64,
    /// Those of them without a checksum: nothing of them could be verified.
    pub unchecked: u64,
    /// Damage that ended the input, if any.
    pub damage: Option<Damage>,
}
