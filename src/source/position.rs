//! A place in the decompressed input: how far, and the hash of all before.
//!
//! The hash is XXH3-128 with seed 0 over the decompressed bytes in order, those of dropped
//! over-long records included. So it is the same whether they came from a file or a pipe,
//! compressed or not, and however they were cut.

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

    /// Moves over `bytes`.
    pub fn advance(&mut self, bytes: &[u8]) {
        self.prefix.update(bytes);
        self.offset += bytes.len() as u64;
    }
}
