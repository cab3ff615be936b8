//! Memory of chunks and batches, which is reused.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::CHUNKS_WAITING;
use super::piece::Piece;
use crate::batch::Batch;

/// Memory of chunks and batches that were dealt with, to be used again: by one pipeline after another.
#[derive(Clone)]
pub(crate) struct BufferPool {
    buffers: (Sender<Vec<u8>>, Receiver<Vec<u8>>),
    batches: (Sender<Batch>, Receiver<Batch>),
}

impl BufferPool {
    /// None yet; room for as many as pipelines of `threads` decoders have on their way.
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
