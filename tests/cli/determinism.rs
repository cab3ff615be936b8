//! The same records in the same order give the same bytes, however they arrive and are processed.

use std::collections::HashSet;
use std::sync::Arc;

use cashrank::Limits;
use cashrank_crawl::source::{InputName, SourceOptions};
use cashrank_graph::engine::Config;
use cashrank_ingest::ingest::{Every, IngestEvent, IngestJob, Observer, ProgressReport, ingest};
use cashrank_store::store::{RealDisk, Settings};

use crate::support::{Lab, crawl, gzip, in_pieces, sample, zstandard};

/// Every kind of window.
const WINDOWS: &[&str] = &[
    "auto",
    "whole",
    "interpolation:1.5",
    "interpolation:1000s",
    "fixed:3",
    "fixed:3 --estimator distributed",
    "fixed:500s,min=2",
    "variable:3",
];

/// Ways to read the same bytes: threads, checkpoints, file, and whether through a pipe.
const WAYS: &[(u32, &str, &str, bool)] = &[
    (1, "1h", "plain", false),
    (2, "1", "plain", false),
    (4, "7", "gz", false),
    (1, "1000", "zst", false),
    (2, "7", "plain", true),
    (4, "1h", "zst", true),
    (3, "1", "gz", true),
    (3, "1000", "plain", true),
    (1, "7", "zst", false),
];

/// The key of a store's hashes.
fn key(lab: &Lab, store: &str) -> String {
    let identity = std::fs::read(lab.path(store).join("identity.json")).unwrap();
    let identity: serde_json::Value = serde_json::from_slice(&identity).unwrap();
    identity["key"].as_str().unwrap().to_owned()
}

struct Quiet;

impl Observer for Quiet {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

fn check(records: &[String], windows: &[&str]) {
    let lab = Lab::new();
    let text = records.concat();
    lab.file("plain", &text);
    lab.file("gz", in_pieces(text.as_bytes(), 5_003, gzip));
    lab.file("zst", in_pieces(text.as_bytes(), 70_001, zstandard));
    for (number, window) in windows.iter().enumerate() {
        let (mut first, mut first_exports, mut keys) = (None, None, HashSet::new());
        for (at, (threads, every, file, piped)) in WAYS.iter().enumerate() {
            let store = format!("{}-{at}", window.replace([':', ' '], "-"));
            let input = if *piped { "-" } else { file };
            let line = format!(
                "ingest {input} --store {store} --window {window} --threads {threads} \
                 --checkpoint-every {every}"
            );
            let stdin = std::fs::read(lab.path(file)).unwrap();
            let stdin = if *piped { &stdin[..] } else { b"" };
            lab.feed(&line, stdin).exits(0);
            let snapshot = lab.snapshot(&store);
            assert!(
                snapshot == *first.get_or_insert_with(|| snapshot.clone()),
                "other snapshot: {line}"
            );
            keys.insert(key(&lab, &store));
            // What is exported are these bytes and the store's names: after every way in one window, and after one
            // other way, each time another, in the rest.
            if number > 0 && at > 0 && at != number {
                continue;
            }
            assert_eq!(lab.stat(&store)["records"], records.len());
            let exports = ["tsv", "jsonl"].map(|format| {
                lab.run(&format!("export --to {format} --store {store}"))
                    .exits(0)
                    .out
            });
            lab.run(&format!(
                "export --to parquet -o {store}.parquet --store {store}"
            ))
            .exits(0);
            let parquet = std::fs::read(lab.path(&format!("{store}.parquet"))).unwrap();
            let found = (exports, parquet);
            let expected = first_exports.get_or_insert_with(|| found.clone());
            assert!(found.0 == expected.0, "other exports: {line}");
            assert!(found.1 == expected.1, "other parquet: {line}");
        }
        // So they do not depend on the hashes of the names either.
        assert_eq!(keys.len(), WAYS.len());
    }
}

#[test]
fn a_real_crawl_gives_the_same_bytes_however_it_is_read() {
    check(&sample(200), &["auto"]);
}

#[test]
fn a_random_crawl_gives_the_same_bytes_however_it_is_read() {
    check(&crawl(11, 400), WINDOWS);
}

/// Also distinguishes the windows: an option without effect would pass the tests above.
#[test]
fn windows_differ_and_order_matters() {
    let lab = Lab::new();
    let mut records = crawl(12, 300);
    lab.file("a", records.concat());
    records.reverse();
    lab.file("b", records.concat());
    let mut exports = Vec::new();
    for (at, window) in WINDOWS.iter().enumerate() {
        lab.run(&format!(
            "ingest a --repeat 5 --store {at} --window {window}"
        ))
        .exits(0);
        exports.push(lab.export(&at.to_string()));
    }
    lab.run("ingest a --repeat 5 --store whole --window whole --estimator distributed")
        .exits(0);
    lab.run("ingest b --repeat 5 --store reversed").exits(0);
    exports.extend(["whole", "reversed"].map(|store| lab.export(store)));
    for (at, export) in exports.iter().enumerate() {
        assert!(!exports[..at].contains(export), "{at}");
    }
}

#[test]
fn passes_and_lists_may_be_taken_in_steps() {
    let lab = Lab::new();
    let records = crawl(13, 300);
    lab.file("a", records[..170].concat());
    lab.file("b", gzip(records[170..].concat().as_bytes()));
    for (at, window) in WINDOWS.iter().enumerate() {
        let [steps, once, again, five] =
            ["steps", "once", "again", "five"].map(|s| format!("{s}{at}"));
        // Settling in steps starts from other states than settling at once.
        let with = format!("--window {window} --settle none");
        lab.run(&format!("ingest a --store {steps} {with}"))
            .exits(0);
        lab.run(&format!("ingest a b --store {steps} --settle none"))
            .exits(0);
        lab.run(&format!("ingest a b --store {once} {with}"))
            .exits(0);
        assert!(
            lab.snapshot(&steps) == lab.snapshot(&once),
            "list, {window}"
        );

        lab.run(&format!("ingest a b --repeat 2 --store {again} {with}"))
            .exits(0);
        lab.run(&format!(
            "ingest a b --repeat 5 --store {again} --threads 4 --settle none"
        ))
        .exits(0);
        lab.run(&format!(
            "ingest a b --repeat 5 --store {five} {with} --checkpoint-every 7"
        ))
        .exits(0);
        assert!(
            lab.snapshot(&again) == lab.snapshot(&five),
            "passes, {window}"
        );
        // Passes after the first visit each page once that was read or found gone.
        let read = |line: &&String| {
            !["304", "503"]
                .iter()
                .any(|s| line.contains(&format!("\"status\":{s}")))
        };
        let url = |line: &String| {
            line.split("\"url\":")
                .nth(1)
                .unwrap()
                .split('"')
                .nth(1)
                .unwrap()
                .to_owned()
        };
        let pages: std::collections::HashSet<String> =
            records.iter().filter(read).map(url).collect();
        assert_eq!(lab.stat(&five)["records"], 300 + 4 * pages.len());
    }
}

#[test]
fn snapshots_in_between_change_nothing() {
    let lab = Lab::new();
    lab.file("a", crawl(14, 1_200).concat());
    lab.run("ingest a --store plain").exits(0);
    lab.run("ingest a --store often --snapshot-every 1ms")
        .exits(0);
    assert!(lab.snapshot("plain") == lab.snapshot("often"));
    lab.run("ingest a --store steps --snapshot-every 500")
        .exits(0);
    // The intermediate ranking is that of the records so far.
    lab.file("b", crawl(14, 1_200)[..500].concat());
    lab.run("ingest b --store head").exits(0);
    let between = lab.path("steps/snapshots/000000000500.snapshot");
    assert!(std::fs::read(between).unwrap() == lab.snapshot("head"));
}

/// Skipped lines change the counts after the last applied record. A snapshot made at that record lacks them, so it
/// cannot stand for the last one.
#[test]
fn a_snapshot_in_between_does_not_stand_for_the_last_one() {
    let lab = Lab::new();
    lab.file("a", format!("{}malformed\n", crawl(15, 100).concat()));
    lab.run("ingest a --store plain").exits(3);
    lab.run("ingest a --store often --snapshot-every 50")
        .exits(3);
    assert_eq!(lab.stat("often")["skipped"], 1);
    assert!(lab.snapshot("plain") == lab.snapshot("often"));
}

/// Chunks of one byte and of the whole input, each with checkpoints at every record and at none: the command line has
/// no option for their size.
#[test]
fn the_size_of_chunks_changes_nothing() {
    let lab = Lab::new();
    let records = crawl(16, 250);
    let plain = lab.file("plain", records.concat());
    let packed = lab.file(
        "zst",
        in_pieces(records.concat().as_bytes(), 3_001, zstandard),
    );
    let mut first = None;
    let mut at = 0;
    for chunk_bytes in [1, 100, 4_000, 60_000, 1 << 20] {
        for every in [1, 7, 1_000]
            .map(Every::Records)
            .into_iter()
            .chain([Every::Never])
        {
            let limits = Limits {
                // Chunks are at most slightly longer than this, and at least 4 KiB.
                line_bytes: 60_000,
                ..Limits::default()
            };
            at += 1;
            let input = if at % 2 == 0 { &plain } else { &packed };
            let job = IngestJob {
                settings: Settings::new(Config::default(), &limits),
                repeat: 2,
                checkpoint_every: every,
                threads: 1 + at % 3,
                limits,
                source: SourceOptions {
                    chunk_bytes,
                    ..SourceOptions::default()
                },
                ..IngestJob::new(
                    lab.path(&format!("s{at}")),
                    vec![InputName::File(input.clone())],
                )
            };
            ingest(&job, Arc::new(RealDisk), &mut Quiet).unwrap();
            let found = lab.snapshot(&format!("s{at}"));
            let expected = first.get_or_insert_with(|| found.clone());
            assert!(found == *expected, "{chunk_bytes} {every:?}");
        }
    }
}

/// Passes that read the files again, as links are not kept.
#[test]
fn passes_over_files_may_be_taken_in_steps_by_any_number_of_threads() {
    let lab = Lab::new();
    lab.file("a", crawl(51, 700).concat());
    lab.file("b", crawl(52, 400).concat());
    let lines = [
        "a --repeat 7 --keep-links none",
        "a b --repeat 4 --keep-links none",
        "a b a --repeat 3 --keep-links none",
    ];
    for (at, line) in lines.iter().enumerate() {
        lab.run(&format!("ingest {line} --store once{at}")).exits(0);
    }
    for (at, line) in lines.iter().enumerate() {
        for threads in [1, 2, 5] {
            let store = format!("again{at}-{threads}");
            lab.run(&format!(
                "ingest {line} --threads {threads} --store {store}"
            ))
            .exits(0);
            assert!(
                lab.snapshot(&store) == lab.snapshot(&format!("once{at}")),
                "{line}"
            );
        }
        // In steps: each run begins in a later pass.
        let (inputs, repeat) = line.split_once(" --repeat ").unwrap();
        let (most, rest) = repeat.split_at(1);
        for repeat in 1..=most.parse().unwrap() {
            lab.run(&format!(
                "ingest {inputs} --repeat {repeat}{rest} --store steps{at}"
            ))
            .exits(0);
        }
        let steps = lab.snapshot(&format!("steps{at}"));
        assert!(steps == lab.snapshot(&format!("once{at}")), "{line}");
    }
}
