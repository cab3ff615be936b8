//! Progress of a store in its inputs, as plain data; `ingest` interprets it.

use serde::{Deserialize, Serialize};

use std::path::Path;

use crate::model::{InputPosition, InputSignature, Restart};
use crate::{Error, Result};

/// Inputs of a store, and the position reached in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputProgress {
    /// Inputs begun, in the order of the first pass. The last may be unfinished in pass 1.
    pub inputs: Vec<Input>,
    /// Number of passes requested by the last command.
    pub repeat: u32,
    /// Current pass, from 1. Larger than `repeat` when all are done.
    pub pass: u32,
    /// Input being read in this pass, as an index into `inputs`; their number if none is begun.
    pub input: u64,
    pub place: InputPosition,
    /// True if pages known as link targets only are visited at the end of each pass.
    pub complete: bool,
    /// Set at the end of a pass with `complete`, after all inputs: link targets before this page were visited.
    pub completing: Option<u64>,
    /// True if all that the last command requested is done.
    pub finished: bool,
    /// First record that was applied unverified, if any: no snapshot may be published until all are verified.
    pub unverified: Option<Unverified>,
    /// Signature of the last stream, to recognise it when it is sent again. Stored separately from the manifest.
    #[serde(skip)]
    pub stream: Option<InputSignature>,
    /// Number of the last stream in which a request was read: if it ends after a capture without a request, the request
    /// may be cut off. Stored separately from the manifest.
    #[serde(skip)]
    pub requests: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Name as given on the command line, for messages only; `-` is standard input.
    pub name: String,
    pub format: String,
    /// Position of the input's end, once reached.
    pub end: Option<InputPosition>,
    /// Part that the spool must keep, if it is standard input and was spooled.
    pub spooled: Option<Spooled>,
}

/// Part of an input that the spool must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    /// Position from which the input is read again to reach the current position, or its end.
    pub restart: Restart,
    /// Length of the stream in bytes as sent, once its end was reached.
    pub total: Option<u64>,
}

/// First record that was applied without verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unverified {
    pub input: String,
    /// Number of the record in the input, from 1.
    pub from_record: u64,
}

impl Default for InputProgress {
    fn default() -> Self {
        InputProgress {
            inputs: Vec::new(),
            repeat: 1,
            pass: 1,
            input: 0,
            place: InputPosition::start(),
            complete: false,
            completing: None,
            finished: false,
            unverified: None,
            stream: None,
            requests: None,
        }
    }
}

impl InputProgress {
    /// Returns an error if records that were read could not be verified, so that no ranking may be published.
    pub fn check_verified(&self, store: &Path) -> Result<()> {
        match &self.unverified {
            None => Ok(()),
            Some(unverified) => Err(Error::Conflict(format!(
                "{}: {} could not be verified from its record {} on: no ranking of it is published",
                store.display(),
                unverified.input,
                unverified.from_record
            ))),
        }
    }

    /// Returns an error if an ingest of inputs is unfinished.
    pub fn check_finished(&self, store: &Path) -> Result<()> {
        if self.inputs.is_empty() || self.finished {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "{}: an ingest of its inputs has not finished; let its command finish first",
            store.display()
        )))
    }

    /// Returns true if only passes after the first remain or remained; they need no stream.
    pub fn is_past_first(&self) -> bool {
        self.repeat > 1 && self.pass > 1
    }
}
