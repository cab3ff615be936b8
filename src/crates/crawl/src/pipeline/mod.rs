//! Pipeline of one input: one thread reads and decompresses, some decode, the caller applies.
//!
//! Chunk k goes to decoder k mod n and comes back from it, so the order is kept without a queue of early arrivals. All
//! channels are bounded; buffers are recycled.

#[cfg(test)]
mod cuts_tests;
mod flow;
mod look;
mod start;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::batch::{Batch, Builder, Rules};
use crate::decode::Decoder;
use crate::formats::Format;
use crate::source::{Chunk, Compression, InputName, InputSummary, Restart, Source, SourceOptions};
use crate::threads::spawn;
use crate::{Error, Result};
use flow::FlowControl;
use look::Look;

pub use look::Remark;
pub use start::{checked_format_of, format_again, format_of, pass_over};

const CHUNKS_WAITING: usize = 3;
/// Number of batches per decoder that may wait for the caller: few, because a batch may be far larger than its chunk if
/// relative links become absolute.
const PIECES: usize = 1;
/// Maximum size in bytes of the chunks in flight. Their batches take a few times as much.
const CHUNKS_BYTES: u64 = 48 << 20;
/// Time for which the caller waits for an idle input before it returns.
pub const PATIENCE: Duration = Duration::from_millis(100);

pub struct Piece {
    pub chunk: Arc<Chunk>,
    pub batch: Batch,
    /// True for the last batch of the chunk.
    pub last: bool,
}

pub trait BatchVisitor {
    fn remark(&mut self, input: &InputName, remark: Remark);

    /// Returns `false` to stop reading.
    fn piece(&mut self, records: &mut InputRecords, piece: &Piece) -> Result<bool>;

    /// Called after each piece, and while the input is idle. Returns `false` to stop reading.
    fn tick(&mut self) -> Result<bool> {
        Ok(true)
    }
}

/// Memory of processed chunks and batches, reused by all inputs in turn.
#[derive(Clone)]
struct BufferPool {
    buffers: (Sender<Vec<u8>>, Receiver<Vec<u8>>),
    batches: (Sender<Batch>, Receiver<Batch>),
}

impl BufferPool {
    /// Returns an empty pool with room for the buffers in flight at `threads` decoders.
    fn new(threads: usize) -> BufferPool {
        let most = CHUNKS_WAITING * (threads + 2);
        BufferPool {
            buffers: bounded(most),
            batches: bounded(most),
        }
    }

    fn take(&self, piece: Piece) {
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

/// Rules for all inputs, and the memory that is passed from one input to the next.
#[derive(Clone)]
pub struct InputReader {
    pub rules: Rules,
    options: SourceOptions,
    threads: usize,
    pool: BufferPool,
    /// True if batches keep their records as lines of JSON.
    pub keeps_lines: bool,
    /// Seed of delays at the hand-overs between threads, for tests.
    pub delays: Option<u64>,
    /// Number of inputs begun, which selects the delays of each.
    begun: Arc<AtomicU64>,
}

impl InputReader {
    pub fn new(rules: Rules, options: &SourceOptions, threads: usize) -> InputReader {
        InputReader {
            options: options.with_rules(&rules.input),
            rules,
            threads: threads.max(1),
            pool: BufferPool::new(threads),
            keeps_lines: false,
            delays: None,
            begun: Arc::default(),
        }
    }

    pub fn open(&self, input: &InputName) -> Result<Source> {
        Source::open(input, &self.rules.limits, &self.options)
    }

    pub fn live(&self, stream: Box<dyn Read + Send>, from: Option<Restart>) -> Result<Source> {
        let limits = &self.rules.limits;
        Source::live(InputName::Stdin, stream, from, limits, &self.options)
    }

    /// Starts to read and decode `source` from its current position ([`pass_over`]).
    pub fn read(&self, mut source: Source, format: Format) -> Result<InputRecords> {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed);
        let delays = self
            .delays
            .map(|seed| xxh3_64_with_seed(&begun.to_le_bytes(), seed));
        let pauses_of = |thread| Pauses::of_thread(delays, thread);
        let decoder = format.decoder_by(&self.rules.input, &self.rules.limits);
        let flow = FlowControl::new(CHUNKS_BYTES);
        let (mut chunks, mut decoded, mut decoders) = (Vec::new(), Vec::new(), Vec::new());
        for thread in 0..self.threads {
            let (give_chunk, take_chunk) = bounded(CHUNKS_WAITING);
            let (give_piece, take_piece) = bounded(PIECES);
            let mut builder = Builder::new(self.rules.clone(), decoder.names());
            builder.keeps_lines = self.keeps_lines;
            let worker = Worker {
                builder,
                decoder: decoder.clone(),
                flow: flow.clone(),
                pool: self.pool.clone(),
                pauses: pauses_of(2 + thread as u64),
            };
            let decode = move || worker.decode(take_chunk, give_piece);
            decoders.push(spawn("decode", decode)?);
            chunks.push(give_chunk);
            decoded.push(take_piece);
        }
        let mut records = InputRecords {
            input: source.name().clone(),
            format,
            compression: source.compression(),
            compressed_len: source.compressed_len(),
            again: source.shown_again,
            read: 0,
            look: Look::new(format, &self.rules),
            hash: None,
            flow: flow.clone(),
            decoded,
            turn: 0,
            pool: self.pool.clone(),
            reader: None,
            decoders,
            pauses: pauses_of(0),
        };
        let (pool, mut pauses) = (self.pool.clone(), pauses_of(1));
        let read = move || {
            for turn in 0u64.. {
                let buffer = pool.buffers.1.try_recv().unwrap_or_default();
                let Some(chunk) = source.next_chunk(&*decoder, buffer).transpose() else {
                    break;
                };
                if let Ok(chunk) = &chunk {
                    pauses.pause();
                    flow.admit(chunk.bytes.len() as u64);
                }
                let is_last = chunk.is_err();
                let to = &chunks[turn as usize % chunks.len()];
                if to.send((turn, chunk)).is_err() || is_last {
                    break;
                }
            }
            source.end()
        };
        records.reader = Some(spawn("read", read)?);
        Ok(records)
    }
}

struct Worker {
    builder: Builder,
    decoder: Arc<dyn Decoder>,
    flow: FlowControl,
    pool: BufferPool,
    pauses: Pauses,
}

impl Worker {
    fn decode(mut self, chunks: Receiver<(u64, Result<Chunk>)>, pieces: Sender<Result<Piece>>) {
        let at = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let (flow, place) = (self.flow.clone(), at.clone());
        self.builder.leave = Box::new(move || {
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
                alive.then(|| self.pool.batches.1.try_recv().unwrap_or_default())
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

/// Input being read, as its records in order. If it is dropped early, its threads end by themselves.
pub struct InputRecords {
    pub input: InputName,
    pub format: Format,
    pub compression: Compression,
    pub compressed_len: Option<u64>,
    /// Number of the first records that were read before, up to the starting position.
    pub again: u64,
    /// Number of records handed out, including those before the starting position.
    pub read: u64,
    look: Look,
    /// Offset of a chunk, hash of the input up to a point in it, and number of its bytes before that point.
    hash: Option<(u64, Xxh3, usize)>,
    flow: FlowControl,
    decoded: Vec<Receiver<Result<Piece>>>,
    turn: usize,
    pool: BufferPool,
    reader: Option<JoinHandle<InputSummary>>,
    decoders: Vec<JoinHandle<()>>,
    pauses: Pauses,
}

impl InputRecords {
    /// Reads the input to its end, or until the visitor stops it, which returns `None`. After an error only
    /// [`InputRecords::summary`] may be called.
    pub fn visit(&mut self, visitor: &mut dyn BatchVisitor) -> Result<Option<InputSummary>> {
        loop {
            self.pauses.pause();
            let next = self.decoded[self.turn % self.decoded.len()].recv_timeout(PATIENCE);
            let remarks = match &next {
                Ok(Ok(piece)) => self.look.piece(piece),
                Err(RecvTimeoutError::Disconnected) => [None, self.look.end()],
                _ => [None, None],
            };
            for remark in remarks.into_iter().flatten() {
                visitor.remark(&self.input, remark);
            }
            match next {
                Ok(piece) => {
                    let piece = piece.map_err(|error| error.after_record(self.read))?;
                    self.read += piece.batch.entries.len() as u64;
                    if !visitor.piece(self, &piece)? {
                        return Ok(None);
                    }
                    let is_last = piece.last;
                    self.turn += usize::from(is_last);
                    self.pool.take(piece);
                    self.flow.done(is_last);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.end().map(Some),
            }
            if !visitor.tick()? {
                return Ok(None);
            }
        }
    }

    /// Joins all threads and checks that each ended well: a failed thread looks like the input's end.
    fn end(&mut self) -> Result<InputSummary> {
        self.decoded.clear();
        // After a failure, other threads may wait for something that never comes.
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

    /// Returns how far the input was read before its error. After an error of the visitor, waits for the reader.
    pub fn summary(&mut self) -> Option<InputSummary> {
        self.end().ok()
    }

    /// Returns the hash of the input up to `offset`; `None` if that is before the chunk. Offsets must not decrease.
    pub fn prefix_at(&mut self, chunk: &Chunk, offset: u64) -> Option<u128> {
        let upto = offset.checked_sub(chunk.offset)?;
        if upto == chunk.bytes.len() as u64 + chunk.oversize {
            // The reader has computed this hash.
            return Some(chunk.prefix_after);
        }
        let hash = self.hash.take().filter(|(of, ..)| *of == chunk.offset);
        let (of, mut hash, hashed) = hash.unwrap_or((chunk.offset, chunk.prefix.clone(), 0));
        let upto = upto as usize;
        hash.update(chunk.bytes.get(hashed..upto).unwrap_or_default());
        let prefix = hash.digest128();
        self.hash = Some((of, hash, upto));
        Some(prefix)
    }
}

impl Drop for InputRecords {
    fn drop(&mut self) {
        self.flow.close();
    }
}

/// Maximum pauses in microseconds, one of which each thread gets.
const LONGEST: [u64; 3] = [0, 100, 1_000];

/// Pauses of a thread before its hand-overs, drawn from a seed ([`InputReader::delays`]); none without a seed.
///
/// Results must not depend on which thread is faster. Delays expose races that a fast machine hides for years: every
/// thread of a pipeline is fast or slow as a whole.
#[derive(Debug)]
struct Pauses {
    state: u64,
    longest: u64,
}

impl Pauses {
    fn of_thread(seed: Option<u64>, thread: u64) -> Pauses {
        let state = seed.map(|seed| xxh3_64_with_seed(&thread.to_le_bytes(), seed));
        Pauses {
            state: state.unwrap_or(0),
            longest: state.map_or(0, |state| LONGEST[(state % LONGEST.len() as u64) as usize]),
        }
    }

    #[inline]
    fn pause(&mut self) {
        if self.longest > 0 {
            self.state = xxh3_64_with_seed(&[], self.state);
            std::thread::sleep(Duration::from_micros(self.state % self.longest));
        }
    }
}
