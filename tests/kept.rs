//! Passes that apply what one before kept (`--replay-disk`) give the same bytes as passes that read the
//! files again, whatever stops them and whatever becomes of what was kept.

use crate::crawl;
use crate::disk;
use crate::pack;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cashrank::ingest::{Every, Job, Note, Observer, Outcome, Standing, ingest};
use cashrank::source::{InputName, SourceOptions};
use cashrank::store::{DiskFile, RealDisk, Settings};
use cashrank::{Config, Error, Limits};
use crawl::crawl;
use disk::{Meddled, Over};
use tempfile::TempDir;

/// Places of the operations on the kept file that fail, by number.
#[derive(Default)]
struct Faults {
    create: bool,
    write: Option<u64>,
    read: Option<u64>,
    /// A bit of what is read is turned.
    turn: Option<u64>,
    written: AtomicU64,
    reads: AtomicU64,
    /// No mark can be made from then on.
    no_marks: AtomicBool,
}

/// The system's disk, with faults where passes are kept.
#[derive(Clone, Default)]
struct Meddling(Arc<Faults>);

struct Kept(Box<dyn DiskFile>, Arc<Faults>);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Over for Meddling {
    fn before(&self, path: &Path, create: bool) -> io::Result<()> {
        let is_mark = path.components().any(|part| part.as_os_str() == "marks");
        if is_mark && create && self.0.no_marks.load(Ordering::Relaxed) {
            return Err(io::Error::other("no mark"));
        }
        match path.ends_with("replay") && self.0.create {
            true => Err(io::Error::other("not here")),
            false => Ok(()),
        }
    }

    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        match path.ends_with("replay") {
            true => Box::new(Kept(file, self.0.clone())),
            false => file,
        }
    }
}

impl DiskFile for Kept {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let number = Some(self.1.reads.fetch_add(1, Ordering::Relaxed));
        if number == self.1.read {
            return Err(io::Error::other("gone"));
        }
        self.0.read_at(buf, offset)?;
        if number == self.1.turn {
            let middle = buf.len() / 2;
            buf[middle] ^= 4;
        }
        Ok(())
    }
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        if Some(self.1.written.fetch_add(1, Ordering::Relaxed)) == self.1.write {
            return Err(io::Error::other("no room"));
        }
        self.0.write_at(data, offset)
    }
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        panic!("what is kept is not made durable");
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}

/// Notes what is told of records and inputs, and stops after so many pieces of later passes.
#[derive(Default)]
struct Watch {
    skipped: Vec<String>,
    not_replayed: Vec<String>,
    stop_after: Option<u64>,
    stop: Arc<AtomicBool>,
    pieces: u64,
}

impl Observer for Watch {
    fn note(&mut self, note: Note<'_>) {
        match note {
            Note::Skipped { .. } => self.skipped.push(format!("{note:?}")),
            Note::NotReplayed { input, why } => self.not_replayed.push(format!("{input}: {why}")),
            _ => {}
        }
    }

    fn progress(&mut self, standing: &Standing<'_>) {
        self.pieces += u64::from(standing.pass > 1);
        if self.stop_after.is_some_and(|pieces| self.pieces > pieces) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

struct Lab {
    dir: TempDir,
    inputs: Vec<InputName>,
    stores: Mutex<u64>,
}

impl Lab {
    /// Records of three kinds: plain with lines that are skipped, packed, and an archive.
    fn new() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mut lines = crawl(31, 300);
        lines.insert(20, "{\"url\": 3}\n".into());
        lines.insert(
            90,
            format!(
                "{{\"url\":\"http://long.example/{}\"}}\n",
                "x".repeat(9_000)
            ),
        );
        lines.insert(91, "\n".into());
        lines.push("no record, and no line end".into());
        std::fs::write(path("a.jsonl"), lines.concat()).unwrap();
        let packed = pack::gzip(crawl(32, 200).concat().as_bytes());
        std::fs::write(path("b.jsonl.gz"), packed).unwrap();
        std::fs::write(path("c.jsonl"), crawl(33, 250).concat()).unwrap();
        let converted = Command::new(env!("CARGO_BIN_EXE_cashrank"))
            .args(["convert", "c.jsonl", "-o", "c.cza", "--block-records", "40"])
            .args(["--limit-line", "8000"])
            .current_dir(dir.path())
            .status();
        assert!(converted.unwrap().success());
        let edges: String = (0..900)
            .map(|n: u64| format!("{}\t{}\n", n / 9, n * n % 131))
            .collect();
        std::fs::write(path("d.edges"), edges).unwrap();
        let inputs = ["a.jsonl", "b.jsonl.gz", "c.cza", "d.edges"];
        Lab {
            inputs: inputs.map(|name| InputName::File(path(name))).into(),
            dir,
            stores: Mutex::new(0),
        }
    }

    /// A store that there is not yet.
    fn store(&self) -> PathBuf {
        let mut stores = self.stores.lock().unwrap();
        *stores += 1;
        self.dir.path().join(format!("s{stores}"))
    }

    fn job(&self, replay_bytes: u64) -> Job {
        Job {
            repeat: 4,
            replay_bytes,
            threads: 2,
            settings: Settings::new(Config::default(), &limits()),
            limits: limits(),
            checkpoint_every: Every::Records(83),
            snapshot_every: Every::Records(211),
            // Many pieces.
            source: SourceOptions {
                chunk_bytes: 3_000,
                ..SourceOptions::default()
            },
            ..Job::new(self.store(), self.inputs.clone())
        }
    }
}

fn limits() -> Limits {
    Limits {
        line_bytes: 8_000,
        ..Limits::default()
    }
}

fn run(job: &Job, disk: &Meddling) -> (cashrank::Result<Outcome>, Watch) {
    run_to(job, disk, None)
}

fn run_to(
    job: &Job,
    disk: &Meddling,
    stop_after: Option<u64>,
) -> (cashrank::Result<Outcome>, Watch) {
    job.stop.store(false, Ordering::Relaxed);
    let mut watch = Watch {
        stop: job.stop.clone(),
        stop_after,
        ..Watch::default()
    };
    let result = ingest(job, Arc::new(Meddled(disk.clone())), &mut watch);
    assert!(!job.store.join("replay").exists());
    (result, watch)
}

/// All snapshots, in order.
fn snapshots(store: &Path) -> Snapshots {
    let mut found: Vec<_> = std::fs::read_dir(store.join("snapshots"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name() != "latest.json")
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    found.sort();
    found
}

/// Asserts that two stores published the same.
#[track_caller]
fn assert_same(found: &[(String, Vec<u8>)], read: &[(String, Vec<u8>)], what: &str) {
    let names =
        |of: &[(String, Vec<u8>)]| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(found), names(read), "{what}");
    for (found, read) in found.iter().zip(read) {
        assert!(found == read, "{what}: {} differs", found.0);
    }
}

/// Names and bytes of snapshots.
type Snapshots = Vec<(String, Vec<u8>)>;

/// What a run that reads all passes gives: its snapshots, what it said of records, its counts.
fn expected(lab: &Lab, change: impl Fn(&mut Job)) -> (Snapshots, Vec<String>, Outcome) {
    let mut job = lab.job(0);
    change(&mut job);
    let disk = Meddling::default();
    let (outcome, watch) = run(&job, &disk);
    assert_eq!(disk.0.written.load(Ordering::Relaxed), 0);
    assert!(watch.not_replayed.is_empty());
    (snapshots(&job.store), watch.skipped, outcome.unwrap())
}

#[test]
fn kept_passes_give_the_same_bytes_as_read_ones() {
    let lab = Lab::new();
    let with = |config: fn(&mut Config)| {
        move |job: &mut Job| {
            let mut changed = Config::default();
            config(&mut changed);
            job.settings = Settings::new(changed, &job.limits);
        }
    };
    let configs: [fn(&mut Config); 2] = [
        |_| {},
        |config| {
            config.follow = "internal=3,external=1".parse().unwrap();
            config.window = "fixed:500s".parse().unwrap();
        },
    ];
    for (at, config) in configs.into_iter().enumerate() {
        let change = with(config);
        let inputs = |job: &mut Job| {
            change(job);
            if at == 1 {
                // Its records have no times.
                job.inputs.pop();
                job.complete = true;
            }
        };
        let (snapshots_read, skipped, outcome) = expected(&lab, inputs);
        assert!(snapshots_read.len() > 8);
        assert!(skipped.len() > 8, "{skipped:?}");
        for (bytes, threads, every) in [
            (u64::MAX, 1, Every::Records(83)),
            (u64::MAX, 3, Every::Never),
            // Room for some of the inputs.
            (16_000, 2, Every::Records(83)),
        ] {
            let mut job = lab.job(bytes);
            inputs(&mut job);
            job.threads = threads;
            job.checkpoint_every = every;
            let disk = Meddling::default();
            let (found, watch) = run(&job, &disk);
            let found = found.unwrap();
            assert_same(
                &snapshots(&job.store),
                &snapshots_read,
                &format!("{bytes} bytes, {threads} threads"),
            );
            assert_eq!(watch.skipped, skipped);
            assert_eq!(found.counters, outcome.counters);
            assert_eq!(watch.not_replayed.len(), usize::from(bytes < u64::MAX));
            // Three passes replay what was kept.
            assert!(disk.0.reads.load(Ordering::Relaxed) >= 3);
        }
    }
}

#[test]
fn a_run_stopped_in_a_kept_pass_goes_on_to_the_same_bytes() {
    let lab = Lab::new();
    // Snapshots are made by number of records: all of them are the same, wherever it was stopped.
    let (read, ..) = expected(&lab, |_| {});
    for every in [Every::Records(83), Every::Never] {
        for stop_after in (0..42).step_by(3) {
            let mut job = lab.job(u64::MAX);
            job.checkpoint_every = every;
            let disk = Meddling::default();
            let (stopped, _) = run_to(&job, &disk, Some(stop_after));
            let stopped = stopped.unwrap();
            assert!(stopped.stopped, "after {stop_after} pieces: {stopped:?}");
            let leftover = job.store.join("replay");
            std::fs::write(leftover, "what a killed process left").unwrap();
            let (done, watch) = run(&job, &disk);
            assert!(!done.unwrap().stopped);
            assert!(watch.not_replayed.is_empty());
            assert_same(
                &snapshots(&job.store),
                &read,
                &format!("after {stop_after} pieces"),
            );
        }
    }
}

/// Does something at the first piece of pass 3.
struct Meddler<F: FnMut()>(F, bool);

impl<F: FnMut()> Observer for Meddler<F> {
    fn note(&mut self, _: Note<'_>) {}

    fn progress(&mut self, standing: &Standing<'_>) {
        if standing.pass == 3 && !self.1 {
            self.1 = true;
            (self.0)();
        }
    }
}

/// Looks for what was kept when a checkpoint has been made.
struct Looker(PathBuf, Vec<bool>);

impl Observer for Looker {
    fn note(&mut self, note: Note<'_>) {
        if let Note::Checkpoint { .. } = note {
            self.1.push(self.0.join("replay").exists());
        }
    }

    fn progress(&mut self, _: &Standing<'_>) {}
}

/// The end takes most of the disk: a run that would have had room without what was kept ran out of it.
#[test]
fn the_last_checkpoint_has_the_room_of_what_was_kept() {
    let lab = Lab::new();
    let job = lab.job(u64::MAX);
    let mut looker = Looker(job.store.clone(), Vec::new());
    ingest(&job, Arc::new(RealDisk), &mut looker).unwrap();
    let (last, others) = looker.1.split_last().unwrap();
    assert!(!last && others.iter().any(|there| *there));
}

/// Nothing of a file that is no longer there, or no file, may be made durable: the store would be of no further use.
#[test]
fn a_file_that_is_replayed_must_still_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let (input, aside) = (dir.path().join("in.jsonl"), dir.path().join("aside"));
    let text = crawl(36, 300).concat();
    std::fs::write(&input, &text).unwrap();
    type Change<'a> = (&'a str, &'a dyn Fn(&Path));
    let changes: [Change; 4] = [
        ("gone", &|_| {}),
        ("directory", &|input| std::fs::create_dir(input).unwrap()),
        ("device", &|input| {
            std::os::unix::fs::symlink("/dev/null", input).unwrap()
        }),
        ("other", &|input| std::fs::write(input, "{}").unwrap()),
    ];
    for every in [Every::Never, Every::Records(20)] {
        for (name, change) in &changes {
            let job = Job {
                repeat: 4,
                checkpoint_every: every,
                ..Job::new(
                    dir.path().join(format!("{name}{every:?}")),
                    vec![InputName::File(input.clone())],
                )
            };
            let meddle = || {
                std::fs::rename(&input, &aside).unwrap();
                change(&input);
            };
            let mut meddler = Meddler(meddle, false);
            let result = ingest(&job, Arc::new(RealDisk), &mut meddler);
            assert!(meddler.1, "{name}");
            match result {
                Err(Error::InputChanged(what)) => {
                    assert!(what.contains("changed since pass 1"), "{what}")
                }
                Err(Error::Io { path, .. }) => assert!(path == input && *name == "gone"),
                other => panic!("{name}: {other:?}"),
            }
            if *name == "directory" {
                std::fs::remove_dir(&input).unwrap();
            }
            std::fs::rename(&aside, &input).unwrap();
            // Put back, the same command goes on.
            ingest(&job, Arc::new(RealDisk), &mut Watch::default()).unwrap();
        }
    }
}

/// The place of a failure inside a piece has no hash, which hid what had failed.
#[test]
fn a_failure_of_the_store_in_a_kept_pass_is_told_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = ["a", "b"].map(|name| dir.path().join(name));
    // Rounds end inside the second's only piece.
    std::fs::write(&inputs[0], crawl(37, 10).concat()).unwrap();
    std::fs::write(&inputs[1], crawl(38, 5_000).concat()).unwrap();
    for every in [Every::Never, Every::Records(83)] {
        let job = Job {
            repeat: 4,
            checkpoint_every: every,
            ..Job::new(
                dir.path().join(format!("{every:?}")),
                inputs.clone().map(InputName::File).into(),
            )
        };
        let disk = Meddling::default();
        let faults = disk.0.clone();
        let mut meddler = Meddler(|| faults.no_marks.store(true, Ordering::Relaxed), false);
        let result = ingest(&job, Arc::new(Meddled(disk.clone())), &mut meddler);
        match result {
            Err(Error::Io { path, .. }) => assert!(path.parent().unwrap().ends_with("marks")),
            other => panic!("{other:?}"),
        }
        run(&job, &Meddling::default()).0.unwrap();
    }
}

/// It is a convenience: without it the files are read.
#[test]
fn faults_of_what_was_kept_change_nothing() {
    let lab = Lab::new();
    let (read, skipped, _) = expected(&lab, |_| {});
    let sound = Meddling::default();
    run(&lab.job(u64::MAX), &sound).0.unwrap();
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let (writes, reads) = (count(&sound.0.written), count(&sound.0.reads));
    assert!(writes >= 4 && reads >= 12, "{writes}, {reads}");
    let creating = Faults {
        create: true,
        ..Faults::default()
    };
    let writing = (0..writes).map(|at| Faults {
        write: Some(at),
        ..Faults::default()
    });
    let reading = (0..reads).map(|at| Faults {
        read: Some(at),
        ..Faults::default()
    });
    let turning = (0..reads).map(|at| Faults {
        turn: Some(at),
        ..Faults::default()
    });
    let all = std::iter::once(creating)
        .chain(writing)
        .chain(reading)
        .chain(turning);
    for (at, faults) in all.enumerate() {
        let job = lab.job(u64::MAX);
        let (done, watch) = run(&job, &Meddling(Arc::new(faults)));
        done.unwrap();
        assert_same(&snapshots(&job.store), &read, &format!("fault {at}"));
        assert!(!watch.not_replayed.is_empty(), "fault {at}");
        // Reading the rest of a pass says once more what follows the place.
        assert_eq!(watch.skipped, skipped, "fault {at}");
    }
}

/// More than half of a guess of all that would be kept is reason not to begin with it.
#[test]
fn what_will_not_fit_is_given_up_early() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.jsonl");
    std::fs::write(&input, crawl(35, 20_000).concat()).unwrap();
    let written = |replay_bytes: u64| {
        let job = Job {
            repeat: 2,
            replay_bytes,
            ..Job::new(
                dir.path().join(format!("s{replay_bytes}")),
                vec![InputName::File(input.clone())],
            )
        };
        let disk = Meddling::default();
        let (done, watch) = run(&job, &disk);
        done.unwrap();
        (
            disk.0.written.load(Ordering::Relaxed),
            watch.not_replayed.len(),
        )
    };
    let (all, none) = written(u64::MAX);
    assert!(all >= 1 && none == 0);
    assert_eq!(written(100_000), (0, 1));
}
