//! A pipe, a device or a socket that is named as an input is read as standard input is: what comes from there comes once,
//! and is known by its bytes if they come again.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::{Job, StandardInput};
use crate::source::InputName;
use crate::{Error, Result};

/// The job with its stream, if it has one, as standard input.
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

/// Opened when it is first read: a FIFO waits for its writer.
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
