//! Events of an ingest, as they happen.

use crate::decode::{Missing, Reason};
use crate::engine::Counters;
use crate::formats::Format;
use crate::memory::Need;
use crate::snapshot::{ComputedInfo, ComputedName, Info, KeepSnapshots};
use crate::source::InputName;
use crate::store::rows::GiveUpReason;

/// Observer of an ingest.
pub trait Observer {
    /// Receives an event.
    fn note(&mut self, note: IngestEvent<'_>);
    /// Receives the progress; called often.
    fn progress(&mut self, report: &ProgressReport<'_>);
}

/// Event for users. Inputs, records and passes are counted from 1; offsets are in the decompressed input; `input` is
/// the one that the event is about, and memory is in bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum IngestEvent<'a> {
    /// The store was created.
    Created { store: &'a std::path::Path },
    /// Reading continues where a checkpoint left off.
    Resuming {
        input: &'a InputName,
        pass: u32,
        records: u64,
        offset: u64,
    },
    /// What the memory budget allows: at the start, and when the pages have doubled.
    Memory {
        pages: u64,
        need: Need,
        budget: u64,
        fits: u64,
        /// Number of pages up to which importance is settled for intermediate snapshots, while the ingest continues;
        /// all that fit if none are settled.
        settles: u64,
    },
    /// A spool was opened.
    Spooling {
        /// Number of bytes of the stream, from its start, that it has; the next one is expected.
        from: u64,
    },
    /// The spool was closed.
    Spooled {
        /// Number of bytes of the stream, from its start, that are durable.
        to: u64,
    },
    /// A spooled stream is damaged, and so is what the spool holds of it.
    SpooledDamage,
    /// All inputs of a pass were read before, including standard input, which is not read again: visiting pages known
    /// as link targets only (`--complete`) continues.
    Completing { pass: u32 },
    /// Standard input equals the stream that was read last: nothing of it is counted again.
    ReadBefore { bytes: u64 },
    /// Standard input begins with all of the stream that was read last: only the rest is counted.
    GoesOn,
    /// An input read before is checked against what was read.
    Checking { input: &'a InputName },
    /// A file is compared with what was read, which takes as long as decompressing it.
    Looking { input: &'a InputName },
    /// A file was read before, and is not read again.
    Known { input: &'a InputName },
    /// Older snapshots were removed.
    Removed { snapshots: (u64, KeepSnapshots) },
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
    /// The format was guessed.
    Guessed {
        input: &'a InputName,
        format: Format,
        why: &'a str,
    },
    /// The input has no records of any kind.
    Empty { input: &'a InputName },
    /// A record was skipped.
    Skipped {
        input: &'a InputName,
        record: u64,
        offset: u64,
        reason: Reason,
        detail: &'a str,
    },
    /// A record is used without its time, which cannot be parsed. Sent for each record, in the first pass.
    BadTime {
        input: &'a InputName,
        record: u64,
        offset: u64,
        /// Description of what is wrong; of many records near each other, only the first have one.
        detail: Option<&'a str>,
    },
    /// Sources of an `edges` input came back after others in the first pass.
    Ungrouped { input: &'a InputName, sources: u64 },
    /// The links of pages are no longer kept, and those kept before are dropped. Sent once.
    RowsGivenUp { reason: GiveUpReason },
    /// Less than a sixteenth of the page numbers for kept links is left. Sent once per run.
    NearPageLimit { pages: u64, limit: u64 },
    /// The directory of kept rows was damaged and was rebuilt.
    PlacesRenewed { damage: &'a crate::Error },
    /// The index on disk cannot be used: another was built from the fingerprints.
    IndexNotUsed { damage: &'a crate::Error },
    /// The index was not written to disk: the next run builds it from the fingerprints.
    IndexNotKept { error: &'a crate::Error },
    /// A problem with the warm start, which does not affect the ranking.
    Warm {
        warning: &'a crate::snapshot::WarmWarning,
    },
    /// There are passes after the first. Sent at the start, and when `kept` changes.
    Repeating {
        repeat: u32,
        /// True if they visit pages by kept links; false if they read the inputs again.
        kept: bool,
    },
    /// A pass over kept links continues where a checkpoint left off.
    GoingOver { pass: u32, visited: u64 },
    /// Members or frames of an input had no checksum.
    Unchecked { input: &'a InputName, members: u64 },
    /// A stream was stopped from outside, and what was read of it is about to be ranked.
    Stopping,
    /// The state was made durable: what was read so far will not be read again.
    Checkpoint { generation: u64, records: u64 },
    /// A pass ended that is followed by another unless the bound is low enough (`until`).
    Bound {
        pass: u32,
        /// Certified bound on the L1 error after it; `None` if there is none.
        bound: Option<f64>,
    },
    /// No snapshot was published at the end, since some applied records are not verified.
    Withheld {
        unverified: &'a crate::store::Unverified,
    },
    /// Reading has ended, and importance is being settled.
    Settling {
        progress: &'a crate::rank::settle::SettlingProgress,
    },
    /// A snapshot was not settled for lack of memory.
    NotSettled { need: u64, room: u64 },
    /// A snapshot was published.
    Published {
        path: &'a std::path::Path,
        info: &'a Info,
    },
    /// A ranking was computed beside the snapshot.
    Computed {
        path: &'a std::path::Path,
        info: &'a ComputedInfo,
    },
    /// A ranking was not computed; the snapshot was published without it.
    NotComputed {
        name: &'a ComputedName,
        /// Error of the computation; `None` if it was stopped from outside.
        error: Option<&'a crate::Error>,
    },
}

/// Progress of an ingest.
#[derive(Debug)]
pub struct ProgressReport<'a> {
    /// Input being read; `None` if the pass visits pages by kept links.
    pub input: Option<&'a InputName>,
    /// Number of its bytes read, as stored, compressed or not; of visited pages in a pass over kept links.
    pub done: u64,
    /// Total number of these, if known.
    pub length: Option<u64>,
    /// Index of the input.
    pub input_index: usize,
    pub inputs: usize,
    /// Current pass, from 1.
    pub pass: u32,
    /// Total number of passes.
    pub repeat: u32,
    /// Counts of what was read so far.
    pub counters: &'a Counters,
    pub pages: u64,
}
