//! Positions in inputs.

use serde::{Deserialize, Serialize};

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
    /// Returns the position before the first record.
    pub fn start() -> InputPosition {
        InputPosition {
            offset: 0,
            prefix: xxhash_rust::xxh3::xxh3_128(&[]),
            records: 0,
        }
    }
}
