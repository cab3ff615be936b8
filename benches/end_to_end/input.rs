//! Inputs: made by the generator, or real crawls repeated.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::bench::Bench;

/// Returns a generated crawl in zstd, of `--pages` and `--links`; kept under a name that includes everything it depends
/// on.
pub fn crawl(bench: &mut Bench) -> PathBuf {
    generated(bench, "records")
}

/// Returns the same crawl as adjacency lists of numbers, in zstd.
pub fn adjacency(bench: &mut Bench) -> PathBuf {
    generated(bench, "adjacency")
}

fn generated(bench: &mut Bench, format: &str) -> PathBuf {
    let (pages, links) = (bench.options.pages, bench.options.links);
    let version = version(bench);
    let name = format!("crawl-v{version}-{pages}-{links}.{format}.zst");
    let path = bench.folder.join(name);
    if path.exists() {
        return path;
    }
    eprintln!("making {}", path.display());
    let mut generate = bench
        .generator()
        .args(["--pages", &pages.to_string(), "--links", &links.to_string()])
        .args(["--seed", "1", "--format", format])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the generator starts");
    let mut from = generate.stdout.take().expect("is piped");
    let temp = path.with_extension("tmp");
    let out = File::create(&temp).expect("the folder can be written");
    // Like `zstd -3 --check`.
    let mut encoder = zstd::Encoder::new(&out, 3).expect("level 3 is one");
    encoder.include_checksum(true).expect("checksums are known");
    io::copy(&mut from, &mut encoder).expect("compresses");
    encoder.finish().expect("can be written");
    assert!(generate.wait().expect("ends").success());
    std::fs::rename(&temp, &path).expect("renames");
    path
}

/// Returns the generator's version, with which its output may change.
fn version(bench: &mut Bench) -> String {
    let done = bench.generator().arg("--version").output();
    let done = done.expect("the generator starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    text.split_whitespace().last().unwrap_or("0").to_owned()
}

/// Returns the path of a real crawl, if it is available.
pub fn real(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../shared/data").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("SKIPPED: no ../shared/data/{name}");
    None
}

/// Concatenates gzip files, repeatedly, until they hold `bytes` decompressed; several members are one file. Returns the
/// decompressed length.
pub fn repeated(files: &[PathBuf], bytes: u64, to: &Path) -> u64 {
    let mut out = File::create(to).expect("the folder can be written");
    let mut held = 0;
    while held < bytes {
        for file in files {
            let packed = std::fs::read(file).expect("was found");
            held += unzipped(&packed[..]);
            out.write_all(&packed).expect("can be written");
        }
    }
    held
}

/// Decompresses with zlib-rs and drops the bytes; returns their number.
pub fn unzipped(packed: impl io::Read) -> u64 {
    let mut decoder = flate2::read::MultiGzDecoder::new(packed);
    let mut buffer = vec![0; 1 << 20];
    let mut sum = 0;
    loop {
        match io::Read::read(&mut decoder, &mut buffer).expect("is sound gzip") {
            0 => return sum,
            more => sum += more as u64,
        }
    }
}
