//! Inputs: opening, recognising and decompressing them, and cutting the bytes into chunks of
//! whole records.

use xxhash_rust::xxh3::Xxh3;

/// A run of whole records, in stream order.
#[derive(Clone)]
pub struct Chunk {
    /// Whole records, decompressed.
    pub bytes: Vec<u8>,
    /// Offset of `bytes` in the decompressed input.
    pub offset: u64,
    /// Hash (XXH3-128, seed 0) of the decompressed input before `bytes`.
    pub prefix: Xxh3,
    /// Length of a record over the line limit that follows `bytes` and was dropped; 0: none.
    pub oversize: u64,
    /// Compressed bytes read so far (an upper bound of what `bytes` needed).
    pub compressed: u64,
    /// Whether the checksum of the gzip member or zstd frame was verified before this chunk was
    /// handed out. Plain inputs and frames without a checksum count as verified.
    pub verified: bool,
}
