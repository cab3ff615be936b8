//! Ingesting: inputs -> source -> decode -> batch -> engine -> checkpoint -> snapshot.
//!
//! The only place where threads meet. Whatever their number, the engine sees the records of each
//! input in order, and stops for checkpoints and snapshots at record boundaries, so results depend
//! on the records alone.
//!
//! `convert` reads in the same way, and writes a crawl archive instead.

mod convert;
mod input;
mod known;
mod pipe;
mod plan;
mod planned;
mod run;
mod spooling;
mod stream_match;

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::Result;
use crate::decode::{Missing, Reason};
use crate::engine::{Config, Counters};
use crate::formats::Format;
use crate::memory::Need;
use crate::model::{Limits, Time};
use crate::rank::computing::Computing;
use crate::snapshot::{ComputedInfo, ComputedName, Info};
use crate::source::{InputName, SourceOptions};
use crate::store::rows::{KeepRows, Reason as GivenUp};
use crate::store::{RealDisk, Settings, SpoolOptions, settings_of};

pub use crate::store::rows::ROWS_BYTES;
pub use convert::{Conversion, ConversionReport, convert};
pub use run::ingest;

/// How often something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// After so many applied records.
    Records(u64),
    /// After so much time; a snapshot three times as long as the last one took after that one, if that is later.
    Time(Duration),
    /// Only at the end.
    Never,
}

/// The inputs, the store, and how to read.
#[derive(Debug, Clone)]
pub struct Job {
    /// The store's directory.
    pub store: PathBuf,
    /// The settings that change results.
    pub settings: Settings,
    /// The inputs, in order.
    pub inputs: Vec<InputName>,
    /// Their format; `None`: guessed for each.
    pub format: Option<Format>,
    /// Passes, from 1. Those after the first go over the links that the first kept (`keep_rows`), a visit of each page that
    /// was read; where none are kept they read the inputs again.
    pub repeat: u32,
    /// Whether the links of pages are kept in the store.
    pub keep_rows: KeepRows,
    /// Settle importance to this bound on the L1 error before a snapshot, where the links are kept and no window is
    /// asked for; `None`: never.
    pub settle: Option<f64>,
    /// Settle for so long at most.
    pub settle_time: Option<Duration>,
    /// When settling, leave out the links of pages that were last reached more than so many seconds before the latest record;
    /// `None`: none.
    pub expire: Option<Time>,
    /// Compute these rankings, too, with every snapshot, and publish them beside it. Damping is the store's, threads and memory
    /// those of the job.
    pub also: Vec<Computing>,
    /// Leave out passes once the certified bound on the L1 error is so low.
    pub until: Option<f64>,
    /// Visit the nodes known as targets only at the end of each pass.
    pub complete: bool,
    /// An input that was not read to its end, and is not named, counts as ended where reading stopped.
    pub leave_unfinished: bool,
    /// Stop at the first record that cannot be used.
    pub strict: bool,
    /// How to treat standard input, if the store has read from one before.
    pub stream: Stream,
    /// Keep the bytes of standard input durably until a checkpoint covers them; `None`: don't.
    pub spool: Option<SpoolOptions>,
    /// Where standard input comes from.
    pub stdin: StandardInput,
    /// When the state is made durable.
    pub checkpoint_every: Every,
    /// When a snapshot is published, besides the one at the end.
    pub snapshot_every: Every,
    /// Snapshots to keep, the newest, beside those that are pinned; 0: all.
    pub keep_snapshots: usize,
    /// Memory for the ranks of a snapshot, in bytes; more pages take a temporary file.
    pub rank_bytes: u64,
    /// Threads that decode, besides the one that reads and the one that applies. At least 1.
    pub threads: usize,
    /// Limits on input.
    pub limits: Limits,
    /// How inputs are read.
    pub source: SourceOptions,
    /// For tests: a seed of short delays wherever a thread hands something on to another. Results do not depend
    /// on them.
    pub delays: Option<u64>,
    /// For tests: a fault that the program once had, or might have. The campaign of faults must find it out.
    #[doc(hidden)]
    pub fault: Option<OldFault>,
    /// Set from outside to stop at the next record, with a checkpoint.
    pub stop: Arc<AtomicBool>,
}

/// See [`Job::fault`].
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldFault {
    /// A pass over kept links that was interrupted begins at its start again.
    PassFromStart,
    /// A stream that is sent again after its end is taken for another.
    StreamForgotten,
}

impl Job {
    /// Reads `inputs` once into `store`, with the usual settings and limits: one decoding thread,
    /// a checkpoint every 30 seconds, a snapshot at the end.
    pub fn new(store: impl Into<PathBuf>, inputs: Vec<InputName>) -> Job {
        let limits = Limits::default();
        Job {
            store: store.into(),
            settings: Settings::new(Config::default(), &limits),
            inputs,
            format: None,
            repeat: 1,
            keep_rows: KeepRows::Usual(ROWS_BYTES),
            settle: Some(crate::snapshot::SETTLE_UNTIL),
            settle_time: None,
            expire: None,
            also: Vec::new(),
            until: None,
            complete: false,
            leave_unfinished: false,
            strict: false,
            stream: Stream::Auto,
            spool: None,
            stdin: StandardInput::default(),
            checkpoint_every: Every::Time(Duration::from_secs(30)),
            snapshot_every: Every::Never,
            keep_snapshots: 0,
            rank_bytes: crate::snapshot::RANK_BYTES,
            threads: 1,
            limits,
            source: SourceOptions::default(),
            delays: None,
            fault: None,
            stop: Arc::default(),
        }
    }
}

impl Job {
    /// As [`Job::new`], with the settings of the store, if there is one, and links kept as far as its disk has room
    /// ([`KeepRows::usual`]).
    ///
    /// # Errors
    /// The store's settings cannot be read.
    pub fn of(store: impl Into<PathBuf>, inputs: Vec<InputName>) -> Result<Job> {
        let mut job = Job::new(store, inputs);
        job.keep_rows = KeepRows::usual(&job.store);
        if let Some(settings) = settings_of(&RealDisk, &job.store)? {
            job.limits = settings.limits();
            job.settings = settings;
        }
        Ok(job)
    }
}

/// Where standard input comes from.
#[derive(Clone)]
pub struct StandardInput(Arc<dyn Fn() -> Box<dyn Read + Send> + Send + Sync>);

impl StandardInput {
    /// From `open`, called when an ingest comes to reading it.
    pub fn new(open: impl Fn() -> Box<dyn Read + Send> + Send + Sync + 'static) -> StandardInput {
        StandardInput(Arc::new(open))
    }

    fn open(&self) -> Box<dyn Read + Send> {
        (self.0)()
    }
}

impl Default for StandardInput {
    /// That of the process.
    fn default() -> StandardInput {
        StandardInput::new(|| Box::new(std::io::stdin()))
    }
}

impl fmt::Debug for StandardInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StandardInput")
    }
}

/// How to treat standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stream {
    /// After an unfinished stream the same again: from its start, or, if it is spooled, from its first byte that is
    /// not durable. After a finished one a new one; but what was read is not counted twice: a stream of the same
    /// bytes is reported and skipped, of one that begins with all of them only what follows is counted.
    #[default]
    Auto,
    /// A new stream, whatever was read before.
    New,
    /// The last stream again, though it may have ended before.
    Again,
}

/// The checkpoints that an ingest made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpoints {
    /// How many.
    pub count: u64,
    /// The time they took, during which nothing was applied.
    pub time: Duration,
}

/// How an ingest ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// All inputs were read before: nothing was done.
    pub nothing_to_do: bool,
    /// It was stopped from outside; the same command goes on. Of a stream a snapshot was published of what was read.
    pub stopped: bool,
    /// Counts when it began.
    pub before: Counters,
    /// Counts now, and with them records at the ends of streams that were cut short: the store does not count those, for
    /// they may be sent again.
    pub counters: Counters,
    /// Pages known now.
    pub pages: u64,
    /// Pages known when it began.
    pub pages_before: u64,
    /// Checkpoints made.
    pub checkpoints: Checkpoints,
    /// The last snapshot published, if any was.
    pub snapshot: Option<(PathBuf, Info)>,
    /// Why no snapshot was published at the end, if so.
    pub unverified: Option<crate::store::Unverified>,
    /// With a spool: bytes of the stream, from its start, that are durable.
    pub durable: Option<u64>,
    /// Bytes of memory needed for the pages known now.
    pub need: Need,
    /// Pages that fit the memory budget and the limit.
    pub fits: u64,
}

/// Told what happens, as it happens.
pub trait Observer {
    /// Something to tell people.
    fn note(&mut self, note: Note<'_>);
    /// How far it has come; called often.
    fn progress(&mut self, report: &ProgressReport<'_>);
}

/// Something to tell people.
#[derive(Debug)]
#[non_exhaustive]
pub enum Note<'a> {
    /// The store was made.
    Created {
        /// Its directory.
        store: &'a std::path::Path,
    },
    /// Reading goes on where a checkpoint left off.
    Resuming {
        /// The input.
        input: &'a InputName,
        /// The pass, from 1.
        pass: u32,
        /// Records of it read before.
        records: u64,
        /// Decompressed bytes of it read before.
        offset: u64,
    },
    /// What the memory budget allows: at the start, and when the pages have doubled.
    Memory {
        /// Pages known.
        pages: u64,
        /// Bytes needed for them.
        need: Need,
        /// Bytes of the budget.
        budget: u64,
        /// Pages that fit.
        fits: u64,
        /// Those up to which importance is settled beside the ingest, for snapshots on the way; all that fit where none is.
        settles: u64,
    },
    /// A spool is open.
    Spooling {
        /// Bytes of the stream, from its start, that it has: the next one is expected.
        from: u64,
    },
    /// The spool is closed.
    Spooled {
        /// Bytes of the stream, from its start, that are durable.
        to: u64,
    },
    /// A spooled stream is damaged, and so is what the spool holds of it.
    SpooledDamage,
    /// All inputs of a pass were read before, standard input too, and it is not read again:
    /// visiting the nodes known as targets only (`--complete`) goes on.
    Completing {
        /// The pass, from 1.
        pass: u32,
    },
    /// Standard input is the stream that was read last, to the byte: nothing of it is counted again.
    ReadBefore {
        /// Its bytes, as they were sent.
        bytes: u64,
    },
    /// Standard input begins with all of the stream that was read last: only what follows is counted.
    GoesOn,
    /// An input read before is checked against what was read.
    Checking {
        /// The input.
        input: &'a InputName,
    },
    /// A file is compared with what was read, which takes as long as decompressing it.
    Looking {
        /// The input.
        input: &'a InputName,
    },
    /// A file was read before, and is not read again.
    Known {
        /// The input.
        input: &'a InputName,
    },
    /// Older snapshots were removed: how many, and how many are kept.
    Removed {
        /// Both.
        snapshots: (u64, u64),
    },
    /// A caveat about rankings from an input's format; given for each such input.
    Caveat {
        /// The input.
        input: &'a InputName,
        /// The caveat ([`Format::caveat`]), or one of this input only.
        caveat: &'static str,
    },
    /// None of an input's first records has its links, or its time or status, though a field with another name may.
    Missing {
        /// The input.
        input: &'a InputName,
        /// The fields that they lack.
        missing: &'a Missing,
    },
    /// The format was guessed.
    Guessed {
        /// The input.
        input: &'a InputName,
        /// The format that was recognised.
        format: Format,
        /// How it was recognised.
        why: &'a str,
    },
    /// The input holds nothing.
    Empty {
        /// The input.
        input: &'a InputName,
    },
    /// A record was skipped.
    Skipped {
        /// The input.
        input: &'a InputName,
        /// The record's number in it, from 1.
        record: u64,
        /// Offset of its first byte in the decompressed input.
        offset: u64,
        /// By which it is counted.
        reason: Reason,
        /// What is wrong.
        detail: &'a str,
    },
    /// A record is used without its time, which cannot be read. Told of each record, in the first pass.
    BadTime {
        /// The input.
        input: &'a InputName,
        /// The record's number in it, from 1.
        record: u64,
        /// Offset of its first byte in the decompressed input.
        offset: u64,
        /// The complaint; of many records near each other, only the first have one.
        detail: Option<&'a str>,
    },
    /// Sources of an `edges` input came back after others in the first pass.
    Ungrouped {
        /// The input.
        input: &'a InputName,
        /// How often.
        sources: u64,
    },
    /// The links of pages are kept no more, and those kept before are dropped. Told once.
    RowsGivenUp {
        /// Why.
        reason: GivenUp,
    },
    /// The directory of kept rows was damaged, and was made again.
    PlacesRenewed {
        /// What was wrong.
        damage: &'a crate::Error,
    },
    /// There are passes after the first. Told at the start, and when `kept` changes.
    Repeating {
        /// Passes in all.
        repeat: u32,
        /// They go over the links that the first kept; else they read the inputs again.
        kept: bool,
    },
    /// A pass over kept links goes on where a checkpoint left off.
    GoingOver {
        /// The pass, from 2.
        pass: u32,
        /// Pages visited in it before.
        visited: u64,
    },
    /// Members or frames of an input had no checksum.
    Unchecked {
        /// The input.
        input: &'a InputName,
        /// How many.
        members: u64,
    },
    /// A stream was stopped from outside, and what was read of it is about to be ranked.
    Stopping,
    /// The state was made durable: what was read so far will not be read again.
    Checkpoint {
        /// Number of the commit.
        generation: u64,
        /// Records applied so far.
        records: u64,
    },
    /// A pass is over that is followed by another unless the bound is low enough (`until`).
    Bound {
        /// The pass, from 1.
        pass: u32,
        /// The certified bound on the L1 error after it; `None`: there is none.
        bound: Option<f64>,
    },
    /// No snapshot was published at the end, since some of what was applied is not verified.
    Withheld {
        /// From where on.
        unverified: &'a crate::store::Unverified,
    },
    /// Nothing is read any more, and importance is being settled.
    Settling {
        /// How far it is.
        progress: &'a crate::rank::settle::Progress,
    },
    /// A snapshot was not settled, for want of memory.
    NotSettled {
        /// Bytes that it would have taken.
        need: u64,
        /// Bytes that there were.
        room: u64,
    },
    /// A snapshot was published.
    Published {
        /// Its file.
        path: &'a std::path::Path,
        /// Counters and settings of the run.
        info: &'a Info,
    },
    /// A ranking was computed beside it.
    Computed {
        /// Its file.
        path: &'a std::path::Path,
        /// What it says of itself.
        info: &'a ComputedInfo,
    },
    /// A ranking was not computed; the snapshot is there without it.
    NotComputed {
        /// Which.
        name: &'a ComputedName,
        /// Why; `None`: it was stopped from outside.
        error: Option<&'a crate::Error>,
    },
}

/// How far an ingest has come.
#[derive(Debug)]
pub struct ProgressReport<'a> {
    /// The input being read; `None`: the pass goes over kept links.
    pub input: Option<&'a InputName>,
    /// Bytes read of it, as it lies, compressed or not; pages visited in a pass over kept links.
    pub done: u64,
    /// How many there are, if known.
    pub length: Option<u64>,
    /// The input's index.
    pub input_index: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// The running pass, from 1.
    pub pass: u32,
    /// Passes in all.
    pub repeat: u32,
    /// Counts of what was read so far.
    pub counters: &'a Counters,
    /// Pages known.
    pub pages: u64,
}
