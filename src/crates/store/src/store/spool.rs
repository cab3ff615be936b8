//! The spool: bytes of standard input, stored until a checkpoint covers them.
//!
//! `spool/` holds segments of checksummed blocks and `acked`, a small sealed file. **Acknowledged** is the
//! number of bytes since the stream's start that are durable, so their sender may forget them.
//!
//! **Order.** [`Spool::sync`] makes blocks durable, then the directory entries of new segments, then rewrites `acked`,
//! and only then reports the position. So everything that `acked` covers survives a crash, and missing or changed bytes
//! below it are damage; what lies beyond is a torn tail, which opening truncates. A new stream first sets `acked` to 0,
//! which invalidates the present segments, and then removes them.
//!
//! Any failure is final: the disk's contents are unknown after a failed sync. Specified in `formats/store.md`.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::folder::{make_dir, remove_except, remove_file, sync_dir};
use super::manifest::InputProgress;
use crate::codec::frame::{BlockHead, HeadReader, is_sealed};
use crate::disk::{Access, Disk, StoreFile, read_sealed, write_sealed};
use crate::source::PIPE_BYTES;
use crate::threads::lock;
use crate::{Error, Result};

pub(super) const SPOOL: &str = "spool";
const ACKED: &str = "acked";

#[derive(Clone)]
pub struct SpoolOptions {
    /// Interval of syncs, even if the stream is silent (1 s by default); `None`: only at checkpoints and by size.
    pub sync_every: Option<Duration>,
    /// Number of bytes after which the spool is synced. 16 MiB by default.
    pub sync_bytes: u64,
    /// Length in bytes at which a segment is closed. 64 MiB by default.
    pub segment_bytes: u64,
    pub on_durable: Option<OnDurable>,
}

impl Default for SpoolOptions {
    fn default() -> Self {
        SpoolOptions {
            sync_every: Some(Duration::from_secs(1)),
            sync_bytes: 16 << 20,
            segment_bytes: 64 << 20,
            on_durable: None,
        }
    }
}

/// Callback with the number of durable bytes of the stream, in order, from several threads. An error ends the run.
pub type OnDurable = Arc<dyn Fn(u64) -> Result<()> + Send + Sync>;

/// Stream that a spool holds, and how much of it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolState {
    /// Number of the stream among the store's inputs, from 0.
    pub input: u64,
    pub acked: u64,
}

/// Returns the state of the spool of the store, if there is one; works while the store is being written.
pub fn spool_state(disk: &dyn Disk, store: &Path) -> Result<Option<SpoolState>> {
    read_sealed(disk, &store.join(SPOOL).join(ACKED))
}

/// Checks all bytes that the spool must hold after the checkpoint with `progress`. Returns their number.
pub fn verify_spool(disk: &dyn Disk, store: &Path, progress: &InputProgress) -> Result<u64> {
    if progress.is_past_first() {
        return Ok(0);
    }
    let Some(state) = spool_state(disk, store)? else {
        return match progress.inputs.last().and_then(|input| input.spooled) {
            Some(_) if !progress.finished => Err(Error::damaged(
                store.join(SPOOL).join(ACKED),
                "it is missing",
            )),
            _ => Ok(0),
        };
    };
    let spooled = progress.inputs.get(state.input as usize);
    let restart = spooled.and_then(|input| input.spooled);
    let from = restart.map_or(0, |(restart, _)| restart.raw);
    let dir = store.join(SPOOL);
    check_covered(&dir, from, state.acked)?;
    let segments = list(disk, &dir)?;
    BlockReader::new(&dir, state, &segments, from).check(disk)?;
    Ok(state.acked - from)
}

/// Removes the spool of a store, if there is one, whatever it holds.
pub fn remove_spool(disk: &dyn Disk, store: &Path) -> Result<()> {
    let dir = store.join(SPOOL);
    match disk.list(&dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        names => drop(names.map_err(Error::io(&dir, "list"))?),
    }
    remove_file(disk, &dir.join(ACKED))?;
    sync_dir(disk, &dir)?;
    remove_except(disk, &dir, |_| false)?;
    sync_dir(disk, &dir)
}

fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<u64>> {
    let names = disk.list(dir).map_err(Error::io(dir, "list"))?;
    let first = |name: &String| {
        let number = name.parse().ok()?;
        (segment_path(dir, number) == dir.join(name)).then_some(number)
    };
    Ok(names.iter().filter_map(first).collect())
}

fn check_covered(dir: &Path, from: u64, acked: u64) -> Result<()> {
    if from <= acked {
        return Ok(());
    }
    Err(Error::damaged(
        dir.join(ACKED),
        format!("{acked} bytes were acknowledged, and a checkpoint needs those from {from} on"),
    ))
}

/// Spool open for appending. Shared by the thread that reads, the timer thread, and the one that makes checkpoints.
pub struct Spool {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    input: u64,
    pub options: SpoolOptions,
    /// Locked while a sync runs; appending continues meanwhile.
    turn: Mutex<()>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    segments: Vec<u64>,
    /// Last segment and its length; `None` if the next block opens one.
    last: Option<(Arc<StoreFile>, u64)>,
    tail: Vec<u8>,
    /// Number of bytes of the stream up to the end of the tail.
    end: u64,
    acked: u64,
    /// Files with blocks that are not durable yet.
    unsynced: Vec<Arc<StoreFile>>,
    /// True if segments were created whose directory entries are not durable yet.
    entries: bool,
    failed: Option<Error>,
    closed: bool,
}

impl Spool {
    /// Begins the spool of a new stream, replacing the previous one.
    pub fn start(
        disk: Arc<dyn Disk>,
        store: &Path,
        input: u64,
        options: SpoolOptions,
    ) -> Result<Spool> {
        let dir = store.join(SPOOL);
        if make_dir(&*disk, &dir)? {
            sync_dir(&*disk, store)?;
        }
        let state = SpoolState { input, acked: 0 };
        write_sealed(&*disk, &dir.join(ACKED), &state)?;
        let spool = Spool::resume(disk, store, state, 0, options)?;
        sync_dir(&*spool.disk, &dir)?;
        Ok(spool)
    }

    /// Resumes the spool of a stream: it must hold all acknowledged bytes from byte `from` on. The rest is truncated.
    pub fn resume(
        disk: Arc<dyn Disk>,
        store: &Path,
        state: SpoolState,
        from: u64,
        options: SpoolOptions,
    ) -> Result<Spool> {
        let dir = store.join(SPOOL);
        let SpoolState { input, acked } = state;
        check_covered(&dir, from, acked)?;
        let found = list(&*disk, &dir)?;
        // No block ends after the last byte, so no payload is read.
        let mut blocks = BlockReader::new(&dir, state, &found, from);
        blocks.from = acked;
        let end = blocks.check(&*disk)?;
        let held = held(&found, from, acked).to_vec();
        for first in found.iter().filter(|first| !held.contains(first)) {
            remove_file(&*disk, &segment_path(&dir, *first))?;
        }
        let mut inner = Inner {
            end: acked,
            acked,
            ..Inner::default()
        };
        if let Some(&first) = held.last() {
            let path = segment_path(&dir, first);
            let file = disk.open(&path, false).map_err(Error::io(&path, "open"))?;
            let file = StoreFile::new(path, file);
            file.set_len(end)?;
            inner.last = Some((Arc::new(file), end));
        }
        inner.segments = held;
        Ok(Spool {
            disk,
            dir,
            input,
            options,
            turn: Mutex::new(()),
            inner: Mutex::new(inner),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Returns the number of bytes since the stream's start that are durable.
    pub fn acked(&self) -> u64 {
        self.inner().acked
    }

    pub fn end(&self) -> u64 {
        self.inner().end
    }

    pub fn check(&self) -> Result<()> {
        self.inner().check()
    }

    pub fn notify(&self) -> Result<()> {
        let acked = self.acked();
        let on_durable = self.options.on_durable.as_ref();
        on_durable.map_or(Ok(()), |on_durable| on_durable(acked))
    }

    /// Appends bytes of the stream, durable and reported after the next [`Spool::sync`]: at once after `sync_bytes`.
    pub fn append(&self, mut bytes: &[u8]) -> Result<()> {
        let due = {
            let mut inner = self.inner();
            inner.check()?;
            if inner.closed {
                return Err(Error::internal("the spool is closed"));
            }
            while !bytes.is_empty() {
                let room = BLOCK_BYTES - inner.tail.len();
                let (now, later) = bytes.split_at(room.min(bytes.len()));
                inner.tail.extend_from_slice(now);
                inner.end += now.len() as u64;
                bytes = later;
                if inner.tail.len() == BLOCK_BYTES {
                    let written = self.write_tail(&mut inner);
                    inner.noting(written)?;
                }
            }
            inner.end - inner.acked >= self.options.sync_bytes
        };
        if due { self.sync() } else { Ok(()) }
    }

    fn write_tail(&self, inner: &mut Inner) -> Result<()> {
        if inner.tail.is_empty() {
            return Ok(());
        }
        let offset = inner.end - inner.tail.len() as u64;
        let head = BlockHead::default().u64s([offset, self.input]);
        let head = head.u32(inner.tail.len() as u32).u64(xxh3_64(&inner.tail));
        let block = [&head.sealed()[..], &inner.tail].concat();
        let (file, at) = match inner.last.take() {
            Some((file, at)) if at < self.options.segment_bytes => (file, at),
            _ => {
                let path = segment_path(&self.dir, offset);
                let file = Access::Create.open(&*self.disk, &path)?;
                file.set_len(0)?;
                inner.segments.push(offset);
                inner.entries = true;
                (Arc::new(file), 0)
            }
        };
        let written = file.file.write_at(&block, at);
        written.map_err(Error::io(&file.path, "append"))?;
        if !inner.unsynced.last().is_some_and(|f| Arc::ptr_eq(f, &file)) {
            inner.unsynced.push(file.clone());
        }
        inner.last = Some((file, at + block.len() as u64));
        inner.tail.clear();
        Ok(())
    }

    /// Makes all appended bytes durable and reports the position, if it grew. Does nothing after [`Spool::close`].
    pub fn sync(&self) -> Result<()> {
        let _turn = lock(&self.turn);
        let (files, entries, end) = {
            let mut inner = self.inner();
            inner.check()?;
            if inner.closed || inner.end == inner.acked {
                return Ok(());
            }
            let written = self.write_tail(&mut inner);
            inner.noting(written)?;
            let files = std::mem::take(&mut inner.unsynced);
            (files, std::mem::take(&mut inner.entries), inner.end)
        };
        let synced = self.make_durable(&files, entries, end);
        self.inner().noting(synced)?;
        self.inner().acked = end;
        let notified = self.notify();
        self.inner().noting(notified)
    }

    fn make_durable(&self, files: &[Arc<StoreFile>], entries: bool, acked: u64) -> Result<()> {
        for file in files {
            file.sync()?;
        }
        if entries {
            sync_dir(&*self.disk, &self.dir)?;
        }
        let input = self.input;
        let state = SpoolState { input, acked };
        write_sealed(&*self.disk, &self.dir.join(ACKED), &state)
    }

    /// Removes the segments that end before byte `from`, which must be durable. The last one stays.
    pub fn release(&self, from: u64) -> Result<()> {
        let mut inner = self.inner();
        debug_assert!(from <= inner.acked);
        let until = inner.segments.partition_point(|&first| first <= from);
        let removed = inner
            .segments
            .drain(..until.saturating_sub(1))
            .try_for_each(|first| remove_file(&*self.disk, &segment_path(&self.dir, first)));
        inner.noting(removed)
    }

    /// Stops accepting bytes: a thread that waits for the stream must not write into what may be another's store.
    pub fn close(&self) {
        let _turn = lock(&self.turn);
        let mut inner = self.inner();
        inner.closed = true;
        inner.last = None;
        inner.unsynced = Vec::new();
    }

    /// Returns a reader of the durable bytes, from byte `from` of the stream on.
    pub fn reader(&self, from: u64) -> Result<SpoolReader> {
        let inner = self.inner();
        if from > inner.acked {
            return Err(missing(&self.dir, from));
        }
        let (input, acked) = (self.input, inner.acked);
        let state = SpoolState { input, acked };
        Ok(SpoolReader {
            disk: self.disk.clone(),
            blocks: BlockReader::new(&self.dir, state, &inner.segments, from),
            given: 0,
        })
    }
}

impl Inner {
    fn check(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(error) => Err(error.again()),
        }
    }

    fn noting<T>(&mut self, result: Result<T>) -> Result<T> {
        if let (Err(error), None) = (&result, &self.failed) {
            self.failed = Some(error.again());
        }
        result
    }
}

/// Length of a block's header: offset in the stream, the stream's number, length and checksum of the payload, checksum.
const HEADER: usize = 36;
/// Maximum payload of a block, in bytes.
const BLOCK_BYTES: usize = 256 << 10;

fn segment_path(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("{first:020}"))
}

/// Returns the segments, by their first bytes, that hold bytes `from .. to`.
fn held(segments: &[u64], from: u64, to: u64) -> &[u64] {
    let end = segments.partition_point(|&first| first < to);
    let start = segments[..end].partition_point(|&first| first <= from);
    if from < to {
        &segments[start.saturating_sub(1)..end]
    } else {
        &[]
    }
}

fn missing(dir: &Path, offset: u64) -> Error {
    let what =
        format!("no segment holds byte {offset} of the stream (or store.redb is an old one)");
    Error::damaged(dir, what)
}

/// Reader of the blocks that hold a range of a stream. Checks all headers, and the payloads inside the range.
struct BlockReader {
    dir: PathBuf,
    input: u64,
    /// First bytes of the segments not opened yet, ascending.
    segments: VecDeque<u64>,
    /// Open segment, and its length.
    segment: Option<(StoreFile, u64)>,
    /// Offset of the next block in the segment.
    at: u64,
    /// Offset of the next block in the stream.
    offset: u64,
    /// Range of the stream; its start advances as bytes are taken.
    from: u64,
    to: u64,
    /// Payload of the last block, if it is inside the range.
    block: Vec<u8>,
}

impl BlockReader {
    /// Creates a reader of the acknowledged bytes from byte `from` on, all of which the segments must hold.
    fn new(dir: &Path, state: SpoolState, segments: &[u64], from: u64) -> BlockReader {
        BlockReader {
            dir: dir.into(),
            input: state.input,
            segments: held(segments, from, state.acked).iter().copied().collect(),
            segment: None,
            at: 0,
            offset: from,
            from,
            to: state.acked,
            block: Vec::new(),
        }
    }

    fn damaged(&self, what: &str) -> Error {
        let segment = self.segment.as_ref();
        let path = segment.map_or(&self.dir, |(file, _)| &file.path);
        Error::damaged(path, format!("block at byte {}: {what}", self.at))
    }

    /// Opens the next segment. Returns false if there is none, because all bytes were passed.
    fn open_next(&mut self, disk: &dyn Disk) -> Result<bool> {
        let Some(first) = self.segments.pop_front() else {
            return match &self.segment {
                _ if self.offset >= self.to => Ok(false),
                Some(_) => Err(self.damaged(&format!(
                    "it is missing: {} bytes of the stream were acknowledged",
                    self.to
                ))),
                None => Err(missing(&self.dir, self.offset)),
            };
        };
        if first > self.offset {
            return Err(missing(&self.dir, self.offset));
        }
        let path = segment_path(&self.dir, first);
        let file = disk.read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::damaged(&path, "it is missing"),
            _ => Error::io(&path, "open")(error),
        })?;
        let file = StoreFile::new(path, file);
        let size = file.size()?;
        self.at = 0;
        if self.segment.replace((file, size)).is_some() && first != self.offset {
            return Err(self.damaged("the segment before it holds its first bytes too"));
        }
        self.offset = first;
        Ok(true)
    }

    /// Reads the next block. Returns the offset of its first byte; `None` after the last block.
    fn next(&mut self, disk: &dyn Disk) -> Result<Option<u64>> {
        let (file, size) = loop {
            // Segments after the last byte of the range would hold it, too.
            let is_read = self.offset < self.to || self.segments.is_empty();
            if let Some((file, size)) = &self.segment
                && self.at < *size
                && is_read
            {
                break (file, size);
            }
            if !self.open_next(disk)? {
                return Ok(None);
            }
        };
        if self.offset >= self.to {
            return Ok(None);
        }
        let mut head = [0; HEADER];
        file.read_at(&mut head, self.at)?;
        let mut fields = HeadReader(&head);
        let [first, input] = fields.u64s();
        let (length, sum) = (fields.u32(), fields.u64());
        if !is_sealed(&head) || !(1..=BLOCK_BYTES as u32).contains(&length) {
            return Err(self.damaged("its header does not match its checksum"));
        }
        let end = first.saturating_add(length.into());
        if input != self.input {
            return Err(self.damaged("it is of another stream"));
        }
        if first != self.offset {
            return Err(self.damaged(&format!(
                "it holds byte {first} of the stream and on, expected {}",
                self.offset
            )));
        }
        let payload = self.at + HEADER as u64;
        if size - self.at < HEADER as u64 + u64::from(length) {
            return Err(self.damaged("the file ends inside it"));
        }
        if end > self.to {
            return Err(self.damaged(&format!(
                "it goes beyond byte {} of the stream, the last acknowledged",
                self.to
            )));
        }
        if end > self.from {
            self.block.resize(length as usize, 0);
            file.read_at(&mut self.block, payload)?;
            if xxh3_64(&self.block) != sum {
                return Err(self.damaged("its checksum does not match"));
            }
        }
        self.at = payload + u64::from(length);
        self.offset = end;
        Ok(Some(first))
    }

    /// Checks all blocks, and their payloads in the range. Returns the offset at which the last one ends in its segment.
    fn check(mut self, disk: &dyn Disk) -> Result<u64> {
        while self.next(disk)?.is_some() {}
        Ok(self.at)
    }
}

/// Reader of the bytes of a spool between two offsets of the stream. Its errors wrap those of this crate.
pub struct SpoolReader {
    disk: Arc<dyn Disk>,
    blocks: BlockReader,
    /// Number of bytes of the last block that were taken.
    given: usize,
}

impl SpoolReader {
    fn next_block(&mut self) -> Result<()> {
        let at = self.blocks.from;
        loop {
            let first = self.blocks.next(&*self.disk)?;
            let first = first.ok_or_else(|| missing(&self.blocks.dir, at))?;
            if self.blocks.offset > at {
                self.given = (at - first) as usize;
                return Ok(());
            }
        }
    }
}

impl Read for SpoolReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.blocks.to - self.blocks.from;
        let mut want = usize::try_from(left).unwrap_or(out.len()).min(out.len());
        if want as u64 == left && want >= PIPE_BYTES {
            // The last read must be a short one. It is taken for a pause of the stream, so the spool's contents are
            // processed without waiting for what comes after them.
            want -= 1;
        }
        let mut filled = 0;
        while filled < want {
            if self.given == self.blocks.block.len() {
                self.next_block().map_err(io::Error::other)?;
            }
            let rest = &self.blocks.block[self.given..];
            let part = (want - filled).min(rest.len());
            out[filled..filled + part].copy_from_slice(&rest[..part]);
            filled += part;
            self.given += part;
            self.blocks.from += part as u64;
        }
        Ok(filled)
    }
}
