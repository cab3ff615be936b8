//! How far a store has read its inputs. Plain data; `ingest` gives it meaning.

use serde::{Deserialize, Serialize};

use std::path::Path;

use crate::model::{InputSignature, Restart};
use crate::{Error, Result};

/// The inputs of a store, and the place reached in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Inputs begun, in the order of the first pass. The last may be unfinished in pass 1.
    pub inputs: Vec<Input>,
    /// Passes asked for by the last command.
    pub repeat: u32,
    /// The running pass, from 1. Larger than `repeat`: all are done.
    pub pass: u32,
    /// The input being read in this pass, an index into `inputs` (or one past: not begun).
    pub input: u64,
    /// The place in it.
    pub place: Place,
    /// Nodes known as targets only are visited at the end of each pass.
    pub complete: bool,
    /// All inputs of this pass were read, and such nodes are being visited: those before this page were.
    pub completing: Option<u64>,
    /// All that the last command asked for is done.
    pub finished: bool,
    /// Records were applied that could not be verified, and no snapshot may be published yet.
    pub unverified: Option<Unverified>,
    /// The signature of the last stream, to recognise it when it is sent again. A value of its own in the store.
    #[serde(skip)]
    pub stream: Option<InputSignature>,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// As given on the command line; `-` is standard input. For messages only.
    pub name: String,
    /// Its format's name.
    pub format: String,
    /// Its end, once reached.
    pub end: Option<Place>,
    /// The part that the spool must keep, if it is standard input and was spooled.
    pub spooled: Option<Spooled>,
}

/// The part of an input that the spool must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    /// From where on the input is read again to reach the place in it, or its end.
    pub restart: Restart,
    /// Bytes of it as it was sent, once its end was reached.
    pub total: Option<u64>,
}

/// A place in an input: a record boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Bytes of decompressed data before it.
    pub offset: u64,
    /// XXH3-128 of those bytes; 0 in a spooled input, whose bytes are checked by the spool.
    pub prefix: u128,
    /// Records before it, of any kind (skipped and other ones too).
    pub records: u64,
}

/// From where on nothing is sure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unverified {
    /// The input.
    pub input: String,
    /// Its first record that was applied unverified, from 1.
    pub from_record: u64,
}

impl Default for Progress {
    fn default() -> Self {
        Progress {
            inputs: Vec::new(),
            repeat: 1,
            pass: 1,
            input: 0,
            place: Place::start(),
            complete: false,
            completing: None,
            finished: false,
            unverified: None,
            stream: None,
        }
    }
}

impl Progress {
    /// Checks that a ranking of what was read may be published.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict): records that were read could not be verified.
    pub(crate) fn check_verified(&self, store: &Path) -> Result<()> {
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

    /// Checks that no ingest of inputs is unfinished.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict).
    pub(crate) fn check_finished(&self, store: &Path) -> Result<()> {
        if self.inputs.is_empty() || self.finished {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "{}: an ingest of its inputs has not finished; let its command finish first",
            store.display()
        )))
    }

    /// Returns whether only passes after the first remain, or remained: they need no stream.
    pub(crate) fn is_past_first(&self) -> bool {
        self.repeat > 1 && self.pass > 1
    }
}

impl Place {
    /// Before the first record: no bytes, and their hash.
    pub fn start() -> Place {
        Place {
            offset: 0,
            prefix: xxhash_rust::xxh3::xxh3_128(&[]),
            records: 0,
        }
    }
}
