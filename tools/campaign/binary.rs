//! The real program, run as users run it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Program with variables of its environment.
#[derive(Clone)]
pub struct Binary {
    path: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

/// Function that writes the standard input.
pub type Feed = Box<dyn FnOnce(&mut dyn Write) -> std::io::Result<()> + Send>;

/// Result of a run.
#[derive(Debug)]
pub struct Done {
    /// Exit code, or the signal that ended the run.
    pub code: Result<i32, i32>,
    /// Standard error.
    pub said: String,
    /// Time until the program continued its work, or ended.
    pub ready: Duration,
}

impl Binary {
    /// Returns the given program, or builds the one next to this program.
    pub fn find(given: Option<&Path>) -> Result<Binary, String> {
        if let Some(given) = given {
            return std::path::absolute(given)
                .map(Binary::at)
                .map_err(|error| error.to_string());
        }
        let beside = Binary::beside()?;
        let Some(cargo) = std::env::var_os("CARGO") else {
            return beside.existing();
        };
        // Without this an old one may be there: an example does not build the program.
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--bin", "cashrank", "--manifest-path"]);
        build.arg(manifest);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        match build.status() {
            Ok(status) if status.success() => beside.existing(),
            Ok(_) => Err("the program could not be built".into()),
            Err(error) => Err(format!("cargo: {error}")),
        }
    }

    /// Returns the program next to this one, which is in `examples/`.
    pub fn beside() -> Result<Binary, String> {
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let folder = here.parent().and_then(Path::parent);
        let folder = folder.ok_or("this program is in no folder")?;
        Ok(Binary::at(folder.join("cashrank")))
    }

    /// Returns the program at this path.
    pub fn at(path: PathBuf) -> Binary {
        Binary {
            path,
            variables: Vec::new(),
        }
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the program with these variables.
    pub fn with(&self, variables: Vec<(&'static str, OsString)>) -> Binary {
        Binary {
            path: self.path.clone(),
            variables,
        }
    }

    pub fn existing(self) -> Result<Binary, String> {
        if self.path.exists() {
            Ok(self)
        } else {
            Err(format!(
                "{}: not there; name it by --binary",
                self.path.display()
            ))
        }
    }

    /// Starts the program in `dir`, with `stdin` as its standard input.
    pub fn start(
        &self,
        dir: &Path,
        line: &str,
        stdin: Option<Arc<Vec<u8>>>,
    ) -> Result<Running, String> {
        let feed = stdin.map(|bytes| -> Feed { Box::new(move |pipe| pipe.write_all(&bytes)) });
        self.feed(dir, line, feed)
    }

    /// Starts the program in `dir`, with standard input written by `feed`.
    pub fn feed(&self, dir: &Path, line: &str, feed: Option<Feed>) -> Result<Running, String> {
        let mut child = Command::new(&self.path)
            .args(line.split_whitespace())
            .current_dir(dir)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(feed.as_ref().map_or_else(Stdio::null, |_| Stdio::piped()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        let started = Instant::now();
        let feed = child.stdin.take().zip(feed);
        // The thread ends with the process: then the pipe is closed.
        let feeder = feed.map(|(mut pipe, feed)| thread::spawn(move || drop(feed(&mut pipe))));
        let told = child.stderr.take().ok_or("no standard error")?;
        let listener = thread::spawn(move || listen(BufReader::new(told), started));
        Ok(Running {
            child,
            started,
            feeder,
            listener: Some(listener),
        })
    }

    /// Runs the program to its end.
    pub fn run(&self, dir: &Path, line: &str, stdin: Option<Arc<Vec<u8>>>) -> Result<Done, String> {
        self.start(dir, line, stdin)?.end()
    }

    /// Runs the program to its end, which must be a success.
    pub fn succeed(
        &self,
        dir: &Path,
        line: &str,
        stdin: Option<Arc<Vec<u8>>>,
    ) -> Result<Done, String> {
        let done = self.run(dir, line, stdin)?;
        match done.code {
            Ok(0) => Ok(done),
            _ => Err(format!("`{line}` ended with {done:?}")),
        }
    }
}

/// Reads the messages. Returns them, and the time until work continued.
fn listen(told: impl BufRead, started: Instant) -> (String, Option<Duration>) {
    let (mut said, mut ready) = (String::new(), None);
    for line in told.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // Inputs read before are checked first; any other message shows that work has begun.
        if ready.is_none() && !line.contains("checking that") {
            ready = Some(started.elapsed());
        }
        said.push_str(&line);
        said.push('\n');
    }
    (said, ready)
}

/// Running program; killed on drop.
pub struct Running {
    child: Child,
    started: Instant,
    feeder: Option<JoinHandle<()>>,
    listener: Option<JoinHandle<(String, Option<Duration>)>>,
}

impl Running {
    pub fn kill(mut self) -> Result<Done, String> {
        self.child.kill().map_err(|error| error.to_string())?;
        self.end()
    }

    pub fn end(mut self) -> Result<Done, String> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let lasted = self.started.elapsed();
        let heard = self.listener.take().and_then(|thread| thread.join().ok());
        let (said, ready) = heard.ok_or("a listener failed")?;
        let code = status.code().ok_or(status.signal().unwrap_or(0));
        if said.contains("panicked") {
            return Err(format!("it panicked: {said}"));
        }
        Ok(Done {
            code,
            said,
            ready: ready.unwrap_or(lasted),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(feeder) = self.feeder.take() {
            let _ = feeder.join();
        }
    }
}

/// Reads the bytes of a store's current snapshot; `None` if it has none.
pub fn snapshot(store: &Path) -> Result<Option<Vec<u8>>, String> {
    let folder = store.join("snapshots");
    let read = |path: PathBuf| {
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    if !folder.join("latest.json").exists() {
        return Ok(None);
    }
    let latest: serde_json::Value = serde_json::from_slice(&read(folder.join("latest.json"))?)
        .map_err(|error| format!("latest.json: {error}"))?;
    let name = latest["snapshot"]
        .as_str()
        .ok_or("latest.json names none")?;
    read(folder.join(name)).map(Some)
}
