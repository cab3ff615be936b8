//! `ingest --ack FILE`: tells the sender of a stream how much of it is durable.

use std::ffi::OsString;
use std::fs::{File, rename};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cashrank::Error;
use cashrank::store::Told;

/// Writes each position, a decimal number and a line feed: to a file, always whole, or as lines to
/// standard output (`-`).
pub fn told(path: &Path) -> Told {
    let path = path.to_owned();
    Told::new(move |position| {
        let line = format!("{position}\n");
        let written = match path.as_os_str() == "-" {
            true => to_stdout(&line),
            false => replace(&path, &line),
        };
        written.map_err(|source| Error::Io {
            path: path.clone(),
            action: "acknowledge the stream in",
            source,
        })
    })
}

/// A reader that went away is a failure here: the sender would wait for ever.
fn to_stdout(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| io::Error::other(error.to_string()))
}

fn replace(path: &Path, line: &str) -> io::Result<()> {
    let mut aside = OsString::from(path);
    aside.push(".tmp");
    let aside = PathBuf::from(aside);
    let mut file = File::create(&aside)?;
    file.write_all(line.as_bytes())?;
    // Else a power cut may leave an empty file under the name.
    file.sync_data()?;
    rename(&aside, path)
}
