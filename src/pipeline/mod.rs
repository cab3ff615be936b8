//! The threads of one input: one reads and decompresses, some decode, the caller applies.
//!
//! Chunk k goes to decoder k mod n and comes back from it, so order is kept without a queue of
//! early arrivals. All channels are bounded; buffers go round.

mod delays;
mod flow;
mod look;
mod piece;
mod pool;
mod records;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::archive;
use crate::batch::Builder;
use crate::decode::Decoder;
use crate::formats::Format;
use crate::source::{Chunk, Source, Summary};
use crate::threads::spawn;
use crate::{Error, Result};
use delays::Pauses;
use flow::Flow;

use delays::Delays;
use pool::BufferPool;

pub(crate) use look::Remark;
pub(crate) use piece::Piece;
pub(crate) use records::{InputReader, Records, Start, checked_format_of, format_of, is_another};

/// Chunks waiting between two threads.
const CHUNKS_WAITING: usize = 3;
/// Batches waiting for the caller, for each decoder. One may be far larger than its chunk, where
/// relative links are made absolute, so few wait.
const PIECES: usize = 1;
/// Bytes of chunks on their way. What is made of them takes a few times as much.
const CHUNKS_BYTES: u64 = 48 << 20;
/// The same of an archive, with what is made of them.
const BLOCKS_BYTES: u64 = 160 << 20;
/// Decoders of an archive at the most. Each keeps memory of the size of a block, and no more chunks than
/// that are on their way for long.
const ARCHIVE_DECODERS: usize = 4;
/// How long the caller waits before it looks up from an idle input.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// What [`Records::next`] found.
pub(crate) enum Next {
    Piece(Box<Piece>),
    /// Nothing yet; the input is idle.
    Idle,
    /// The input's end.
    End(Summary),
}

type Decoded = Result<Piece>;

/// A running pipeline. Dropped early, its threads end by themselves.
struct Pipeline {
    flow: Flow,
    /// Whether the piece handed out last was its chunk's last; it is done when the next one is asked for.
    handed: Option<bool>,
    decoded: Vec<Receiver<Decoded>>,
    turn: usize,
    pool: BufferPool,
    reader: Option<JoinHandle<Summary>>,
    decoders: Vec<JoinHandle<()>>,
    pauses: Pauses,
}

impl Pipeline {
    /// Starts reading `source`.
    fn start(
        by: &InputReader,
        mut source: Source,
        format: Format,
        start: Start,
    ) -> Result<Pipeline> {
        let InputReader {
            rules,
            threads,
            pool,
            ..
        } = by;
        let known = start.known;
        let delays = Delays::new(by.delays, start.turn);
        let decoder = format.decoder_by(&rules.input, &rules.limits);
        let is_archive = format == Format::Cza;
        let (most, budget) = if is_archive {
            (ARCHIVE_DECODERS, BLOCKS_BYTES)
        } else {
            (usize::MAX, CHUNKS_BYTES)
        };
        if is_archive {
            source.limit_record(rules.limits.block_bytes);
        }
        let mut chunks = Vec::new();
        let mut decoded = Vec::new();
        let mut decoders = Vec::new();
        let flow = Flow::new(budget);
        let threads = (*threads).clamp(1, most);
        for thread in 0..threads {
            let (give_chunk, take_chunk) = bounded(CHUNKS_WAITING);
            let (give_piece, take_piece) = bounded(PIECES);
            let work = match format {
                Format::Cza => {
                    let name = source.name().clone();
                    Work::Archive(Box::new(archive::Reader::new(name, rules.clone(), known)?))
                }
                _ => {
                    let mut builder = Builder::new(rules.clone(), decoder.names());
                    if by.keeps_written {
                        builder.keep_written();
                    }
                    Work::Records(Box::new(builder), decoder.clone())
                }
            };
            let worker = Worker {
                work,
                turns: (thread as u64..).step_by(threads),
                flow: flow.clone(),
                pool: pool.clone(),
                pauses: delays.of_thread(2 + thread as u64),
            };
            decoders.push(spawn("decode", move || {
                worker.decode(take_chunk, give_piece);
            })?);
            chunks.push(give_chunk);
            decoded.push(take_piece);
        }
        let (reading, buffers) = (flow.clone(), pool.clone());
        let mut pauses = delays.of_thread(1);
        let reader = spawn("read", move || {
            let admit = |chunk: &[u8]| {
                pauses.pause();
                reading.admit(if is_archive {
                    archive::memory(chunk, known)
                } else {
                    chunk.len() as u64
                });
            };
            read(source, &*decoder, &chunks, &buffers, admit)
        })?;
        Ok(Pipeline {
            flow,
            handed: None,
            decoded,
            turn: 0,
            pool: pool.clone(),
            reader: Some(reader),
            decoders,
            pauses: delays.of_thread(0),
        })
    }

    /// The next piece in order. The one before counts as dealt with: best recycle it first.
    fn next(&mut self) -> Result<Next> {
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
                Ok(Next::Piece(Box::new(piece)))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Next::Idle),
            Err(RecvTimeoutError::Disconnected) => self.end().map(Next::End),
        }
    }

    /// Returns whether a decoder has no more to do: the others have their last chunks, or had them.
    fn is_ending(&self) -> bool {
        self.decoders.iter().any(JoinHandle::is_finished)
    }

    /// Takes back a piece's memory.
    fn recycle(&self, piece: Box<Piece>) {
        self.pool.take(*piece);
    }

    /// All threads must have ended well: one that failed looks like the input's end.
    fn end(&mut self) -> Result<Summary> {
        self.decoded.clear();
        // After a failure others may wait for what never comes.
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

fn read(
    mut source: Source,
    decoder: &dyn Decoder,
    chunks: &[Sender<Result<Chunk>>],
    pool: &BufferPool,
    mut admit: impl FnMut(&[u8]),
) -> Summary {
    for turn in 0.. {
        let to = &chunks[turn % chunks.len()];
        match source.next_chunk(decoder, pool.buffer()) {
            Ok(None) => break,
            Ok(Some(chunk)) => {
                admit(&chunk.bytes);
                if to.send(Ok(chunk)).is_err() {
                    break;
                }
            }
            Err(error) => {
                let _ = to.send(Err(error));
                break;
            }
        }
    }
    source.end()
}

/// Makes batches of chunks.
enum Work {
    Records(Box<Builder>, Arc<dyn Decoder>),
    Archive(Box<archive::Reader>),
}

/// A decoding thread.
struct Worker {
    work: Work,
    /// Numbers of the chunks that come to it.
    turns: std::iter::StepBy<std::ops::RangeFrom<u64>>,
    flow: Flow,
    pool: BufferPool,
    pauses: Pauses,
}

impl Worker {
    fn decode(mut self, chunks: Receiver<Result<Chunk>>, pieces: Sender<Decoded>) {
        let at = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let (flow, place) = (self.flow.clone(), at.clone());
        if let Work::Records(builder, _) = &mut self.work {
            builder.ask_leave(move || {
                let [chunk, piece] = [0, 1].map(|n: usize| place[n].load(Ordering::Relaxed));
                flow.await_turn(chunk, piece);
            });
        }
        for (turn, chunk) in self.turns.zip(chunks) {
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
                    first: 0,
                    last,
                };
                self.pauses.pause();
                alive = pieces.send(Ok(piece)).is_ok();
                at[1].fetch_add(1, Ordering::Relaxed);
                alive.then(|| self.pool.batch())
            };
            let done = match &mut self.work {
                Work::Records(builder, _) if chunk.oversize > 0 => {
                    emit(builder.over_limit(chunk.oversize), true);
                    Ok(())
                }
                Work::Records(builder, decoder) => {
                    builder.run(&**decoder, &chunk.bytes, emit);
                    Ok(())
                }
                Work::Archive(reader) => reader.run(&chunk, emit),
            };
            if let Err(error) = done {
                let _ = pieces.send(Err(error));
                return;
            }
            if !alive {
                return;
            }
        }
    }
}
