//! Reading sources at full speed, compared with `zstd -dc` and `gzip -dc` on the same file.
//!
//! The length of each case is printed once, so that a wrong answer shows. The programs write to /dev/null; their times
//! include the start of a process.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cashrank::Limits;
use cashrank_crawl::decode::{Decoder, Names, Sink, Skipped, Skipper};
use cashrank_crawl::source::{InputName, InputSummary, Source, SourceOptions};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Decoder that finds line ends and decodes nothing.
struct Lines;

impl Decoder for Lines {
    fn names(&self) -> Names {
        Names::Opaque
    }

    fn whole(&self, buf: &[u8]) -> usize {
        memchr::memrchr(b'\n', buf).map_or(0, |at| at + 1)
    }

    fn skipper(&self) -> Skipper {
        Box::new(|buf, _| match memchr::memchr(b'\n', buf) {
            Some(at) => Skipped::Ended(at + 1),
            None => Skipped::Ended(buf.len()),
        })
    }

    fn decode(&self, _: &[u8], _: &mut Sink<'_>) {}
}

fn read(path: &Path, held_bytes: u64) -> InputSummary {
    let limits = Limits {
        held_bytes,
        ..Limits::default()
    };
    let name = InputName::File(path.into());
    let mut source = Source::open(&name, &limits, &SourceOptions::default()).expect("opens");
    let mut buffer = Vec::new();
    while let Some(chunk) = source.next_chunk(&Lines, buffer).expect("is sound") {
        buffer = black_box(chunk).bytes;
    }
    source.end()
}

fn program(command: &[&str], path: &Path) {
    let status = Command::new(command[0])
        .args(&command[1..])
        .arg(path)
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("the program runs").success());
}

/// Returns the inputs: real ones as they are, and the same as gzip and plain.
fn inputs(folder: &Path) -> Vec<(&'static str, PathBuf, Vec<&'static str>)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let flink = data.join("flink-history/flink.jsonl.zst");
    if !flink.exists() {
        eprintln!("SKIPPED: no {}", flink.display());
        return Vec::new();
    }
    let zstd = vec!["zstd", "-dcq", "--long=27"];
    let gzip = vec!["gzip", "-dc"];
    let boost = data.join("boost/boost-crawl-1.81.warc.gz");
    let postgresql = data.join("postgresql/pg15-crawl2.wat.gz");
    let plain = folder.join("boost.warc");
    let shell = |line: String| {
        let status = Command::new("sh").args(["-c", &line]).status();
        assert!(status.expect("a shell").success());
    };
    shell(format!(
        "gzip -dc '{}' > '{}'",
        boost.display(),
        plain.display()
    ));
    let packed = folder.join("boost.warc.zst");
    shell(format!(
        "zstd -q -3 '{}' -o '{}'",
        plain.display(),
        packed.display()
    ));
    let one_member = folder.join("boost-one-member.warc.gz");
    shell(format!(
        "gzip -c '{}' > '{}'",
        plain.display(),
        one_member.display()
    ));
    vec![
        ("flink.jsonl.zst", flink, zstd.clone()),
        ("boost.warc.zst", packed, zstd),
        ("boost.warc.gz", boost, gzip.clone()),
        ("boost-one-member.warc.gz", one_member, gzip.clone()),
        ("postgresql.wat.gz", postgresql, gzip),
        ("boost.warc", plain, vec!["cat"]),
    ]
}

fn bench(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, path, command) in inputs(folder.path()) {
        let summary = read(&path, 64 << 20);
        println!(
            "{name}: {} bytes from {}, {} members, XXH128 {:032x}",
            summary.bytes, summary.compressed, summary.members, summary.prefix
        );
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10);
        group.warm_up_time(Duration::from_millis(500));
        group.measurement_time(Duration::from_secs(3));
        group.throughput(Throughput::Bytes(summary.bytes));
        group.bench_function("held", |bench| bench.iter(|| read(&path, 64 << 20)));
        group.bench_function("streamed", |bench| bench.iter(|| read(&path, 1 << 20)));
        group.bench_function(command[0], |bench| bench.iter(|| program(&command, &path)));
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
