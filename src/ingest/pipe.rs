//! Pipes, devices and sockets named as inputs are read like standard input: their data come only once, and are
//! recognised by their bytes if they come again.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::{Job, StandardInput};
use crate::source::InputName;
use crate::{Error, Result};

/// Returns the job with its stream, if it has one, as standard input.
///
/// # Errors
/// [`Error::Usage`] if there are several.
pub(super) fn with_stream(job: &Job) -> Result<Cow<'_, Job>> {
    let mut streams = job.inputs.iter().enumerate().filter(|(_, i)| i.is_stream());
    let Some((at, first)) = streams.next() else {
        return Ok(Cow::Borrowed(job));
    };
    if let Some((_, second)) = streams.next() {
        return Err(Error::Usage(format!(
            "{first} and {second} are streams, and a run reads one: join them (`cat A B | cashrank ingest -`), or run \
            the command for each"
        )));
    }
    let InputName::File(path) = first.clone() else {
        return Ok(Cow::Borrowed(job));
    };
    let mut job = job.clone();
    job.inputs[at] = InputName::Stdin;
    job.stdin = StandardInput::new(move || Box::new(Late::Closed(path.clone())));
    Ok(Cow::Owned(job))
}

/// File that is opened at the first read: opening a FIFO waits for its writer.
enum Late {
    Closed(PathBuf),
    Open(File),
}

impl Read for Late {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Late::Open(file) => return file.read(out),
                Late::Closed(path) => *self = Late::Open(File::open(path)?),
            }
        }
    }
}
