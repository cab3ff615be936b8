//! Killed, stopped, fed again: the store ends with the bytes of a run nothing happened to.

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

/// Kills an ingest again and again, and compares it with one that was not.
pub fn kill_often(lab: &Lab, line: &str, seed: u64) {
    lab.run(&format!("{line} --store whole")).exits(0);
    let mut dice = Dice(seed);
    let again = format!("{line} --store cut --checkpoint-every 1");
    let mut killed = 0;
    for _ in 0..12 {
        let mut running = lab.start(&again);
        await_commits(&mut running, &lab.path("cut"), 1 + dice.roll(25));
        killed += u64::from(running.kill());
    }
    assert!(killed >= 3, "killed only {killed} times, seed {seed}");
    // Perhaps all was read before the last kill: then there is nothing to do.
    lab.run(&again).exits(0);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"), "seed {seed}");
    lab.run("verify --store cut").exits(0);
}

#[test]
fn killed_at_many_points_of_a_real_crawl() {
    let lab = Lab::new();
    lab.file("a", zstandard(sample(400).concat().as_bytes()));
    kill_often(&lab, "ingest a", 1);
}

#[test]
fn killed_at_many_points_of_a_replay() {
    let lab = Lab::new();
    let records = crawl(21, 160);
    lab.file("a", records[..60].concat());
    lab.file("b", records[60..].concat());
    kill_often(&lab, "ingest a b --repeat 3", 2);
}

#[test]
fn killed_while_reading_a_stream() {
    let lab = Lab::new();
    let records = crawl(22, 300);
    let whole = records.concat();
    lab.feed("ingest - --store whole", whole.as_bytes())
        .exits(0);
    let line = "ingest - --store cut --snapshot-every 50";
    for upto in [60, 120, 230] {
        let mut running = lab.start(line);
        running.write(records[..upto].concat().as_bytes());
        lab.await_snapshot("cut", upto as u64 / 50 * 50);
        assert!(running.kill());
    }
    // Another stream is none of the store's: it is not read on.
    let other = crawl(23, 300).concat();
    lab.feed(line, other.as_bytes())
        .exits(2)
        .says(&["-", "--new-stream"]);
    lab.feed(line, whole.as_bytes())
        .exits(0)
        .says(&["going on after record"]);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"));
}

#[test]
fn signals_stop_at_a_checkpoint() {
    let lab = Lab::new();
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
        running
            .join()
            .exits(130)
            .says(&["the same command goes on"]);
        lab.feed(&line, whole.as_bytes()).exits(0);
        assert!(lab.snapshot(&format!("cut{at}")) == lab.snapshot("whole"));
    }
}

#[test]
fn a_signal_stops_a_file_too() {
    let lab = Lab::new();
    lab.file("a", crawl(25, 400).concat());
    lab.run("ingest a --repeat 5 --store whole").exits(0);
    let line = "ingest a --repeat 5 --store cut --checkpoint-every 1";
    let mut running = lab.start(line);
    await_commits(&mut running, &lab.path("cut"), 20);
    running.signal("TERM");
    running.join().exits(130);
    lab.run(line).exits(0).says(&["going on after record"]);
    assert!(lab.snapshot("cut") == lab.snapshot("whole"));
}

/// A stream that sent nothing yet, or a part of a line, must not keep a signal from being heard.
#[test]
fn signals_are_heard_while_a_stream_is_silent() {
    let lab = Lab::new();
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

/// The same stream in drips and at once, with its format guessed and named.
#[test]
fn pauses_of_a_stream_change_nothing() {
    let lab = Lab::new();
    let records = crawl(27, 60);
    lab.feed("ingest - --store once", records.concat().as_bytes())
        .exits(0);
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
