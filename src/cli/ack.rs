//! `ingest --ack FILE`: tells the sender of a stream how much of it is durable.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, absolute};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use cashrank::Error;
use cashrank_base::threads::lock;
use cashrank_store::store::OnDurable;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::output::{Keep, OutputTarget};

/// Maximum length of a position with its line feed, in bytes.
const POSITION_MAX: u64 = 21;
/// Delay between attempts to open a FIFO that has no reader.
const PATIENCE: Duration = Duration::from_millis(50);

/// Returns a callback that writes each durable position as a decimal number and a line feed. A regular file always
/// holds exactly one position; standard output (`-`), a FIFO or another stream gets one line each. Setting `stop` ends
/// the wait for a FIFO's reader. Fails if the file holds anything but a position, or is inside `store`.
pub fn on_durable(path: &Path, store: &Path, stop: Arc<AtomicBool>) -> anyhow::Result<OnDurable> {
    let path = path.to_owned();
    let output = OutputTarget::of(Some(&path))?;
    if let OutputTarget::File(file, _) = &output {
        let name = path.display();
        anyhow::ensure!(
            !absolute(file)?.starts_with(absolute(store)?),
            "--ack {name}: is inside the store; name a file outside"
        );
        anyhow::ensure!(
            is_position(file),
            "--ack {name}: holds something else than a position, which would be lost; name another file"
        );
    }
    let opened: Mutex<Option<File>> = Mutex::default();
    Ok(OnDurable::new(move |position| {
        let line = format!("{position}\n");
        let write = || match &output {
            OutputTarget::File(..) => {
                output.write(|out| Ok((out.write_all(line.as_bytes())?, Keep::Durably)))
            }
            OutputTarget::Standard => write_line(&mut io::stdout(), &line),
            OutputTarget::Stream(to) => {
                // Opened once: a FIFO's reader would take closing it for the end.
                let mut opened = lock(&opened);
                let file = match &mut *opened {
                    Some(file) => file,
                    none => none.insert(open_patiently(to, &stop)?),
                };
                write_line(file, &line)
            }
        };
        write().map_err(|error| match error.downcast::<Error>() {
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

fn write_line(out: &mut dyn Write, line: &str) -> anyhow::Result<()> {
    let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    // A reader that went away is a failure, not a closed pipe: the sender would wait forever.
    Ok(written.map_err(|error| io::Error::other(error.to_string()))?)
}

/// Waits for a FIFO's reader until a stop is requested. A blocking open would not notice the request.
fn open_patiently(path: &Path, stop: &AtomicBool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // The descriptor may be that of a regular file, whose content must stay, so it is opened to append.
    options
        .append(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    loop {
        match options.open(path) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                if stop.load(Ordering::Relaxed) {
                    return Err(io::Error::other("nobody reads it"));
                }
                sleep(PATIENCE);
            }
            opened => {
                let file = opened?;
                let flags = fcntl_getfl(&file)?;
                fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
                return Ok(file);
            }
        }
    }
}
