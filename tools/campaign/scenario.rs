//! Scenarios for faults: the production `ingest` of a small crawl, its store on a simulated disk; and the conditions
//! that must hold whatever happens to it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cashrank::{Error, KeepSnapshots, Limits};
use cashrank_crawl::source::{InputName, SourceOptions};
use cashrank_graph::engine::{Config, WindowPolicy};
use cashrank_graph::rows::Rows;
use cashrank_ingest::ingest::{
    Every, IngestEvent, IngestJob, IngestOutcome, InjectedFault, Observer,
    ProgressReport as Progress, Stream, ingest,
};
use cashrank_store::check::{Depth, check};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::rows::KeepRows;
use cashrank_store::store::{Disk, Settings};

use crate::crawl::{Dice, crawl};
use crate::disk::SimDisk;
use crate::pack::{gzip, in_pieces, zstandard};
use crate::producer::Producer;
use crate::readers::agree;

/// Path of the store on the simulated disk.
pub const STORE: &str = "/store";

/// Job, with the results of an undisturbed run.
pub struct Scenario {
    job: IngestJob,
    /// Data for standard input, if the job reads it.
    stream: Option<Arc<[u8]>>,
    /// True if the stream is spooled; otherwise it is sent again from its start.
    spooled: bool,
    /// Seed of the delays between threads, and the number of runs so far.
    delays: Option<u64>,
    runs: AtomicU64,
    /// True if the first cut of a chain comes while the last snapshot is made.
    pub ends: bool,
    undisturbed: SimDisk,
    /// Snapshots of the undisturbed run, by file name.
    snapshots: BTreeMap<String, Vec<u8>>,
    /// Kept links of pages; empty if none are kept.
    rows: Vec<Row>,
    /// Number of disk operations of the undisturbed run.
    pub operations: u64,
}

/// Page, whether it is gone, and its links.
type Row = (u32, bool, Vec<u32>);

/// Promise of a run, which must hold after any cut.
#[derive(Clone, Debug, Default)]
pub struct Promise {
    /// Number of commits made.
    pub generation: u64,
    /// Last snapshot published.
    pub snapshot: Option<String>,
    /// Number of bytes of standard input acknowledged.
    pub acked: u64,
}

impl Promise {
    /// Adds the promise of a later run.
    pub fn keep(&mut self, later: Promise) {
        self.generation = self.generation.max(later.generation);
        self.snapshot = self.snapshot.take().max(later.snapshot);
        self.acked = self.acked.max(later.acked);
    }
}

/// Kind of scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Files and spools, read by one thread.
    Any,
    /// Streams with a spool.
    Spool,
    /// Compressed files that are read several times by several threads, with delays at every hand-over.
    Threads,
    /// Streams without a spool, cut off while their last snapshot is made, and sent again.
    Ends,
    /// Files whose pages change, with several intermediate rankings, and compactions of kept links.
    Changes,
    /// Enough pages for an index on disk, cut off while their ranking is made.
    Index,
    /// More pages than a chunk of the cash file holds, so that logs are flushed in between.
    Wide,
}

/// Result of a run.
pub struct Ran {
    pub result: cashrank::Result<IngestOutcome>,
    pub promise: Promise,
    /// Number of the commit it began with; known once it made a checkpoint.
    pub began_with: Option<u64>,
    /// Time until it continued its work.
    pub recovery: Duration,
    /// Warning about the warm start or the index.
    pub warned: Option<String>,
}

struct Witness {
    started: Instant,
    producer: Producer,
    asked_for_more: Option<u64>,
    recovery: Option<Duration>,
    began_with: Option<u64>,
    promise: Promise,
    /// Warning about the warm start or the index.
    warned: Option<String>,
}

impl Observer for Witness {
    fn note(&mut self, note: IngestEvent<'_>) {
        match note {
            IngestEvent::Checkpoint { generation, .. } => {
                self.began_with.get_or_insert(generation - 1);
                self.promise.generation = generation;
            }
            IngestEvent::Published { path, .. } => {
                let name = path.file_name().unwrap_or_default();
                self.promise.snapshot = Some(name.to_string_lossy().into_owned());
            }
            IngestEvent::Spooling { from } if !self.producer.is_asked_from(from) => {
                self.asked_for_more = Some(from);
            }
            IngestEvent::Message(text) if text.contains("continuing after") => {
                self.recovery.get_or_insert(self.started.elapsed());
            }
            IngestEvent::Warm { warning } => self.warned = Some(warning.to_string()),
            IngestEvent::Rebuilt { damage } => self.warned = Some(damage.to_string()),
            _ => {}
        }
    }

    fn progress(&mut self, _: &Progress<'_>) {}
}

/// Returns the rule that keeps the newest `newest` snapshots; 0: all.
pub fn keep(newest: u64) -> KeepSnapshots {
    match newest {
        0 => KeepSnapshots::ALL,
        newest => KeepSnapshots::newest(newest as usize),
    }
}

impl Scenario {
    /// Draws a scenario over files in `dir`, or over a stream; for a program with this fault, if any, which an
    /// undisturbed run does not show.
    pub fn of_kind(
        kind: Kind,
        dice: &mut Dice,
        dir: &Path,
        fault: Option<InjectedFault>,
    ) -> Result<Scenario, String> {
        let mut scenario = match kind {
            Kind::Threads => Scenario::threaded(dice, dir),
            Kind::Ends => Scenario::sent_again(dice),
            Kind::Changes => Scenario::changing(dice, dir),
            Kind::Index => Scenario::indexed(dice, dir),
            Kind::Wide => Scenario::wide(dice, dir),
            Kind::Any => Scenario::any(dice, dir),
            Kind::Spool => Scenario::piped(dice),
        }?;
        scenario.job.fault = fault;
        Ok(scenario)
    }

    /// Draws a scenario over files in `dir`, or over a spooled stream.
    pub fn any(dice: &mut Dice, dir: &Path) -> Result<Scenario, String> {
        match dice.roll(4) {
            0 => Scenario::piped(dice),
            _ => Scenario::random(dice, dir),
        }
    }

    /// Draws a scenario over files of many small members, read by several threads.
    fn threaded(dice: &mut Dice, dir: &Path) -> Result<Scenario, String> {
        // Most are a single file, which follows itself.
        let files: Vec<PathBuf> = (0..1 + dice.roll(4) / 3)
            .map(|_| {
                let file = write_crawl(dir, dice.roll(1 << 40), 200 + dice.roll(200))?;
                match dice.roll(8) {
                    0 => Ok(file),
                    _ => compressed(&file),
                }
            })
            .collect::<Result<_, String>>()?;
        let mut job = job(files, Config::default());
        job.format = None;
        job.threads = 2 + dice.roll(3) as usize;
        job.repeat = 3 + dice.roll(3) as u32;
        job.checkpoint_every = Every::Records(40 + dice.roll(60));
        job.snapshot_every = Every::Records(211);
        // Half of the passes read files again, half use kept links.
        if dice.roll(2) == 0 {
            job.keep_links = KeepRows::None;
        }
        job.source.chunk_bytes = 900;
        let mut scenario = Scenario::new(job, None)?;
        scenario.delays = Some(dice.roll(u64::MAX));
        Ok(scenario)
    }

    /// Draws a crawl piped into an ingest without a spool: after an interruption all of it is sent again.
    fn sent_again(dice: &mut Dice) -> Result<Scenario, String> {
        let text = crawl(dice.roll(1 << 40), 10 + dice.roll(60))
            .concat()
            .into_bytes();
        let stream = sent(dice, text);
        let mut job = job(Vec::new(), Config::default());
        job.inputs = vec![InputName::Stdin];
        job.checkpoint_every = Every::Records([3, 7, 20, 1000][dice.roll(4) as usize]);
        let mut scenario = Scenario::of(job, Some(stream.into()), false)?;
        scenario.ends = true;
        Ok(scenario)
    }

    /// Draws crawls that fetch pages several times, in two files: each ranking starts from the one before.
    fn changing(dice: &mut Dice, dir: &Path) -> Result<Scenario, String> {
        let files: Vec<PathBuf> = (0..2)
            .map(|_| {
                let file = write_crawl(dir, dice.roll(1 << 40), 100 + dice.roll(150))?;
                match dice.roll(2) {
                    0 => Ok(file),
                    _ => compressed(&file),
                }
            })
            .collect::<Result<_, String>>()?;
        let mut job = job(files, Config::default());
        job.checkpoint_every = Every::Records([7, 20, 45][dice.roll(3) as usize]);
        job.snapshot_every = Every::Records(20 + dice.roll(40));
        let often = IngestJob {
            checkpoint_every: Every::Records(3),
            ..job.clone()
        };
        let (scenario, often) = (Scenario::new(job, None)?, Scenario::new(often, None)?);
        if scenario.snapshots == often.snapshots {
            Ok(scenario)
        } else {
            Err("rankings depend on checkpoints".into())
        }
    }

    /// Draws a scenario over files in `dir`.
    fn random(dice: &mut Dice, dir: &Path) -> Result<Scenario, String> {
        let inputs = 1 + dice.roll(2);
        let files: Vec<PathBuf> = (0..inputs)
            .map(|_| {
                let records = 1 + dice.roll(60);
                let file = write_crawl(dir, dice.roll(1 << 40), records)?;
                match dice.roll(4) {
                    0 => compressed(&file),
                    _ => Ok(file),
                }
            })
            .collect::<Result<_, String>>()?;
        let every = [1, 2, 3, 7, 20, 1000][dice.roll(6) as usize];
        let mut config = Config::default();
        config.marks = dice.roll(7) as u8;
        config.recycle_after = dice.roll(5) as u8;
        if dice.roll(4) == 0 {
            config.window = WindowPolicy::Whole;
        }
        let snapshots = [Every::Never, Every::Never, Every::Records(9)];
        let mut job = job(files, config);
        job.format = None;
        job.checkpoint_every = Every::Records(every);
        job.snapshot_every = snapshots[dice.roll(3) as usize];
        job.keep_snapshots = keep(dice.roll(3));
        job.repeat = 1 + dice.roll(3) as u32;
        Scenario::new(job, None)
    }

    /// Draws a crawl piped into a spooled ingest, plain or compressed.
    pub fn piped(dice: &mut Dice) -> Result<Scenario, String> {
        let records = 1 + dice.roll(60);
        let text = crawl(dice.roll(1 << 40), records).concat().into_bytes();
        let stream = sent(dice, text);
        let mut job = job(Vec::new(), Config::default());
        job.inputs = vec![InputName::Stdin];
        // After an interruption it is unknown whether the stream was read to the end.
        job.stream = Stream::Again;
        job.checkpoint_every = Every::Records([1, 3, 7, 20, 1000][dice.roll(5) as usize]);
        Scenario::new(job, Some(stream.into()))
    }

    /// Returns a small scenario, for trying all its operations.
    pub fn small(dir: &Path, seed: u64) -> Result<Scenario, String> {
        let mut job = job(vec![write_crawl(dir, seed, 12)?], Config::default());
        job.checkpoint_every = Every::Records(5);
        job.repeat = 2;
        Scenario::new(job, None)
    }

    /// Returns a scenario that publishes several snapshots and keeps them.
    pub fn published_twice(dir: &Path, seed: u64) -> Result<Scenario, String> {
        let mut job = job(vec![write_crawl(dir, seed, 40)?], Config::default());
        job.checkpoint_every = Every::Records(9);
        job.snapshot_every = Every::Records(15);
        job.keep_snapshots = KeepSnapshots::ALL;
        Scenario::new(job, None)
    }

    /// Draws a scenario of [`Kind::Wide`].
    fn wide(dice: &mut Dice, dir: &Path) -> Result<Scenario, String> {
        let mut job = job(vec![many_pages(dice, dir, 6)?], Config::default());
        job.checkpoint_every = Every::Records(1);
        job.limits.pages = 1 << 18;
        job.repeat = 2;
        Scenario::new(job, None)
    }

    /// Draws a scenario of [`Kind::Index`].
    fn indexed(dice: &mut Dice, dir: &Path) -> Result<Scenario, String> {
        let mut job = job(vec![many_pages(dice, dir, 1)?], Config::default());
        job.limits.pages = 1 << 16;
        let mut scenario = Scenario::new(job, None)?;
        scenario.ends = true;
        Ok(scenario)
    }

    /// Creates the scenario of a job by running it once without faults.
    fn new(job: IngestJob, spooled: Option<Arc<[u8]>>) -> Result<Scenario, String> {
        let is_spooled = spooled.is_some();
        Scenario::of(job, spooled, is_spooled)
    }

    fn of(job: IngestJob, stream: Option<Arc<[u8]>>, spooled: bool) -> Result<Scenario, String> {
        let mut scenario = Scenario {
            job,
            stream,
            spooled,
            delays: None,
            runs: AtomicU64::new(0),
            ends: false,
            undisturbed: SimDisk::new(0),
            snapshots: BTreeMap::new(),
            rows: Vec::new(),
            operations: 0,
        };
        let disk = scenario.undisturbed.clone();
        let keep = std::mem::replace(&mut scenario.job.keep_snapshots, KeepSnapshots::ALL);
        let ran = scenario.run(&disk, 0)?;
        ran.result
            .map_err(|error| format!("without faults: {error}"))?;
        scenario.operations = disk.operations();
        scenario.job.keep_snapshots = keep;
        scenario.rows = rows_of(&disk).map_err(|error| error.to_string())?;
        let dir = Path::new(STORE).join("snapshots");
        for (path, _) in disk.files() {
            if path.starts_with(&dir) && path.extension().is_some_and(|ext| ext == "snapshot") {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                scenario
                    .snapshots
                    .insert(name.into_owned(), bytes(&disk, &path)?);
            }
        }
        if scenario.snapshots.is_empty() {
            Err("no snapshot without faults".into())
        } else {
            Ok(scenario)
        }
    }

    /// Runs the job on a disk, after `acked` bytes of a piped stream were acknowledged. An error here is a failure of
    /// the program, whatever the disk did.
    pub fn run(&self, disk: &SimDisk, acked: u64) -> Result<Ran, String> {
        let mut job = self.job.clone();
        let stream = self.stream.clone().unwrap_or_default();
        let producer = Producer::new(&stream, acked);
        if self.stream.is_some() {
            job.stdin = producer.stdin();
        }
        if self.spooled {
            job.spool = Some(producer.spool());
        }
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        job.delays = self.delays.map(|seed| seed.wrapping_add(run));
        let mut witness = Witness {
            started: Instant::now(),
            producer,
            asked_for_more: None,
            recovery: None,
            began_with: None,
            promise: Promise::default(),
            warned: None,
        };
        let run = || ingest(&job, Arc::new(disk.clone()), &mut witness);
        let result = catch_unwind(AssertUnwindSafe(run)).map_err(|_| "it panicked")?;
        if let Some(from) = witness.asked_for_more {
            return Err(format!(
                "it asks for byte {from}, and had acknowledged more"
            ));
        }
        witness.promise.acked = witness.producer.forgotten();
        Ok(Ran {
            result,
            promise: witness.promise,
            began_with: witness.began_with,
            recovery: witness
                .recovery
                .unwrap_or_else(|| witness.started.elapsed()),
            warned: witness.warned,
        })
    }

    /// Runs the job until something stops it, which must be the disk. Returns its promise.
    pub fn run_into_fault(&self, disk: &SimDisk, acked: u64) -> Result<Ran, String> {
        let ran = self.run(disk, acked)?;
        match &ran.result {
            Err(Error::Io { .. }) => Ok(ran),
            Ok(outcome) if !outcome.stopped => Ok(ran),
            Ok(_) => Err("it stopped by itself".into()),
            Err(error) => Err(format!("it failed with {error}")),
        }
    }

    /// Runs the job on a sound disk to its end: the result must be that of an undisturbed run.
    pub fn finish(&self, disk: &SimDisk, acked: u64) -> Result<Ran, String> {
        let ran = self.run(disk, acked)?;
        match (&ran.result, &ran.warned) {
            (Ok(_), None) => self.check_end(disk, &ran)?,
            (Ok(_), Some(warning)) => return Err(format!("it warned: {warning}")),
            (Err(error), _) => return Err(format!("it did not go on: {error}")),
        }
        Ok(ran)
    }

    /// Checks the result of a run that did not fail.
    pub fn check_end(&self, disk: &SimDisk, ran: &Ran) -> Result<(), String> {
        if ran.result.as_ref().is_ok_and(|outcome| outcome.stopped) {
            return Err("it stopped by itself".into());
        }
        let current = current(disk)?.ok_or("it published nothing")?;
        let last = self.snapshots.keys().next_back();
        if last != Some(&current) {
            return Err(format!("its last snapshot is {current}, not {last:?}"));
        }
        self.check_snapshot(disk, &current)
    }

    /// Checks a store after [`Scenario::finish`], as `verify` does.
    pub fn verify(&self, disk: &SimDisk) -> Result<(), String> {
        let checked = check(disk, Path::new(STORE), Depth::Deep, None);
        let damage = checked.map_err(|error| error.to_string())?.damage;
        if let Some(error) = damage.first() {
            return Err(error.to_string());
        }
        match rows_of(disk) {
            Ok(rows) if rows == self.rows => Ok(()),
            Ok(_) => Err("the rows differ".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Checks what readers see after a cut: the promised snapshot or a later one, intact.
    pub fn check_survivor(&self, disk: &SimDisk, promise: &Promise) -> Result<(), String> {
        let current = current(disk)?;
        if promise.snapshot > current {
            return Err(format!(
                "published snapshot {:?} is lost: {current:?}",
                promise.snapshot
            ));
        }
        match current {
            Some(name) => self.check_snapshot(disk, &name),
            None => Ok(()),
        }
    }

    /// Checks that a snapshot is that of the undisturbed run: to the byte or, if it is settled, within both bounds: a
    /// cut may have come before its warm start.
    fn check_snapshot(&self, disk: &SimDisk, name: &str) -> Result<(), String> {
        let path = Path::new(STORE).join("snapshots").join(name);
        let expected = self.snapshots.get(name);
        let expected = expected.ok_or_else(|| format!("snapshot {name} should not be"))?;
        if *expected == bytes(disk, &path)? {
            return Ok(());
        }
        let open = |disk: &SimDisk| Snapshot::open(disk, &path).map_err(|error| error.to_string());
        agree(&open(disk)?, &open(&self.undisturbed)?)
            .map_err(|what| format!("snapshot {name} differs: {what}"))
    }
}

/// Reads the links that the store keeps, as of its last snapshot.
fn rows_of(disk: &SimDisk) -> cashrank::Result<Vec<Row>> {
    let mut found = Vec::new();
    let snapshot = Snapshot::latest(disk, Path::new(STORE))?;
    let rows = match snapshot.rows() {
        Err(Error::Missing(_)) => return Ok(found),
        rows => rows?,
    };
    rows.sweep(&mut |row| {
        found.push((row.page, row.gone, row.targets.to_vec()));
        Ok(())
    })?;
    // Each takes a block of rows to read: check some of them, all over the file.
    for (page, gone, targets) in found.iter().step_by(found.len() / 32 + 1) {
        let mut same = false;
        rows.row(*page, &mut |row| {
            same = row.gone == *gone && row.targets == targets
        })?;
        if !same {
            let what = format!("the directory leads to another row of page {page}");
            let path = "rows".into();
            return Err(cashrank::Error::Damaged { path, what });
        }
    }
    Ok(found)
}

/// Checks that no promised commit was lost.
pub fn check_generation(promise: &Promise, began_with: Option<u64>) -> Result<(), String> {
    match began_with {
        Some(found) if found < promise.generation => Err(format!(
            "commit {} was promised, and {found} was found",
            promise.generation
        )),
        _ => Ok(()),
    }
}

fn limits() -> Limits {
    Limits {
        pages: 1 << 12,
        ..Limits::default()
    }
}

pub fn job(files: Vec<PathBuf>, config: Config) -> IngestJob {
    let limits = limits();
    IngestJob {
        settings: Settings::new(config, &limits),
        format: Some(cashrank_crawl::formats::Format::Records),
        checkpoint_every: Every::Never,
        limits,
        source: SourceOptions {
            chunk_bytes: 4 << 10,
            ..SourceOptions::default()
        },
        ..IngestJob::new(STORE, files.into_iter().map(InputName::File).collect())
    }
}

pub struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &Progress<'_>) {}
}

/// Encodes a stream for sending: plain, or in members or frames of random size.
fn sent(dice: &mut Dice, text: Vec<u8>) -> Vec<u8> {
    match dice.roll(3) {
        0 => text,
        kind => {
            let pack = if kind == 1 { gzip } else { zstandard };
            in_pieces(&text, 1 + dice.roll(2000) as usize, pack)
        }
    }
}

/// Writes a crawl of `records` records, each with links to 30,000 pages of its own.
fn many_pages(dice: &mut Dice, dir: &Path, records: u64) -> Result<PathBuf, String> {
    let path = dir.join(format!("{:x}-many-{records}.jsonl", dice.roll(1 << 40)));
    let records: String = (0..records)
        .map(|page| {
            let links = (0..30_000).map(|link| format!("/{page}/{link}"));
            let links: Vec<String> = links.collect();
            let url = format!("http://wide.example/{page}/0");
            serde_json::json!({"url": url, "links": links}).to_string() + "\n"
        })
        .collect();
    write(&path, &records)?;
    Ok(path)
}

pub fn write_crawl(dir: &Path, seed: u64, records: u64) -> Result<PathBuf, String> {
    let path = dir.join(format!("{seed:x}-{records}.jsonl"));
    write(&path, &crawl(seed, records).concat())?;
    Ok(path)
}

/// Compresses a file to one frame, so that nothing is verified before its end.
fn compressed(file: &Path) -> Result<PathBuf, String> {
    let path = file.with_extension("zst");
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    let packed = zstandard(&text);
    std::fs::write(&path, packed).map_err(|error| error.to_string())?;
    Ok(path)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the name of the store's current snapshot, if it has one.
pub fn current(disk: &SimDisk) -> Result<Option<String>, String> {
    let path = Path::new(STORE).join("snapshots/latest.json");
    match disk.read(&path) {
        Err(_) => Ok(None),
        Ok(_) => {
            let text = bytes(disk, &path)?;
            let latest: serde_json::Value =
                serde_json::from_slice(&text).map_err(|error| format!("latest.json: {error}"))?;
            Ok(latest["snapshot"].as_str().map(String::from))
        }
    }
}

pub fn bytes(disk: &SimDisk, path: &Path) -> Result<Vec<u8>, String> {
    let read = || {
        let file = disk.read(path)?;
        let mut bytes = vec![0; file.size()? as usize];
        file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}
