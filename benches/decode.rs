//! Bytes per second of each decoder, on real crawls if they are available (`../shared/data`), or else on a small sample
//! repeated. Record and link counts are printed next to the times, so that wrong answers show.

use std::fs;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use cashrank_crawl::decode::Parsed;
use cashrank_crawl::formats::Format;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Maximum number of bytes of an input that are decoded in one turn.
const BYTES_MAX: usize = 64 << 20;

fn decompress(path: &Path) -> Option<Vec<u8>> {
    let file = fs::File::open(path).ok()?;
    let mut data = Vec::new();
    if path.extension().is_some_and(|ext| ext == "gz") {
        let gzip = flate2::read::MultiGzDecoder::new(file);
        gzip.take(BYTES_MAX as u64).read_to_end(&mut data).ok()?;
    } else {
        let mut zstd = zstd::Decoder::new(file).ok()?;
        zstd.window_log_max(27).ok()?;
        zstd.take(BYTES_MAX as u64).read_to_end(&mut data).ok()?;
    }
    Some(data)
}

/// Returns whole records of the real input, or else of the sample repeated.
fn input(format: Format, real: &str, sample: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = decompress(&root.join("../shared/data").join(real)).unwrap_or_else(|| {
        eprintln!("SKIPPED: no {real}, {sample} instead");
        let sample = fs::read(root.join("formats/samples/good").join(sample)).unwrap();
        [&sample[..], b"\n"].concat().repeat(1000)
    });
    let whole = format.decoder().whole(&data);
    data[..whole].to_vec()
}

/// Converts adjacency lists to two columns, as a writer of edges would.
fn as_edges(adjacency: &[u8]) -> Vec<u8> {
    let mut edges = Vec::new();
    for line in adjacency.split(|&byte| byte == b'\n') {
        let mut names = line
            .split(|&byte| byte == b'\t')
            .filter(|name| !name.is_empty());
        let Some(from) = names.next() else { continue };
        for to in names {
            edges.extend_from_slice(&[from, b"\t", to, b"\n"].concat());
        }
    }
    edges
}

fn count(format: Format, data: &[u8]) -> (u64, u64, u64) {
    let (mut records, mut links, mut bad) = (0, 0, 0);
    format.decoder().decode(data, &mut |_, parsed| {
        match black_box(parsed) {
            Parsed::Record(record) => {
                records += 1;
                links += record.links.len() as u64;
            }
            Parsed::Bad { .. } => bad += 1,
            Parsed::Other { .. } | Parsed::Large => (),
        }
        true
    });
    (records, links, bad)
}

fn decoders(criterion: &mut Criterion) {
    let adjacency = input(
        Format::Adjacency,
        "cnr-2000/adjacency.tsv.zst",
        "adjacency.tsv",
    );
    let edges = as_edges(&adjacency);
    let real = |format, path, sample| input(format, path, sample);
    let inputs = [
        (
            Format::Records,
            "strings",
            real(
                Format::Records,
                "flink-history/flink.jsonl.zst",
                "records.jsonl",
            ),
        ),
        (
            Format::Records,
            "objects",
            real(
                Format::Records,
                "scrapy-httpd/httpd-manual.jsonl.zst",
                "records.jsonl",
            ),
        ),
        (
            Format::Wat,
            "wat",
            real(Format::Wat, "postgresql/pg15-crawl1.wat.gz", "wat.wat"),
        ),
        (Format::Adjacency, "adjacency", adjacency),
        (Format::Edges, "edges", edges),
    ];
    let mut group = criterion.benchmark_group("decode");
    group.sample_size(10);
    for (format, name, data) in &inputs {
        let (records, links, bad) = count(*format, data);
        eprintln!(
            "{name}: {} bytes, {records} records, {links} links, {bad} bad",
            data.len()
        );
        group.throughput(Throughput::Bytes(data.len() as u64));
        group.bench_function(BenchmarkId::new(format.name(), name), |bench| {
            bench.iter(|| count(*format, data));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("whole");
    group.sample_size(10);
    for (format, name, data) in &inputs {
        let piece = &data[..data.len().min(1 << 20)];
        group.throughput(Throughput::Bytes(piece.len() as u64));
        group.bench_function(BenchmarkId::new(format.name(), name), |bench| {
            bench.iter(|| format.decoder().whole(black_box(piece)));
        });
    }
    group.finish();
}

criterion_group!(benches, decoders);
criterion_main!(benches);
