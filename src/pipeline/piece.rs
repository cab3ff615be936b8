//! Items that pass through a pipeline.

use std::sync::Arc;

use crate::batch::Batch;
use crate::source::Chunk;

/// Batch, and the chunk it came from.
pub(crate) struct Piece {
    pub chunk: Arc<Chunk>,
    pub batch: Batch,
    /// True if no more batches of this chunk follow.
    pub last: bool,
}
