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

/// Event for users.
#[derive(Debug)]
#[non_exhaustive]
pub enum IngestEvent<'a> {
    /// The store was created.
    Created {
        /// Path of the store.
        store: &'a std::path::Path,
    },
    /// Reading continues where a checkpoint left off.
    Resuming {
        /// Input that is resumed.
        input: &'a InputName,
        /// Pass, from 1.
        pass: u32,
        /// Number of its records read before.
        records: u64,
        /// Number of its decompressed bytes read before.
        offset: u64,
    },
    /// What the memory budget allows: at the start, and when the pages have doubled.
    Memory {
        /// Number of pages known.
        pages: u64,
        /// Memory needed for them.
        need: Need,
        /// Budget in bytes.
        budget: u64,
        /// Number of pages that fit.
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
    Completing {
        /// Pass, from 1.
        pass: u32,
    },
    /// Standard input equals the stream that was read last: nothing of it is counted again.
    ReadBefore {
        /// Number of its bytes, as sent.
        bytes: u64,
    },
    /// Standard input begins with all of the stream that was read last: only the rest is counted.
    GoesOn,
    /// An input read before is checked against what was read.
    Checking {
        /// Input that is checked.
        input: &'a InputName,
    },
    /// A file is compared with what was read, which takes as long as decompressing it.
    Looking {
        /// Input that is compared.
        input: &'a InputName,
    },
    /// A file was read before, and is not read again.
    Known {
        /// Input that was recognised.
        input: &'a InputName,
    },
    /// Older snapshots were removed.
    Removed {
        /// Number of removed snapshots, and the rule for those kept.
        snapshots: (u64, KeepSnapshots),
    },
    /// A caveat about rankings from an input's format; sent for each such input.
    Caveat {
        /// Input with the caveat.
        input: &'a InputName,
        /// Caveat of the format ([`Format::caveat`]), or of this input only.
        caveat: &'static str,
    },
    /// None of an input's first records has its links, or its time or status, though a field with another name may.
    Missing {
        /// Input with the records.
        input: &'a InputName,
        /// Fields that they lack.
        missing: &'a Missing,
    },
    /// The format was guessed.
    Guessed {
        /// Input whose format was guessed.
        input: &'a InputName,
        /// Format that was recognised.
        format: Format,
        /// Evidence for the format.
        why: &'a str,
    },
    /// The input has no records of any kind.
    Empty {
        /// Input without records.
        input: &'a InputName,
    },
    /// A record was skipped.
    Skipped {
        /// Input with the record.
        input: &'a InputName,
        /// Number of the record in it, from 1.
        record: u64,
        /// Offset of its first byte in the decompressed input.
        offset: u64,
        /// Reason under which it is counted.
        reason: Reason,
        /// Description of what is wrong.
        detail: &'a str,
    },
    /// A record is used without its time, which cannot be parsed. Sent for each record, in the first pass.
    BadTime {
        /// Input with the record.
        input: &'a InputName,
        /// Number of the record in it, from 1.
        record: u64,
        /// Offset of its first byte in the decompressed input.
        offset: u64,
        /// Description of what is wrong; of many records near each other, only the first have one.
        detail: Option<&'a str>,
    },
    /// Sources of an `edges` input came back after others in the first pass.
    Ungrouped {
        /// Input with the edges.
        input: &'a InputName,
        /// Number of such returns.
        sources: u64,
    },
    /// The links of pages are no longer kept, and those kept before are dropped. Sent once.
    RowsGivenUp {
        /// Reason for giving them up.
        reason: GiveUpReason,
    },
    /// Less than a sixteenth of the page numbers for kept links is left. Sent once per run.
    NearPageLimit {
        /// Number of pages known.
        pages: u64,
        /// Largest possible number.
        limit: u64,
    },
    /// The directory of kept rows was damaged and was rebuilt.
    PlacesRenewed {
        /// Damage that was found.
        damage: &'a crate::Error,
    },
    /// The index on disk cannot be used: another was built from the fingerprints.
    IndexNotUsed {
        /// Damage that was found.
        damage: &'a crate::Error,
    },
    /// The index was not written to disk: the next run builds it from the fingerprints.
    IndexNotKept {
        /// Error of writing it.
        error: &'a crate::Error,
    },
    /// A problem with the warm start, which does not affect the ranking.
    Warm {
        /// Description of the problem.
        warning: &'a crate::snapshot::WarmWarning,
    },
    /// There are passes after the first. Sent at the start, and when `kept` changes.
    Repeating {
        /// Total number of passes.
        repeat: u32,
        /// True if they visit pages by kept links; false if they read the inputs again.
        kept: bool,
    },
    /// A pass over kept links continues where a checkpoint left off.
    GoingOver {
        /// Pass, from 2.
        pass: u32,
        /// Number of pages visited in it before.
        visited: u64,
    },
    /// Members or frames of an input had no checksum.
    Unchecked {
        /// Input with the members.
        input: &'a InputName,
        /// Number of such members.
        members: u64,
    },
    /// A stream was stopped from outside, and what was read of it is about to be ranked.
    Stopping,
    /// The state was made durable: what was read so far will not be read again.
    Checkpoint {
        /// Number of the commit.
        generation: u64,
        /// Number of records applied so far.
        records: u64,
    },
    /// A pass ended that is followed by another unless the bound is low enough (`until`).
    Bound {
        /// Pass, from 1.
        pass: u32,
        /// Certified bound on the L1 error after it; `None` if there is none.
        bound: Option<f64>,
    },
    /// No snapshot was published at the end, since some applied records are not verified.
    Withheld {
        /// First unverified record.
        unverified: &'a crate::store::Unverified,
    },
    /// Reading has ended, and importance is being settled.
    Settling {
        /// Progress of settling.
        progress: &'a crate::rank::settle::SettlingProgress,
    },
    /// A snapshot was not settled for lack of memory.
    NotSettled {
        /// Memory that it would have taken, in bytes.
        need: u64,
        /// Memory that was available, in bytes.
        room: u64,
    },
    /// A snapshot was published.
    Published {
        /// Path of its file.
        path: &'a std::path::Path,
        /// Counters and settings of the run.
        info: &'a Info,
    },
    /// A ranking was computed beside the snapshot.
    Computed {
        /// Path of its file.
        path: &'a std::path::Path,
        /// Header of the ranking.
        info: &'a ComputedInfo,
    },
    /// A ranking was not computed; the snapshot was published without it.
    NotComputed {
        /// Name of the ranking.
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
