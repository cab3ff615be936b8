//! The main job, timed as a whole: crawl records in zstd to a published snapshot.
//!
//! ```text
//! cargo bench --bench end_to_end -- --pages 1000000 --links 20000000 --runs 3
//! ```
//! Each run is paired with `zstd -dc FILE >/dev/null`, because machines are noisy: read the ratio.
//! Counts stand beside the times, so that a wrong answer shows. The input is made once by the
//! generator (`tools/generate`) and kept in the target directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Options {
    pages: u64,
    links: u64,
    runs: usize,
}

struct Run {
    zstd_s: f64,
    ingest_s: f64,
    peak_mib: f64,
    summary: serde_json::Value,
}

fn main() {
    let Some(options) = options(std::env::args().skip(1).collect()) else {
        return;
    };
    let input = input(&options);
    let mut runs: Vec<Run> = (0..options.runs).map(|_| run(&input)).collect();
    println!("input: {} ({} bytes)", input.display(), size(&input));
    println!(
        "{:>8} {:>9} {:>6} {:>12} {:>9}  records, links, pages, G, bound",
        "zstd s", "ingest s", "ratio", "links/s", "peak MiB"
    );
    for run in &runs {
        print(run);
    }
    runs.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    println!("median ratio:");
    print(&runs[runs.len() / 2]);
}

/// `None`: not asked to run (`cargo test --benches` passes no `--bench`).
fn options(arguments: Vec<String>) -> Option<Options> {
    if !arguments.iter().any(|argument| argument == "--bench") {
        return None;
    }
    let value = |name: &str, default: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.map_or(default, |at| {
            arguments[at + 1].parse().expect("a whole number")
        })
    };
    Some(Options {
        pages: value("--pages", 1_000_000),
        links: value("--links", 20_000_000),
        runs: value("--runs", 3).max(1) as usize,
    })
}

fn input(options: &Options) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("crawl-{}-{}.jsonl.zst", options.pages, options.links);
    let path = dir.join(name);
    if path.exists() {
        return path;
    }
    let pages = options.pages.to_string();
    let links = options.links.to_string();
    let mut generate = Command::new(env!("CARGO"))
        .args(["run", "--release", "--quiet", "--example", "generate", "--"])
        .args(["--pages", &pages, "--links", &links, "--seed", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("cargo starts");
    let aside = path.with_extension("tmp");
    let out = File::create(&aside).expect("the target directory can be written");
    let from = generate.stdout.take().expect("is piped");
    zstd::stream::copy_encode(from, out, 3).expect("compresses");
    assert!(generate.wait().expect("ends").success());
    std::fs::rename(&aside, &path).expect("renames");
    path
}

fn run(input: &Path) -> Run {
    let started = Instant::now();
    let status = Command::new("zstd")
        .arg("-dc")
        .arg(input)
        .stdout(Stdio::null())
        .status()
        .expect("zstd is installed");
    assert!(status.success());
    let zstd_s = started.elapsed().as_secs_f64();
    let store = Path::new(env!("CARGO_TARGET_TMPDIR")).join("end_to_end.store");
    let _ = std::fs::remove_dir_all(&store);
    let started = Instant::now();
    let child = Command::new(env!("CARGO_BIN_EXE_cashrank"))
        .args(["ingest", "--json", "--store"])
        .arg(&store)
        .arg(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let (peak_mib, output) = watch(child);
    let ingest_s = started.elapsed().as_secs_f64();
    let _ = std::fs::remove_dir_all(&store);
    Run {
        zstd_s,
        ingest_s,
        peak_mib,
        summary: serde_json::from_slice(&output).expect("prints a summary"),
    }
}

/// Waits for the end; the most resident memory seen, and the output.
fn watch(mut child: Child) -> (f64, Vec<u8>) {
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    while child.try_wait().expect("can be waited for").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let found = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak_kib = found.unwrap_or(peak_kib).max(peak_kib);
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success());
    (peak_kib as f64 / 1024.0, output.stdout)
}

fn ratio(run: &Run) -> f64 {
    run.ingest_s / run.zstd_s
}

fn print(run: &Run) {
    let links = run.summary["links"].as_f64().expect("links are counted");
    println!(
        "{:>8.2} {:>9.2} {:>6.2} {:>12.0} {:>9.0}  {}, {}, {}, {:.4}, {}",
        run.zstd_s,
        run.ingest_s,
        ratio(run),
        links / run.ingest_s,
        run.peak_mib,
        run.summary["records"],
        run.summary["links"],
        run.summary["pages"],
        run.summary["turnovers"].as_f64().unwrap_or_default(),
        run.summary["bound_l1"],
    );
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}
