//! A plan of what is to be read, and the check of what it leaves out.

use super::Job;
use crate::source::InputName;
use crate::store::{Place, Progress};
use crate::{Error, Result};

/// A plan of what is to be read.
pub(super) struct Plan {
    pub progress: Progress,
    /// One for each input of a pass; those before `first` are done and not opened again.
    pub inputs: Vec<InputName>,
    /// All was read before.
    pub finished: bool,
    /// Nothing more is read, and standard input must be what was read, or be empty; else this is to be said.
    pub unless_read_before: Option<String>,
}

/// Checks that a file still holds what was read from it, and nothing more.
pub(super) fn check_read(job: &Job, input: &InputName, end: Place) -> Result<()> {
    let mut source = job.open(input)?;
    source.skip_to(end.offset, end.prefix)?;
    if source.head()?.is_empty() {
        return Ok(());
    }
    Err(Error::InputChanged(format!(
        "{input}: has grown since it was read to its end; put what is new into a file of its own, \
         or pipe it: `... | cashrank ingest -`"
    )))
}
