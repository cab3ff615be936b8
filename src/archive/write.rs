//! Writing: batches of any input become numbered records, gathered into blocks, packed on threads,
//! written in order.
//!
//! Memory: the index of names, some 12 bytes a name; some blocks; 32 bytes a block for the end's index; for an input
//! that is itself an archive, 4 bytes for each of its names.

use std::collections::VecDeque;
use std::io::Write;
use std::path::PathBuf;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use xxhash_rust::xxh3::xxh3_64;

use super::Fault;
use super::pack::{Packed, Packer};
use super::section::{
    BlockHead, END_HEAD, ENTRY, EndHead, HEADER, Header, NAMES_MAX, PackedPart, TAIL, entry_bytes,
    tail_bytes,
};
use crate::batch::{Batch, Entry, LinkCounts};
use crate::codec::varint::number;
use crate::decode::Names;
use crate::engine;
use crate::model::{Digest, Limits, Numbering, What};
use crate::rules::{InputRules, LinkClass};
use crate::threads::try_spawn;
use crate::{Error, Result};

/// A block is closed at so many targets,
const BLOCK_TARGETS: usize = 1 << 20;
/// before more than so many,
const BLOCK_TARGETS_MAX: usize = BLOCK_TARGETS / 4 * 5;
/// or so many bytes of names, if not at [`Options::block_records`].
const BLOCK_TEXT: usize = 8 << 20;
/// Blocks that wait for each packing thread.
const DEPTH: usize = 1;

/// How an archive is written.
#[derive(Debug, Clone)]
pub struct Options {
    /// The zstd level, 1 to [`Options::LEVEL_MAX`].
    pub level: i32,
    /// Threads that pack, at least 1.
    pub threads: usize,
    /// Most records of a block, at least 1. Smaller blocks lose less to damage and take less memory to
    /// read, and are packed less well.
    pub block_records: usize,
    /// The limits that inputs were read with.
    pub limits: Limits,
    /// The rules that inputs were read with.
    pub input: InputRules,
}

impl Options {
    /// Usual size of a block, in records.
    pub const BLOCK_RECORDS: usize = 1 << 16;
    /// The highest level, and the usual one. Those of zstd above it take much longer, and save little.
    pub const LEVEL_MAX: i32 = 9;
}

/// Counts of what was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Records of all kinds.
    pub records: u64,
    /// Names.
    pub names: u64,
    /// Links as read.
    pub links: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes, all in.
    pub bytes: u64,
    /// Of those: names.
    pub names_bytes: u64,
    /// Of those: records and their links.
    pub records_bytes: u64,
}

/// The block that records are added to.
#[derive(Default)]
struct OpenBlock {
    batch: Batch,
    /// Its names are URLs.
    urls: bool,
    /// Names and records before it.
    first_name: u32,
    first_record: u64,
}

/// Writes an archive to `out`.
pub struct Writer<W> {
    out: W,
    path: PathBuf,
    packers: Packers,
    block_records: usize,
    index: engine::Index,
    /// The number of each name of the running batch, or input if that is an archive.
    ids: Vec<u32>,
    names: u32,
    open: OpenBlock,
    written: Written,
    /// Checksum of the head of the last section.
    before: u64,
    /// The end's index so far.
    entries: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins an archive. `path` is for messages.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(out: W, path: PathBuf, options: &Options) -> Result<Writer<W>> {
        let mut writer = Writer {
            out,
            path,
            packers: Packers::new(options.threads, options.level),
            block_records: options.block_records,
            index: engine::Index::new()?,
            ids: Vec::new(),
            names: 0,
            open: OpenBlock::default(),
            written: Written::default(),
            before: 0,
            entries: Vec::new(),
        };
        let header = Header::new(&options.limits, &options.input).to_bytes();
        writer.before = number(&header[HEADER - 8..]);
        writer.put(&header)?;
        Ok(writer)
    }

    /// Names so far.
    pub fn names(&self) -> u64 {
        u64::from(self.names)
    }

    /// Bytes of memory that names and blocks take at most, with `more` names to come; the packing threads not
    /// counted.
    pub fn bytes_with(&self, more: u64) -> u64 {
        let ids = size_of::<u32>() as u64 * (self.ids.len() as u64 + more);
        let index = self.index.bytes_at(self.names() + more);
        index + ids + self.entries.len() as u64
    }

    /// Begins another input, whose names are of this kind.
    ///
    /// # Errors
    /// As [`Writer::add`].
    pub fn begin_input(&mut self, names: Names) -> Result<()> {
        self.ids.clear();
        self.naming(names == Names::Url)
    }

    fn naming(&mut self, urls: bool) -> Result<()> {
        if urls != self.open.urls {
            self.close()?;
            self.open.urls = urls;
        }
        Ok(())
    }

    /// Begins a batch: its entries follow. It must have been made with
    /// [`SelfLinks::Drop`](engine::SelfLinks::Drop), from which both policies can be derived.
    ///
    /// # Errors
    /// As [`Writer::add`].
    pub fn begin(&mut self, batch: &Batch) -> Result<()> {
        match &batch.numbering {
            Numbering::Own => self.ids.clear(),
            Numbering::Archive(part) if part.records > 0 => self.naming(part.urls)?,
            Numbering::Archive(_) => {}
        }
        Ok(())
    }

    /// Adds an entry of the batch begun last. Entries come in order, without gaps.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Unsupported`] if there are more names than an archive takes.
    pub fn add(&mut self, batch: &Batch, entry: &Entry) -> Result<()> {
        // A huge record does not go over the end of a block, but begins one.
        if self.open.batch.links.len() + batch.targets(entry).len() > BLOCK_TARGETS_MAX {
            self.close()?;
        }
        let links_start = self.open.batch.links.len() as u32;
        let mut added = Entry {
            end: 0,
            // Archives have targets of visits only.
            what: match entry.what {
                What::Unchanged if !batch.targets(entry).is_empty() => What::Visit,
                what => what,
            },
            source: 0,
            names_end: self.names,
            links_start,
            links_end: links_start,
            fetched_at: None,
            digest: Digest::NONE,
            counts: LinkCounts::default(),
        };
        if entry.what.is_of_page() {
            self.admit(batch, entry.names_end)?;
            added.source = self.ids[entry.source as usize];
            let targets = batch.targets(entry).iter();
            let targets = targets.map(|&target| self.ids[target as usize]);
            self.open.batch.links.extend(targets);
            self.open
                .batch
                .classes
                .extend_from_slice(batch.classes(entry));
            self.open
                .batch
                .classes
                .resize(self.open.batch.links.len(), LinkClass::default());
            added.names_end = self.names;
            added.links_end = self.open.batch.links.len() as u32;
            added.fetched_at = entry.fetched_at;
            added.counts = entry.counts;
        }
        self.open.batch.entries.push(added);
        if self.open.batch.links.len() >= BLOCK_TARGETS
            || self.open.batch.entries.len() >= self.block_records
            || self.open.batch.text.len() >= BLOCK_TEXT
        {
            self.close()?;
        }
        Ok(())
    }

    /// Numbers the names of a batch up to `names_end`.
    fn admit(&mut self, batch: &Batch, names_end: u32) -> Result<()> {
        let first = batch.first_name();
        for name in self.ids.len() as u32..names_end {
            let at = name - first;
            let fingerprint = batch.fingerprints[at as usize];
            let (id, new) = self.index.admit(fingerprint)?;
            if new {
                if self.names == NAMES_MAX {
                    return Err(Error::Unsupported(format!(
                        "{}: more than {} URLs, the most that one archive can hold: convert the inputs in parts, and \
                        ingest the archives one after the other",
                        self.path.display(),
                        NAMES_MAX
                    )));
                }
                self.names += 1;
                self.open.batch.text.extend_from_slice(batch.name(at));
                self.open
                    .batch
                    .text_ends
                    .push(self.open.batch.text.len() as u32);
            }
            self.ids.push(id.0 as u32);
        }
        Ok(())
    }

    /// Hands the open block to a packing thread.
    fn close(&mut self) -> Result<()> {
        if self.open.batch.entries.is_empty() {
            return Ok(());
        }
        let head = BlockHead::empty(self.open.urls, self.open.first_name, self.open.first_record);
        self.open.first_name = self.names;
        self.open.first_record += self.open.batch.entries.len() as u64;
        let mut block = std::mem::take(&mut self.open.batch);
        loop {
            match self.packers.give(block, head)? {
                None => break,
                Some(again) => block = again,
            }
            let (packed, spent) = self.packers.take()?;
            self.write(packed)?;
            self.open.batch = spent;
        }
        Ok(())
    }

    fn write(&mut self, packed: Packed) -> Result<()> {
        let mut head = packed.head;
        let too_long = |_| Error::internal("a block of 4 GiB or more");
        head.packed_names = PackedPart::of(&packed.names).map_err(too_long)?;
        head.packed_records = PackedPart::of(&packed.records).map_err(too_long)?;
        head.before = self.before;
        let bytes = head.to_bytes();
        self.before = number(&bytes[bytes.len() - 8..]);
        let entry = entry_bytes(self.written.bytes, &head, self.written.links);
        self.entries.extend_from_slice(&entry);
        self.put(&bytes)?;
        self.put(&packed.names)?;
        self.put(&packed.records)?;
        self.written.records += u64::from(head.records);
        self.written.names += u64::from(head.names);
        self.written.links += head.links;
        self.written.blocks += 1;
        self.written.names_bytes += packed.names.len() as u64;
        self.written.records_bytes += packed.records.len() as u64;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out
            .write_all(bytes)
            .map_err(Error::io(&self.path, "write"))?;
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Leaves the archive without an end: readers will say that it was cut short.
    pub fn give_up(self) -> (W, Written) {
        (self.out, self.written)
    }

    /// Ends the archive. `out` is flushed, not synced.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<(W, Written)> {
        self.close()?;
        while self.packers.is_busy() {
            let (packed, _) = self.packers.take()?;
            self.write(packed)?;
        }
        let head = EndHead {
            blocks: self.written.blocks,
            records: self.written.records,
            names: self.written.names,
            links: self.written.links,
            before: self.before,
            entries_sum: xxh3_64(&self.entries),
        };
        self.put(&head.to_bytes())?;
        let entries = std::mem::take(&mut self.entries);
        debug_assert_eq!(entries.len(), head.blocks as usize * ENTRY);
        self.put(&entries)?;
        self.put(&tail_bytes((END_HEAD + entries.len() + TAIL) as u64))?;
        self.out.flush().map_err(Error::io(&self.path, "write"))?;
        Ok((self.out, self.written))
    }
}

type Job = (Batch, BlockHead);
type Done = (Result<Packed, Fault>, Batch);

/// The packing threads, started as blocks come, so that what reads has its threads first. Block k goes to thread k mod n, and
/// comes back from it. Where none can be started, blocks are packed at once.
struct Packers {
    level: i32,
    threads: Vec<(Sender<Job>, Receiver<Done>, JoinHandle<()>)>,
    /// Threads that there may be.
    most: usize,
    /// Packs where there are none.
    own: Option<Packer>,
    /// The blocks under way, in their order.
    busy: VecDeque<UnderWay>,
    turn: usize,
}

/// A block under way.
enum UnderWay {
    /// At the thread of this number.
    Thread(usize),
    Done(Box<Done>),
}

impl Packers {
    fn new(threads: usize, level: i32) -> Packers {
        Packers {
            level,
            threads: Vec::new(),
            most: threads.max(1),
            own: None,
            busy: VecDeque::new(),
            turn: 0,
        }
    }

    /// Starts another thread, or makes do with those that there are.
    fn start(&mut self) -> Result<()> {
        let packer = Packer::new(self.level).map_err(|Fault(what)| Error::internal(what))?;
        let (give, jobs) = bounded::<Job>(DEPTH);
        let (done, take) = bounded::<Done>(DEPTH);
        let started = try_spawn("pack", packer, move |mut packer| {
            for job in jobs {
                if done.send(packed(&mut packer, job)).is_err() {
                    return;
                }
            }
        });
        match started {
            Ok(thread) => self.threads.push((give, take, thread)),
            Err((packer, _)) => {
                self.most = self.threads.len();
                self.own = (self.most == 0).then_some(packer);
            }
        }
        Ok(())
    }

    fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// Gives a block to the next thread; back if it has enough to do.
    fn give(&mut self, block: Batch, head: BlockHead) -> Result<Option<Batch>> {
        if self.threads.len() < self.most && self.turn == self.threads.len() {
            self.start()?;
        }
        if self.busy.len() >= self.most.max(1) * (1 + DEPTH) {
            return Ok(Some(block));
        }
        let given = match &mut self.own {
            Some(packer) => UnderWay::Done(Box::new(packed(packer, (block, head)))),
            None => {
                let at = self.turn % self.threads.len();
                // A thread that failed is noticed when its block is taken back.
                let _ = self.threads[at].0.send((block, head));
                UnderWay::Thread(at)
            }
        };
        self.busy.push_back(given);
        self.turn += 1;
        Ok(None)
    }

    /// Waits for the oldest block under way.
    fn take(&mut self) -> Result<(Packed, Batch)> {
        let failed = || Error::internal("a packing thread failed");
        let (packed, spent) = match self.busy.pop_front().ok_or_else(failed)? {
            UnderWay::Thread(at) => self.threads[at].1.recv().map_err(|_| failed())?,
            UnderWay::Done(done) => *done,
        };
        let packed = packed.map_err(|Fault(what)| Error::internal(what))?;
        Ok((packed, spent))
    }
}

fn packed(packer: &mut Packer, (mut block, head): Job) -> Done {
    let packed = packer.pack(&block, head);
    block.clear();
    (packed, block)
}

impl Drop for Packers {
    fn drop(&mut self) {
        for (give, take, thread) in self.threads.drain(..) {
            drop((give, take));
            // One that failed was reported when its block was taken back.
            let _ = thread.join();
        }
    }
}
