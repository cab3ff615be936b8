//! The items that go through a pipeline.

use std::sync::Arc;

use crate::batch::Batch;
use crate::source::Chunk;

/// A batch, and the chunk it came from.
pub(crate) struct Piece {
    pub chunk: Arc<Chunk>,
    pub batch: Batch,
    /// No more batches of this chunk follow.
    pub last: bool,
}
