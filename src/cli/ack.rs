//! `ingest --ack FILE`: tells the sender of a stream how much of it is durable.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, absolute};

use cashrank::Error;
use cashrank_store::store::OnDurable;

use super::output::{Keep, OutputTarget};

/// Maximum length of a position with its line feed, in bytes.
const POSITION_MAX: u64 = 21;

/// Returns a callback that writes each durable position as a decimal number and a line feed. A file always holds exactly
/// one position; standard output (`-`) gets one line each. Fails if the file holds anything but a position, or is inside
/// `store`.
pub fn on_durable(path: &Path, store: &Path) -> anyhow::Result<OnDurable> {
    let path = path.to_owned();
    let output = OutputTarget::of(Some(&path))?;
    let name = path.display();
    match &output {
        OutputTarget::Standard => {}
        OutputTarget::Stream(_) => {
            anyhow::bail!("--ack {name}: not a regular file; name one, or - for standard output")
        }
        OutputTarget::File(file, _) => {
            anyhow::ensure!(
                !absolute(file)?.starts_with(absolute(store)?),
                "--ack {name}: is inside the store; name a file outside"
            );
            anyhow::ensure!(
                is_position(file),
                "--ack {name}: holds something else than a position, which would be lost; name another file"
            );
        }
    }
    Ok(OnDurable::new(move |position| {
        let line = format!("{position}\n");
        let written = if output == OutputTarget::Standard {
            let mut out = io::stdout();
            let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            // A reader that went away is a failure, not a closed pipe: the sender would wait forever.
            written.map_err(|error| io::Error::other(error.to_string()).into())
        } else {
            output.write(|out| Ok((out.write_all(line.as_bytes())?, Keep::Durably)))
        };
        written.map_err(|error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::Io {
                path: path.clone(),
                action: "acknowledge the stream in",
                source: error.downcast().unwrap_or_else(io::Error::other),
            },
        })
    }))
}

/// Returns whether there is no file, or it is empty or holds a position.
fn is_position(path: &Path) -> bool {
    let mut text = Vec::new();
    match File::open(path) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(file) => {
            let read = file.take(POSITION_MAX + 1).read_to_end(&mut text);
            let digits = text.strip_suffix(b"\n").unwrap_or(&text);
            read.is_ok_and(|read| read as u64 <= POSITION_MAX)
                && digits.iter().all(u8::is_ascii_digit)
        }
    }
}
