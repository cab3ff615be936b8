//! What an ingest tells of itself, as it happens.

use crate::decode::{Missing, Reason};
use crate::engine::Counters;
use crate::formats::Format;
use crate::memory::Need;
use crate::snapshot::{ComputedInfo, ComputedName, Info, KeepSnapshots};
use crate::source::InputName;
use crate::store::rows::Reason as GivenUp;

/// Hears what happens, as it happens.
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
    /// Older snapshots were removed: how many, and which are kept.
    Removed {
        /// Both.
        snapshots: (u64, KeepSnapshots),
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
    /// A record is used without its time, which cannot be read. Reported of each record, in the first pass.
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
    /// The links of pages are kept no more, and those kept before are dropped. Reported once.
    RowsGivenUp {
        /// Why.
        reason: GivenUp,
    },
    /// Of the page numbers that kept links have room for, less than a sixteenth is left. Told once a run.
    NearPageLimit {
        /// Pages known.
        pages: u64,
        /// The most that there can be.
        limit: u64,
    },
    /// The directory of kept rows was damaged, and was made again.
    PlacesRenewed {
        /// What was wrong.
        damage: &'a crate::Error,
    },
    /// The index on disk cannot be used: another was made from the fingerprints.
    IndexNotUsed {
        /// What is wrong.
        damage: &'a crate::Error,
    },
    /// The index was not left on disk: the next run makes it from the fingerprints, as it does where there is none.
    IndexNotKept {
        /// Why.
        error: &'a crate::Error,
    },
    /// Something is wrong with the warm start. The ranking is as it should be.
    Warm {
        /// What.
        warning: &'a crate::snapshot::WarmWarning,
    },
    /// There are passes after the first. Reported at the start, and when `kept` changes.
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
