//! Damaged spools, and failing disks and listeners.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cashrank::Error;
use cashrank_ingest::ingest::{Every, IngestJob, Stream};
use cashrank_store::store::{DiskFile, RealDisk, spool_state};

use super::disk::{Files, Meddled, MeddledFile, Over};
use super::support::{Lab, Sender, crawl, run, run_on, verify};

/// Returns a stream that broke off, with much of it in several segments.
fn broken(lab: &Lab) -> (Sender, IngestJob) {
    let whole = crawl(71, 300).concat().into_bytes();
    let sender = Sender::new(whole.clone());
    let job = IngestJob {
        checkpoint_every: Every::Never,
        ..lab.job("s", &sender)
    };
    sender.break_at(whole.len() as u64 - 10);
    assert!(matches!(run(&job), Err(Error::Io { .. })));
    sender.break_at(u64::MAX);
    assert!(lab.segments("s").len() > 4);
    (sender, job)
}

#[test]
fn damage_below_the_acknowledged_position_is_found() {
    let lab = Lab::new();
    let (_, job) = broken(&lab);
    let spool = lab.path("s").join("spool");
    let mut files: Vec<_> = lab
        .segments("s")
        .iter()
        .map(|s| format!("{s:020}"))
        .collect();
    files.push("acked".into());
    for name in files {
        let path = spool.join(name);
        let sound = std::fs::read(&path).unwrap();
        for at in [0, 20, sound.len() / 2, sound.len() - 2] {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&path, bytes).unwrap();
            for result in [run(&job).map(drop), verify(&lab.path("s")).map(drop)] {
                assert!(
                    matches!(result, Err(Error::Damaged { .. })),
                    "{path:?}: {result:?}"
                );
            }
        }
        // The last byte of `acked` is a line feed.
        std::fs::write(&path, &sound[..sound.len() - 2]).unwrap();
        assert!(
            matches!(run(&job), Err(Error::Damaged { .. })),
            "{path:?} cut"
        );
        std::fs::remove_file(&path).unwrap();
        if !path.ends_with("acked") {
            assert!(
                matches!(run(&job), Err(Error::Damaged { .. })),
                "{path:?} missing"
            );
        }
        std::fs::write(&path, sound).unwrap();
    }
    assert!(verify(&lab.path("s")).unwrap() > 10_000);
}

/// If a checkpoint relies on the spool, its absence is damage; `--new-stream` gives it up.
#[test]
fn a_spool_that_a_checkpoint_needs_is_missed() {
    let lab = Lab::new();
    let sender = Sender::new(crawl(72, 100).concat().into_bytes());
    let job = lab.job("s", &sender);
    sender.break_at(5000);
    assert!(run(&job).is_err());
    std::fs::remove_dir_all(lab.path("s").join("spool")).unwrap();
    assert!(matches!(run(&job), Err(Error::Damaged { .. })));
    assert!(matches!(verify(&lab.path("s")), Err(Error::Damaged { .. })));
    let new = Sender::new(crawl(73, 10).concat().into_bytes());
    let job = IngestJob {
        stream: Stream::New,
        ..lab.job("s", &new)
    };
    run(&job).unwrap();
    verify(&lab.path("s")).unwrap();
}

/// Disk whose syncs in the spool fail from a certain one on.
struct Failing(Arc<AtomicU64>);

impl Over for Failing {
    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        if path.components().any(|part| part.as_os_str() == "spool") {
            Box::new(MeddledFile(file, Arc::new(Failing(self.0.clone()))))
        } else {
            file
        }
    }
}

impl Files for Failing {
    fn sync(&self, file: &dyn DiskFile) -> io::Result<()> {
        match self.0.fetch_sub(1, Ordering::Relaxed) as i64 {
            ..=0 => Err(io::Error::other("no luck")),
            _ => file.sync(),
        }
    }
}

#[test]
fn a_failed_sync_ends_the_run_and_nothing_is_lost() {
    let lab = Lab::new();
    let whole = crawl(74, 100).concat().into_bytes();
    let expected = lab.undisturbed(&whole, 1);
    for syncs in (0..20).step_by(2) {
        let sender = Sender::new(whole.clone());
        let store = format!("s{syncs}");
        let job = lab.job(&store, &sender);
        let result = run_on(
            &job,
            Arc::new(Meddled(Failing(Arc::new(AtomicU64::new(syncs))))),
        );
        match result {
            Err(Error::Io { .. }) => {}
            other => panic!("after {syncs} syncs: {other:?}"),
        }
        if let Some(standing) = spool_state(&RealDisk, &lab.path(&store)).unwrap() {
            assert!(sender.acked() <= standing.acked);
        }
        run(&job).unwrap();
        assert!(lab.snapshot(&store) == expected, "after {syncs} syncs");
    }
}

/// Stream that sends a little and is silent then.
struct Silent(Option<Vec<u8>>, Arc<AtomicBool>);

impl io::Read for Silent {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(bytes) = self.0.take() {
            out[..bytes.len()].copy_from_slice(&bytes);
            return Ok(bytes.len());
        }
        while !self.1.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(0)
    }
}

/// The clock makes a silent stream durable, and its failure ends the run although nothing arrives.
#[test]
fn the_clock_serves_a_silent_stream() {
    let lab = Lab::new();
    let sender = Sender::default();
    let bytes = crawl(75, 3).concat().into_bytes();
    for fails in [false, true] {
        let over = Arc::new(AtomicBool::new(false));
        let mut job = lab.job(&format!("s{fails}"), &sender);
        let (sent, until) = (bytes.clone(), over.clone());
        job.stdin = Arc::new(move || Box::new(Silent(Some(sent.clone()), until.clone())));
        let acked = Arc::new(AtomicU64::new(0));
        if let Some(spool) = &mut job.spool {
            spool.sync_every = Some(Duration::from_millis(20));
            let (acked, stop) = (acked.clone(), job.stop.clone());
            spool.on_durable = Some(Arc::new(move |position| {
                acked.store(position, Ordering::Relaxed);
                stop.store(position > 0, Ordering::Relaxed);
                Ok(())
            }));
        }
        job.checkpoint_every = Every::Never;
        let syncs = if fails { 1 } else { u64::MAX / 2 };
        let started = Instant::now();
        let result = run_on(
            &job,
            Arc::new(Meddled(Failing(Arc::new(AtomicU64::new(syncs))))),
        );
        assert!(started.elapsed() < Duration::from_secs(20));
        over.store(true, Ordering::Relaxed);
        if fails {
            assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
            assert_eq!(acked.load(Ordering::Relaxed), 0);
        } else {
            assert!(result.unwrap().stopped);
            assert_eq!(acked.load(Ordering::Relaxed), bytes.len() as u64);
        }
    }
}

#[test]
fn a_listener_that_fails_ends_the_run() {
    let lab = Lab::new();
    let sender = Sender::new(crawl(76, 50).concat().into_bytes());
    let mut job = lab.job("s", &sender);
    let calls = AtomicU64::new(0);
    if let Some(spool) = &mut job.spool {
        spool.on_durable = Some(Arc::new(move |_| {
            match calls.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(()),
                _ => Err(Error::Io {
                    path: "ack".into(),
                    action: "write",
                    source: io::Error::other("gone"),
                }),
            }
        }));
    }
    match run(&job) {
        Err(Error::Io { path, .. }) => assert_eq!(path, Path::new("ack")),
        other => panic!("{other:?}"),
    }
}
