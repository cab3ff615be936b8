//! What goes through a pipeline.

use std::sync::Arc;

use crate::batch::Batch;
use crate::source::Chunk;

/// A batch, and the chunk it came from.
pub(crate) struct Piece {
    pub chunk: Arc<Chunk>,
    pub batch: Batch,
    /// No more batches of this chunk follow.
    pub last: bool,
    /// Of a replay, whose chunks have no bytes.
    pub hashes: Option<Box<Hashes>>,
}

impl Piece {
    /// Hash of the input up to the chunk.
    pub fn prefix(&self) -> u128 {
        let replayed = self.hashes.as_ref().map(|hashes| hashes.before);
        replayed.unwrap_or_else(|| self.chunk.prefix.digest128())
    }
}

/// Hashes of a file (XXH3-128, seed 0) up to places in a piece of which there are no bytes.
pub(crate) struct Hashes {
    /// Where the piece's chunk begins.
    pub before: u128,
    /// Where each of the piece's entries ends; none, if no run stops inside a piece.
    pub each: Vec<u128>,
    /// Where the last place is that a run may stop at,
    pub after: u128,
    /// which is this, in decompressed bytes.
    pub end: u64,
}
