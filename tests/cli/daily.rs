//! One store for years: each day's file by one short command that may be repeated.

use crate::support::{Lab, crawl, gzip};

fn days(lab: &Lab) -> Vec<String> {
    let records = crawl(95, 300);
    for (day, records) in records.chunks(100).enumerate() {
        lab.file(&format!("day{}", day + 1), records.concat());
    }
    lab.file("whole", records.concat());
    lab.run("ingest whole --store all").exits(0);
    records
}

#[test]
fn each_day_is_added_and_may_be_repeated() {
    let lab = Lab::new();
    days(&lab);
    lab.run("ingest day1 --store s").exits(0);
    lab.run("ingest day2 --store s").exits(0);
    lab.run("ingest day2 --store s")
        .exits(0)
        .says(&["day2: was read before", "nothing to do"]);
    lab.run("ingest day3 day2 day1 --store s")
        .exits(0)
        .says(&["day1: was read before", "day2: was read before"]);
    assert!(lab.snapshot("s") == lab.snapshot("all"));
    lab.run("ingest day1 day2 day3 --store s")
        .exits(0)
        .says(&["nothing to do"]);
    // Inputs are recognised by content, not by name or compression.
    let packed = gzip(&std::fs::read(lab.path("day2")).unwrap());
    lab.file("other-name.gz", packed);
    lab.run("ingest other-name.gz --store s")
        .exits(0)
        .says(&["other-name.gz: was read before", "nothing to do"]);
    assert!(lab.snapshot("s") == lab.snapshot("all"));
}

#[test]
fn a_stream_s_records_are_known_in_a_file() {
    let lab = Lab::new();
    days(&lab);
    let first = std::fs::read(lab.path("day1")).unwrap();
    lab.feed("ingest - --store s", &first).exits(0);
    lab.run("ingest day1 day2 --store s")
        .exits(0)
        .says(&["day1: was read before"]);
    lab.run("ingest day3 --store s").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("all"));
}

#[test]
fn a_day_that_was_stopped_continues() {
    let lab = Lab::new();
    days(&lab);
    lab.run("ingest day1 --store s").exits(0);
    let pages = lab.stat("s")["pages"].as_u64().unwrap();
    let line = format!("ingest day2 --store s --limit-pages {}", pages + 5);
    lab.run(&line).exits(2).says(&["--limit-pages"]);
    let read = lab.stat("s")["records"].as_u64().unwrap();
    assert!(100 < read && read < 200, "{read}");
    lab.run("ingest day3 --store s")
        .exits(2)
        .says(&["day2 was not read to its end", "--leave-unfinished"]);
    lab.feed("ingest - --store s", b"")
        .exits(2)
        .says(&["day2 was not read to its end"]);
    // Under another name, and after a new input.
    std::fs::rename(lab.path("day2"), lab.path("moved")).unwrap();
    lab.run("ingest day3 moved day1 --store s")
        .exits(0)
        .says(&["moved: continuing after record"]);
    assert!(lab.snapshot("s") == lab.snapshot("all"));
}

/// The records before damage count, and the next day can be ingested.
#[test]
fn a_damaged_day_can_be_left() {
    let lab = Lab::new();
    let records = days(&lab);
    lab.run("ingest day1 --store s").exits(0);
    let packed = gzip(records[100..200].concat().as_bytes());
    lab.file("broken.gz", &packed[..packed.len() / 2]);
    lab.run("ingest broken.gz --store s").exits(4);
    lab.run("ingest day3 --store s")
        .exits(2)
        .says(&["broken.gz was not read to its end"]);
    lab.run("ingest day3 --leave-unfinished --store s").exits(0);
    let read = lab.stat("s")["records"].as_u64().unwrap();
    let of_broken = (read - 200) as usize;
    assert!(of_broken < 100);
    let same: Vec<String> = records[..100 + of_broken]
        .iter()
        .chain(&records[200..])
        .cloned()
        .collect();
    lab.file("same", same.concat());
    lab.run("ingest same --store same.store").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("same.store"));
    // What was left counts as read.
    lab.run("ingest day1 day3 --store s")
        .exits(0)
        .says(&["nothing to do"]);
}

/// A file that has grown is refused: its earlier records would count twice.
#[test]
fn a_file_that_has_grown_is_refused() {
    let lab = Lab::new();
    let records = days(&lab);
    lab.file("log", records[..50].concat());
    lab.run("ingest log --store s").exits(0);
    let snapshot = lab.snapshot("s");
    lab.file("log", records[..80].concat());
    lab.run("ingest log --store s")
        .exits(2)
        .says(&["log", "has grown"]);
    lab.run("ingest day1 --store s").exits(2).says(&[
        "day1",
        "begins with all that was read of log",
        "has grown",
    ]);
    assert!(lab.snapshot("s") == snapshot);
}

/// A file named twice is read twice, and the store remembers that.
#[test]
fn each_input_answers_for_one_file() {
    let lab = Lab::new();
    days(&lab);
    lab.run("ingest day1 day1 --store s").exits(0);
    assert_eq!(lab.stat("s")["records"], 200);
    lab.run("ingest day1 day1 --store s")
        .exits(0)
        .says(&["nothing to do"]);
    lab.run("ingest day1 day1 day1 --store s").exits(0);
    assert_eq!(lab.stat("s")["records"], 300);
}

#[test]
fn the_store_comes_from_the_environment() {
    let lab = Lab::new();
    days(&lab);
    let run = |line: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cashrank"))
            .args(line.split_whitespace())
            .current_dir(lab.path(""))
            .env("CASHRANK_STORE", "s")
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run("ingest day1 --quiet");
    for line in ["top -n 1", "stat", "verify", "snapshots", "export --to tsv"] {
        assert!(!run(line).is_empty(), "{line}");
    }
    let of_store = run("local --domain url:*");
    assert!(of_store.lines().count() > 20, "{of_store}");
    // A command that reads inputs or, in their place, a store.
    run("compute --quiet");
    let computed = run("export --measure pagerank --to tsv");
    // The command line takes precedence.
    run("ingest whole --store t");
    assert!(lab.path("t").is_dir());
    let of_file = run("compute whole");
    assert!(of_file.lines().count() > computed.lines().count());
    run("compute --quiet --store t");
    let computed = run("export --measure pagerank --to tsv --store t");
    assert_eq!(computed.lines().count(), of_file.lines().count());
}

#[test]
fn quiet_says_only_what_is_wrong_and_lines_have_times() {
    let lab = Lab::new();
    days(&lab);
    let quiet = lab.run("ingest day1 --store s --quiet").exits(0);
    assert_eq!((&*quiet.out, &*quiet.err), ("", ""));
    lab.file("bad", "{\"url\":\"http://a/\"}\nnonsense\n");
    lab.run("ingest bad --store s --quiet")
        .exits(3)
        .says(&["bad: record 2", "skipped"]);
    let said = lab.run("ingest day2 --store s").exits(0).err;
    for line in said.lines() {
        let (time, _) = line.split_once(' ').unwrap();
        assert!(
            time.len() == 20 && time.starts_with("20") && time.ends_with('Z'),
            "{line}"
        );
    }
}

/// Regression: from the eleventh night on, each new snapshot replaced the oldest one, `--quiet` reported it, and cron
/// sent a mail every day.
#[test]
fn a_quiet_night_says_nothing_of_the_snapshot_that_it_replaces() {
    let lab = Lab::new();
    for night in 1..=5 {
        lab.file(&format!("day{night}"), crawl(night, 20).concat());
    }
    for night in 1..=3 {
        let line = format!("ingest day{night} --quiet --keep-snapshots 1 --store s");
        assert_eq!(lab.run(&line).exits(0).err, "", "{night}");
    }
    // Removing several at once exceeds one night's replacement.
    lab.run("ingest day4 --quiet --snapshot-every 5 --keep-snapshots 0 --store s")
        .exits(0);
    lab.run("ingest day5 --quiet --keep-snapshots 1 --store s")
        .exits(0)
        .says(&["older snapshots removed", "--keep-snapshots"]);
}

#[test]
fn snapshots_are_listed_kept_and_read() {
    let lab = Lab::new();
    days(&lab);
    lab.run("ingest day1 --store s --snapshot-every 10 --keep-snapshots 3")
        .exits(0)
        .says(&["removed", "--keep-snapshots"]);
    let numbers = || -> Vec<(u64, bool, bool)> {
        let list = lab.run("snapshots --json --store s").exits(0).out;
        let one = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            (
                value["number"].as_u64().unwrap(),
                value["current"].as_bool().unwrap(),
                value["pinned"].as_bool().unwrap(),
            )
        };
        list.lines().map(one).collect()
    };
    assert_eq!(
        numbers(),
        [(80, false, false), (90, false, false), (100, true, false)]
    );
    lab.run("snapshots --pin 80 --store s").exits(0);
    lab.run("ingest day2 --store s --keep-snapshots 1").exits(0);
    assert_eq!(numbers(), [(80, false, true), (200, true, false)]);
    lab.run("verify --deep --store s").exits(0);
    // An older snapshot shows the store as it was then.
    let then: String = crawl(95, 300)[..80].concat();
    lab.file("then", then);
    lab.run("ingest then --store then.store --snapshot-every 10")
        .exits(0);
    let old = lab
        .run("export --to tsv --snapshot 80 --store s")
        .exits(0)
        .out;
    assert_eq!(old, lab.export("then.store"));
    let top = lab
        .run("top -n 5 --json --store then.store")
        .exits(0)
        .json();
    let old = lab
        .run("top -n 5 --json --snapshot 80 --store s")
        .exits(0)
        .json();
    assert_eq!(old["top"], top["top"]);
    let url = top["top"][0]["url"].as_str().unwrap();
    let rank = lab
        .run(&format!("rank {url} --json --snapshot 80 --store s"))
        .exits(0)
        .json();
    assert_eq!(rank["rank"], top["top"][0]["rank"]);
    let same = lab
        .run("compare s --snapshot 80 then.store --json")
        .exits(0);
    assert_eq!(same.json()["l1"], 0.0);
    let moved = lab.run("compare s --snapshot 80 --json").exits(0).json();
    assert!(moved["l1"].as_f64().unwrap() > 0.0);
    lab.run("top --snapshot 81 --store s").exits(2).says(&[
        "no snapshot 81",
        "from 80 to 200",
        "cashrank snapshots",
    ]);
    // Regression: a store that does not exist was called damaged.
    lab.run("snapshots --pin 80 --store none")
        .exits(2)
        .says(&["not a cashrank store", "cashrank ingest"]);
    lab.run("snapshots --unpin 80 --store s").exits(0);
    lab.run("ingest day3 --store s --keep-snapshots 1").exits(0);
    assert_eq!(numbers(), [(300, true, false)]);
}

/// By time: the newest snapshot that does not extend beyond it.
#[test]
fn a_snapshot_of_a_day() {
    let lab = Lab::new();
    for day in 1..=3 {
        let line = format!(
            "{{\"url\":\"http://a/{day}\",\"fetched_at\":\"2026-01-0{day}T12:00:00Z\",\"links\":[]}}\n"
        );
        lab.file(&format!("d{day}"), line);
        lab.run(&format!("ingest d{day} --store s")).exits(0);
    }
    let records = |time: &str| {
        let line = format!("top --json --snapshot {time} --store s");
        lab.run(&line).exits(0).json()["records"].clone()
    };
    assert_eq!(records("2026-01-02"), 2);
    assert_eq!(records("2026-01-02T11:59:59Z"), 1);
    assert_eq!(records("2026-02-01"), 3);
    lab.run("top --snapshot 2025-12-31 --store s")
        .exits(2)
        .says(&["no snapshot that early"]);
}

/// Regression: an empty stream (a crawler that failed to start), or a file in between, made a store forget the last
/// stream; sent again, it counted twice.
#[test]
fn the_last_stream_is_known_after_an_empty_one_and_a_file() {
    let lab = Lab::new();
    days(&lab);
    let first = std::fs::read(lab.path("day1")).unwrap();
    let longer = [first.clone(), std::fs::read(lab.path("day2")).unwrap()].concat();
    lab.feed("ingest - --store s", &first).exits(0);
    lab.feed("ingest - --store s", b"")
        .exits(3)
        .says(&["-: is empty", "nothing was read"]);
    lab.feed("ingest - --store s", &first)
        .exits(0)
        .says(&["the last stream again"]);
    assert_eq!(lab.stat("s")["records"], 100);
    lab.run("ingest day3 --store s").exits(0);
    lab.feed("ingest - --store s", &first)
        .exits(0)
        .says(&["the last stream again"]);
    assert_eq!(lab.stat("s")["records"], 200);
    // New records after it are read.
    lab.feed("ingest - --store s", &longer).exits(0);
    assert_eq!(lab.stat("s")["records"], 300);
    lab.feed("ingest - --store s", &longer)
        .exits(0)
        .says(&["the last stream again"]);
    assert_eq!(lab.stat("s")["records"], 300);
}

/// Regression: an empty stream became the last one, so `--resume` counted the one before it again.
#[test]
fn an_empty_stream_is_no_input() {
    let lab = Lab::new();
    days(&lab);
    let first = std::fs::read(lab.path("day1")).unwrap();
    let longer = [first.clone(), std::fs::read(lab.path("day2")).unwrap()].concat();
    lab.feed("ingest - --store s", &first).exits(0);
    for _ in 0..2 {
        lab.feed("ingest - --store s", b"").exits(3);
    }
    lab.feed("ingest - --store s --resume", &longer).exits(0);
    assert_eq!(lab.stat("s")["records"], 200);
}

/// Regression: the first stream of a store was empty (a crawler that failed to start), and all later ones were skipped
/// with "nothing to do".
#[test]
fn a_stream_after_an_empty_first_one_is_read() {
    let lab = Lab::new();
    days(&lab);
    let first = std::fs::read(lab.path("day1")).unwrap();
    for (store, options) in [
        ("plain", ""),
        ("resume", "--resume"),
        ("new", "--new-stream"),
        ("spool", "--spool"),
        ("ack", "--spool --resume --ack acked"),
    ] {
        for _ in 0..2 {
            lab.feed(&format!("ingest - --store {store} {options}"), b"")
                .exits(3);
        }
        lab.feed(&format!("ingest - --store {store} {options}"), &first)
            .exits(0);
        assert_eq!(lab.stat(store)["records"], 100, "{options}");
    }
    lab.feed("ingest - --store file", b"").exits(3);
    lab.run("ingest day1 --store file").exits(0);
    assert_eq!(lab.stat("file")["records"], 100);
}

/// Regression: a file that was empty when it was first read was refused forever, since it had grown; with `--quiet`, or
/// after another empty file, nothing reported that it was empty.
#[test]
fn an_empty_file_is_reported_and_may_grow_later() {
    let lab = Lab::new();
    days(&lab);
    lab.run("ingest day1 --store s").exits(0);
    for name in ["day0", "other"] {
        lab.file(name, "");
        for options in ["", "--quiet", "--format records --quiet"] {
            lab.run(&format!("ingest {name} --store s {options}"))
                .exits(3)
                .says(&[&format!("nothing was read: {name} is empty")]);
        }
    }
    lab.run("ingest day1 other --store s").exits(3);
    lab.run("ingest day2 other --store s")
        .exits(0)
        .says(&["other: is empty"]);
    std::fs::copy(lab.path("day3"), lab.path("other")).unwrap();
    lab.run("ingest other --store s").exits(0);
    assert_eq!(lab.stat("s")["records"], 300);
    // An input that had records before is not empty now, but changed.
    lab.file("day1", "");
    lab.run("ingest day1 --store s").exits(2);
    // All commands that read inputs report it.
    lab.run("inspect day0").exits(3);
    lab.run("convert day0 -o none.jsonl --quiet").exits(3);
    lab.run("convert day0 day2 -o some.jsonl").exits(0);
}

/// Regression: data from a named pipe counted again each time.
#[test]
fn a_named_pipe_is_read_as_standard_input() {
    let lab = Lab::new();
    days(&lab);
    let first = std::fs::read(lab.path("day1")).unwrap();
    lab.feed("ingest /dev/stdin --store s", &first).exits(0);
    for input in ["/dev/stdin", "/dev/fd/0", "-"] {
        lab.feed(&format!("ingest {input} --store s"), &first)
            .exits(0)
            .says(&["the last stream again"]);
    }
    assert_eq!(lab.stat("s")["records"], 100);
    lab.feed("ingest /dev/stdin /dev/fd/0 --store s", &first)
        .exits(2)
        .says(&["/dev/stdin and /dev/fd/0 are streams"]);
    // Under another name a file is still recognised.
    let file = std::process::Stdio::from(std::fs::File::open(lab.path("day1")).unwrap());
    let done = lab.measure("ingest /dev/stdin --store s", file).done;
    done.exits(0).says(&["was read before"]);
}

/// Regression: after links outgrew their room, the same command was refused, and a killed run could not continue. More
/// room is refused, since the links cannot be added later.
#[test]
fn links_that_outgrew_their_room_stop_no_later_day() {
    let lab = Lab::new();
    days(&lab);
    lab.run("ingest day1 --store s --keep-links 300")
        .exits(0)
        .says(&["links are no longer kept"]);
    for day in ["day1", "day2", "day3"] {
        lab.run(&format!("ingest {day} --store s --keep-links 300"))
            .exits(0);
    }
    lab.run("ingest day3 --store s --keep-links 200").exits(0);
    lab.run("ingest day3 --store s --keep-links 1G")
        .exits(2)
        .says(&["cannot be added later"]);
    lab.run("verify --deep --store s").exits(0);
}
