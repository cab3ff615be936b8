//! `--spool` and `--ack`: senders that forget what was acknowledged, kills, and which stream may follow which.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Dice, Lab, Running, await_that, crawl, gzip, in_pieces, sample, zstandard};

const LINE: &str = "ingest - --store s --spool --ack acked";

/// Reads the position in an acknowledgement file, which always holds a whole one.
fn position(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let number = text.strip_suffix('\n').expect("a whole line");
    Some(number.parse().expect("a number"))
}

/// Starts a run and waits until it prints the position from which it wants the stream.
fn begin(lab: &Lab, line: &str) -> (Running, u64) {
    let path = lab.path("acked");
    let _ = std::fs::remove_file(&path);
    let mut running = lab.start(line);
    let mut from = None;
    await_that("the first position", || {
        from = position(&path);
        from.is_some() || running.child.try_wait().unwrap().is_some()
    });
    let Some(from) = from else {
        panic!("{:?}", running.join());
    };
    (running, from)
}

fn killed_often(whole: &[u8], options: &str, seed: u64) {
    killed_with(whole, options, "", seed);
}

/// Like the test above, with a setting of the store.
fn killed_with(whole: &[u8], options: &str, setting: &str, seed: u64) {
    let lab = Lab::on_disk();
    lab.file("whole.file", whole);
    lab.run(&format!("ingest whole.file --store whole {setting}"))
        .exits(0);
    lab.feed(&format!("ingest - --store pipe {setting}"), whole)
        .exits(0);
    lab.feed(
        &format!("ingest - --store spooled --spool {setting}"),
        whole,
    )
    .exits(0);
    assert!(lab.snapshot("pipe") == lab.snapshot("whole"));
    assert!(lab.snapshot("spooled") == lab.snapshot("whole"));

    let mut dice = Dice(seed);
    let line = format!("{LINE} {options} {setting}");
    // The sender keeps only what was not acknowledged.
    let mut forgotten = 0;
    let mut killed = 0;
    for _ in 0..8 {
        let (mut running, from) = begin(&lab, &line);
        assert!(
            from >= forgotten,
            "{from}, but {forgotten} were acknowledged"
        );
        let most = (whole.len() as u64 - from).min(whole.len() as u64 / 6);
        let upto = from + dice.roll(most + 1);
        running.write(&whole[from as usize..upto as usize]);
        // At any moment, before or after everything was acknowledged.
        let started = Instant::now();
        let patience = Duration::from_millis(dice.roll(200));
        let path = lab.path("acked");
        await_that("an acknowledgement or some time", || {
            started.elapsed() > patience || position(&path) == Some(upto)
        });
        killed += u64::from(running.kill());
        forgotten = position(&path).unwrap();
        assert!(forgotten <= upto);
    }
    assert_eq!(killed, 8, "seed {seed}");
    let (mut running, from) = begin(&lab, &line);
    assert!(from >= forgotten);
    running.write(&whole[from as usize..]);
    let length = whole.len();
    let done = running.end().exits(0);
    done.says(&[
        &format!("spool: send the stream from byte {from} on"),
        &format!("spool: durable to byte {length}"),
    ]);
    assert_eq!(position(&lab.path("acked")), Some(length as u64));
    assert!(lab.snapshot("s") == lab.snapshot("whole"), "seed {seed}");
    lab.run("verify --store s").exits(0);
    assert_eq!(lab.stat("s")["spool"]["acked"], length);
}

#[test]
fn killed_with_a_plain_stream() {
    killed_often(sample(300).concat().as_bytes(), "--checkpoint-every 5", 1);
}

/// Acknowledged positions include the records of other shards, three of four here.
#[test]
fn killed_in_a_shard() {
    let whole = crawl(98, 300).concat();
    killed_with(whole.as_bytes(), "--checkpoint-every 5", "--shard 0/4", 98);
}

#[test]
fn killed_with_gzip_members() {
    let whole = in_pieces(sample(300).concat().as_bytes(), 200_000, gzip);
    killed_often(&whole, "--checkpoint-every 5", 2);
}

#[test]
fn killed_with_zstd_frames() {
    let whole = in_pieces(sample(300).concat().as_bytes(), 50_000, zstandard);
    killed_often(&whole, "--checkpoint-every 3", 3);
}

/// No frame can be decoded without the dictionary at the start of the stream, so the spool keeps that.
#[test]
fn killed_with_zstd_frames_after_a_dictionary() {
    let text = sample(300).concat();
    let lines: Vec<&[u8]> = text.as_bytes().split_inclusive(|&b| b == b'\n').collect();
    let dictionary = zstd::dict::from_samples(&lines, 4096).unwrap();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    compressor.include_checksum(true).unwrap();
    let length = (dictionary.len() as u32).to_le_bytes();
    let mut whole = [&[0x5d, 0x2a, 0x4d, 0x18], &length[..], &dictionary].concat();
    for piece in text.as_bytes().chunks(50_000) {
        whole.extend(compressor.compress(piece).unwrap());
    }
    killed_often(&whole, "--checkpoint-every 3", 4);
}

/// If no checkpoint is due, a slow stream is acknowledged by time, and applied at once.
#[test]
fn a_slow_stream_is_acknowledged_in_time() {
    let lab = Lab::on_disk();
    let records = crawl(81, 30);
    let whole = records.concat();
    let line = format!("{LINE} --checkpoint-every 1h --snapshot-every 10");
    let (mut running, from) = begin(&lab, &line);
    assert_eq!(from, 0);
    let path = lab.path("acked");
    let mut sent = 0;
    for part in records.chunks(3) {
        let part = part.concat();
        running.write(part.as_bytes());
        sent += part.len() as u64;
        if sent < 2000 {
            // Every second, with a margin for a busy machine.
            let started = Instant::now();
            await_that("the acknowledgement", || position(&path) == Some(sent));
            assert!(started.elapsed() < Duration::from_secs(5));
        }
    }
    lab.await_snapshot("s", 30);
    assert!(running.kill());
    let (running, from) = begin(&lab, LINE);
    assert_eq!(from, whole.len() as u64);
    running.end().exits(0);
    lab.feed("ingest - --store whole", whole.as_bytes())
        .exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
}

/// The spooled data is applied even if nothing more arrives, and even if it exceeds the capacity of a pipe.
#[test]
fn a_silent_stream_does_not_keep_its_spool_waiting() {
    let lab = Lab::on_disk();
    let whole = sample(60).concat();
    assert!((150_000..500_000).contains(&whole.len()), "{}", whole.len());
    let (mut running, _) = begin(&lab, &format!("{LINE} --checkpoint-every 1h"));
    running.write(whole.as_bytes());
    await_that("the acknowledgement", || {
        position(&lab.path("acked")) == Some(whole.len() as u64)
    });
    assert!(running.kill());
    let (running, _) = begin(&lab, &format!("{LINE} --snapshot-every 60"));
    lab.await_snapshot("s", 60);
    running.end().exits(0);
}

/// A sender that no longer receives positions would wait forever.
#[test]
fn nobody_listens_any_more() {
    let lab = Lab::on_disk();
    let mut running = lab.start("ingest - --store s --spool --ack -");
    running.child.stdout.take();
    running.write(crawl(91, 10).concat().as_bytes());
    await_that("the end", || running.child.try_wait().unwrap().is_some());
    assert_eq!(running.child.wait().unwrap().code(), Some(7));
}

#[test]
fn positions_on_standard_output() {
    let lab = Lab::on_disk();
    let whole = crawl(82, 40).concat();
    let done = lab
        .feed("ingest - --store s --spool --ack -", whole.as_bytes())
        .exits(0);
    let lines: Vec<u64> = done.out.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(lines.first(), Some(&0));
    assert_eq!(lines.last(), Some(&(whole.len() as u64)));
    assert!(lines.is_sorted());
    for option in ["--json", "--top 3"] {
        lab.feed(&format!("ingest - --store t --spool --ack - {option}"), b"")
            .exits(2)
            .says(&["--ack -"]);
    }
    lab.feed("ingest - --store t --ack f", b"")
        .exits(2)
        .says(&["--spool"]);
    lab.feed("ingest - --store t --spool --ack no/such/folder", b"")
        .exits(7)
        .says(&["no/such/folder"]);
    lab.file("a", &whole);
    lab.run("ingest a --store t --spool")
        .exits(2)
        .says(&["--spool", "`-`"]);
}

#[test]
fn the_summary_tells_the_position() {
    let lab = Lab::on_disk();
    let whole = crawl(83, 10).concat();
    let json = lab
        .feed("ingest - --store s --spool --json", whole.as_bytes())
        .exits(0)
        .json();
    assert_eq!(json["durable"], whole.len());
    let json = lab
        .feed("ingest - --store t --json", whole.as_bytes())
        .exits(0)
        .json();
    assert!(json["durable"].is_null());
    assert!(lab.stat("t")["spool"].is_null());
    let text = lab.run("stat --store s").exits(0).out;
    assert!(text.contains(&format!("durable to byte {}", whole.len())) || whole.len() > 999);
    assert!(lab.stat("s")["disk_bytes"]["spool"].as_u64().unwrap() > whole.len() as u64);
}

#[test]
fn a_signal_stops_with_all_durable() {
    let lab = Lab::on_disk();
    let records = crawl(84, 100);
    let whole = records.concat();
    let (mut running, _) = begin(&lab, LINE);
    let sent = records[..50].concat().len() + 7;
    running.write(&whole.as_bytes()[..sent]);
    await_that("all is acknowledged", || {
        position(&lab.path("acked")) == Some(sent as u64)
    });
    running.signal("TERM");
    let durable = format!("spool: durable to byte {sent}");
    running
        .join()
        .exits(130)
        .says(&["run the same command to continue", &durable]);
    let (mut running, from) = begin(&lab, LINE);
    assert_eq!(from, sent as u64);
    running.write(&whole.as_bytes()[sent..]);
    running.end().exits(0);
    lab.feed("ingest - --store whole", whole.as_bytes())
        .exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
}

/// Streams that may follow an unfinished spooled one.
#[test]
fn an_unfinished_stream_continues_with_its_spool_only() {
    let lab = Lab::on_disk();
    let records = crawl(85, 200);
    lab.file("a", &records[0]);
    for store in ["known", "unknown"] {
        let line = format!("ingest - --store {store} --spool --ack acked");
        let snapshots = if store == "known" {
            "--snapshot-every 100"
        } else {
            ""
        };
        let (mut running, _) = begin(&lab, &format!("{line} --checkpoint-every 1h {snapshots}"));
        let sent = records[..100].concat();
        running.write(sent.as_bytes());
        await_that("an acknowledgement", || {
            position(&lab.path("acked")) == Some(sent.len() as u64)
        });
        if store == "known" {
            lab.await_snapshot(store, 100);
        }
        assert!(running.kill());
        for other in ["ingest -", "ingest - --resume"] {
            lab.feed(&format!("{other} --store {store}"), b"")
                .exits(2)
                .says(&["--spool", "--new-stream"]);
        }
        lab.run(&format!("ingest a --store {store}"))
            .exits(2)
            .says(&["-"]);
        lab.feed(
            &format!("{line} --new-stream"),
            records[100..].concat().as_bytes(),
        )
        .exits(0)
        .says(&["from byte 0 on"]);
    }
    // Of the first stream, the part up to the last checkpoint counts; one was made for the snapshot.
    assert_eq!(lab.stat("known")["records"], 200);
    assert_eq!(lab.stat("unknown")["records"], 100);
}

#[test]
fn a_stream_begun_without_a_spool_continues_without() {
    let lab = Lab::on_disk();
    let records = crawl(86, 200);
    let whole = records.concat();
    let mut running = lab.start("ingest - --store s --snapshot-every 100");
    running.write(records[..100].concat().as_bytes());
    lab.await_snapshot("s", 100);
    assert!(running.kill());
    lab.feed("ingest - --store s --spool", whole.as_bytes())
        .exits(2)
        .says(&["without --spool", "--new-stream"]);
    lab.feed("ingest - --store s", whole.as_bytes()).exits(0);
    assert_eq!(lab.stat("s")["records"], 200);
}

#[test]
fn after_its_end_a_spooled_stream_is_followed_by_a_new_one() {
    let lab = Lab::on_disk();
    let records = crawl(87, 200);
    let (first, second) = (records[..90].concat(), records[90..].concat());
    lab.feed("ingest - --store s --spool", first.as_bytes())
        .exits(0);
    lab.feed("ingest - --store s --spool", second.as_bytes())
        .exits(0)
        .says(&[
            "from byte 0 on",
            &format!("durable to byte {}", second.len()),
        ]);
    lab.file("w", records.concat());
    lab.run("ingest w --store whole").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
    // An unspooled stream may follow; then no spool is left to continue.
    lab.feed("ingest - --store s", records[0].as_bytes())
        .exits(0);
    assert!(lab.stat("s")["spool"].is_null());
    lab.feed("ingest - --store s --resume --spool", b"")
        .exits(2)
        .says(&["without --spool"]);
}

/// Like `resume_rereads_a_torn_record`, but only the rest is sent.
#[test]
fn resume_continues_within_a_torn_record() {
    let lab = Lab::on_disk();
    let lines: Vec<String> = (0..5)
        .map(|n| format!("{{\"url\":\"http://a/{n}\",\"links\":[\"http://b/{n}\"]}}\n"))
        .collect();
    let whole = lines.concat();
    let (torn, rest) = whole.split_at(lines[0].len() * 3 + 20);
    lab.feed("ingest - --store s --spool", torn.as_bytes())
        .exits(3)
        .says(&["record 4", "cut-short"]);
    lab.feed("ingest - --store s --resume", rest.as_bytes())
        .exits(2)
        .says(&["--spool"]);
    lab.feed("ingest - --store s --spool --resume", rest.as_bytes())
        .exits(0)
        .says(&[&format!("from byte {} on", torn.len())]);
    let stat = lab.stat("s");
    assert_eq!((&stat["records"], &stat["skipped"]), (&5.into(), &0.into()));
    lab.feed("ingest - --store whole", whole.as_bytes())
        .exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
}

/// Regression: a store without pages forgot what it had read, and with it the bytes of a torn first record, which had
/// been acknowledged: `--resume` then began at byte 0.
#[test]
fn a_torn_first_record_is_resumed() {
    let lab = Lab::on_disk();
    let whole = "{\"url\":\"http://a.example/\",\"links\":[\"http://b.example/\"]}\n";
    let (torn, rest) = whole.split_at(41);
    let line = format!("{LINE} --resume --format records");
    lab.feed(&line, torn.as_bytes()).exits(3);
    assert_eq!(position(&lab.path("acked")), Some(41));
    // Other settings would need all bytes again.
    lab.feed(&format!("{line} --damping 0.5"), rest.as_bytes())
        .exits(2)
        .says(&["--damping 0.85, not 0.5"]);
    lab.feed(&line, rest.as_bytes())
        .exits(0)
        .says(&["from byte 41 on"]);
    lab.feed("ingest - --store whole --format records", whole.as_bytes())
        .exits(0);
    assert_eq!(lab.export("s"), lab.export("whole"));
    // Without `--resume` the stream after a finished one begins at byte 0, and may have other settings.
    lab.feed(
        "ingest - --store t --spool --format records",
        torn.as_bytes(),
    )
    .exits(3);
    lab.feed("ingest - --store t --spool --damping 0.5", whole.as_bytes())
        .exits(0)
        .says(&["from byte 0 on"]);
    assert_eq!(lab.stat("t")["records"], 1);
}

/// A member that was damaged by the sender stays so; one that was cut short continues.
#[test]
fn damaged_and_cut_members() {
    let lab = Lab::on_disk();
    let records = crawl(88, 60);
    let members: Vec<Vec<u8>> = records
        .chunks(20)
        .map(|part| gzip(part.concat().as_bytes()))
        .collect();
    let whole = members.concat();
    let cut = members[0].len() + members[1].len() / 2;
    lab.feed("ingest - --store s --spool", &whole[..cut])
        .exits(4)
        .says(&["ends inside", &format!("durable to byte {cut}")]);
    lab.feed("ingest - --store s --spool", &whole[cut..])
        .exits(0)
        .says(&[&format!("from byte {cut} on")]);
    lab.file("w", &whole);
    lab.run("ingest w --store whole").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));

    let mut bad = whole.clone();
    bad[cut] ^= 0x40;
    for sent in [&bad[..], &[]] {
        lab.feed("ingest - --store t --spool", sent)
            .exits(4)
            .says(&["as they were sent", "--new-stream"]);
    }
    let rest = members[1..].concat();
    lab.feed("ingest - --store t --spool --new-stream", &rest)
        .exits(0);
    assert!(lab.snapshot("t") == lab.snapshot("whole"));
}

#[test]
fn damage_in_the_spool_has_its_exit_code() {
    let lab = Lab::on_disk();
    let whole = crawl(90, 120).concat();
    let (mut running, _) = begin(&lab, &format!("{LINE} --checkpoint-every 1h"));
    running.write(whole.as_bytes());
    await_that("an acknowledgement", || {
        position(&lab.path("acked")) == Some(whole.len() as u64)
    });
    assert!(running.kill());
    let segment = lab.path("s/spool/00000000000000000000");
    let sound = std::fs::read(&segment).unwrap();
    let mut bytes = sound.clone();
    bytes[2000] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    for line in [LINE, "verify --store s"] {
        lab.run(line)
            .exits(5)
            .says(&["00000000000000000000", "damaged"]);
    }
    std::fs::remove_file(&segment).unwrap();
    lab.run(LINE).exits(5).says(&["no segment holds byte 0"]);
    std::fs::write(&segment, sound).unwrap();
    lab.run(LINE).exits(0);
    lab.feed("ingest - --store whole", whole.as_bytes())
        .exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("whole"));
}

/// Regression: a sender that was cut off does not know whether its stream had been read to the end. Without `--resume`,
/// a stream sent again after its end counted twice.
#[test]
fn who_does_not_know_whether_the_stream_ended_says_resume() {
    let lab = Lab::on_disk();
    let text = crawl(97, 50).concat();
    lab.file("whole.file", &text);
    let line = "ingest - --spool --resume --store s";
    // The first time there is nothing to resume.
    lab.feed(line, text.as_bytes())
        .exits(0)
        .says(&["from byte 0 on"]);
    lab.feed(line, b"").exits(0);
    lab.run("ingest whole.file --store w").exits(0);
    assert!(lab.snapshot("s") == lab.snapshot("w"));
}
