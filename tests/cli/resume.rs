//! Killed, stopped, fed again: the store ends with the bytes of an undisturbed run.

use std::path::Path;
use std::time::SystemTime;

use crate::support::{Dice, Lab, Running, await_that, crawl, sample, zstandard};

/// Waits until the commit file changed `n` times, or the process ended.
fn await_commits(running: &mut Running, store: &Path, n: u64) {
    let database = store.join("store.redb");
    let changed = || -> Option<SystemTime> { database.metadata().ok()?.modified().ok() };
    let mut last = changed();
    let mut seen = 0;
    await_that("commits", || {
        let now = changed();
        seen += u64::from(now != last);
        last = now;
        seen >= n || running.child.try_wait().unwrap().is_some()
    });
}

/// Kills an ingest repeatedly, and compares the result with an undisturbed run.
pub fn kill_often(lab: &Lab, line: &str, seed: u64) {
    lab.run(&format!("{line} --store whole")).exits(0);
    let mut dice = Dice(seed);
    let again = format!("{line} --store cut --checkpoint-every 1");
    let mut killed = 0;
    for _ in 0..6 {
        let mut running = lab.start(&again);
        await_commits(&mut running, &lab.path("cut"), 1 + dice.roll(25));
        if running.kill() {
            killed += 1;
        } else if killed < 3 {
            // On a busy machine it may end before enough commits were seen: then repeat from the start.
            std::fs::remove_dir_all(lab.path("cut")).unwrap();
        }
    }
    assert!(killed >= 3, "killed only {killed} times, seed {seed}");
    // Everything may have been read before the last kill: then there is nothing to do. It ends with few checkpoints.
    lab.run(&format!("{line} --store cut")).exits(0);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"), "seed {seed}");
    lab.run("verify --store cut").exits(0);
}

#[test]
fn killed_at_many_points_of_a_real_crawl() {
    let lab = Lab::on_disk();
    lab.file("a", zstandard(sample(400).concat().as_bytes()));
    kill_often(&lab, "ingest a", 1);
}

#[test]
fn killed_at_many_points_of_several_passes() {
    let lab = Lab::on_disk();
    let records = crawl(21, 160);
    lab.file("a", records[..60].concat());
    lab.file("b", records[60..].concat());
    kill_often(&lab, "ingest a b --repeat 3", 2);
}

#[test]
fn killed_while_reading_a_stream() {
    let lab = Lab::on_disk();
    let records = crawl(22, 300);
    let whole = records.concat();
    lab.feed(
        "ingest - --store whole --snapshot-every 50",
        whole.as_bytes(),
    )
    .exits(0);
    let line = "ingest - --store cut --snapshot-every 50";
    for upto in [60, 120, 230] {
        let mut running = lab.start(line);
        running.write(records[..upto].concat().as_bytes());
        lab.await_snapshot("cut", upto as u64 / 50 * 50);
        assert!(running.kill());
    }
    // Another stream is not continued.
    let other = crawl(23, 300).concat();
    lab.feed(line, other.as_bytes())
        .exits(2)
        .says(&["-", "--new-stream"]);
    lab.feed(line, whole.as_bytes())
        .exits(0)
        .says(&["continuing after record"]);
    // A kill may have come before a warm start was written; from nothing the same rows give the same bytes.
    for store in ["cut", "whole"] {
        lab.run(&format!("settle --store {store} --until 1e-9 --cold"))
            .exits(0);
    }
    assert!(lab.snapshot("cut") == lab.snapshot("whole"));
}

#[test]
fn signals_stop_at_a_checkpoint() {
    let lab = Lab::on_disk();
    let records = crawl(24, 300);
    let whole = records.concat();
    lab.feed("ingest - --store whole", whole.as_bytes())
        .exits(0);
    for (at, signal) in ["INT", "TERM"].iter().enumerate() {
        let line = format!("ingest - --store cut{at} --snapshot-every 100");
        let mut running = lab.start(&line);
        running.write(records[..150].concat().as_bytes());
        lab.await_snapshot(&format!("cut{at}"), 100);
        running.signal(signal);
        running.join().exits(130).says(&["run the same command"]);
        lab.feed(&line, whole.as_bytes()).exits(0);
        assert!(lab.snapshot(&format!("cut{at}")) == lab.snapshot("whole"));
    }
}

#[test]
fn a_signal_stops_a_file_too() {
    let lab = Lab::on_disk();
    lab.file("a", crawl(25, 150).concat());
    lab.run("ingest a --repeat 5 --store whole").exits(0);
    let line = "ingest a --repeat 5 --store cut";
    let mut running = lab.start(&format!("{line} --checkpoint-every 1"));
    await_commits(&mut running, &lab.path("cut"), 20);
    running.signal("TERM");
    running.join().exits(130);
    lab.run(line).exits(0).says(&["continuing after"]);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"));
}

/// A stream that sent nothing yet, or part of a line, must not keep a signal from being noticed.
#[test]
fn signals_are_handled_while_a_stream_is_silent() {
    let lab = Lab::on_disk();
    let whole = crawl(26, 20).concat();
    for (at, sent) in ["", "{\"url\":\"http://h.exa"].iter().enumerate() {
        let line = format!("ingest - --store s{at}");
        let mut running = lab.start(&line);
        running.write(sent.as_bytes());
        await_that("the store is made", || lab.path(&format!("s{at}")).exists());
        running.signal("INT");
        running.join().exits(130);
        lab.feed(&line, whole.as_bytes()).exits(0);
        assert_eq!(lab.stat(&format!("s{at}"))["records"], 20);
    }
}

/// The same stream in small pieces and at once, with its format guessed and named.
#[test]
fn pauses_of_a_stream_change_nothing() {
    let lab = Lab::on_disk();
    let records = crawl(27, 60);
    let line = "ingest - --store once --snapshot-every 10";
    lab.feed(line, records.concat().as_bytes()).exits(0);
    for (store, option) in [("guessed", ""), ("named", "--format records")] {
        let mut running = lab.start(&format!(
            "ingest - --store {store} --snapshot-every 10 {option}"
        ));
        for (at, record) in records.iter().enumerate() {
            let (front, back) = record.split_at(record.len() / 2);
            running.write(front.as_bytes());
            running.write(back.as_bytes());
            if at % 10 == 9 {
                lab.await_snapshot(store, at as u64 + 1);
            }
        }
        running.end().exits(0);
        assert!(lab.snapshot(store) == lab.snapshot("once"), "{store}");
    }
}

/// Regression: nodes known as targets only are visited at the end of a pass, without a checkpoint in between and
/// without noticing a signal. Now there are checkpoints.
/// Regression: the run ended without a checkpoint, and everything since the last one was read again.
#[test]
fn too_many_pages_end_the_run_at_a_checkpoint() {
    let lab = Lab::on_disk();
    let mut edges = String::new();
    for n in 0..200 {
        // A comment and a bad line inside the group of each source.
        edges += &format!("s{n}\ta{n}\n# inside\nbad\ns{n}\tb{n}\n");
    }
    lab.file("edges", edges);
    lab.file("records", crawl(28, 300).concat());
    for (name, code) in [("edges", 3), ("records", 0)] {
        let line = format!("ingest {name} --format {name} --store");
        lab.run(&format!("{line} {name}-whole")).exits(code);
        let mut pages = 0;
        for limit in [100, 101, 150] {
            lab.run(&format!("{line} {name}-cut --limit-pages {limit}"))
                .exits(2)
                .says(&["raise --limit-pages", &limit.to_string()]);
            // The pages that fit are kept, and ranked.
            let stat = lab.stat(&format!("{name}-cut"));
            let now = stat["pages"].as_u64().unwrap();
            assert!(now <= limit && now + 13 > limit && now >= pages, "{stat}");
            pages = now;
        }
        lab.run(&format!("{line} {name}-cut"))
            .exits(code)
            .says(&["continuing after record"]);
        let (cut, whole) = (format!("{name}-cut"), format!("{name}-whole"));
        assert!(lab.snapshot(&cut) == lab.snapshot(&whole), "{name}");
        lab.run(&format!("verify --store {cut}")).exits(0);
    }
}

/// A crawler that is gone does not send again: what was read of its stream is ranked, and whoever has the stream can
/// still continue. Regression: only a checkpoint was left.
#[test]
fn a_stream_that_is_stopped_is_ranked() {
    let lab = Lab::on_disk();
    let records = crawl(29, 300);
    let line = "ingest - --format records --store";
    let mut running = lab.start(&format!("{line} cut --checkpoint-every 1"));
    running.write(records[..150].concat().as_bytes());
    // Even on a busy machine this many of the 150 commits are seen.
    await_commits(&mut running, &lab.path("cut"), 10);
    running.signal("INT");
    running.join().exits(130).says(&[
        "ranking what was read",
        "with a snapshot of what was read so far",
    ]);
    assert!(lab.stat("cut")["records"].as_u64().unwrap() >= 10);
    lab.feed(&format!("{line} cut"), records.concat().as_bytes())
        .exits(0);
    lab.feed(&format!("{line} whole"), records.concat().as_bytes())
        .exits(0);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"));
}

/// A stream is continued by its hash, as by its bytes: a record whose lines the end of a stream separated is read again
/// with all of them, plain and compressed. Regression: the lines before the cut were lost.
#[test]
fn a_stream_that_ended_between_two_lines_of_a_record_keeps_the_links_of_both() {
    let cases = [
        ("edges", "a b\n", "a c\nb a\n", 3),
        (
            "csv-links",
            "20240101,http://a.example/,http://a.example/b,x\n",
            "20240101,http://a.example/,http://a.example/c,x\n20240102,http://a.example/b,http://a.example/,x\n",
            3,
        ),
        (
            "crawl-log",
            "2015-05-22T15:01:10.521Z 200 56 http://a.example/b L http://a.example/ text/html #002 20150522150109851+6 sha1:CWOQBT5TEKSRCWTVAJWJQ3EVKWQBLVRZ - -\n",
            "2015-05-22T15:01:10.521Z 200 56 http://a.example/c L http://a.example/ text/html #002 20150522150109851+6 sha1:CWOQBT5TEKSRCWTVAJWJQ3EVKWQBLVRZ - -\n",
            2,
        ),
        (
            "nutch",
            "Recno:: 0\nURL:: http://a.example/\n\nCrawlDatum::\nVersion: 7\nStatus: 33 (fetch_success)\nFetch time: Sat Jan 31 12:00:00 UTC 2026\n\nParseData::\nVersion: 5\nStatus: success(1,0)\nTitle: x\nOutlinks: 2\n\
             \x20 outlink: toUrl: http://a.example/b anchor: x\n",
            "  outlink: toUrl: http://a.example/c anchor: x\n\nRecno:: 1\nURL:: http://a.example/b\n\nCrawlDatum::\nVersion: 7\nStatus: 67 (linked)\nFetch time: Sat Jan 31 11:00:00 UTC 2026\n",
            2,
        ),
    ];
    for (format, front, rest, links) in cases {
        let lab = Lab::on_disk();
        let line = format!("ingest - --format {format} --store");
        for name in ["plain", "zstd"] {
            let pack = |text: &str| match name {
                "zstd" => zstandard(text.as_bytes()),
                _ => text.as_bytes().to_vec(),
            };
            let whole = [pack(front), pack(rest)].concat();
            for resume in ["", "--resume"] {
                let store = format!("{name}{resume}");
                // Nutch announces the number of outlinks, so a cut record is not counted.
                let code = if format == "nutch" { 3 } else { 0 };
                lab.feed(&format!("{line} {store}"), &pack(front))
                    .exits(code);
                lab.feed(&format!("{line} {store} {resume}"), &whole)
                    .exits(0);
                let table = lab.run(&format!("export --links --to tsv --store {store}"));
                assert_eq!(table.out.lines().count(), links, "{format} {store}");
            }
        }
    }
}
