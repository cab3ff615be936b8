//! The threads of one input: one reads and decompresses, some decode, the caller applies.
//!
//! Chunk k goes to decoder k mod n and comes back from it, so order is kept without a queue of
//! early arrivals. All channels are bounded; buffers go round.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::batch::{Batch, Builder, Rules};
use crate::cza;
use crate::decode::{Decoder, Format};
use crate::source::{Chunk, Source, Summary};
use crate::{Error, Result};

/// Chunks waiting between two threads.
const DEPTH: usize = 3;
/// Batches waiting for the caller, for each decoder. One may be far larger than its chunk, where
/// relative links are made absolute, so few wait.
const PIECES: usize = 1;
/// How long the caller waits before it looks up from an idle input.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// A batch, and the chunk it came from.
pub(crate) struct Piece {
    pub chunk: Arc<Chunk>,
    pub batch: Batch,
    /// No more batches of this chunk follow.
    pub last: bool,
}

/// What [`Pipeline::next`] found.
pub(crate) enum Next {
    Piece(Piece),
    /// Nothing yet; the input is idle.
    Idle,
    /// The input's end.
    End(Summary),
}

type Decoded = Result<Piece>;

/// A running pipeline. Dropped early, its threads end by themselves.
pub(crate) struct Pipeline {
    decoded: Vec<Receiver<Decoded>>,
    turn: usize,
    buffers: Sender<Vec<u8>>,
    batches: Sender<Batch>,
    reader: Option<JoinHandle<Summary>>,
    decoders: Vec<JoinHandle<()>>,
}

impl Pipeline {
    /// Starts reading `source` with `threads` decoders. `known`: of an archive, the names whose pages
    /// the caller knows; they are not given again.
    pub fn start(
        mut source: Source,
        format: Format,
        rules: &Rules,
        threads: usize,
        known: u64,
    ) -> Result<Pipeline> {
        let decoder = format.decoder();
        if format == Format::Cza {
            source.limit_record(rules.limits.block_bytes);
        }
        let (buffers, spent_buffers) = bounded(DEPTH * (threads + 2));
        let (batches, spent_batches) = bounded(DEPTH * (threads + 2));
        let mut chunks = Vec::new();
        let mut decoded = Vec::new();
        let mut decoders = Vec::new();
        for _ in 0..threads.max(1) {
            let (give_chunk, take_chunk) = bounded(DEPTH);
            let (give_piece, take_piece) = bounded(PIECES);
            let spent = spent_batches.clone();
            let work = match format {
                Format::Cza => {
                    let name = source.name().clone();
                    Work::Archive(Box::new(cza::Reader::new(name, rules.clone(), known)?))
                }
                _ => {
                    let builder = Builder::new(rules.clone(), decoder.names());
                    Work::Records(Box::new(builder), decoder)
                }
            };
            decoders.push(spawn("decode", move || {
                decode(work, take_chunk, give_piece, spent);
            })?);
            chunks.push(give_chunk);
            decoded.push(take_piece);
        }
        let reader = spawn("read", move || {
            read(source, decoder, &chunks, &spent_buffers)
        })?;
        Ok(Pipeline {
            decoded,
            turn: 0,
            buffers,
            batches,
            reader: Some(reader),
            decoders,
        })
    }

    /// The next piece in order.
    pub fn next(&mut self) -> Result<Next> {
        let from = &self.decoded[self.turn % self.decoded.len()];
        match from.recv_timeout(PATIENCE) {
            Ok(piece) => {
                let piece = piece?;
                self.turn += usize::from(piece.last);
                Ok(Next::Piece(piece))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Next::Idle),
            Err(RecvTimeoutError::Disconnected) => self.end().map(Next::End),
        }
    }

    /// Takes back a piece's memory.
    pub fn recycle(&self, piece: Piece) {
        if piece.batch.is_ordinary() {
            let _ = self.batches.try_send(piece.batch);
        }
        if let Ok(chunk) = Arc::try_unwrap(piece.chunk) {
            let _ = self.buffers.try_send(chunk.bytes);
        }
    }

    /// All threads must have ended well: one that failed looks like the input's end.
    fn end(&mut self) -> Result<Summary> {
        self.decoded.clear();
        let reader = self.reader.take();
        let summary = reader.and_then(|reader| reader.join().ok());
        let decoded = self
            .decoders
            .drain(..)
            .all(|decoder| decoder.join().is_ok());
        summary
            .filter(|_| decoded)
            .ok_or_else(|| Error::Refused("a reading thread failed; please report it".into()))
    }
}

pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(Error::io("thread", "start"))
}

fn read(
    mut source: Source,
    decoder: &dyn Decoder,
    chunks: &[Sender<Result<Chunk>>],
    spent: &Receiver<Vec<u8>>,
) -> Summary {
    for turn in 0.. {
        let to = &chunks[turn % chunks.len()];
        let buffer = spent.try_recv().unwrap_or_default();
        match source.next_chunk(decoder, buffer) {
            Ok(None) => break,
            Ok(Some(chunk)) => {
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

/// What makes batches of chunks.
enum Work {
    Records(Box<Builder>, &'static dyn Decoder),
    Archive(Box<cza::Reader>),
}

fn decode(
    mut work: Work,
    chunks: Receiver<Result<Chunk>>,
    pieces: Sender<Decoded>,
    spent: Receiver<Batch>,
) {
    for chunk in chunks {
        let chunk = match chunk {
            Ok(chunk) => Arc::new(chunk),
            Err(error) => {
                let _ = pieces.send(Err(error));
                return;
            }
        };
        let mut alive = true;
        let emit = |batch, last| {
            let piece = Piece {
                chunk: chunk.clone(),
                batch,
                last,
            };
            alive = pieces.send(Ok(piece)).is_ok();
            alive.then(|| spent.try_recv().unwrap_or_default())
        };
        let done = match &mut work {
            Work::Records(builder, decoder) => {
                builder.run(*decoder, &chunk.bytes, emit);
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
