//! Pipeline of one input: its format, the part that an earlier run read, and its threads: one reads and decompresses,
//! some decode, the caller applies.
//!
//! Chunk k goes to decoder k mod n and comes back from it, so the order is kept without a queue of early arrivals. All
//! channels are bounded; buffers are recycled.

#[cfg(test)]
mod cuts_tests;

use std::collections::VecDeque;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::batch::{Batch, Builder, Rules};
use crate::decode::records::names::FieldNameMap;
use crate::decode::{Decoder, Missing, Names, Unread};
use crate::formats::{Format, check_names, check_text, guess, is_decided};
use crate::model::InputPosition;
use crate::source::{
    Chunk, Compression, HEAD_BYTES, InputName, InputSummary, Restart, Source, SourceOptions,
};
use crate::threads::{lock, spawn};
use crate::{Error, Result, url};

const CHUNKS_WAITING: usize = 3;
/// Number of batches per decoder that may wait for the caller: few, because a batch may be far larger than its chunk.
const PIECES: usize = 1;
/// Maximum size in bytes of the chunks in flight. Their batches take a few times as much.
const CHUNKS_BYTES: u64 = 48 << 20;
/// Time for which the caller waits for an idle input before it returns.
pub const PATIENCE: Duration = Duration::from_millis(100);

pub struct Piece {
    pub chunk: Arc<Chunk>,
    pub batch: Batch,
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

/// Determines the format of an input, and how it was recognised, for messages. `None`: the input is empty.
pub fn format_of(source: &mut Source, asked: Option<Format>) -> Result<Option<(Format, String)>> {
    if let Some((format, why)) = &source.known_format {
        let Some(asked) = asked.filter(|asked| asked != format) else {
            return Ok(Some((*format, why.clone())));
        };
        return Err(Error::Unsupported(format!(
            "{}: {why}, which is read as `format` {}, not {}; leave `format` out",
            source.name,
            format.name(),
            asked.name()
        )));
    }
    let is_live = source.is_live();
    let head = source.head_until(is_decided)?;
    if head.is_empty() {
        return Ok(None);
    }
    let found = match asked {
        Some(format) => Ok((format, "as `format` says".into())),
        None => guess(head),
    };
    let of_lines = found.as_ref().is_ok_and(|(format, _)| format.ends_lines());
    if asked.is_none() && of_lines && is_live && !head.contains(&b'\n') {
        return Err(Error::Unsupported(
            "-: the stream ends inside its first line, by which its format is known: send it again whole, or name it with \
             `format`"
                .into(),
        ));
    }
    found
        .map(Some)
        .map_err(|error| Error::Unsupported(format!("{}: {error}", source.name)))
}

/// Returns the format of a resumed stream, of which `read` bytes were read as `before`. If that was guessed from fewer
/// bytes than there are, it is guessed again.
pub fn resumed_format(source: &mut Source, before: Format, read: u64) -> Result<Format> {
    if !source.is_at_start() || read > HEAD_BYTES as u64 {
        return Ok(before);
    }
    let input = source.name.clone();
    let head = source.head_until(is_decided)?;
    let front = &head[..head.len().min(read as usize)];
    if head.is_empty() || (read > 0 && guess(front).is_ok_and(|(front, _)| front != before)) {
        return Ok(before);
    }
    match guess(head) {
        Ok((format, _)) => Ok(format),
        Err(_) if read > 0 => Ok(before),
        Err(error) => Err(Error::Unsupported(format!("{input}: {error}"))),
    }
}

/// Determines the format like [`format_of`]; rejects binary input, and names of another kind than `before`.
pub fn checked_format_of(
    source: &mut Source,
    asked: Option<Format>,
    before: Option<Names>,
) -> Result<Option<(Format, String)>> {
    let found = format_of(source, asked)?;
    let input = source.name.clone();
    let checked = match (asked, &found) {
        (Some(format), _) => check_text(format, source.head_until(is_decided)?),
        (None, Some((format, why))) => check_names(*format, why, before),
        (None, None) => Ok(()),
    };
    checked.map_err(|error| Error::Unsupported(format!("{input}: {error}")))?;
    Ok(found)
}

/// Passes over everything before the position where an earlier run stopped. Compares its hash unless `trusted`.
pub fn pass_over(
    mut source: Source,
    format: Format,
    place: InputPosition,
    trusted: bool,
) -> Result<Source> {
    let InputPosition { offset, prefix, .. } = place;
    let shows_lines = source.is_at_start() || source.compression() == Compression::Plain;
    let expected = (!trusted).then_some(prefix);
    if offset > 0 && format.ends_lines() && shows_lines {
        // The last record that counted may have more lines by now. A later member may begin inside a line.
        source.pass_whole_to(offset, expected, format.decoder())?;
    } else if offset > 0 {
        source.pass_to(offset, expected)?;
    }
    if format.is_json() {
        // An object counts without its line end if a stream ended after it.
        source.pass_line_end()?;
    }
    Ok(source)
}

#[derive(Clone)]
struct BufferPool {
    buffers: (Sender<Vec<u8>>, Receiver<Vec<u8>>),
    batches: (Sender<Batch>, Receiver<Batch>),
}

impl BufferPool {
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
            input: source.name.clone(),
            format,
            compression: source.compression(),
            compressed_len: source.compressed_len,
            again: source.shown_again,
            read: 0,
            look: Look::new(format, &self.rules),
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
    flow: FlowControl,
    decoded: Vec<Receiver<Result<Piece>>>,
    turn: usize,
    pool: BufferPool,
    reader: Option<JoinHandle<InputSummary>>,
    decoders: Vec<JoinHandle<()>>,
    pauses: Pauses,
}

impl InputRecords {
    /// Reads the input to its end, or until the visitor stops it, which returns `None`.
    pub fn visit(&mut self, visitor: &mut dyn BatchVisitor) -> Result<Option<InputSummary>> {
        loop {
            self.pauses.pause();
            let next = self.decoded[self.turn % self.decoded.len()].recv_timeout(PATIENCE);
            let mut remark = |remark| visitor.remark(&self.input, remark);
            match &next {
                Ok(Ok(piece)) => self.look.piece(piece, &mut remark),
                Err(RecvTimeoutError::Disconnected) => self.look.end(&mut remark),
                _ => {}
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

    /// Joins all threads and checks that each ended well. Returns how far the input was read.
    pub fn end(&mut self) -> Result<InputSummary> {
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
}

impl Drop for InputRecords {
    fn drop(&mut self) {
        self.flow.close();
    }
}

const NAMES: usize = 16;

/// Remark about an input from its first records, even if each single record is sound.
pub enum Remark {
    Missing(Missing),
    Caveat(&'static str),
}

struct Look {
    /// Caveat if the first names look like URLs; `None` once they were examined.
    with_urls: Option<&'static str>,
    unread: Option<Unread>,
    at: usize,
}

impl Look {
    fn new(format: Format, rules: &Rules) -> Look {
        let fields = || FieldNameMap::by(&rules.input.fields, format.decoder().names());
        let is_json = format.is_json();
        Look {
            with_urls: format.with_urls(),
            unread: is_json.then(|| Unread::by(fields())),
            at: 0,
        }
    }

    fn piece(&mut self, piece: &Piece, remark: &mut dyn FnMut(Remark)) {
        if let Some(caveat) = self.with_urls.take().filter(|_| are_urls(&piece.batch)) {
            remark(Remark::Caveat(caveat));
        }
        let Some(unread) = &mut self.unread else {
            return;
        };
        for entry in &piece.batch.entries {
            let end = entry.end as usize;
            if let Some(text @ [_, ..]) = piece.chunk.bytes.get(self.at..end)
                && unread.look(text)
            {
                return self.end(remark);
            }
            self.at = end;
        }
        if piece.last {
            self.at = 0;
        }
    }

    fn end(&mut self, remark: &mut dyn FnMut(Remark)) {
        let unread = self.unread.take();
        if let Some(missing) = unread.and_then(|unread| unread.missing()) {
            remark(Remark::Missing(missing));
        }
    }
}

fn are_urls(batch: &Batch) -> bool {
    let looked = batch.text_ends.len().min(NAMES) as u32;
    let is_url = |name: &u32| url::is_web(batch.name(*name));
    2 * (0..looked).filter(is_url).count() as u32 > looked
}

/// Limits on how much of an input is in flight: if records are huge, memory must not grow with threads. Clones share the
/// state.
///
/// By the first rule, the reader hands out a chunk if it fits the budget with those in flight, or alone. By the second,
/// a decoder whose record far outgrows a batch (relative links on a long base) waits until all pieces before it were
/// applied. Pieces are applied in order and never wait for later ones, so neither rule can deadlock.
#[derive(Clone)]
struct FlowControl {
    budget: u64,
    state: Arc<(Mutex<FlowState>, Condvar)>,
}

#[derive(Default)]
struct FlowState {
    taken: VecDeque<u64>,
    chunks: u64,
    /// Number of pieces done of the chunk after the last one that is done.
    pieces: u64,
    /// True once nobody takes pieces any longer.
    closed: bool,
}

impl FlowControl {
    fn new(budget: u64) -> FlowControl {
        FlowControl {
            budget,
            state: Arc::default(),
        }
    }

    fn wait_until(&self, ready: impl Fn(&FlowState) -> bool) -> MutexGuard<'_, FlowState> {
        let (state, changed) = &*self.state;
        let mut state = lock(state);
        while !ready(&state) && !state.closed {
            state = changed.wait(state).unwrap_or_else(|held| held.into_inner());
        }
        state
    }

    fn change(&self, change: impl FnOnce(&mut FlowState)) {
        let (state, changed) = &*self.state;
        change(&mut lock(state));
        changed.notify_all();
    }

    fn admit(&self, bytes: u64) {
        let fits = |state: &FlowState| {
            let all = state.taken.iter().copied().fold(bytes, u64::saturating_add);
            state.taken.is_empty() || all <= self.budget
        };
        self.wait_until(fits).taken.push_back(bytes);
    }

    /// Waits until `chunks` chunks are done, and `pieces` pieces of the next chunk.
    fn await_turn(&self, chunks: u64, pieces: u64) {
        drop(self.wait_until(|state| (state.chunks, state.pieces) == (chunks, pieces)));
    }

    fn done(&self, last: bool) {
        self.change(|state| {
            state.pieces += 1;
            if last {
                state.taken.pop_front();
                state.chunks += 1;
                state.pieces = 0;
            }
        });
    }

    fn close(&self) {
        self.change(|state| state.closed = true);
    }
}

/// Pauses of a thread before its hand-overs, drawn from a seed ([`InputReader::delays`]), for tests.
#[derive(Debug)]
struct Pauses(Option<u64>);

impl Pauses {
    fn of_thread(seed: Option<u64>, thread: u64) -> Pauses {
        let seed = seed.map(|seed| xxh3_64_with_seed(&thread.to_le_bytes(), seed));
        Pauses(seed.filter(|seed| seed.is_multiple_of(2)))
    }

    #[inline]
    fn pause(&mut self) {
        if let Some(state) = &mut self.0 {
            *state = xxh3_64_with_seed(&[], *state);
            std::thread::sleep(Duration::from_micros(*state % 1_000));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    /// Runs `wait` on a thread; checks that it waits until `go` was called.
    fn waits(wait: impl FnOnce() + Send + 'static, go: impl FnOnce()) {
        let (give, take) = mpsc::channel();
        let thread = thread::spawn(move || {
            wait();
            give.send(()).unwrap();
        });
        assert!(take.recv_timeout(Duration::from_millis(50)).is_err());
        go();
        take.recv_timeout(Duration::from_secs(20)).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn a_huge_chunk_goes_alone() {
        let flow = FlowControl::new(10);
        flow.admit(9);
        flow.admit(1);
        flow.done(false);
        let reader = flow.clone();
        waits(move || reader.admit(9), || flow.done(true));
        let reader = flow.clone();
        waits(
            move || reader.admit(20),
            || {
                flow.done(true);
                flow.done(true);
            },
        );
    }

    #[test]
    fn a_huge_record_waits_for_its_turn() {
        let flow = FlowControl::new(10);
        flow.await_turn(0, 0);
        let decoder = flow.clone();
        waits(
            move || decoder.await_turn(1, 2),
            || {
                flow.done(false);
                flow.done(true);
                flow.done(false);
                flow.done(false);
            },
        );
        let decoder = flow.clone();
        waits(move || decoder.await_turn(9, 0), || flow.close());
    }
}
