//! Ingest: inputs -> source -> decode -> batch -> engine -> checkpoint -> snapshot.
//!
//! Whatever the number of threads, the engine sees the records of each input in order, and stops for checkpoints and
//! snapshots at record boundaries, so results depend on the records alone.

mod convert;
mod plan;
mod run;
mod stream;
mod stream_match;

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
use crate::rank::Goal;
use crate::snapshot::{Info, KeepSnapshots};
use crate::source::{InputName, Source, SourceOptions};
use crate::store::rows::{GiveUpReason, KeepRows, ROWS_BYTES};
use crate::store::{RealDisk, Settings, SpoolOptions, settings_of};

pub use convert::{Conversion, ConversionReport, convert};
pub use run::ingest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// Number of applied records.
    Records(u64),
    /// Time; snapshots pause at least three times as long as the last one took.
    Time(Duration),
    /// Only at the end.
    Never,
}

#[derive(Clone)]
pub struct IngestJob {
    pub store: PathBuf,
    pub settings: Settings,
    pub inputs: Vec<InputName>,
    /// Format of the inputs; `None` to guess it for each.
    pub format: Option<Format>,
    /// Number of passes, from 1. Those after the first go over the kept links, or without these over the inputs again.
    pub repeat: u32,
    /// Retention of the links of pages in the store.
    pub keep_links: KeepRows,
    /// Target bound on the L1 error of settling, if links are kept and no window is requested; `None` not to settle.
    pub settle: Option<Goal>,
    /// True to settle from nothing, not from the warm start: then a ranking of the same rows always has the same bytes.
    pub cold: bool,
    pub settle_time: Option<Duration>,
    /// Age in seconds, back from the latest record, beyond which settling leaves out a page's links; `None` for never.
    pub expire: Option<Time>,
    /// True if an unfinished input that is not named counts as ended where reading stopped.
    pub leave_unfinished: bool,
    /// True to stop at the first record that cannot be used.
    pub strict: bool,
    /// Treatment of standard input if the store has read from one before.
    pub stream: Stream,
    /// Options for a durable copy of standard input until a checkpoint covers it; `None` to disable the spool.
    pub spool: Option<SpoolOptions>,
    pub stdin: StandardInput,
    pub checkpoint_every: Every,
    /// Interval of snapshots, besides the one at the end.
    pub snapshot_every: Every,
    /// Rule for which snapshots stay, besides pinned ones.
    pub keep_snapshots: KeepSnapshots,
    /// Number of threads that decode, besides the one that reads and the one that applies; at least 1.
    pub threads: usize,
    pub limits: Limits,
    pub source: SourceOptions,
    /// Seed of short delays at each hand-over between threads, for tests. Results do not depend on them.
    pub delays: Option<u64>,
    /// Injected fault that the campaign of faults must detect, for tests.
    #[doc(hidden)]
    pub fault: Option<InjectedFault>,
    /// Flag that stops the ingest at the next record with a checkpoint, when it is set from outside.
    pub stop: Arc<AtomicBool>,
}

#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// An interrupted pass over kept links starts over.
    PassFromStart,
    /// A stream that is sent again after its end is taken for another.
    StreamForgotten,
    /// Opening a store does not check that its index on disk belongs to its pages.
    IndexUnchecked,
}

impl IngestJob {
    /// Creates a job with defaults: one pass, one decoding thread, a checkpoint every 30 seconds, a snapshot at the end.
    pub fn new(store: impl Into<PathBuf>, inputs: Vec<InputName>) -> IngestJob {
        let limits = Limits::default();
        IngestJob {
            store: store.into(),
            settings: Settings::new(Config::default(), &limits),
            inputs,
            format: None,
            repeat: 1,
            keep_links: KeepRows::Usual(ROWS_BYTES),
            settle: Some(Goal::default()),
            cold: false,
            settle_time: None,
            expire: None,
            leave_unfinished: false,
            strict: false,
            stream: Stream::Auto,
            spool: None,
            stdin: Arc::new(|| Box::new(std::io::stdin())),
            checkpoint_every: Every::Time(Duration::from_secs(30)),
            snapshot_every: Every::Never,
            keep_snapshots: KeepSnapshots::ALL,
            threads: 1,
            limits,
            source: SourceOptions::default(),
            delays: None,
            fault: None,
            stop: Arc::default(),
        }
    }

    fn open(&self, input: &InputName) -> Result<Source> {
        let options = self.source.with_rules(&self.settings.input);
        Source::open(input, &self.limits, &options)
    }

    /// Creates a job with the settings of the store, if there is one, and links kept as far as its disk has room.
    pub fn of(store: impl Into<PathBuf>, inputs: Vec<InputName>) -> Result<IngestJob> {
        let mut job = IngestJob::new(store, inputs);
        job.keep_links = KeepRows::usual(&job.store);
        if let Some(settings) = settings_of(&RealDisk, &job.store)? {
            job.limits = settings.limits();
            job.settings = settings;
        }
        Ok(job)
    }
}

/// Function that opens standard input, called when an ingest begins to read it.
pub type StandardInput = Arc<dyn Fn() -> Box<dyn Read + Send> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stream {
    /// After an unfinished stream: the same stream again, from its start or, if it is spooled, from its first byte that
    /// is not durable. After a finished one: a new stream, but nothing is counted twice: a stream of the same bytes is
    /// reported and skipped, and of one that begins with all of them only the rest is counted.
    #[default]
    Auto,
    /// A new stream, whatever was read before.
    New,
    /// The last stream again, even if it has ended.
    Again,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpoints {
    pub count: u64,
    /// Total time they took, during which nothing was applied.
    pub time: Duration,
}

#[derive(Debug, Clone)]
pub struct IngestOutcome {
    /// True if all inputs were read before and nothing was done.
    pub nothing_to_do: bool,
    /// True if it was stopped from outside; the same command continues. What was read of a stream was published.
    pub stopped: bool,
    pub before: Counters,
    /// Counts at the end, including records at cut ends of streams, which the store does not count.
    pub counters: Counters,
    pub pages: u64,
    pub pages_before: u64,
    pub checkpoints: Checkpoints,
    pub snapshot: Option<(PathBuf, Info)>,
    /// First unverified record, if that prevented the snapshot at the end.
    pub unverified: Option<crate::store::Unverified>,
    /// With a spool: number of bytes of the stream, from its start, that are durable.
    pub durable: Option<u64>,
    /// Memory needed for the pages known at the end.
    pub need: Need,
    /// Number of pages that fit the memory budget and the limit.
    pub fits: u64,
}

pub trait Observer {
    fn note(&mut self, note: IngestEvent<'_>);
    fn progress(&mut self, report: &ProgressReport<'_>);
}

impl dyn Observer + '_ {
    pub(crate) fn say(&mut self, text: impl AsRef<str>) {
        self.note(IngestEvent::Message(text.as_ref()));
    }

    pub(crate) fn warn(&mut self, text: impl AsRef<str>) {
        self.note(IngestEvent::Warning(text.as_ref()));
    }
}

/// Event for users. Inputs, records and passes are counted from 1; offsets are in the decompressed input.
#[derive(Debug)]
#[non_exhaustive]
pub enum IngestEvent<'a> {
    Message(&'a str),
    /// Problem that does not stop the ingest, in words.
    Warning(&'a str),
    /// Use of the memory budget, reported at the start and when the pages have doubled.
    Memory {
        need: Need,
        budget: u64,
        fits: u64,
    },
    Spooling {
        /// Number of bytes of the stream, from its start, that the spool has; the next one is expected.
        from: u64,
    },
    /// A caveat about rankings from an input's format; sent for each such input.
    Caveat {
        input: &'a InputName,
        caveat: &'static str,
    },
    /// None of an input's first records has its links, or its time or status, though a field with another name may.
    Missing {
        input: &'a InputName,
        missing: &'a Missing,
    },
    Empty {
        input: &'a InputName,
    },
    /// A record was skipped or, for the reason [`Reason::BadTime`] and in the first pass, used without its time.
    BadRecord {
        input: &'a InputName,
        record: u64,
        offset: u64,
        reason: Reason,
        /// Description of what is wrong; of many records near each other, only the first have one.
        detail: Option<&'a str>,
    },
    /// Sources of an `edges` input came back after others in the first pass.
    Ungrouped {
        input: &'a InputName,
        sources: u64,
    },
    /// The links of pages are given up: those kept are dropped, and no more are kept.
    RowsGivenUp {
        reason: GiveUpReason,
    },
    /// The index was damaged and was rebuilt.
    Rebuilt {
        damage: &'a crate::Error,
    },
    /// A problem with the warm start, which does not affect the ranking.
    Warm {
        warning: &'a str,
    },
    Unchecked {
        input: &'a InputName,
        members: u64,
    },
    Checkpoint {
        generation: u64,
        records: u64,
    },
    /// No snapshot was published at the end, since some applied records are not verified.
    Withheld {
        unverified: &'a crate::store::Unverified,
    },
    /// Importance is being settled, and reading waits for it or has ended.
    Settling {
        progress: &'a crate::rank::settle::SettlingProgress,
    },
    Published {
        path: &'a std::path::Path,
        info: &'a Info,
    },
}

#[derive(Debug)]
pub struct ProgressReport<'a> {
    /// Input being read; `None` if the pass visits pages by kept links.
    pub input: Option<&'a InputName>,
    /// Number of bytes of the input read, before decompression, or of pages visited in a pass over kept links.
    pub done: u64,
    /// Total that `done` approaches, if known.
    pub length: Option<u64>,
    pub input_index: usize,
    pub inputs: usize,
    /// Current pass, from 1.
    pub pass: u32,
    /// Total number of passes.
    pub repeat: u32,
    pub counters: &'a Counters,
    pub pages: u64,
}
