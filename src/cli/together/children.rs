//! Processes that are started on this machine to work with this one.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use cashrank::Error;
use cashrank::store::temporary;
use cashrank_cluster::Secret;

use crate::cli::common::Exit;

/// How long to wait for processes that have nothing more to do.
const ENDING: Duration = Duration::from_secs(10);

/// Processes, and the folder with what they find each other by, which goes with this.
pub struct Children {
    folder: PathBuf,
    children: Mutex<Vec<Child>>,
}

impl Children {
    /// Starts all processes of a command but the first, each with its own options.
    pub fn start(
        command: &str,
        store: &Path,
        options: Vec<Vec<String>>,
    ) -> anyhow::Result<Children> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| anyhow::anyhow!("no random numbers are to be had: {error}"))?;
        let name = format!("cashrank-{:016x}", u64::from_le_bytes(random));
        // Addresses of sockets are absolute.
        let folder = std::path::absolute(std::env::temp_dir().join(name))?;
        if SocketAddr::from_pathname(folder.join(options.len().to_string())).is_err() {
            return Err(Error::Usage(format!(
                "TMPDIR: {}: its path is too long for sockets, by which processes find each other; name a shorter one",
                std::env::temp_dir().display()
            ))
            .into());
        }
        let failed = |action| {
            let path = folder.clone();
            move |source| Error::Io {
                path,
                action,
                source,
            }
        };
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(failed("create"))
            .map_err(temporary)?;
        let begun = Children {
            children: Mutex::default(),
            folder: folder.clone(),
        };
        let sockets = (0..=options.len())
            .map(|process| format!("{}\n", folder.join(process.to_string()).display()));
        let (hosts, secret) = begun.files();
        fs::write(&hosts, sockets.collect::<String>()).map_err(failed("write into"))?;
        Secret::random()
            .and_then(|random| random.write(&secret))
            .map_err(|error| failed("write into")(io::Error::other(error.to_string())))?;
        let program = std::env::current_exe().map_err(failed("start a process with"))?;
        for (options, process) in options.iter().zip(1..) {
            let child = Command::new(&program)
                .arg(command)
                .arg(with("--store=", store))
                .arg(with("--hosts=", &hosts))
                .arg(with("--secret=", &secret))
                .arg(format!("--process={process}"))
                .arg(format!("--parent={}", std::process::id()))
                .args(options)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .map_err(failed("start a process with"))?;
            begun.all().push(child);
        }
        Ok(begun)
    }

    /// The files with addresses and the secret.
    pub fn files(&self) -> (PathBuf, PathBuf) {
        (self.folder.join("hosts"), self.folder.join("secret"))
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Child>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which process has ended, if one has.
    pub fn ended(&self) -> Option<String> {
        let mut all = self.all();
        let mut numbered = all.iter_mut().zip(1..);
        numbered.find_map(|(child, process)| {
            let status = child.try_wait().ok().flatten()?;
            Some(format!("process {process} ended ({status})"))
        })
    }

    /// Waits for their end. That they were stopped was said.
    pub fn end(self) -> io::Result<()> {
        let end = Instant::now() + ENDING;
        for child in self.all().iter_mut() {
            let status = loop {
                match child.try_wait()? {
                    Some(status) => break status,
                    None if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
                    None => return Err(io::Error::other("it does not end")),
                }
            };
            let is_stopped = status.code() == Some(Exit::Stopped as i32);
            if !status.success() && !is_stopped {
                return Err(io::Error::other(format!("it ended with {status}")));
            }
        }
        Ok(())
    }
}

/// An option with a path, which may begin as an option does.
fn with(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in self.all().iter_mut() {
            // Most have ended: they hear of it when this one ends.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
