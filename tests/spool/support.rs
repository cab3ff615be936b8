//! A sender, its stream, and a store to send it to.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cashrank::decode::Format;
use cashrank::engine::Config;
use cashrank::ingest::{
    Every, Job, Note, Observer, Outcome, StandardInput, Standing, Stream, ingest,
};
use cashrank::source::{InputName, SourceOptions};
use cashrank::store::{Disk, RealDisk, Settings, SpoolOptions, Told};
use cashrank::{Limits, Result};
use tempfile::TempDir;

/// Numbers from a seed (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

/// A crawl, one line a record.
pub fn crawl(seed: u64, records: u64) -> Vec<String> {
    let mut dice = Dice(seed);
    let pages = records / 3 + 2;
    (0..records)
        .map(|at| {
            let url = format!("http://h.example/{}", dice.roll(pages));
            let links: Vec<String> = (0..dice.roll(9))
                .map(|_| format!("\"http://h.example/{}\"", dice.roll(2 * pages)))
                .collect();
            let links = links.join(",");
            format!("{{\"url\":\"{url}\",\"fetched_at\":{at},\"links\":[{links}]}}\n")
        })
        .collect()
}

/// How a stream is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pack {
    Plain,
    /// Members of so many decompressed bytes; 0: a single one.
    Gzip(usize),
    /// Frames, likewise.
    Zstd(usize),
}

pub fn pack(bytes: &[u8], how: Pack) -> Vec<u8> {
    let parts = |size: usize| bytes.chunks(if size == 0 { bytes.len() } else { size });
    match how {
        Pack::Plain => bytes.to_vec(),
        Pack::Gzip(size) => parts(size).flat_map(gzip).collect(),
        Pack::Zstd(size) => parts(size).flat_map(zstandard).collect(),
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    let mut out = zstd::Encoder::new(Vec::new(), 3).unwrap();
    out.include_checksum(true).unwrap();
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// A sender: the bytes of a stream, and what was acknowledged of them.
#[derive(Clone, Default)]
pub struct Sender {
    pub bytes: Arc<Vec<u8>>,
    pub acked: Arc<AtomicU64>,
    /// The stream breaks off with an error here.
    pub breaks_at: Arc<AtomicU64>,
}

impl Sender {
    pub fn new(bytes: Vec<u8>) -> Sender {
        Sender {
            bytes: Arc::new(bytes),
            acked: Arc::default(),
            breaks_at: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    pub fn break_at(&self, at: u64) {
        self.breaks_at.store(at, Ordering::Relaxed);
    }

    pub fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    fn told(&self) -> Told {
        let acked = self.acked.clone();
        Told::new(move |position| {
            let before = acked.swap(position, Ordering::Relaxed);
            assert!(
                before <= position,
                "{before} was acknowledged, then {position}"
            );
            Ok(())
        })
    }

    /// Sends what was not acknowledged, and nothing else, some bytes at a time.
    fn stdin(&self) -> StandardInput {
        let sender = self.clone();
        StandardInput::new(move || {
            Box::new(Sending {
                at: sender.acked(),
                sender: sender.clone(),
            })
        })
    }
}

struct Sending {
    sender: Sender,
    at: u64,
}

impl Read for Sending {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let end = self.sender.breaks_at.load(Ordering::Relaxed);
        let bytes = &self.sender.bytes;
        let end = (end as usize).min(bytes.len()).min(self.at as usize + 700);
        let part = &bytes[(self.at as usize).min(end)..end];
        if part.is_empty() && end < bytes.len() {
            return Err(io::Error::other("the stream broke off"));
        }
        let n = part.len().min(out.len());
        out[..n].copy_from_slice(&part[..n]);
        self.at += n as u64;
        Ok(n)
    }
}

/// A folder with stores.
pub struct Lab(pub TempDir);

impl Lab {
    pub fn new() -> Lab {
        // In memory, where there is such a place: nothing here depends on a sync being slow.
        let memory = TempDir::new_in("/dev/shm");
        Lab(memory.or_else(|_| TempDir::new()).unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `ingest - --spool`, with small segments and no clock.
    pub fn job(&self, store: &str, sender: &Sender) -> Job {
        let limits = Limits::default();
        Job {
            store: self.path(store),
            settings: Settings::new(Config::default(), &limits),
            inputs: vec![InputName::Stdin],
            format: Some(Format::Records),
            repeat: 1,
            complete: false,
            strict: false,
            stream: Stream::Auto,
            spool: Some(SpoolOptions {
                sync_every: None,
                sync_bytes: 1500,
                segment_bytes: 4000,
                told: Some(sender.told()),
            }),
            stdin: sender.stdin(),
            checkpoint_every: Every::Records(7),
            snapshot_every: Every::Never,
            keep_snapshots: 0,
            threads: 1,
            limits,
            source: SourceOptions {
                chunk_bytes: 600,
                ..SourceOptions::default()
            },
            stop: Arc::new(AtomicBool::new(false)),
        }
    }

    /// The snapshot of a run over a file that nothing happened to.
    pub fn undisturbed(&self, bytes: &[u8], repeat: u32) -> Vec<u8> {
        let file = self.path("whole.file");
        fs::write(&file, bytes).unwrap();
        let store = format!("whole{repeat}");
        let job = Job {
            inputs: vec![InputName::File(file)],
            spool: None,
            repeat,
            ..self.job(&store, &Sender::default())
        };
        run(&job).unwrap();
        self.snapshot(&store)
    }

    pub fn snapshot(&self, store: &str) -> Vec<u8> {
        let folder = self.path(store).join("snapshots");
        let latest = fs::read(folder.join("latest.json")).unwrap();
        let latest: serde_json::Value = serde_json::from_slice(&latest).unwrap();
        fs::read(folder.join(latest["snapshot"].as_str().unwrap())).unwrap()
    }

    /// The segments in a store's spool, by their first bytes.
    pub fn segments(&self, store: &str) -> Vec<u64> {
        let names = fs::read_dir(self.path(store).join("spool")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut segments: Vec<u64> = names.filter_map(|name| name.parse().ok()).collect();
        segments.sort();
        segments
    }
}

/// Watches a run, and may stop it.
#[derive(Default)]
pub struct Watch {
    pub notes: Vec<String>,
    /// Stops the job after so many records in this pass.
    pub stop: Option<(u32, u64, Arc<AtomicBool>)>,
    pub started: Option<u64>,
}

impl Observer for Watch {
    fn note(&mut self, note: Note<'_>) {
        self.notes.push(format!("{note:?}"));
    }

    fn progress(&mut self, standing: &Standing<'_>) {
        if let Some((pass, records, stop)) = &self.stop
            && standing.pass == *pass
        {
            let started = *self.started.get_or_insert(standing.counters.records);
            if standing.counters.records - started >= *records {
                stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

pub fn run(job: &Job) -> Result<Outcome> {
    run_on(job, Arc::new(RealDisk))
}

pub fn run_on(job: &Job, disk: Arc<dyn Disk>) -> Result<Outcome> {
    ingest(job, disk, &mut Watch::default())
}

/// What `verify` checks of a store's spool.
pub fn verify(store: &Path) -> Result<u64> {
    let view = cashrank::store::open_view(&RealDisk, store)?;
    view.verify()?;
    cashrank::store::verify_spool(&RealDisk, store, view.progress())
}
