//! `ingest --ack FILE`: tells the sender of a stream how much of it is durable.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cashrank::Error;
use cashrank::store::OnDurable;

use super::output::{Keep, Output, open_stream};

/// Writes each position, a decimal number and a line feed: to a regular file, which always holds one
/// whole; as lines to standard output (`-`) and to what is no regular file, such as a FIFO.
pub fn on_durable(path: &Path) -> anyhow::Result<OnDurable> {
    let path = path.to_owned();
    let output = Output::of(Some(&path))?;
    let stream: Mutex<Option<File>> = Mutex::new(None);
    Ok(OnDurable::new(move |position| {
        let line = format!("{position}\n");
        match &output {
            Output::Standard => to_stdout(&line).map_err(failed(&path)),
            Output::Stream(to) => to_stream(&stream, to, &line).map_err(failed(&path)),
            Output::File(_) => {
                let written =
                    output.write(|out| Ok((out.write_all(line.as_bytes())?, Keep::Durably)));
                written.map_err(|error| match error.downcast::<Error>() {
                    Ok(error) => error,
                    Err(error) => failed(&path)(io::Error::other(error)),
                })
            }
        }
    }))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path: PathBuf = path.into();
    move |source| Error::Io {
        path,
        action: "acknowledge the stream in",
        source,
    }
}

/// A reader that went away is a failure here: the sender would wait for ever.
fn to_stdout(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| io::Error::other(error.to_string()))
}

/// Opened once: a FIFO's reader sees its end when it is closed.
fn to_stream(stream: &Mutex<Option<File>>, path: &Path, line: &str) -> io::Result<()> {
    let mut stream = stream
        .lock()
        .map_err(|error| io::Error::other(error.to_string()))?;
    if stream.is_none() {
        *stream = Some(open_stream(path)?);
    }
    let file = stream
        .as_mut()
        .ok_or_else(|| io::Error::other("it is not open"))?;
    let written = file.write_all(line.as_bytes());
    written.map_err(|error| io::Error::other(error.to_string()))
}
