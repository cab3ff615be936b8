//! Signature by which a stream is recognised when it is sent again.

use serde::{Deserialize, Serialize};

/// Number of first bytes that are kept.
pub const HEAD: usize = 4096;

/// First bytes of a stream, hashes (XXH3-128) of longer and longer prefixes, and its length with the hash of the whole;
/// of the bytes as they were sent, compressed or not.
///
/// The prefixes have [`HEAD`] bytes, and then a sixteenth more each than the one before. So another stream is
/// distinguished at the first differing byte if that is among the first [`HEAD`], and otherwise before it is a
/// sixteenth longer than the common prefix. Streams of a terabyte have some 320 prefixes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// First bytes of the stream.
    pub head: Vec<u8>,
    /// Hashes of the prefixes, of the lengths of [`fronts`], as far as known.
    pub fronts: Vec<u128>,
    /// Length and hash of the whole stream; `None`: unknown.
    pub whole: Option<(u64, u128)>,
}

/// Yields the lengths of the prefixes of a [`Signature`].
pub fn fronts() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(HEAD as u64), |&front| front.checked_add(front / 16))
}

/// Signature of one of a store's inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSignature {
    /// Number of the input, from 0.
    pub input: u64,
    /// Signature of the input's bytes.
    pub signature: Signature,
}
