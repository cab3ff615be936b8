//! Rankings in progress while the ingest continues: their bytes do not depend on what runs concurrently, and a ranking
//! that a full disk or a stop ends is made again.

use crate::common::snapshots;
use crate::crawl::crawl;
use crate::disk::{Files, Meddled, MeddledFile, Over};
use crate::folder::in_memory;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cashrank::{Error, KeepSnapshots};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_ingest::ingest::{
    Every, IngestEvent, IngestJob, IngestOutcome, Observer, ProgressReport, ingest,
};
use cashrank_store::check::{Depth, check};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::{DiskFile, RealDisk};

/// Rankings that were published, in that order.
#[derive(Default)]
struct Published(Vec<String>);

impl Observer for Published {
    fn note(&mut self, note: IngestEvent<'_>) {
        if let IngestEvent::Published { path, .. } = note {
            let name = path.file_name().unwrap();
            self.0.push(name.to_string_lossy().into_owned());
        }
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// Disk on which a ranking is published after a pause.
#[derive(Default)]
struct Slow {
    pause: Duration,
    /// Room in the folder of rankings, in bytes; 0: unlimited.
    room: u64,
    used: AtomicU64,
}

impl Over for Arc<Slow> {
    fn before(&self, path: &Path, create: bool) -> io::Result<()> {
        if create && path.ends_with("latest.tmp") {
            std::thread::sleep(self.pause);
        }
        Ok(())
    }

    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let is_ranking = path.parent().is_some_and(|dir| dir.ends_with("snapshots"));
        if is_ranking {
            Box::new(MeddledFile(file, self.clone()))
        } else {
            file
        }
    }
}

impl Files for Slow {
    fn write(&self, file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
        let used = self.used.fetch_add(data.len() as u64, Ordering::Relaxed);
        if self.room > 0 && used + data.len() as u64 > self.room {
            return Err(ErrorKind::StorageFull.into());
        }
        file.write_at(data, offset)
    }
}

/// Writes a crawl of 400 records whose pages change.
fn file(lab: &Path) -> PathBuf {
    let path = lab.join("crawl.jsonl");
    fs::write(&path, crawl(11, 400).concat()).unwrap();
    path
}

fn job(lab: &Path, store: &str) -> IngestJob {
    let mut job = IngestJob::new(lab.join(store), vec![InputName::File(file(lab))]);
    job.format = Some(Format::Records);
    job.checkpoint_every = Every::Never;
    job.snapshot_every = Every::Records(40);
    job.keep_snapshots = KeepSnapshots::ALL;
    job
}

fn run(job: &IngestJob, slow: &Arc<Slow>) -> Result<(IngestOutcome, Vec<String>), Error> {
    let mut published = Published::default();
    let outcome = ingest(job, Arc::new(Meddled(slow.clone())), &mut published)?;
    Ok((outcome, published.0))
}

fn slow(millis: u64) -> Arc<Slow> {
    Arc::new(Slow {
        pause: Duration::from_millis(millis),
        ..Slow::default()
    })
}

/// Rankings that take longer than reading does, with checkpoints in between.
#[test]
fn rankings_during_an_ingest_have_the_same_bytes() {
    let lab = in_memory();
    let (_, published) = run(&job(lab.path(), "slow"), &slow(20)).unwrap();
    let all = snapshots(&lab.path().join("slow"));
    let names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 10);
    assert!(published.iter().eq(names), "{published:?}");

    let mut checkpoints = job(lab.path(), "checkpoints");
    checkpoints.checkpoint_every = Every::Records(7);
    run(&checkpoints, &slow(10)).unwrap();
    assert!(snapshots(&lab.path().join("checkpoints")) == all);
    for store in ["slow", "checkpoints"] {
        let report = check(&RealDisk, &lab.path().join(store), Depth::Deep, None).unwrap();
        assert!(report.damage.is_empty(), "{store}: {:?}", report.damage);
    }
}

/// Rows are read again with other links until the row file is compacted, sooner or later depending on checkpoints: each
/// ranking still starts from the one before.
#[test]
fn compaction_changes_no_ranking() {
    let lab = in_memory();
    let record = |at: u64| {
        let links: Vec<String> = (1..=20)
            .map(|to| format!("/{}", (at * 7 + at / 30 * to + to) % 30))
            .collect();
        serde_json::json!({"url": format!("http://again.example/{}", at % 30), "links": links})
            .to_string()
            + "\n"
    };
    let path = lab.path().join("again.jsonl");
    fs::write(&path, (0..160).map(record).collect::<String>()).unwrap();
    let rankings = |store: &str, checkpoint_every| {
        let mut job = job(lab.path(), store);
        job.inputs = vec![InputName::File(path.clone())];
        job.checkpoint_every = checkpoint_every;
        run(&job, &slow(5)).unwrap();
        assert!(
            !job.store.join("rows/1").exists(),
            "they were not compacted"
        );
        snapshots(&job.store)
    };
    let expected = rankings("seldom", Every::Never);
    assert_eq!(expected.len(), 4);
    for every in [1, 3, 7, 11] {
        let store = format!("every-{every}");
        assert!(
            rankings(&store, Every::Records(every)) == expected,
            "{every}"
        );
    }
}

/// Only the newest two rankings stay.
#[test]
fn older_rankings_are_removed_while_the_ingest_continues() {
    let lab = in_memory();
    let mut job = job(lab.path(), "store");
    job.keep_snapshots = KeepSnapshots::newest(2);
    run(&job, &slow(10)).unwrap();
    let names: Vec<String> = snapshots(&job.store)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["000000000360.snapshot", "000000000400.snapshot"]);
}

/// Checks that importances in two snapshots of stores differ by at most the sum of both bounds.
fn agree(one: &Path, other: &Path) {
    let [one, other] = [one, other].map(|path| Snapshot::open(&RealDisk, path).unwrap());
    let bounds = one.bound_l1().unwrap() + other.bound_l1().unwrap();
    let off: f64 = (one.pages().zip(other.pages()))
        .map(|(one, other)| (one.unwrap().importance - other.unwrap().importance).abs())
        .sum();
    assert!(one.len() == other.len() && off <= bounds, "{off}, {bounds}");
}

/// The disk is full while a ranking is written: that is reported, and with room the same command continues, to rankings
/// that agree with the others.
#[test]
fn a_disk_that_is_full_meanwhile_loses_nothing() {
    let lab = in_memory();
    let whole = slow(0);
    run(&job(lab.path(), "whole"), &whole).unwrap();
    let folder = lab.path().join("whole/snapshots");
    let all = whole.used.load(Ordering::Relaxed);
    for part in 1..12 {
        let job = job(lab.path(), &format!("store-{part}"));
        let full = Arc::new(Slow {
            pause: Duration::from_millis(20),
            room: all * part / 12,
            ..Slow::default()
        });
        let full = run(&job, &full).map(|(_, published)| published);
        assert!(matches!(full, Err(Error::Io { .. })), "{full:?}");
        run(&job, &slow(0)).unwrap();
        let found = snapshots(&job.store);
        assert_eq!(found.last().unwrap().0, "000000000400.snapshot");
        for (name, _) in found {
            agree(
                &job.store.join("snapshots").join(&name),
                &folder.join(&name),
            );
        }
    }
}

/// Observer that stops once a checkpoint of some number of records is made.
struct Stopping(Arc<AtomicBool>, u64);

impl Observer for Stopping {
    fn note(&mut self, note: IngestEvent<'_>) {
        if matches!(note, IngestEvent::Checkpoint { records, .. } if records == self.1) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// A ranking that is stopped leaves nothing, and is made in the end.
#[test]
fn a_ranking_may_be_stopped_repeatedly() {
    let lab = in_memory();
    let at_the_end = |store: &str| {
        let mut job = job(lab.path(), store);
        job.snapshot_every = Every::Never;
        job
    };
    let whole = at_the_end("whole");
    ingest(&whole, Arc::new(RealDisk), &mut Published::default()).unwrap();
    let job = at_the_end("stopped");
    let is_warm = || job.store.join("warm").exists();
    for _ in 0..3 {
        let mut stopping = Stopping(job.stop.clone(), 400);
        let outcome = ingest(&job, Arc::new(RealDisk), &mut stopping).unwrap();
        assert!(outcome.stopped && outcome.counters.records == 400);
        assert!(job.stop.load(Ordering::Relaxed));
        assert!(snapshots(&job.store).is_empty() && !is_warm());
    }
    job.stop.store(false, Ordering::Relaxed);
    ingest(&job, Arc::new(RealDisk), &mut Published::default()).unwrap();
    assert!(is_warm());
    assert!(snapshots(&job.store) == snapshots(&whole.store));
}
