//! Meaning of a command line that is given a second time.

use std::fs;

use crate::support::{Lab, crawl};

fn two_files(lab: &Lab) -> Vec<String> {
    let records = crawl(31, 120);
    lab.file("a", records[..70].concat());
    lab.file("b", records[70..].concat());
    records
}

#[test]
fn a_finished_plan_says_so_and_does_nothing() {
    let lab = Lab::new();
    two_files(&lab);
    lab.run("ingest a b --repeat 2 --store s").exits(0);
    let (snapshot, stat) = (lab.snapshot("s"), lab.stat("s"));
    lab.run("ingest a b --repeat 2 --store s")
        .exits(0)
        .says(&["nothing to do"]);
    // The same in another order, and for fewer passes.
    lab.run("ingest b a --repeat 2 --store s")
        .exits(0)
        .says(&["nothing to do"]);
    lab.run("ingest a b --store s")
        .exits(0)
        .says(&["nothing to do"]);
    assert!(lab.snapshot("s") == snapshot);
    assert_eq!(lab.stat("s")["records"], stat["records"]);
}

/// A snapshot that was lost with the process is made later.
#[test]
fn a_finished_plan_without_its_snapshot_publishes_it() {
    let lab = Lab::new();
    two_files(&lab);
    lab.run("ingest a b --store s").exits(0);
    let snapshot = lab.snapshot("s");
    fs::remove_dir_all(lab.path("s/snapshots")).unwrap();
    fs::create_dir(lab.path("s/snapshots")).unwrap();
    lab.run("ingest a b --store s").exits(0);
    assert!(lab.snapshot("s") == snapshot);
}

#[test]
fn other_inputs_are_refused() {
    let lab = Lab::new();
    let records = two_files(&lab);
    lab.run("ingest a b --store s").exits(0);
    let snapshot = lab.snapshot("s");
    // If inputs are read several times, all must be named.
    lab.run("ingest a --repeat 2 --store s").exits(2).says(&[
        "2 inputs",
        "name those read before too",
        "a b",
    ]);
    lab.file("a", records[..71].concat());
    lab.run("ingest a b --store s")
        .exits(2)
        .says(&["a: has grown", "a file of its own"]);
    lab.file("a", records[..69].concat());
    lab.run("ingest a b --store s")
        .exits(2)
        .says(&["a: ends at byte"]);
    let other = records[..70]
        .concat()
        .replacen("h1.example", "h2.example", 1);
    lab.file("a", other);
    lab.run("ingest a b --store s")
        .exits(2)
        .says(&["a: its first", "not those that were read before"]);
    // A file is recognised by content, not by compression or name.
    lab.file(
        "packed",
        crate::support::gzip(records[..70].concat().as_bytes()),
    );
    lab.run("ingest packed b --store s")
        .exits(0)
        .says(&["nothing to do"]);
    assert!(lab.snapshot("s") == snapshot);
}

#[test]
fn a_list_cannot_grow_under_repeat() {
    let lab = Lab::new();
    two_files(&lab);
    lab.run("ingest a --repeat 2 --store s").exits(0);
    lab.run("ingest a b --repeat 2 --store s")
        .exits(2)
        .says(&["--repeat", "another store"]);
    lab.feed("ingest - --store s", b"")
        .exits(2)
        .says(&["--repeat", "another store"]);
    lab.feed("ingest - --repeat 2 --store t", b"")
        .exits(2)
        .says(&["--repeat needs files"]);
    assert!(!lab.path("t").exists());
}

#[test]
fn a_file_changed_between_passes_is_refused() {
    let lab = Lab::new();
    let records = two_files(&lab);
    lab.run("ingest a --store s").exits(0);
    let cut = records[..60].concat();
    lab.file("a", &cut);
    lab.run("ingest a --repeat 2 --store s")
        .exits(2)
        .says(&["a"]);
}

#[test]
fn after_its_end_a_stream_is_followed_by_a_new_one() {
    let lab = Lab::new();
    let records = crawl(32, 200);
    let (first, second) = (records[..90].concat(), records[90..].concat());
    lab.feed("ingest - --store s", first.as_bytes()).exits(0);
    lab.feed("ingest - --store s", second.as_bytes()).exits(0);
    lab.file("w", records.concat());
    lab.run("ingest w --store whole").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
}

#[test]
fn new_stream_gives_an_unfinished_one_up() {
    let lab = Lab::on_disk();
    let records = crawl(33, 200);
    let (first, second) = (records[..100].concat(), records[100..].concat());
    let mut running = lab.start("ingest - --store s --snapshot-every 100");
    running.write(first.as_bytes());
    lab.await_snapshot("s", 100);
    assert!(running.kill());
    lab.feed("ingest - --store s --new-stream", second.as_bytes())
        .exits(0);
    lab.file("w", records.concat());
    lab.run("ingest w --store whole").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
}

#[test]
fn resume_reads_an_ended_stream_on() {
    let lab = Lab::new();
    let records = crawl(34, 200);
    lab.feed("ingest - --store s", records[..90].concat().as_bytes())
        .exits(0);
    let whole = records.concat();
    lab.feed("ingest - --store s --resume", whole.as_bytes())
        .exits(0);
    lab.file("w", &whole);
    lab.run("ingest w --store whole").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
    lab.feed(
        "ingest - --store s --resume",
        crawl(35, 200).concat().as_bytes(),
    )
    .exits(2);
    lab.run("ingest w --store f").exits(0);
    lab.feed("ingest - --store f --resume", b"")
        .exits(2)
        .says(&["no stream"]);
}

/// A crawler died within a line; sent again from its start with `--resume`, the stream contains that record as a whole.
/// Regression: the record stayed counted as skipped as well.
#[test]
fn resume_rereads_a_torn_record() {
    let lab = Lab::new();
    let lines: Vec<String> = (0..5)
        .map(|n| format!("{{\"url\":\"http://a/{n}\",\"links\":[\"http://b/{n}\"]}}\n"))
        .collect();
    let whole = lines.concat();
    let torn = &whole[..lines[0].len() * 3 + 20];
    let done = lab
        .feed("ingest - --store s --json", torn.as_bytes())
        .exits(3)
        .says(&["record 4", "cut-short"]);
    assert_eq!(done.json()["skipped"]["cut-short"], 1);
    lab.feed("ingest - --store s --resume", whole.as_bytes())
        .exits(0);
    let stat = lab.stat("s");
    assert_eq!((&stat["records"], &stat["skipped"]), (&5.into(), &0.into()));
    lab.feed("ingest - --store whole", whole.as_bytes())
        .exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
}

/// Regression: `-` was taken for any stream read before, so a new one next to a new file was never read.
#[test]
fn a_stream_that_ended_hides_no_other_one() {
    let lab = Lab::new();
    two_files(&lab);
    let records = crawl(36, 40);
    lab.feed("ingest - --store s", records[..20].concat().as_bytes())
        .exits(0);
    lab.feed("ingest a - --store s", records[20..40].concat().as_bytes())
        .exits(2)
        .says(&["pipe a new stream by itself"]);
    assert_eq!(lab.stat("s")["records"], 20);
    lab.run("ingest b --repeat 2 --store s")
        .exits(2)
        .says(&["use another store"]);
    lab.run("ingest a --store s").exits(0);
}

/// Regression: later passes opened empty inputs by their old names.
#[test]
fn an_empty_input_is_not_reopened() {
    let lab = Lab::new();
    two_files(&lab);
    lab.file("empty", "");
    lab.run("ingest empty a --store s --keep-links none")
        .exits(0);
    fs::rename(lab.path("empty"), lab.path("other")).unwrap();
    lab.run("ingest other a --repeat 2 --store s --keep-links none")
        .exits(0);
    lab.run("ingest empty2 --repeat 2 --store s").exits(7);
    lab.run("ingest b --repeat 2 --store s")
        .exits(2)
        .says(&["use another store: after several passes"]);
}

/// Regression: tools that copy without empty folders made a store without rows a damaged one.
#[test]
fn a_store_without_rows_needs_no_folder_of_rows() {
    let lab = Lab::new();
    two_files(&lab);
    lab.run("ingest a --store s --keep-links none").exits(0);
    fs::remove_dir(lab.path("s/rows")).unwrap();
    lab.run("verify --deep --store s").exits(0);
    lab.run("ingest b --store s").exits(0);
    assert!(lab.path("s/rows").is_dir());
}
