//! Limits on threads: a command that is refused a thread says how many it needs, and leaves the store at its last
//! checkpoint.

use std::process::{Command, Stdio};

use crate::serve::{address, ask, get};
use crate::support::{Done, Lab, Running, crawl};

const BINARY: &str = env!("CARGO_BIN_EXE_cashrank");

fn ran(lab: &Lab, command: &mut Command) -> Done {
    let output = command.current_dir(lab.path("")).output().unwrap();
    Done {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs a command where no thread can be started, since none has room for its stack.
fn alone(lab: &Lab, line: &str) -> Done {
    let mut command = Command::new(BINARY);
    command.args(line.split_whitespace());
    ran(lab, command.env("RUST_MIN_STACK", (1u64 << 60).to_string()))
}

/// More threads than any command here starts.
const MANY: usize = 100;

/// Returns a command that runs as one of several users by number, through `prlimit`; only root may do so.
fn of_user(user: u32) -> Command {
    let mut command = Command::new("setpriv");
    command
        .arg(format!(
            "--reuid={}",
            1_000_000 + std::process::id() + (user << 24)
        ))
        .args(["--clear-groups", "--inh-caps=+dac_override"])
        .args(["--ambient-caps=+dac_override", "prlimit"]);
    command
}

/// Returns the command with at most `threads` threads, a limit that the user may raise; root has no such limit.
fn limited(user: u32, threads: usize, line: &str) -> Option<Command> {
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no setpriv");
        return None;
    }
    let mut command = of_user(user);
    command
        .arg(format!("--nproc={threads}:{MANY}"))
        .arg(BINARY)
        .args(line.split_whitespace());
    Some(command)
}

/// Runs a command with at most `threads` threads. `None` without root rights.
fn with_threads(lab: &Lab, threads: usize, line: &str) -> Option<Done> {
    let done = ran(lab, &mut limited(0, threads, line)?);
    if done.err.contains("setpriv:") {
        eprintln!("SKIPPED: another user takes root: {}", done.err);
        return None;
    }
    Some(done)
}

/// Parts of the message about a refused thread.
const TAKES: [&str; 4] = [
    "thread: cannot start",
    "a command takes up to",
    "ulimit -u",
    "TasksMax=",
];

#[test]
fn a_command_that_is_refused_a_thread_says_how_many_it_takes() {
    let lab = Lab::new();
    lab.file("a.jsonl", crawl(92, 300).concat());
    lab.file("b.jsonl", crawl(91, 300).concat());
    lab.run("ingest a.jsonl --store s").exits(0);
    let before = lab.snapshot("s");
    for line in [
        "ingest a.jsonl b.jsonl --store s",
        "settle --until 1e-9 --store s",
        "inspect a.jsonl",
        "convert a.jsonl -o a.jsonl.zst",
    ] {
        alone(&lab, line).exits(7).says(&TAKES);
    }
    assert!(lab.snapshot("s") == before);
    lab.run("verify --deep --store s").exits(0);
    lab.run("ingest a.jsonl b.jsonl --store s").exits(0);
}

/// Regression: the message said that the store was created with `--keep-links none`.
#[test]
fn before_the_first_checkpoint_there_is_nothing_to_settle() {
    let lab = Lab::new();
    lab.file("a.jsonl", crawl(94, 300).concat());
    let ingest = "ingest a.jsonl --store s";
    alone(&lab, ingest).exits(7).says(&TAKES);
    let words = ["no ingest has reached a checkpoint", "run the same ingest"];
    let settled = lab.run("settle --store s").exits(2).says(&words);
    assert!(!settled.err.contains("--keep-links"));
    lab.run(ingest).exits(0);
    lab.run("settle --store s").exits(0);
}

/// If threads run out after checkpoints, the same command continues.
#[test]
fn an_ingest_that_is_refused_threads_ends_or_comes_to_the_same_bytes() {
    let lab = Lab::new();
    lab.file("a.jsonl", crawl(93, 3_000).concat());
    let line =
        |name: &str| format!("ingest a.jsonl --store {name} --threads 4 --snapshot-every 500");
    lab.run(&line("free")).exits(0);
    let enough = std::thread::available_parallelism().unwrap().get() + 12 + 4;
    for threads in [3, 7, 9, enough] {
        let Some(done) = with_threads(&lab, threads, &line("s")) else {
            return;
        };
        match done.code {
            Some(7) if threads < enough => drop(done.says(&TAKES)),
            _ => drop(done.exits(0)),
        }
    }
    assert!(lab.snapshot("s") == lab.snapshot("free"));
    lab.run("verify --deep --store s").exits(0);
}

/// Regression: each request was given to a thread that tokio was to start. If none could be started, tokio panicked and
/// the request kept its place, so that soon all were refused.
#[test]
fn a_service_starts_with_all_its_threads_or_not_at_all() {
    let lab = Lab::new();
    lab.file("a.jsonl", crawl(95, 600).concat());
    lab.run("ingest a.jsonl --store s").exits(0);
    let serve = "serve --store s --listen 127.0.0.1:0";
    let words = ["takes 5 threads", "ulimit -u", "TasksMax="];
    alone(&lab, serve).exits(7).says(&words);
    for threads in [2, 3, 4, 5] {
        let Some(done) = with_threads(&lab, threads, serve) else {
            return;
        };
        done.exits(7).says(&words);
    }

    // A list takes two more while it is made.
    let mut command = limited(1, 8, serve).unwrap();
    let command = command.current_dir(lab.path("")).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut serving = Running { child, stdin: None };
    let address = address(&mut serving);
    let top = lab.run("top -n 50 --json --store s").exits(0).json();
    // More requests than may wait, so that none keeps its place.
    for _ in 0..40 {
        assert_eq!(ask(address, "/top?n=50"), top);
        ask(address, "/failures?n=5");
        assert_eq!(get(address, "/next?n=5").0, 200);
    }
    serving.signal("TERM");
    assert!(serving.child.wait().unwrap().success());
}
