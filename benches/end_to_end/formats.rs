//! Part `formats`: one row per format, from plain files: the speed of decoding alone, without decompression.
//!
//! The inputs are real files, repeated: after the first time there are no new pages. For `nutch` there is no real one,
//! so the sample of its specification is used. `csv-links` begins with a header line, so its sample cannot be repeated.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::bench::{Bench, median};
use crate::input;

/// Formats, each with a real file; `None`: the sample of this name.
const ROWS: [(&str, Option<&str>, &str); 8] = [
    ("records", Some("scrapy-httpd/httpd-manual.jsonl.zst"), ""),
    ("wat", Some("postgresql/pg15-crawl1.wat.gz"), ""),
    ("warc", Some("postgresql/pg15-crawl1.warc.gz"), ""),
    ("warc", Some("boost/boost-crawl-1.74.warc.gz"), ""),
    ("arc", Some("blackbook/blackbook.arc.gz"), ""),
    ("adjacency", Some("cnr-2000/adjacency.tsv.zst"), ""),
    (
        "crawl-log",
        Some("heritrix/originals__crawllogs__crawl-42.log"),
        "",
    ),
    ("nutch", None, "nutch.txt"),
];

pub fn run(bench: &mut Bench) {
    bench.report.title("formats");
    let head = "  format      bytes       seconds    MB/s   records/s    links/s  peak MiB  of";
    bench.report.line(head);
    for (format, real, sample) in ROWS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = match real {
            Some(name) => input::real(name),
            None => Some(root.join("formats/samples/good").join(sample)),
        };
        if let Some(path) = path {
            row(bench, format, &path);
        }
    }
}

fn row(bench: &mut Bench, format: &str, path: &Path) {
    let plain = unpacked(path);
    let times = (bench.options.format_mib << 20).div_ceil(plain.len() as u64);
    let input = repeated(&plain, times, &bench.folder);
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..bench.options.runs {
        let run = bench.ingest(&input, &["--format", format, "--marks", "0"]);
        seconds.push(run.wall_s);
        last = Some(run);
    }
    let run = last.expect("one run at least");
    let summary = run.json();
    let count = |name: &str| summary[name].as_u64().unwrap_or(0);
    for name in ["records", "links"] {
        let whole = count(name).is_multiple_of(times);
        bench.check(
            whole,
            "a file read again gives another number of records or links",
        );
    }
    let bytes = plain.len() as u64 * times;
    let middle = median(seconds);
    bench.report.line(&format!(
        "  {format:<10} {bytes:>12} {middle:>8.2} {:>7.0} {:>11.0} {:>10.0} {:>9.0}  {} times {}",
        bytes as f64 / middle / 1e6,
        count("records") as f64 / middle,
        count("links") as f64 / middle,
        run.peak_mib(),
        times,
        crate::bench::file_name(path)
    ));
    let _ = std::fs::remove_file(&input);
}

/// Reads a file, decompressed.
fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).expect("was found");
    let mut plain = Vec::new();
    let name = path.to_string_lossy();
    if name.ends_with(".gz") {
        let mut decoder = flate2::read::MultiGzDecoder::new(&packed[..]);
        decoder.read_to_end(&mut plain).expect("is sound gzip");
    } else if name.ends_with(".zst") {
        plain = zstd::decode_all(&packed[..]).expect("is sound zstd");
    } else {
        plain = packed;
    }
    plain
}

fn repeated(plain: &[u8], times: u64, folder: &Path) -> PathBuf {
    let path = folder.join("bench.plain");
    let mut out = BufWriter::new(File::create(&path).expect("the folder can be written"));
    for _ in 0..times {
        out.write_all(plain).expect("can be written");
    }
    out.flush().expect("can be written");
    path
}
