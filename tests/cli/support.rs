//! Helpers that the tests share: running the binary, making crawls, inspecting a store.

use std::collections::HashMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub use crate::crawl::{Dice, crawl};
use crate::folder::in_memory;
pub use crate::pack::{gzip, in_pieces, zstandard};

/// Time after which a command is killed.
const LONGEST: Duration = Duration::from_secs(300);

/// Result of a run of the binary.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Done {
    /// Checks the exit code, and that the binary did not panic.
    #[track_caller]
    pub fn exits(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.err.contains("panicked"), "{self:#?}");
        self
    }

    /// Checks that standard error contains all of these words.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Done {
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {self:#?}");
        }
        self
    }

    /// Parses standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Folder for a test's files and stores.
pub struct Lab(TempDir);

impl Lab {
    /// Creates a folder in memory, if possible.
    pub fn new() -> Lab {
        Lab(in_memory())
    }

    /// Creates a folder on disk: for tests of runs that are interrupted at a moment, of memory, and of disk behaviour.
    pub fn on_disk() -> Lab {
        Lab(TempDir::new().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Copies a file or a folder; returns the name of the copy.
    pub fn copy(&self, from: &str, to: &str) -> String {
        let mut copy = Command::new("cp");
        copy.arg("-r").args([self.path(from), self.path(to)]);
        assert!(copy.status().unwrap().success());
        to.to_owned()
    }

    /// Lists the contents of a folder.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries.map(|e| name(e).into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs `cashrank` in this folder; words of `line` are split at spaces.
    pub fn run(&self, line: &str) -> Done {
        self.feed(line, b"")
    }

    /// Runs `cashrank` with this standard input.
    pub fn feed(&self, line: &str, stdin: &[u8]) -> Done {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cashrank"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, id) = (child.stdin.take().unwrap(), child.id().to_string());
        let (ended, end) = mpsc::channel::<()>();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                if end.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                    Command::new("kill").args(["-9", &id]).status().unwrap();
                }
            });
            // A command may end before it has read its input.
            scope.spawn(move || match input.write_all(stdin) {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => panic!("{error}"),
                _ => {}
            });
            let output = child.wait_with_output().unwrap();
            drop(ended);
            output
        });
        Done {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs `cashrank` and measures its memory.
    pub fn measure(&self, line: &str, stdin: Stdio) -> Measured {
        self.start_with(line, stdin, Stdio::piped()).measure()
    }

    /// Runs `cashrank` and measures its memory; its standard output is a file, so it may be long.
    pub fn measure_into(&self, line: &str, stdout: fs::File) -> Measured {
        self.start_with(line, Stdio::null(), stdout.into())
            .measure()
    }

    /// Runs `cashrank` with a file as standard output.
    pub fn run_into(&self, line: &str, stdout: fs::File) -> Done {
        let output = Command::new(env!("CARGO_BIN_EXE_cashrank"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .stdout(stdout)
            .output()
            .unwrap();
        Done {
            code: output.status.code(),
            out: String::new(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts `cashrank`, with pipes.
    pub fn start(&self, line: &str) -> Running {
        self.start_with(line, Stdio::piped(), Stdio::piped())
    }

    fn start_with(&self, line: &str, stdin: Stdio, stdout: Stdio) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cashrank"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running {
            stdin: child.stdin.take(),
            child,
        }
    }

    /// Reads the bytes of a store's current snapshot.
    #[track_caller]
    pub fn snapshot(&self, store: &str) -> Vec<u8> {
        let folder = self.path(store).join("snapshots");
        let latest = fs::read(folder.join("latest.json")).unwrap();
        let latest: Value = serde_json::from_slice(&latest).unwrap();
        fs::read(folder.join(latest["snapshot"].as_str().unwrap())).unwrap()
    }

    /// Runs a command line under a limit set by `ulimit`.
    pub fn limited(&self, limit: &str, line: &str) -> std::process::Output {
        let script = format!("ulimit {limit} && exec \"$0\" {line}");
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", &script, env!("CARGO_BIN_EXE_cashrank")]);
        shell.current_dir(self.path("")).output().unwrap()
    }

    /// Exports a store.
    #[track_caller]
    pub fn export(&self, store: &str) -> String {
        self.run(&format!("export --to tsv --store {store}"))
            .exits(0)
            .out
    }

    /// Computes PageRank of the pages and links that a store exports, by power iteration.
    #[track_caller]
    pub fn exact(&self, store: &str, damping: f64) -> HashMap<String, f64> {
        let lines = self.run(&format!("export --links --to tsv --store {store}"));
        let lines = lines.exits(0).out;
        let pages = self.export(store);
        let pages = pages
            .lines()
            .skip(1)
            .filter_map(|line| line.split('\t').next());
        let pages: Vec<&str> = pages.collect();
        let number: HashMap<&str, usize> = pages.iter().copied().zip(0..).collect();
        let mut links = vec![Vec::new(); pages.len()];
        for line in lines.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let weight = fields.get(2).map_or(1.0, |weight| weight.parse().unwrap());
            links[number[fields[0]]].push((number[fields[1]], weight));
        }
        let n = pages.len() as f64;
        let mut rank = vec![1.0 / n; pages.len()];
        for _ in 0..600 {
            let linked =
                |(of, rank): (&Vec<(usize, f64)>, &f64)| if of.is_empty() { 0.0 } else { *rank };
            let passed: f64 = links.iter().zip(&rank).map(linked).sum();
            let mut next = vec![(1.0 - damping * passed) / n; pages.len()];
            for (links, rank) in links.iter().zip(&rank) {
                let all: f64 = links.iter().map(|link| link.1).sum();
                for &(to, weight) in links {
                    next[to] += damping * rank * weight / all;
                }
            }
            rank = next;
        }
        pages.into_iter().map(str::to_owned).zip(rank).collect()
    }

    /// Returns `stat --json` of a store.
    #[track_caller]
    pub fn stat(&self, store: &str) -> Value {
        self.run(&format!("stat --json --store {store}"))
            .exits(0)
            .json()
    }

    /// Waits until a store has published its snapshot after `records`.
    pub fn await_snapshot(&self, store: &str, records: u64) {
        let name = format!("snapshots/{records:012}.snapshot");
        let path = self.path(store).join(name);
        await_that(&format!("{} appears", path.display()), || path.exists());
    }
}

/// Result of a run with its peak memory.
pub struct Measured {
    pub done: Done,
    pub peak_kib: u64,
    pub lasted: Duration,
}

/// Running `cashrank`; killed on drop.
pub struct Running {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
}

impl Running {
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Waits until the process handles SIGINT.
    pub fn await_handler(&self) {
        let path = format!("/proc/{}/status", self.child.id());
        await_that("it hears signals", || {
            let status = fs::read_to_string(&path).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            caught.is_some_and(|mask| mask & 2 != 0)
        });
    }

    /// Kills the process; returns false if it had ended before.
    pub fn kill(mut self) -> bool {
        self.child.kill().unwrap();
        self.child.wait().unwrap().code().is_none()
    }

    /// Waits for the end and watches the memory. The output must fit the pipes.
    pub fn measure(mut self) -> Measured {
        let started = Instant::now();
        let status = format!("/proc/{}/status", self.child.id());
        let mut peak_kib = 0;
        while self.child.try_wait().unwrap().is_none() {
            // The kernel keeps the peak, so only the last moments can be missed. Before the program is executed it
            // shows the memory of the tests: the last value counts.
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
            peak_kib = kib.unwrap_or(peak_kib);
            assert!(
                started.elapsed() < Duration::from_secs(300),
                "it never ends"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        let lasted = started.elapsed();
        Measured {
            done: self.join(),
            peak_kib,
            lasted,
        }
    }

    /// Closes the input and waits for the end.
    pub fn end(mut self) -> Done {
        self.stdin.take();
        self.join()
    }

    /// Waits for the end with the input open. The output must fit the pipes.
    pub fn join(&mut self) -> Done {
        await_that("the process ends", || {
            self.child.try_wait().unwrap().is_some()
        });
        let text = |pipe: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            if let Some(pipe) = pipe {
                pipe.read_to_string(&mut text).unwrap();
            }
            text
        };
        Done {
            code: self.child.wait().unwrap().code(),
            out: text(self.child.stdout.as_mut().map(|p| p as _)),
            err: text(self.child.stderr.as_mut().map(|p| p as _)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until `true`; fails after two minutes, however busy the machine.
pub fn await_that(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "never: {what}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns lines of the sample crawl in the repository.
pub fn sample(records: usize) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/crawl.jsonl.zst");
    let bytes = zstd::decode_all(fs::File::open(path).unwrap()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<String> = text
        .split_inclusive('\n')
        .take(records)
        .map(String::from)
        .collect();
    assert_eq!(lines.len(), records);
    lines
}

/// Returns the path of a file in the data folder next to the project, if it is there.
pub fn data(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not here", path.display());
    None
}
