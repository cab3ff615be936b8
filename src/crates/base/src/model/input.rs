//! Inputs: positions in them, how a stream is recognised when it is sent again, and damage.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words;

/// Position in an input, at a record boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputPosition {
    /// Number of decompressed bytes before it.
    pub offset: u64,
    /// XXH3-128 of those bytes; 0 in a spooled input, whose bytes are checked by the spool.
    pub prefix: u128,
    /// Number of records before it, including skipped and other ones.
    pub records: u64,
}

impl InputPosition {
    pub fn start() -> InputPosition {
        InputPosition {
            offset: 0,
            prefix: xxhash_rust::xxh3::xxh3_128(&[]),
            records: 0,
        }
    }
}

/// Position from which an input can be read without what came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Offset in the compressed input of the start of a member or frame; in a plain input, any offset.
    pub raw: u64,
    /// Offset of this position in the decompressed input.
    pub offset: u64,
    /// Compression of the input, whose first bytes are not read again.
    pub compression: Compression,
}

words! {
    /// Compression of an input. Manifests store its number: new kinds must be added at the end.
    Compression {
        Plain = "plain",
        /// gzip (RFC 1952), any number of members.
        Gzip = "gzip",
        /// zstd (RFC 8878), any number of frames, including skippable ones.
        Zstd = "zstd",
        /// Table, such as a Parquet file: its rows are read as text.
        Table = "table",
    }
}

/// Number of first bytes that a signature keeps.
pub const SIGNATURE_HEAD: usize = 4096;

/// First bytes of a stream as it was sent, hashes (XXH3-128) of prefixes, each a sixteenth longer than the one before,
/// and the hash of the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub head: Vec<u8>,
    /// Hashes of the prefixes, of the lengths of [`signature_fronts`], as far as known.
    pub fronts: Vec<u128>,
    /// Length and hash of the whole stream; `None`: unknown.
    pub whole: Option<(u64, u128)>,
}

/// Yields the lengths of the prefixes of a [`Signature`].
pub fn signature_fronts() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(SIGNATURE_HEAD as u64), |&front| {
        front.checked_add(front / 16)
    })
}

/// Signature of one of a store's inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSignature {
    /// Number of the input, from 0.
    pub input: u64,
    pub signature: Signature,
}

/// Damage in a compressed input: what, where, and how much could not be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub kind: DamageKind,
    /// Description, with the position in the compressed input.
    pub what: String,
    /// Damaged gzip member or zstd frame; `None`: the damage lies between members.
    pub member: Option<Member>,
    /// Offset in the decompressed input: everything before it was verified, nothing from it on.
    pub unverified_from: u64,
    /// Offset in the decompressed input: end of the last whole record handed out.
    pub handed_out_to: u64,
}

/// Kind of damage in a compressed input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DamageKind {
    /// The input ends inside a member or frame.
    Truncated,
    /// The data decompresses, but its length or checksum is not the recorded one.
    ChecksumFailed,
    /// The compressed data violates its format.
    InvalidData,
    /// A whole member or frame is followed by something that is neither another one nor zero padding.
    Trailing,
    /// A member or frame decompresses to more than `--limit-expansion`.
    Expansion,
    /// A zstd frame needs a dictionary that the input does not begin with, or a window over `--limit-zstd-window`.
    Unsupported,
}

/// Start of a gzip member or zstd frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Member {
    /// Offset of its first byte in the compressed input.
    pub compressed: u64,
    /// Offset of its data in the decompressed input.
    pub decompressed: u64,
}

impl Damage {
    /// Returns whether unverified records were handed out.
    pub fn unverified_records(&self) -> bool {
        self.handed_out_to > self.unverified_from
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.unverified_from, self.handed_out_to);
        write!(f, "{}; ", self.what)?;
        if self.unverified_records() {
            write!(
                f,
                "bytes {from} to {to} of the decompressed data were used but could not be verified"
            )
        } else if to > 0 {
            write!(
                f,
                "only the first {to} bytes of the decompressed data were used, and they were verified"
            )
        } else {
            write!(f, "nothing of it was used")
        }
    }
}
