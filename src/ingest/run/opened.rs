//! Inputs as they are opened: before their turn, at it, and the stream among them.

use super::stamp::Stamp;
use crate::ingest::stream_match::SharedSigner;
use crate::pipeline::Records;
use crate::source::Source;

/// An input that is being read and decoded; nothing of it is applied yet.
pub(super) struct OpenInput {
    /// The file before it was opened.
    pub stamp: Option<Stamp>,
    pub records: Records,
}

/// How an input began.
pub(super) enum InputStart {
    Ready(Box<OpenInput>),
    /// Not: stopped from outside.
    Stopped,
    /// Not: all of it was read before.
    ReadBefore,
}

/// An input that was opened.
pub(super) enum InputSource {
    Source(Source),
    /// A stream that begins with all of the one before: only what follows is another.
    Longer(Source),
    /// A stream, and all of it was read before.
    ReadBefore,
}

/// An input, and when its turn is.
pub(super) struct Ahead {
    pub pass: u32,
    pub input: u64,
    pub begun: OpenInput,
}

/// The signer of a stream, and its number among the inputs.
pub(super) struct InputSigner {
    pub input: u64,
    pub signer: SharedSigner,
}
