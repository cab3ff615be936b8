//! Threads of one input: one reads and decompresses, some decode, the caller applies.
//!
//! Chunk k goes to decoder k mod n and comes back from it, so order is kept without a queue of early arrivals. All
//! channels are bounded; buffers are recycled.

#[cfg(test)]
mod cuts_tests;
mod delays;
mod flow;
mod look;
mod records;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::batch::{Batch, Builder};
use crate::decode::Decoder;
use crate::formats::Format;
use crate::source::{Chunk, InputSummary, Source};
use crate::threads::spawn;
use crate::{Error, Result};
use delays::Pauses;
use flow::FlowControl;

pub use look::Remark;
pub use records::{
    InputReader, InputRecords, ReadStart, checked_format_of, format_again, format_of,
};

/// Number of chunks that may wait between two threads.
const CHUNKS_WAITING: usize = 3;
/// Number of batches per decoder that may wait for the caller: few, since a batch may be far larger than its chunk if
/// relative links become absolute.
const PIECES: usize = 1;
/// Maximum bytes of chunks in flight. Their batches take a few times as much.
const CHUNKS_BYTES: u64 = 48 << 20;
/// Time for which the caller waits for an idle input before it returns.
pub const PATIENCE: Duration = Duration::from_millis(100);

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

pub enum PipelineItem {
    Piece(Box<Piece>),
    /// Nothing yet; the input is idle.
    Idle,
    /// End of the input.
    End(InputSummary),
}

type Decoded = Result<Piece>;

/// Running pipeline. If it is dropped early, its threads end by themselves.
struct Pipeline {
    flow: FlowControl,
    /// True if the last piece handed out was the last of its chunk, which counts as done when the next piece is
    /// requested.
    handed: Option<bool>,
    decoded: Vec<Receiver<Decoded>>,
    turn: usize,
    pool: BufferPool,
    reader: Option<JoinHandle<InputSummary>>,
    decoders: Vec<JoinHandle<()>>,
    pauses: Pauses,
}

impl Pipeline {
    fn start(
        by: &InputReader,
        source: Source,
        format: Format,
        start: ReadStart,
    ) -> Result<Pipeline> {
        let InputReader { rules, pool, .. } = by;
        let pauses_of = |thread| Pauses::of_thread(by.delays, start.turn, thread);
        let decoder = format.decoder_by(&rules.input, &rules.limits);
        let flow = FlowControl::new(CHUNKS_BYTES);
        let (admitting, mut pauses) = (flow.clone(), pauses_of(1));
        let admit = move |chunk: &[u8]| {
            pauses.pause();
            admitting.admit(chunk.len() as u64);
        };
        let worker = |thread: usize| {
            let mut builder = Builder::new(rules.clone(), decoder.names());
            builder.keeps_written = by.keeps_written;
            builder.keeps_lines = by.keeps_lines;
            Worker {
                builder,
                decoder: decoder.clone(),
                flow: flow.clone(),
                pool: pool.clone(),
                pauses: pauses_of(2 + thread as u64),
            }
        };
        let (mut chunks, mut decoded, mut decoders) = (Vec::new(), Vec::new(), Vec::new());
        for thread in 0..by.threads.max(1) {
            let (give_chunk, take_chunk) = bounded(CHUNKS_WAITING);
            let (give_piece, take_piece) = bounded(PIECES);
            let worker = worker(thread);
            let decode = move || worker.decode(take_chunk, give_piece);
            decoders.push(spawn("decode", decode)?);
            chunks.push(give_chunk);
            decoded.push(take_piece);
        }
        let (cutter, buffers) = (decoder.clone(), pool.clone());
        let reader = spawn("read", move || {
            read(source, &*cutter, &chunks, &buffers, admit)
        })?;
        Ok(Pipeline {
            flow,
            handed: None,
            decoded,
            turn: 0,
            pool: pool.clone(),
            reader: Some(reader),
            decoders,
            pauses: pauses_of(0),
        })
    }

    /// Returns the next piece in order. The previous one then counts as done: best recycle it first.
    fn next(&mut self) -> Result<PipelineItem> {
        if let Some(last) = self.handed.take() {
            self.flow.done(last);
        }
        self.pauses.pause();
        let from = &self.decoded[self.turn % self.decoded.len()];
        match from.recv_timeout(PATIENCE) {
            Ok(piece) => {
                let piece = piece?;
                self.handed = Some(piece.last);
                self.turn += usize::from(piece.last);
                Ok(PipelineItem::Piece(Box::new(piece)))
            }
            Err(RecvTimeoutError::Timeout) => Ok(PipelineItem::Idle),
            Err(RecvTimeoutError::Disconnected) => self.end().map(PipelineItem::End),
        }
    }

    /// Joins all threads and checks that they ended well: one that failed looks like the input's end.
    fn end(&mut self) -> Result<InputSummary> {
        self.decoded.clear();
        // After a failure other threads may wait for something that never comes.
        self.flow.close();
        let reader = self.reader.take();
        let summary = reader.and_then(|reader| reader.join().ok());
        let decoded = self
            .decoders
            .drain(..)
            .all(|decoder| decoder.join().is_ok());
        summary
            .filter(|_| decoded)
            .ok_or_else(|| Error::internal("a reading thread failed"))
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.flow.close();
    }
}

/// Chunk, and its number.
type Numbered = (u64, Result<Chunk>);

fn read(
    mut source: Source,
    decoder: &dyn Decoder,
    decoders: &[Sender<Numbered>],
    pool: &BufferPool,
    mut admit: impl FnMut(&[u8]),
) -> InputSummary {
    let mut turn = 0;
    while let Some(chunk) = source.next_chunk(decoder, pool.buffer()).transpose() {
        if let Ok(chunk) = &chunk {
            admit(&chunk.bytes);
        }
        let is_last = chunk.is_err();
        let to = &decoders[turn as usize % decoders.len()];
        if to.send((turn, chunk)).is_err() || is_last {
            break;
        }
        turn += 1;
    }
    source.end()
}

/// Converts chunks to batches.
struct Worker {
    builder: Builder,
    decoder: Arc<dyn Decoder>,
    flow: FlowControl,
    pool: BufferPool,
    pauses: Pauses,
}

impl Worker {
    fn decode(mut self, chunks: Receiver<Numbered>, pieces: Sender<Decoded>) {
        let at = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let (flow, place) = (self.flow.clone(), at.clone());
        self.builder.ask_leave(move || {
            let [chunk, piece] = [0, 1].map(|n: usize| place[n].load(Ordering::Relaxed));
            flow.await_turn(chunk, piece);
        });
        for (turn, chunk) in chunks {
            let chunk = match chunk {
                Ok(chunk) => Arc::new(chunk),
                Err(error) => {
                    let _ = pieces.send(Err(error));
                    return;
                }
            };
            at[0].store(turn, Ordering::Relaxed);
            at[1].store(0, Ordering::Relaxed);
            let mut alive = true;
            let mut emit = |batch, last| {
                let piece = Piece {
                    chunk: chunk.clone(),
                    batch,
                    last,
                };
                self.pauses.pause();
                alive = pieces.send(Ok(piece)).is_ok();
                at[1].fetch_add(1, Ordering::Relaxed);
                alive.then(|| self.pool.batch())
            };
            if chunk.oversize > 0 {
                emit(self.builder.over_limit(chunk.oversize), true);
            } else {
                self.builder.run(&*self.decoder, &chunk.bytes, emit);
            }
            if !alive {
                return;
            }
        }
    }
}
