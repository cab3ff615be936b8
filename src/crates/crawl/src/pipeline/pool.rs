//! Items that pass through a pipeline, and their memory, which is reused.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::CHUNKS_WAITING;
use crate::batch::Batch;
use crate::source::Chunk;

/// Batch, and the chunk it came from.
pub struct Piece {
    pub chunk: Arc<Chunk>,
    pub batch: Batch,
    /// True if no more batches of this chunk follow.
    pub last: bool,
}

/// Memory of processed chunks and batches, reused by one pipeline after another.
#[derive(Clone)]
pub struct BufferPool {
    buffers: (Sender<Vec<u8>>, Receiver<Vec<u8>>),
    batches: (Sender<Batch>, Receiver<Batch>),
}

impl BufferPool {
    /// Returns an empty pool with room for as many as pipelines of `threads` decoders have in flight.
    pub fn new(threads: usize) -> BufferPool {
        let most = CHUNKS_WAITING * (threads + 2);
        BufferPool {
            buffers: bounded(most),
            batches: bounded(most),
        }
    }

    pub fn buffer(&self) -> Vec<u8> {
        self.buffers.1.try_recv().unwrap_or_default()
    }

    pub fn batch(&self) -> Batch {
        self.batches.1.try_recv().unwrap_or_default()
    }

    pub fn take(&self, piece: Piece) {
        if piece.batch.is_ordinary() {
            let _ = self.batches.0.try_send(piece.batch);
        }
        if let Ok(chunk) = Arc::try_unwrap(piece.chunk)
            && chunk.bytes.capacity() > 0
        {
            let _ = self.buffers.0.try_send(chunk.bytes);
        }
    }
}
