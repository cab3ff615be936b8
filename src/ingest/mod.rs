//! Ingesting: inputs -> source -> decode -> batch -> engine -> checkpoint -> snapshot.
//!
//! The only place where threads meet. Whatever their number, the engine sees the records of each
//! input in order, and stops for checkpoints and snapshots at record boundaries, so results depend
//! on the records alone.
//!
//! `convert` reads in the same way, and writes a file of crawl records instead.

mod convert;
mod input;
mod known;
mod note;
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
use crate::engine::{Config, Counters};
use crate::formats::Format;
use crate::memory::Need;
use crate::model::{Limits, Time};
use crate::rank::Goal;
use crate::rank::computing::Computing;
use crate::snapshot::{Info, KeepSnapshots};
use crate::source::{InputName, Source, SourceOptions};
use crate::store::rows::KeepRows;
use crate::store::{RealDisk, Settings, SpoolOptions, settings_of};

pub use crate::store::rows::ROWS_BYTES;
pub use convert::{Conversion, ConversionReport, TimeSort, convert};
pub use note::{Note, Observer, ProgressReport};
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
    pub settle: Option<Goal>,
    /// Settle from nothing, and not from the warm start: a ranking of the same rows then has the same bytes, whatever
    /// happened before.
    pub cold: bool,
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
    /// Snapshots to keep, beside those that are pinned.
    pub keep_snapshots: KeepSnapshots,
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
    /// A store that is opened does not look whether its index on disk is of its pages.
    IndexUnchecked,
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
            settle: Some(Goal::default()),
            cold: false,
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
            keep_snapshots: KeepSnapshots::ALL,
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
    /// Opens an input.
    fn open(&self, input: &InputName) -> Result<Source> {
        let options = self.source.with_rules(&self.settings.input);
        Source::open(input, &self.limits, &options)
    }

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
