//! Position in the decompressed input: offset, and hash of everything before.
//!
//! The hash is XXH3-128 with seed 0 over the decompressed bytes in order, including those of dropped over-long records.
//! So it does not depend on file or pipe, compression, or where chunks were cut.

use xxhash_rust::xxh3::Xxh3;

/// Offset and running hash of the decompressed input.
#[derive(Clone)]
pub(super) struct Position {
    pub offset: u64,
    pub prefix: Xxh3,
}

impl Position {
    pub fn start() -> Position {
        Position {
            offset: 0,
            prefix: Xxh3::new(),
        }
    }

    pub fn advance(&mut self, bytes: &[u8]) {
        self.prefix.update(bytes);
        self.offset += bytes.len() as u64;
    }
}
