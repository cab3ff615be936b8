//! The signature by which a stream is recognised when it is sent again.

use serde::{Deserialize, Serialize};

/// First bytes that are kept as they are.
pub(crate) const HEAD: usize = 4096;

/// A stream's first bytes, hashes (XXH3-128) of longer and longer fronts, and its length with the hash of all; of
/// the bytes as they were sent, compressed or not.
///
/// The fronts are of [`HEAD`] bytes, and of a sixteenth more each than the one before, so another stream is
/// distinguished from this one at the first byte that differs where that is one of the first [`HEAD`], and else before
/// it is a sixteenth longer than what they have in common. Streams of a terabyte have some 320.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The first bytes.
    pub head: Vec<u8>,
    /// Hashes of the fronts, of the lengths of [`fronts`], as far as they are known.
    pub fronts: Vec<u128>,
    /// Length and hash of all; `None`: not known.
    pub whole: Option<(u64, u128)>,
}

/// Lengths of the fronts of a [`Signature`].
pub(crate) fn fronts() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(HEAD as u64), |&front| front.checked_add(front / 16))
}

/// The signature of one of a store's inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSignature {
    /// The input's number, from 0.
    pub input: u64,
    /// Its signature.
    pub signature: Signature,
}
