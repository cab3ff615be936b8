//! Streams that break off.

use cashrank::Error;
use cashrank_ingest::ingest::{Every, IngestJob, Stream, ingest};
use cashrank_store::store::RealDisk;
use std::sync::Arc;

use super::support::{Dice, Lab, Pack, Sender, Watch, crawl, pack, run, verify};

const PACKS: [Pack; 7] = [
    Pack::Plain,
    Pack::Gzip(0),
    Pack::Gzip(3000),
    Pack::Gzip(90),
    Pack::Zstd(0),
    Pack::Zstd(5000),
    Pack::Zstd(90),
];

/// Runs into the error of a reader, after which no checkpoint follows, as if the process had been killed.
fn break_off(job: &IngestJob, sender: &Sender, at: u64) {
    sender.break_at(at);
    match run(job) {
        Err(Error::Io { .. }) => {}
        other => panic!("broke off at {at}: {other:?}"),
    }
}

#[test]
fn a_stream_that_breaks_off_anywhere() {
    for (number, how) in PACKS.into_iter().enumerate() {
        let lab = Lab::new();
        let whole = pack(crawl(61, 220).concat().as_bytes(), how);
        let expected = lab.undisturbed(&whole, 1);
        for seed in 0..4 {
            let mut dice = Dice(100 * number as u64 + seed);
            let sender = Sender::new(whole.clone());
            let store = format!("s{seed}");
            let job = IngestJob {
                checkpoint_every: [
                    Every::Records(5),
                    Every::Records(7),
                    Every::Records(50),
                    Every::Never,
                ][seed as usize],
                ..lab.job(&store, &sender)
            };
            for _ in 0..4 {
                let left = whole.len() as u64 - sender.acked();
                if left < 2 {
                    break;
                }
                let at = sender.acked() + dice.roll(left.min(whole.len() as u64 / 4).max(1));
                break_off(&job, &sender, at);
                assert!(sender.acked() <= at);
                assert!(verify(&lab.path(&store)).is_ok());
            }
            sender.break_at(u64::MAX);
            let outcome = run(&job).unwrap();
            assert_eq!(outcome.durable, Some(whole.len() as u64));
            assert_eq!(sender.acked(), whole.len() as u64);
            assert!(lab.snapshot(&store) == expected, "{how:?}, seed {seed}");
        }
    }
}

/// A break at every byte of a short stream, and again at every byte of what is sent then.
#[test]
fn a_stream_that_breaks_off_at_every_byte() {
    for how in [Pack::Plain, Pack::Gzip(100), Pack::Zstd(150)] {
        let lab = Lab::new();
        let whole = pack(crawl(62, 6).concat().as_bytes(), how);
        let expected = lab.undisturbed(&whole, 1);
        for at in (0..whole.len() as u64).step_by(19) {
            let sender = Sender::new(whole.clone());
            let store = format!("s{at}");
            let mut job = lab.job(&store, &sender);
            job.checkpoint_every = Every::Records(1);
            if let Some(spool) = &mut job.spool {
                spool.sync_bytes = 1 + at % 90;
            }
            break_off(&job, &sender, at);
            break_off(&job, &sender, at + (whole.len() as u64 - at) / 2);
            sender.break_at(u64::MAX);
            run(&job).unwrap();
            assert!(lab.snapshot(&store) == expected, "{how:?} at {at}");
            std::fs::remove_dir_all(lab.path(&store)).unwrap();
        }
    }
}

/// Data that a checkpoint covers is removed, down to the member that holds its position or, with small members, one at
/// most 64 KiB before it.
#[test]
fn what_is_covered_goes() {
    for (how, kept) in [
        (Pack::Plain, 2),
        (Pack::Gzip(3000), 8),
        (Pack::Zstd(3000), 8),
        (Pack::Gzip(0), usize::MAX),
    ] {
        let lab = Lab::new();
        let whole = pack(crawl(63, 3000).concat().as_bytes(), how);
        assert!(whole.len() > 40_000, "{}", whole.len());
        let sender = Sender::new(whole.clone());
        let job = lab.job("s", &sender);
        break_off(&job, &sender, whole.len() as u64 - 10);
        let segments = lab.segments("s");
        match kept {
            usize::MAX => assert_eq!(segments[0], 0),
            _ => assert!(segments.len() <= kept, "{how:?}: {segments:?}"),
        }
        sender.break_at(u64::MAX);
        run(&job).unwrap();
        assert!(lab.snapshot("s") == lab.undisturbed(&whole, 1));
    }
}

/// Nothing was synced before the stream's end.
#[test]
fn no_checkpoint_on_the_way() {
    let lab = Lab::new();
    let whole = crawl(64, 200).concat().into_bytes();
    let sender = Sender::new(whole.clone());
    let mut job = IngestJob {
        checkpoint_every: Every::Never,
        ..lab.job("s", &sender)
    };
    if let Some(spool) = &mut job.spool {
        spool.sync_bytes = u64::MAX;
    }
    run(&job).unwrap();
    assert!(lab.snapshot("s") == lab.undisturbed(&whole, 1));
}

/// The sender died within a record or a member, and continues there.
#[test]
fn an_ended_stream_is_resumed() {
    let records = crawl(65, 60).concat();
    for (how, at) in [
        (Pack::Plain, records.len() / 2),
        (Pack::Plain, 0),
        (Pack::Gzip(700), 0),
        (Pack::Zstd(700), 0),
    ] {
        let lab = Lab::new();
        let whole = pack(records.as_bytes(), how);
        // At a record's or a member's end, and within one.
        let at = match (how, at) {
            (Pack::Plain, 0) => crawl(65, 60)[..20].concat().len(),
            (_, 0) => pack(&records.as_bytes()[..2100], how).len(),
            (_, at) => at,
        };
        for inside in [0, 9] {
            let at = at + inside;
            let torn = match how {
                Pack::Plain => whole[at - 1] != b'\n',
                _ => inside == 0 && records.as_bytes()[2099] != b'\n',
            };
            let sender = Sender::new(whole[..at].to_vec());
            let store = format!("s{inside}");
            let ended = run(&lab.job(&store, &sender));
            let cut_member = how != Pack::Plain && inside > 0;
            assert_eq!(ended.is_err(), cut_member, "{how:?} at {at}: {ended:?}");
            assert_eq!(sender.acked(), at as u64);
            let sender = Sender {
                bytes: Arc::new(whole.clone()),
                ..sender
            };
            let job = IngestJob {
                stream: if cut_member {
                    Stream::Auto
                } else {
                    Stream::Again
                },
                ..lab.job(&store, &sender)
            };
            run(&job).unwrap();
            let file = lab.undisturbed(&whole, 1);
            if torn {
                // The torn record was counted as skipped: the snapshot includes that, and the next one follows it.
                assert!(verify(&lab.path(&store)).is_ok());
                let records = |store: &str| {
                    let view =
                        cashrank_store::store::open_view(&RealDisk, &lab.path(store)).unwrap();
                    let counters = &view.manifest.engine.counters;
                    (counters.records, counters.visited, counters.links)
                };
                assert_eq!(records(&store), records("whole1"));
            } else {
                assert!(lab.snapshot(&store) == file, "{how:?} at {at}");
            }
            std::fs::remove_dir_all(lab.path("whole1")).unwrap();
        }
    }
}

/// A finished stream was continued and more was acknowledged, but no checkpoint was made since: the next run must not
/// take it for finished.
#[test]
fn what_was_acknowledged_after_an_end_is_not_dropped() {
    let lab = Lab::new();
    let records = crawl(66, 90);
    let whole = records.concat().into_bytes();
    let first = records[..30].concat().into_bytes();
    let sender = Sender::new(first.clone());
    run(&lab.job("s", &sender)).unwrap();
    let sender = Sender {
        bytes: Arc::new(whole.clone()),
        ..sender
    };
    let mut job = IngestJob {
        stream: Stream::Again,
        checkpoint_every: Every::Never,
        ..lab.job("s", &sender)
    };
    if let Some(spool) = &mut job.spool {
        spool.sync_bytes = 100;
    }
    break_off(&job, &sender, whole.len() as u64 - 50);
    assert!(sender.acked() > first.len() as u64 + 500);
    // Without --spool, or with other inputs, it would be lost.
    let refused = run(&IngestJob {
        spool: None,
        stream: Stream::Auto,
        ..job.clone()
    });
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    sender.break_at(u64::MAX);
    run(&IngestJob {
        stream: Stream::Auto,
        ..job
    })
    .unwrap();
    assert!(lab.snapshot("s") == lab.undisturbed(&whole, 1));
}

/// A stream that no checkpoint knows at all is not dropped either: the first, and one after another.
#[test]
fn a_stream_without_a_checkpoint_is_not_dropped() {
    let lab = Lab::new();
    let records = crawl(67, 90);
    let parts = [records[..40].concat(), records[40..].concat()];
    for part in &parts {
        // Started over after an unfinished one, or after a finished one: the same.
        let sender = Sender::new(part.clone().into_bytes());
        let mut job = IngestJob {
            checkpoint_every: Every::Never,
            ..lab.job("s", &sender)
        };
        if let Some(spool) = &mut job.spool {
            spool.sync_bytes = 100;
        }
        break_off(&job, &sender, part.len() as u64 / 2);
        assert!(sender.acked() > part.len() as u64 / 2 - 200);
        break_off(&job, &sender, part.len() as u64 - 20);
        sender.break_at(u64::MAX);
        run(&job).unwrap();
    }
    let whole = records.concat().into_bytes();
    assert!(lab.snapshot("s") == lab.undisturbed(&whole, 1));
}

/// `--new-stream` gives up an unfinished stream; killed before the next checkpoint, the new one still continues.
#[test]
fn a_new_stream_without_a_checkpoint_continues() {
    let lab = Lab::new();
    let records = crawl(68, 120);
    let (first, second) = (records[..60].concat(), records[60..].concat());
    let given_up = Sender::new(format!("{first}{{\"url\":").into_bytes());
    let job = IngestJob {
        checkpoint_every: Every::Records(60),
        ..lab.job("s", &given_up)
    };
    break_off(&job, &given_up, first.len() as u64 + 3);
    let sender = Sender::new(second.clone().into_bytes());
    let mut job = IngestJob {
        checkpoint_every: Every::Never,
        ..lab.job("s", &sender)
    };
    if let Some(spool) = &mut job.spool {
        spool.sync_bytes = 100;
    }
    let new = IngestJob {
        stream: Stream::New,
        ..job.clone()
    };
    break_off(&new, &sender, 800);
    assert!(sender.acked() > 0);
    sender.break_at(u64::MAX);
    run(&job).unwrap();
    let whole = format!("{first}{second}").into_bytes();
    assert!(lab.snapshot("s") == lab.undisturbed(&whole, 1));
}

/// A stream among files, once and replayed.
#[test]
fn a_stream_among_files() {
    let lab = Lab::new();
    let records = crawl(69, 150);
    let file = |name: &str, from: usize, to: usize| {
        let path = lab.path(name);
        std::fs::write(&path, records[from..to].concat()).unwrap();
        cashrank_crawl::source::InputName::File(path)
    };
    let (front, back) = (file("a", 0, 50), file("b", 100, 150));
    let middle = records[50..100].concat().into_bytes();
    let sender = Sender::new(middle.clone());
    let job = IngestJob {
        inputs: vec![
            front.clone(),
            cashrank_crawl::source::InputName::Stdin,
            back.clone(),
        ],
        ..lab.job("s", &sender)
    };
    break_off(&job, &sender, middle.len() as u64 / 2);
    sender.break_at(u64::MAX);
    // In each of the three inputs.
    for records in [120, 10, 30] {
        let job = IngestJob {
            stop: Arc::default(),
            ..job.clone()
        };
        let mut watch = Watch {
            stop: Some((1, records, job.stop.clone())),
            ..Watch::default()
        };
        ingest(&job, Arc::new(RealDisk), &mut watch).unwrap();
    }
    run(&job).unwrap();
    let whole = records.concat().into_bytes();
    assert!(lab.snapshot("s") == lab.undisturbed(&whole, 1));
    assert!(run(&job).unwrap().nothing_to_do);
}
