//! Damage of compressed inputs, and how much of them was used.

use std::fmt;

/// Damage in a compressed input: what, where, and how much could not be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Kind of damage that was found.
    pub kind: DamageKind,
    /// Description, with the position in the compressed input.
    pub what: String,
    /// Damaged gzip member or zstd frame; `None`: the damage lies between members.
    pub member: Option<Member>,
    /// Offset in the decompressed input: everything before it was verified, nothing from it on.
    pub unverified_from: u64,
    /// Offset in the decompressed input: end of the last whole record handed out. Greater than `unverified_from` if
    /// unverified records were handed out.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
