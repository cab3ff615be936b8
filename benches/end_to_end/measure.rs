//! Runs a program and measures its resources.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Resources and output of a finished process.
pub struct Measured {
    pub wall_s: f64,
    /// Processor time of all threads.
    pub cpu_s: f64,
    /// Peak of resident memory.
    pub peak_bytes: u64,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub success: bool,
}

impl Measured {
    /// Parses the output as JSON.
    pub fn json(&self) -> serde_json::Value {
        assert!(self.success, "failed: {}", self.stderr);
        serde_json::from_slice(&self.stdout).expect("a program asked for JSON prints it")
    }

    pub fn peak_mib(&self) -> f64 {
        self.peak_bytes as f64 / f64::from(1 << 20)
    }
}

/// State of a running process.
#[derive(Clone, Copy, Default)]
pub struct Sample {
    pub wall_s: f64,
    pub cpu_s: f64,
    pub peak_bytes: u64,
}

/// Runs a program to its end.
pub fn measure(command: &mut Command) -> Measured {
    watch(command, |_| {})
}

/// Runs a program like [`measure`], and calls `each` with its state some fifty times per second.
pub fn watch(command: &mut Command, mut each: impl FnMut(&Sample)) -> Measured {
    let started = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let stdout = drain(child.stdout.take().expect("is piped"));
    let stderr = drain(child.stderr.take().expect("is piped"));
    let mut last = Sample::default();
    let status = loop {
        sample(&child, &mut last);
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        last.wall_s = started.elapsed().as_secs_f64();
        each(&last);
        // Short runs are sampled more often.
        thread::sleep(Duration::from_secs_f64(
            (last.wall_s / 50.0).clamp(0.001, 0.02),
        ));
    };
    let wall_s = started.elapsed().as_secs_f64();
    let text = |handle: thread::JoinHandle<Vec<u8>>| handle.join().expect("does not panic");
    Measured {
        wall_s,
        cpu_s: last.cpu_s,
        peak_bytes: last.peak_bytes,
        stdout: text(stdout),
        stderr: String::from_utf8_lossy(&text(stderr)).into_owned(),
        success: status.success(),
    }
}

/// Reads all output: a program whose pipe is full would wait forever.
fn drain(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

/// Samples a process; values that can no longer be read stay unchanged.
fn sample(child: &Child, last: &mut Sample) {
    let folder = format!("/proc/{}", child.id());
    let status = std::fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    last.peak_bytes = last.peak_bytes.max(kib.unwrap_or(0) * 1024);
    let stat = std::fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    // After the name, which may contain anything: user and system time are the fields 14 and 15, in ticks of 1/100 s on
    // Linux.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = |nth: usize| fields.split_whitespace().nth(nth)?.parse::<u64>().ok();
    if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
        last.cpu_s = (user + system) as f64 / 100.0;
    }
}
