//! The items that go through a pipeline.

use std::sync::Arc;

use crate::batch::Batch;
use crate::source::Chunk;

/// A batch, and the chunk it came from.
pub(crate) struct Piece {
    pub chunk: Arc<Chunk>,
    pub batch: Batch,
    /// The first of its records that an earlier run has not applied.
    pub first: usize,
    /// No more batches of this chunk follow.
    pub last: bool,
}

impl Piece {
    /// Offset in the input of its end: that of its part of an archive, else that of its chunk.
    pub fn end(&self) -> u64 {
        let chunk = &*self.chunk;
        let whole = chunk.bytes.len() as u64 + chunk.oversize;
        chunk.offset + self.batch.part().map_or(whole, |part| part.end as u64)
    }
}
