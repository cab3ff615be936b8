//! Events of an ingest, as they happen.

use crate::decode::{Missing, Reason};
use crate::engine::Counters;
use crate::formats::Format;
use crate::memory::Need;
use crate::snapshot::{ComputedInfo, Info};
use crate::source::InputName;
use crate::store::rows::GiveUpReason;

/// Observer of an ingest.
pub trait Observer {
    /// Receives an event.
    fn note(&mut self, note: IngestEvent<'_>);
    /// Receives the progress; called often.
    fn progress(&mut self, report: &ProgressReport<'_>);
}

impl dyn Observer + '_ {
    /// Sends a message.
    pub(crate) fn say(&mut self, text: impl AsRef<str>) {
        self.note(IngestEvent::Message(text.as_ref()));
    }

    /// Sends a warning.
    pub(crate) fn warn(&mut self, text: impl AsRef<str>) {
        self.note(IngestEvent::Warning(text.as_ref()));
    }
}

/// Event for users. Inputs, records and passes are counted from 1; offsets are in the decompressed input; `input` is
/// the one that the event is about, and memory is in bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum IngestEvent<'a> {
    /// Progress, in words.
    Message(&'a str),
    /// Problem that does not stop the ingest, in words.
    Warning(&'a str),
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
    Ungrouped { input: &'a InputName, sources: u64 },
    /// The links of pages are no longer kept, and those kept before are dropped. Sent once.
    RowsGivenUp { reason: GiveUpReason },
    /// The directory of kept rows was damaged and was rebuilt.
    PlacesRenewed { damage: &'a crate::Error },
    /// The index on disk cannot be used: another was built from the fingerprints.
    IndexNotUsed { damage: &'a crate::Error },
    /// The index was not written to disk: the next run builds it from the fingerprints.
    IndexNotKept { error: &'a crate::Error },
    /// A problem with the warm start, which does not affect the ranking.
    Warm { warning: &'a str },
    /// Members or frames of an input had no checksum.
    Unchecked { input: &'a InputName, members: u64 },
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
