//! Streams that are sent again after they had been read to their ends: never counted twice, and never lost.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cashrank::Error;
use cashrank_ingest::ingest::{IngestJob, Stream, ingest};
use cashrank_store::store::{DiskFile, RealDisk};

use super::disk::{Meddled, Over};
use super::support::{Lab, Pack, Sender, Watch, crawl, gzip, pack, run};

/// Disk on which no snapshot can be made, as for a process that is killed meanwhile.
struct NoSnapshots;

impl Over for NoSnapshots {
    fn before(&self, path: &Path, create: bool) -> io::Result<()> {
        let inside = path.components().any(|c| c.as_os_str() == "snapshots");
        if inside && create {
            Err(io::Error::other("killed"))
        } else {
            Ok(())
        }
    }

    fn over(&self, _: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        file
    }
}

/// Returns the job `ingest -` of these bytes, without a spool.
fn piped(lab: &Lab, store: &str, bytes: &[u8]) -> IngestJob {
    let bytes = bytes.to_vec();
    IngestJob {
        spool: None,
        format: None,
        stdin: Arc::new(move || Box::new(io::Cursor::new(bytes.clone()))),
        ..lab.job(store, &Sender::default())
    }
}

/// Returns the snapshot after several streams.
fn after(lab: &Lab, store: &str, streams: &[&[u8]]) -> Vec<u8> {
    for bytes in streams {
        let job = IngestJob {
            stream: Stream::New,
            ..piped(lab, store, bytes)
        };
        run(&job).unwrap();
    }
    lab.snapshot(store)
}

fn told(
    job: &IngestJob,
) -> (
    cashrank::Result<cashrank_ingest::ingest::IngestOutcome>,
    String,
) {
    let mut watch = Watch::default();
    let done = ingest(job, Arc::new(RealDisk), &mut watch);
    (done, watch.notes.join("\n"))
}

/// Regression: the end of a stream was committed before its last snapshot was made. After a kill in between, the same
/// command read the same stream as a new one: all of it was counted twice, silently.
#[test]
fn killed_while_the_last_snapshot_is_made() {
    let lab = Lab::new();
    let bytes = crawl(91, 200).concat().into_bytes();
    let expected = lab.undisturbed(&bytes, 1);
    let gz = gzip(&bytes);
    let pieces = pack(&bytes, Pack::Zstd(3_000));
    for (store, bytes) in [("plain", &bytes), ("gzip", &gz), ("zstd", &pieces)] {
        let job = piped(&lab, store, bytes);
        let killed = ingest(&job, Arc::new(Meddled(NoSnapshots)), &mut Watch::default());
        assert!(matches!(killed, Err(Error::Io { .. })), "{killed:?}");
        for _ in 0..2 {
            let (done, notes) = told(&job);
            assert!(done.unwrap().nothing_to_do);
            assert!(notes.contains("the last stream again"), "{notes}");
            assert!(lab.snapshot(store) == expected);
        }
    }
}

/// The same kill with a spool: a sender that sends everything again from byte 0, as requested, is informed that it was
/// read; its acknowledged bytes are in no spool that anybody waits for.
#[test]
fn a_spooled_stream_that_is_resent() {
    let lab = Lab::new();
    let bytes = crawl(92, 200).concat().into_bytes();
    let expected = lab.undisturbed(&bytes, 1);
    let sender = Sender::new(bytes.clone());
    let job = lab.job("s", &sender);
    let killed = ingest(&job, Arc::new(Meddled(NoSnapshots)), &mut Watch::default());
    assert!(killed.is_err());
    for _ in 0..2 {
        let sender = Sender::new(bytes.clone());
        let (done, notes) = told(&lab.job("s", &sender));
        assert!(done.unwrap().nothing_to_do);
        assert!(notes.contains("the last stream again"), "{notes}");
        assert!(lab.snapshot("s") == expected);
    }
    // A different stream is read.
    let other = crawl(93, 50).concat().into_bytes();
    run(&lab.job("s", &Sender::new(other.clone()))).unwrap();
    assert!(lab.snapshot("s") == after(&lab, "both", &[&bytes, &other]));
    // Additional records count from where it ended.
    let rest = crawl(94, 60).concat().into_bytes();
    let more = [&other[..], &rest].concat();
    let (done, notes) = told(&lab.job("s", &Sender::new(more)));
    done.unwrap();
    assert!(
        notes.contains("begins with all of the last stream"),
        "{notes}"
    );
    assert!(lab.snapshot("s") == after(&lab, "longer", &[&bytes, &other, &rest]));
}

/// If two runs read a spooled stream, the second has not seen its start. Sent again, it is recognised, or refused.
#[test]
fn a_spooled_stream_read_by_two_runs() {
    let lab = Lab::new();
    let bytes = crawl(95, 300).concat().into_bytes();
    let sender = Sender::new(bytes.clone());
    sender.break_at(20_000);
    assert!(run(&lab.job("s", &sender)).is_err());
    sender.break_at(u64::MAX);
    run(&lab.job("s", &sender)).unwrap();
    assert!(lab.snapshot("s") == lab.undisturbed(&bytes, 1));
    let (again, _) = told(&lab.job("s", &Sender::new(bytes.clone())));
    match again {
        Ok(done) => assert!(done.nothing_to_do),
        Err(Error::InputChanged(said)) => assert!(said.contains("`resume`"), "{said}"),
        Err(error) => panic!("{error}"),
    }
    assert!(lab.snapshot("s") == lab.undisturbed(&bytes, 1));
}

/// The daily pipe: any stream that differs is read, even if it begins in the same way.
#[test]
fn other_streams_are_read() {
    let lab = Lab::new();
    let records = crawl(96, 150);
    let first = records.concat().into_bytes();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("other", crawl(97, 80).concat().into_bytes()),
        ("packed", gzip(&first)),
        (
            "alike",
            [&records[..140], &crawl(98, 30)[..]]
                .concat()
                .concat()
                .into_bytes(),
        ),
        ("begins elsewhere", records[1..].concat().into_bytes()),
        ("nothing", Vec::new()),
    ];
    for (name, second) in cases {
        let expected = after(&lab, &format!("{name} expected"), &[&first, &second]);
        run(&piped(&lab, name, &first)).unwrap();
        let (done, notes) = told(&piped(&lab, name, &second));
        assert!(!done.unwrap().nothing_to_do, "{name}");
        assert!(
            !notes.contains("the last stream again")
                && !notes.contains("begins with all of the last stream"),
            "{name}: {notes}"
        );
        assert!(lab.snapshot(name) == expected, "{name}");
    }
}

#[test]
fn what_follows_the_same_bytes_is_counted_once() {
    let lab = Lab::new();
    // Settling starts from the ranking of the front, so the bytes differ from those of settling at once.
    let piped = |lab: &Lab, store: &str, bytes: &[u8]| IngestJob {
        settle: None,
        ..piped(lab, store, bytes)
    };
    let records = crawl(99, 200);
    let whole = records.concat().into_bytes();
    // The third one ends inside a record.
    let cuts = [
        records[..1].concat().len(),
        records[..150].concat().len(),
        12_345,
    ];
    for packed in [false, true] {
        for cut in cuts {
            let name = format!("{cut} {packed}");
            let (front, all) = if !packed {
                (whole[..cut].to_vec(), whole.clone())
            } else {
                (
                    gzip(&whole[..cut]),
                    [gzip(&whole[..cut]), gzip(&whole[cut..])].concat(),
                )
            };
            // A record cut short is read once it is complete, and is not counted before.
            run(&piped(&lab, &name, &front)).unwrap();
            let (done, notes) = told(&piped(&lab, &name, &all));
            done.unwrap();
            assert!(
                notes.contains("begins with all of the last stream"),
                "{name}: {notes}"
            );
            let resumed = format!("{name} resumed");
            run(&piped(&lab, &resumed, &front)).unwrap();
            let job = IngestJob {
                stream: Stream::Again,
                ..piped(&lab, &resumed, &all)
            };
            run(&job).unwrap();
            assert!(lab.snapshot(&name) == lab.snapshot(&resumed), "{name}");
            let straight = format!("{name} straight");
            run(&piped(&lab, &straight, &all)).unwrap();
            assert!(lab.snapshot(&name) == lab.snapshot(&straight), "{name}");
            // Then it is that stream.
            let (done, _) = told(&piped(&lab, &name, &all));
            assert!(done.unwrap().nothing_to_do);
        }
    }
}

#[test]
fn a_shorter_one_is_refused_and_a_new_one_is_counted() {
    let lab = Lab::new();
    let records = crawl(101, 200);
    let first = records.concat().into_bytes();
    run(&piped(&lab, "s", &first)).unwrap();
    let before = lab.snapshot("s");
    for records in [&records[..1], &records[..100]] {
        let shorter = records.concat().into_bytes();
        match told(&piped(&lab, "s", &shorter)).0 {
            Err(Error::InputChanged(said)) => assert!(said.contains("`new_stream`"), "{said}"),
            other => panic!("{other:?}"),
        }
        assert!(lab.snapshot("s") == before);
    }
    let job = IngestJob {
        stream: Stream::New,
        ..piped(&lab, "s", &first)
    };
    let done = run(&job).unwrap();
    assert_eq!(done.counters.records, 2 * done.before.records);
}

/// Regression: a stop before the first byte of a new stream made the stream before it unfinished, and the new one was
/// taken for it. Now it has no effect.
#[test]
fn stopped_before_a_new_stream_began() {
    struct Silent(Arc<AtomicBool>);
    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.0.store(true, Ordering::Relaxed);
            loop {
                std::thread::park();
            }
        }
    }
    let lab = Lab::new();
    let (first, second) = (crawl(104, 90).concat(), crawl(105, 90).concat());
    run(&piped(&lab, "s", first.as_bytes())).unwrap();
    let job = piped(&lab, "s", b"");
    let stop = job.stop.clone();
    let stopped = run(&IngestJob {
        stdin: Arc::new(move || Box::new(Silent(stop.clone()))),
        ..job
    });
    assert!(stopped.unwrap().stopped);
    run(&piped(&lab, "s", second.as_bytes())).unwrap();
    let expected = after(&lab, "both", &[first.as_bytes(), second.as_bytes()]);
    assert!(lab.snapshot("s") == expected);
}
