//! Part `scale`: one pass over crawls of several sizes, each from the generator's pipe on the same processors: time,
//! memory, disk by part, checkpoints, restart, and the first pages.
//!
//! Each checkpoint is compared with a plain write of as many bytes. For each size there is a line `point {...}` of
//! JSON, which `tools/plot` draws. Progress is printed to standard error once a minute. "Alone" is the generator
//! writing to /dev/null: the maximum that the pipe could deliver.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Instant;

use crate::bench::{Bench, standing};
use crate::measure::{Measured, Sample, measure, watch};

/// Size of a crawl.
#[derive(Clone)]
pub struct Size {
    pages: u64,
    links: u64,
    crawled: u64,
}

impl FromStr for Size {
    type Err = String;

    /// Parses `PAGES[:LINKS[:CRAWLED]]`.
    fn from_str(text: &str) -> Result<Size, String> {
        let numbers: Vec<u64> = text.split(':').map(number).collect::<Result<_, _>>()?;
        let size = |pages: u64, links, crawled| Size {
            pages,
            links,
            crawled,
        };
        match numbers[..] {
            [pages] => Ok(size(pages, 20 * pages, pages)),
            [pages, links] => Ok(size(pages, links, pages)),
            [pages, links, crawled] => Ok(size(pages, links, crawled)),
            _ => Err(format!(
                "{text:?}: PAGES, PAGES:LINKS or PAGES:LINKS:CRAWLED"
            )),
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        None => (text, 1),
        Some(digits) => match text.as_bytes()[text.len() - 1] {
            b'K' => (digits, 1_000),
            b'M' => (digits, 1_000_000),
            _ => (digits, 1_000_000_000),
        },
    };
    let number: Option<u64> = digits.parse().ok().and_then(|n: u64| n.checked_mul(unit));
    number.ok_or_else(|| format!("{text:?}: a number like 400K, 10M or 1G"))
}

pub fn run(bench: &mut Bench) {
    bench.report.title("scale");
    let text = format!(
        "options   cashrank ingest - --format records {}",
        bench.options.ingest
    );
    bench.report.line(&text);
    let mut first = None;
    for size in bench.options.sizes.clone() {
        let rate = one(bench, &size);
        if !bench.options.keep {
            bench.remove_store();
        }
        let Some(rate) = rate else { continue };
        let share = rate / *first.get_or_insert(rate);
        let text = format!("share     {share:.2} of the first size's links/s");
        bench.report.line(&text);
        let bytes = size.pages * CASH_BYTES_TWICE / 2;
        let seconds = plain_write(bench, bytes);
        bench.report.line(&format!(
            "write     {seconds:.2} s to write and sync {bytes} bytes, as one checkpoint of all cash does"
        ));
    }
}

/// Twice the bytes per page of the cash file: a cell of eight and an age of half a byte.
const CASH_BYTES_TWICE: u64 = 17;

/// Measures a sequential write of `bytes` bytes with a sync; removes them afterwards.
fn plain_write(bench: &Bench, bytes: u64) -> f64 {
    let path = bench.folder.join("plain");
    let piece = vec![1; 1 << 20];
    let started = Instant::now();
    let mut file = File::create(&path).expect("the folder can be written");
    let mut left = bytes;
    while left > 0 {
        let len = left.min(piece.len() as u64);
        file.write_all(&piece[..len as usize])
            .expect("can be written");
        left -= len;
    }
    file.sync_data().expect("syncs");
    let seconds = started.elapsed().as_secs_f64();
    let _ = std::fs::remove_file(path);
    seconds
}

/// Runs one size. Returns links per second, unless it failed.
fn one(bench: &mut Bench, size: &Size) -> Option<f64> {
    let (pages, links, crawled) = (size.pages, size.links, size.crawled);
    bench.report.line("");
    let text = format!("size      {pages} pages, {crawled} crawled, {links} links");
    bench.report.line(&text);
    let mut generate = bench.generator();
    generate.args(["--pages", &pages.to_string(), "--links", &links.to_string()]);
    generate.args(["--crawled", &crawled.to_string()]);
    let alone_s = (pages <= ALONE_MOST).then(|| alone(&mut generate));
    let (run, disk_most) = from_pipe(bench, &mut generate);
    if !run.success {
        let text = format!("the run failed: {}", run.stderr.trim_end());
        bench.check(false, &text);
        return None;
    }
    let summary = run.json();
    let rate = links as f64 / run.wall_s;
    let per_page = run.peak_bytes as f64 / pages as f64;
    bench.report.line(&format!(
        "run       {:.1} s, {:.1} s of processor time, {rate:.0} links/s, {:.0} MiB at the peak \
         ({per_page:.1} bytes a page)",
        run.wall_s,
        run.cpu_s,
        run.peak_mib()
    ));
    if let Some(alone_s) = alone_s {
        let text = format!("generator {alone_s:.1} s alone");
        bench.report.line(&text);
    }
    bench
        .report
        .line(&format!("result    {}", standing(&summary)));
    let known = |name: &str| match &summary[name] {
        serde_json::Value::Null => "not told".to_owned(),
        value => value.to_string(),
    };
    let checkpoints = (known("checkpoints"), known("checkpoint_seconds"));
    bench.report.line(&format!(
        "checkpts  {}, {} s in all",
        checkpoints.0, checkpoints.1
    ));
    let right = summary["pages"] == pages && summary["links"] == links;
    bench.check(
        right && summary["records"] == crawled,
        "counts are not those generated",
    );
    let disk = disk(bench);
    let text = format!("disk      at the most {disk_most}; at the end {disk}");
    bench.report.line(&text);
    let restart = restart(bench);
    bench.report.line(&format!(
        "restart   {:.2} s to open the store and end, {:.0} MiB at the peak",
        restart.wall_s,
        restart.peak_mib()
    ));
    bench.check(restart.success, &format!("restart: {}", restart.stderr));
    top(bench);
    let point = serde_json::json!({
        "pages": pages, "crawled": crawled, "links": links, "wall_s": run.wall_s, "cpu_s": run.cpu_s,
        "generator_alone_s": alone_s, "links_per_s": rate, "peak_bytes": run.peak_bytes,
        "bytes_per_page": per_page, "disk_bytes": disk["total"],
        "disk_bytes_most": disk_most, "restart_s": restart.wall_s,
    });
    bench.report.line(&format!("point {point}"));
    Some(rate)
}

/// Number of pages from which on the generator is not timed alone: its time is proportional.
const ALONE_MOST: u64 = 200_000_000;

/// Measures the generator writing to /dev/null.
fn alone(generate: &mut Command) -> f64 {
    let started = Instant::now();
    let status = generate.stdout(Stdio::null()).status();
    assert!(status.expect("the generator starts").success());
    started.elapsed().as_secs_f64()
}

/// Ingests from the generator's pipe. Returns the measurement, and the peak size of the store, sampled once per second.
fn from_pipe(bench: &Bench, generate: &mut Command) -> (Measured, u64) {
    bench.remove_store();
    let mut child = generate
        .stdout(Stdio::piped())
        .spawn()
        .expect("the generator starts");
    let pipe = child.stdout.take().expect("is piped");
    let mut command = bench.ingest_command(Path::new("-"), &["--format", "records"]);
    command
        .args(bench.options.ingest.split_whitespace())
        .stdin(pipe);
    let (mut looked_s, mut told_s, mut most) = (0.0, 0.0, 0);
    let run = watch(&mut command, |sample: &Sample| {
        if sample.wall_s - looked_s >= 1.0 {
            looked_s = sample.wall_s;
            most = most.max(on_disk(&bench.store()));
        }
        if sample.wall_s - told_s >= 60.0 {
            told_s = sample.wall_s;
            eprintln!(
                "{:>7.0} s, {:>7.0} s of processor time, {:>6} MiB at the peak, {:>6} MiB on disk",
                sample.wall_s,
                sample.cpu_s,
                sample.peak_bytes >> 20,
                on_disk(&bench.store()) >> 20
            );
        }
    });
    // The command holds this end of the pipe: once it is dropped, the generator ends as well.
    drop(command);
    child.wait().expect("the generator ends");
    (run, most.max(on_disk(&bench.store())))
}

/// Returns the total length of all files in a folder and below, as far as they can be read.
fn on_disk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => on_disk(&entry.path()),
        _ => entry.metadata().map_or(0, |found| found.len()),
    });
    bytes.sum()
}

fn disk(bench: &Bench) -> serde_json::Value {
    let store = bench.store();
    let stat = measure(bench.cashrank(&["stat", "--json", "--store"]).arg(store));
    stat.json()["disk_bytes"].clone()
}

/// Opens the store as the next run would; its stream is empty, so that no snapshot follows.
fn restart(bench: &Bench) -> Measured {
    let mut command = bench.ingest_command(Path::new("-"), &["--format", "records"]);
    let command = command.args(bench.options.ingest.split_whitespace());
    measure(command.stdin(Stdio::null()))
}

fn top(bench: &mut Bench) {
    let store = bench.store();
    let top = measure(bench.cashrank(&["top", "-n", "10", "--store"]).arg(store));
    bench.check(top.success, &format!("top: {}", top.stderr));
    for line in String::from_utf8_lossy(&top.stdout).lines() {
        bench.report.line(&format!("top       {line}"));
    }
}
