//! Ingesting: inputs -> source -> decode -> batch -> engine -> checkpoint -> snapshot.
//!
//! The only place where threads meet. Whatever their number, the engine sees the records of each
//! input in order, and stops for checkpoints and snapshots at record boundaries, so results depend
//! on the records alone.

pub(crate) mod pipeline;
mod plan;
mod run;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::decode::{Format, Reason};
use crate::engine::Counters;
use crate::limits::Limits;
use crate::snapshot::Info;
use crate::source::{InputName, SourceOptions};
use crate::store::Settings;

pub use run::ingest;

/// How often something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// After so many applied records.
    Records(u64),
    /// After so much time.
    Time(Duration),
    /// Only at the end.
    Never,
}

/// What to read, where to, and how.
#[derive(Debug, Clone)]
pub struct Job {
    /// The store's directory.
    pub store: PathBuf,
    /// What changes results.
    pub settings: Settings,
    /// The inputs, in order.
    pub inputs: Vec<InputName>,
    /// Their format; `None`: guessed for each.
    pub format: Option<Format>,
    /// Passes over the inputs, from 1.
    pub repeat: u32,
    /// Visit the nodes known as targets only at the end of each pass.
    pub complete: bool,
    /// Stop at the first record that cannot be used.
    pub strict: bool,
    /// What standard input is, if the store has read from one before.
    pub stream: Stream,
    pub checkpoint_every: Every,
    pub snapshot_every: Every,
    /// Snapshots to keep, the newest; 0: all.
    pub keep_snapshots: usize,
    /// Threads that decode, besides the one that reads and the one that applies. At least 1.
    pub threads: usize,
    pub limits: Limits,
    pub source: SourceOptions,
    /// Set from outside to stop at the next record, with a checkpoint.
    pub stop: Arc<AtomicBool>,
}

/// What standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stream {
    /// After a finished stream a new one; after an unfinished one the same again, from its start.
    #[default]
    Auto,
    /// A new stream.
    New,
    /// The last stream again, from its start, though it may have ended before.
    Again,
}

/// How an ingest ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// All inputs were read before: nothing was done.
    pub nothing_to_do: bool,
    /// It was stopped from outside; the same command goes on.
    pub stopped: bool,
    /// Counts when it began.
    pub before: Counters,
    /// Counts now.
    pub counters: Counters,
    /// Pages known now and before.
    pub pages: u64,
    pub pages_before: u64,
    /// The last snapshot published, if any was.
    pub snapshot: Option<(PathBuf, Info)>,
    /// Why no snapshot was published at the end, if so.
    pub unverified: Option<crate::store::Unverified>,
}

/// Told what happens, as it happens.
pub trait Observer {
    /// Something to tell people.
    fn note(&mut self, note: Note<'_>);
    /// Where things stand; called often.
    fn progress(&mut self, progress: &Standing<'_>);
}

/// Something to tell people.
#[derive(Debug)]
#[non_exhaustive]
pub enum Note<'a> {
    /// The store was made.
    Created { store: &'a std::path::Path },
    /// Reading goes on where a checkpoint left off.
    Resuming {
        input: &'a InputName,
        pass: u32,
        records: u64,
        offset: u64,
    },
    /// An input read before is checked against what was read.
    Checking { input: &'a InputName },
    /// The format was guessed.
    Guessed {
        input: &'a InputName,
        format: Format,
        why: &'a str,
    },
    /// The input holds nothing.
    Empty { input: &'a InputName },
    /// A record was skipped.
    Skipped {
        input: &'a InputName,
        record: u64,
        offset: u64,
        reason: Reason,
        detail: &'a str,
    },
    /// Sources of an `edges` input came back after others in the first pass.
    Ungrouped { input: &'a InputName, sources: u64 },
    /// Members or frames of an input had no checksum.
    Unchecked { input: &'a InputName, members: u64 },
    /// No snapshot was published at the end, since some of what was applied is not verified.
    Withheld {
        unverified: &'a crate::store::Unverified,
    },
    /// A snapshot was published.
    Published {
        path: &'a std::path::Path,
        info: &'a Info,
    },
}

/// Where things stand.
#[derive(Debug)]
pub struct Standing<'a> {
    pub input: &'a InputName,
    /// Compressed bytes read of this input, and its length if known.
    pub compressed: u64,
    pub compressed_len: Option<u64>,
    /// Index of the input, number of inputs, pass and passes.
    pub input_index: usize,
    pub inputs: usize,
    pub pass: u32,
    pub repeat: u32,
    pub counters: &'a Counters,
    pub pages: u64,
}
