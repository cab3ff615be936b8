//! Inputs that are opened, prefetched or at their turn, including the stream.

use super::stamp::Stamp;
use crate::ingest::stream_match::SharedSigner;
use crate::pipeline::Records;
use crate::source::Source;

/// Input that is being read and decoded; nothing of it is applied yet.
pub(super) struct OpenInput {
    /// Stamp of the file before it was opened.
    pub stamp: Option<Stamp>,
    pub records: Records,
}

/// Result of beginning an input.
pub(super) enum InputStart {
    Ready(Box<OpenInput>),
    /// It was not begun: stopped from outside.
    Stopped,
    /// It was not begun: all of it was read before.
    ReadBefore,
}

pub(super) enum InputSource {
    Source(Source),
    /// A stream that begins with all of the previous one: only the rest is new.
    Longer(Source),
    /// A stream, all of which was read before.
    ReadBefore,
}

/// Prefetched input, with its pass and number.
pub(super) struct Ahead {
    pub pass: u32,
    pub input: u64,
    pub begun: OpenInput,
}

/// Signer of a stream, and the stream's number among the inputs.
pub(super) struct InputSigner {
    pub input: u64,
    pub signer: SharedSigner,
}
