//! Real inputs, compared with the output of the `gzip` and `zstd` programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::common::*;
use cashrank::Limits;
use cashrank_crawl::source::{DamageKind, InputName, Source, SourceOptions};

fn data() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("SKIPPED: no real data at {}", path.display());
    None
}

fn read(path: &Path) -> Outcome {
    let name = InputName::File(path.into());
    drain(Source::open(&name, &Limits::default(), &SourceOptions::default()).expect("opens"))
}

/// Returns the output of a program, and whether it succeeded; `None` if the program is missing.
fn program(command: &[&str], path: &Path) -> Option<(Vec<u8>, bool)> {
    match Command::new(command[0])
        .args(&command[1..])
        .arg(path)
        .output()
    {
        Ok(output) => Some((output.stdout, output.status.success())),
        Err(error) => {
            eprintln!("SKIPPED: cannot run {}: {error}", command[0]);
            None
        }
    }
}

#[test]
fn zstd_files_are_read_as_zstd_reads_them() {
    let Some(data) = data() else { return };
    for file in [
        "flink-history/flink.jsonl.zst",
        "cnr-2000/adjacency.tsv.zst",
        "scrapy-httpd/httpd-manual.jsonl.zst",
    ] {
        let path = data.join(file);
        let Some((expected, true)) = program(&["zstd", "-dcq", "--long=27"], &path) else {
            continue;
        };
        assert!(read(&path).sound() == expected, "{file}");
    }
}

/// All gzip files, including odd ones: the same bytes if `gzip` succeeds, an error if it fails.
#[test]
fn gzip_files_are_read_as_gzip_reads_them() {
    let Some(data) = data() else { return };
    let (mut sound, mut damaged) = (0, 0);
    for path in files(&data) {
        let head = std::fs::read(&path).unwrap();
        if !head.starts_with(&[0x1f, 0x8b]) {
            continue;
        }
        let name = path.display();
        let Some((expected, content)) = program(&["gzip", "-dc"], &path) else {
            return;
        };
        let outcome = read(&path);
        if content {
            assert!(outcome.sound() == expected, "{name}");
            sound += 1;
        } else {
            let damage = outcome.damage();
            eprintln!("{name}: {damage}");
            assert!(expected.starts_with(&outcome.verified), "{name}");
            damaged += 1;
        }
    }
    assert!(sound > 20 && damaged > 0, "{sound} {damaged}");
}

#[test]
fn a_record_with_a_broken_middle() {
    let Some(data) = data() else { return };
    let outcome = read(&data.join("odd/gowarc/testdata__warcs__corrupted-mid-record.warc.gz.open"));
    assert_ne!(outcome.damage().kind, DamageKind::Expansion);
    assert_eq!(outcome.bytes.len() as u64, outcome.damage().handed_out_to);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
