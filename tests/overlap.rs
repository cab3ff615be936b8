//! A ranking on the way begins while the one before is still being written: the bytes are those of rankings one after the
//! other, the store is whole whatever happens meanwhile, and with too little memory for both the next one waits.

use crate::common::snapshots;
use crate::crawl::crawl;
use crate::disk::{Files, Meddled, MeddledFile, Over};

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cashrank::check::{Depth, check};
use cashrank::formats::Format;
use cashrank::ingest::{Every, Job, Note, Observer, Outcome, ProgressReport, ingest};
use cashrank::source::InputName;
use cashrank::store::{DiskFile, RealDisk};
use cashrank::{Error, KeepSnapshots};

/// Which rankings were published, in that order.
#[derive(Default)]
struct Published(Vec<String>);

impl Observer for Published {
    fn note(&mut self, note: Note<'_>) {
        if let Note::Published { path, .. } = note {
            let name = path.file_name().unwrap();
            self.0.push(name.to_string_lossy().into_owned());
        }
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// A disk on which a ranking is not published before the next has begun, or so much time went by.
#[derive(Default)]
struct Slow {
    pause: Duration,
    /// Names of files that were made, in that order.
    made: Mutex<Vec<String>>,
    /// Bytes for which there is room in the folder of rankings; 0: all.
    room: u64,
    used: AtomicU64,
}

impl Slow {
    /// How many rankings were begun, and published, until the last was begun. Each begins with a copy of the cash.
    fn until_last(&self) -> (usize, usize) {
        let made = self.made.lock().unwrap();
        let last = made.iter().rposition(|name| name.ends_with(".cash.tmp"));
        count(&made[..last.unwrap_or(0)])
    }

    /// Whether the last ranking was begun while the one before was being written.
    fn overlapped(&self) -> bool {
        let (begun, published) = self.until_last();
        published < begun
    }
}

fn count(made: &[String]) -> (usize, usize) {
    let begun = made.iter().filter(|name| name.ends_with(".cash.tmp"));
    let published = made.iter().filter(|name| *name == "latest.tmp");
    // Of the first ranking it is made before to say that there will be one, then found, removed and made again.
    (begun.count(), published.count().saturating_sub(2))
}

impl Over for Arc<Slow> {
    fn before(&self, path: &Path, create: bool) -> io::Result<()> {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !create {
            return Ok(());
        }
        let until = Instant::now() + self.pause;
        while name == "latest.tmp" && Instant::now() < until {
            let (begun, published) = count(&self.made.lock().unwrap());
            if begun > published + 1 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.made.lock().unwrap().push(name);
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

/// A crawl whose pages change, of 400 records.
fn file(lab: &Path) -> PathBuf {
    let path = lab.join("crawl.jsonl");
    fs::write(&path, crawl(11, 400).concat()).unwrap();
    path
}

fn job(lab: &Path, store: &str) -> Job {
    let mut job = Job::new(lab.join(store), vec![InputName::File(file(lab))]);
    job.format = Some(Format::Records);
    job.checkpoint_every = Every::Never;
    job.snapshot_every = Every::Records(40);
    job.keep_snapshots = KeepSnapshots::ALL;
    job
}

fn run(job: &Job, slow: &Arc<Slow>) -> Result<(Outcome, Vec<String>), Error> {
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

/// Rankings that overlap, rankings one after the other (as with others beside them), and with checkpoints between.
#[test]
fn rankings_that_overlap_have_the_same_bytes() {
    let lab = tempfile::tempdir().unwrap();
    let disk = slow(400);
    let (_, published) = run(&job(lab.path(), "overlapping"), &disk).unwrap();
    assert!(disk.overlapped());
    let all = snapshots(&lab.path().join("overlapping"));
    let names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 10);
    assert!(published.iter().eq(names), "{published:?}");

    let mut beside = job(lab.path(), "beside");
    beside.also = vec!["page:salsa".parse().unwrap()];
    let disk = slow(0);
    run(&beside, &disk).unwrap();
    assert!(!disk.overlapped());
    let mut one_by_one = snapshots(&lab.path().join("beside"));
    one_by_one.retain(|(name, _)| name.ends_with(".snapshot"));
    assert!(one_by_one == all, "one after the other they differ");

    let mut checkpoints = job(lab.path(), "checkpoints");
    checkpoints.checkpoint_every = Every::Records(7);
    run(&checkpoints, &slow(100)).unwrap();
    assert!(snapshots(&lab.path().join("checkpoints")) == all);
    for store in ["overlapping", "beside", "checkpoints"] {
        let report = check(&RealDisk, &lab.path().join(store), Depth::Deep, None).unwrap();
        assert!(report.damage.is_empty(), "{store}: {:?}", report.damage);
    }
}

/// Of the rankings only the newest two stay, however late each is published.
#[test]
fn older_rankings_go_though_the_next_has_begun() {
    let lab = tempfile::tempdir().unwrap();
    let mut job = job(lab.path(), "store");
    job.keep_snapshots = KeepSnapshots::newest(2);
    let disk = slow(400);
    run(&job, &disk).unwrap();
    assert!(disk.overlapped());
    let names: Vec<String> = snapshots(&job.store)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["000000000360.snapshot", "000000000400.snapshot"]);
}

/// The disk is full while a ranking is written and the next is settled: that is said, and with room the same command continues
/// to the same bytes.
#[test]
fn a_disk_that_is_full_meanwhile_loses_nothing() {
    let lab = tempfile::tempdir().unwrap();
    let whole = slow(0);
    run(&job(lab.path(), "whole"), &whole).unwrap();
    let expected = snapshots(&lab.path().join("whole"));
    let all = whole.used.load(Ordering::Relaxed);
    for part in 1..12 {
        let job = job(lab.path(), &format!("store-{part}"));
        let full = Arc::new(Slow {
            pause: Duration::from_millis(100),
            room: all * part / 12,
            ..Slow::default()
        });
        let full = run(&job, &full).map(|(_, published)| published);
        assert!(matches!(full, Err(Error::Io { .. })), "{full:?}");
        run(&job, &slow(0)).unwrap();
        let found = snapshots(&job.store);
        assert_eq!(
            found.last(),
            expected.last(),
            "with room for {part} twelfths"
        );
        let known = |found: &(String, Vec<u8>)| expected.contains(found);
        assert!(found.iter().all(known), "with room for {part} twelfths");
    }
}

/// Memory for one settling, and not for two: each is made, and has the same bytes.
#[test]
fn with_memory_for_one_the_next_waits() {
    let lab = tempfile::tempdir().unwrap();
    let links = |page: u64| (0..3_000).map(move |link| format!("/{page}/{link}"));
    let record = |page: u64| {
        let links: Vec<String> = links(page).collect();
        serde_json::json!({"url": format!("http://wide.example/{page}/0"), "links": links})
            .to_string()
            + "\n"
    };
    let path = lab.path().join("wide.jsonl");
    fs::write(&path, (0..12).map(record).collect::<String>()).unwrap();
    let wide = |store: &str| {
        let mut job = job(lab.path(), store);
        job.inputs = vec![InputName::File(path.clone())];
        job.snapshot_every = Every::Records(2);
        job
    };
    let disk = slow(400);
    let (outcome, _) = run(&wide("plenty"), &disk).unwrap();
    assert!(disk.overlapped());
    let mut little = wide("little");
    // 18 bytes a page, of which there are 36,000 at last.
    little.limits.memory = Some(outcome.need.total() + 18 * 36_000 * 5 / 4);
    let disk = slow(400);
    run(&little, &disk).unwrap();
    assert!(snapshots(&little.store) == snapshots(&lab.path().join("plenty")));
}

/// A disk on which commits fail from some moment on, as if the process was killed before the next one.
#[derive(Default)]
struct Cut {
    /// The copy of the cash was made with which a ranking begins,
    begun: AtomicBool,
    /// and what says that it is published.
    published: AtomicBool,
    /// From now on no commit is made,
    cut: AtomicBool,
    /// or from when a ranking is published on.
    at_ranking: bool,
}

impl Over for Arc<Cut> {
    fn before(&self, path: &Path, create: bool) -> io::Result<()> {
        let name = path.file_name().unwrap().to_string_lossy();
        let begun = create && name.ends_with(".cash.tmp");
        self.begun.fetch_or(begun, Ordering::Relaxed);
        let published = create && name == "latest.tmp";
        self.published.fetch_or(published, Ordering::Relaxed);
        Ok(())
    }

    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        if path.ends_with("store.redb") {
            Box::new(MeddledFile(file, self.clone()))
        } else {
            file
        }
    }
}

impl Files for Cut {
    fn write(&self, file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is_set(&self.cut) || self.at_ranking && is_set(&self.published) {
            return Err(io::Error::other("cut"));
        }
        file.write_at(data, offset)
    }
}

/// Cuts once a checkpoint of so many records is made. Where the disk cuts at a ranking, reading waits until the one that was begun
/// is there, so that this is known before the next commit, unless that takes very long.
struct Cutting {
    disk: Arc<Cut>,
    checkpoint: u64,
    /// What was wrong with bases.
    warnings: Vec<String>,
}

impl Cutting {
    fn wait(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        while self.disk.at_ranking && is_set(&self.disk.begun) && Instant::now() < until {
            if is_set(&self.disk.published) {
                // Its thread ends.
                std::thread::sleep(Duration::from_millis(100));
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Observer for Cutting {
    fn note(&mut self, note: Note<'_>) {
        match note {
            Note::Checkpoint { records, .. } if records == self.checkpoint => {
                self.disk.cut.store(true, Ordering::Relaxed);
            }
            Note::Base { warning } => self.warnings.push(warning.to_string()),
            _ => self.wait(),
        }
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {
        self.wait();
    }
}

/// Its story: what the campaign of faults spoils was looked up in every run, through a way that lifts the protection of the rows
/// that the committed base is of. Once a ranking had left the next base, and before a commit named it, these rows were removed;
/// cut right then, the next run ranked from the start. They stay.
#[test]
fn rows_of_the_committed_base_stay_until_the_next_is_committed() {
    let lab = tempfile::tempdir().unwrap();
    // All pages are read several times, with other links: at 80 records half of the rows are superseded.
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
    let again = |store: &str| {
        let mut job = job(lab.path(), store);
        job.inputs = vec![InputName::File(path.clone())];
        job
    };
    let cutting = |store: &str, (checkpoint, at_ranking): (u64, bool)| {
        let disk = Arc::new(Cut {
            at_ranking,
            ..Cut::default()
        });
        let mut cutting = Cutting {
            disk: disk.clone(),
            checkpoint,
            warnings: Vec::new(),
        };
        let done = ingest(&again(store), Arc::new(Meddled(disk)), &mut cutting);
        (done.map(drop), cutting.warnings)
    };
    let rows = |number: u64| lab.path().join(format!("store/rows/{number}")).exists();
    let (done, _) = cutting("whole", (0, false));
    done.unwrap();
    // The base of 40 records is committed at 80, of which one is owed.
    let (done, _) = cutting("store", (80, false));
    assert!(matches!(done, Err(Error::Io { .. })), "{done:?}");
    assert!(rows(1) && rows(2), "they were not compacted");
    // That base is made, and no commit names it.
    let (done, _) = cutting("store", (0, true));
    assert!(matches!(done, Err(Error::Io { .. })), "{done:?}");
    assert!(rows(1), "rows of the committed base are gone");
    let (done, warnings) = cutting("store", (0, false));
    done.unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let latest = |store: &str| snapshots(&lab.path().join(store)).pop();
    assert!(latest("store").is_some() && latest("store") == latest("whole"));
}

/// Asks to stop once a checkpoint of so many records is made.
struct Stopping(Arc<AtomicBool>, u64);

impl Observer for Stopping {
    fn note(&mut self, note: Note<'_>) {
        if matches!(note, Note::Checkpoint { records, .. } if records == self.1) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// Its story: of a run that had only the ranking left to make, a stop was heard after its base was settled all the same, and what
/// came later started from that.
#[test]
fn a_ranking_may_be_stopped_again_and_again() {
    let lab = tempfile::tempdir().unwrap();
    let at_the_end = |store: &str| {
        let mut job = job(lab.path(), store);
        job.snapshot_every = Every::Never;
        job
    };
    let whole = at_the_end("whole");
    ingest(&whole, Arc::new(RealDisk), &mut Published::default()).unwrap();
    let job = at_the_end("stopped");
    let bases = || fs::read_dir(job.store.join("base")).map_or(0, Iterator::count);
    for _ in 0..3 {
        let mut stopping = Stopping(job.stop.clone(), 400);
        let outcome = ingest(&job, Arc::new(RealDisk), &mut stopping).unwrap();
        assert!(outcome.stopped && outcome.counters.records == 400);
        assert!(job.stop.load(Ordering::Relaxed));
        assert_eq!((snapshots(&job.store).len(), bases()), (0, 0));
    }
    job.stop.store(false, Ordering::Relaxed);
    ingest(&job, Arc::new(RealDisk), &mut Published::default()).unwrap();
    assert_eq!(bases(), 1);
    assert!(snapshots(&job.store) == snapshots(&whole.store));
}
