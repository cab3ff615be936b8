//! Plan of what to read, and the check of inputs that it skips.

use super::Job;
use crate::source::InputName;
use crate::store::{Place, Progress};
use crate::{Error, Result};

/// Plan of what to read.
pub(super) struct Plan {
    pub progress: Progress,
    /// Inputs of a pass; finished ones are not opened again.
    pub inputs: Vec<InputName>,
    /// True if all was read before.
    pub finished: bool,
    /// Error to return unless standard input is the stream that was read before, or empty; nothing else is read then.
    pub unless_read_before: Option<String>,
}

/// Checks that a file still holds exactly what was read from it.
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
