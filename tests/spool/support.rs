//! A sender with its stream, and a store to send it to.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cashrank::Result;
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::{InputName, SourceOptions};
use cashrank_ingest::ingest::{
    Every, IngestEvent, IngestJob, IngestOutcome, Observer, ProgressReport, StandardInput, ingest,
};
use cashrank_store::store::{Disk, OnDurable, RealDisk, SpoolOptions};
use tempfile::TempDir;

use crate::folder::in_memory;

pub use super::crawl::{Dice, crawl};
pub use super::pack::gzip;
use super::pack::zstandard;

/// Compression of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pack {
    Plain,
    /// Members of this decompressed length; 0: a single one.
    Gzip(usize),
    /// Frames of this decompressed length; 0: a single one.
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

/// Sender: the bytes of a stream, and the number of those acknowledged.
#[derive(Clone, Default)]
pub struct Sender {
    pub bytes: Arc<Vec<u8>>,
    pub acked: Arc<AtomicU64>,
    /// Offset at which the stream breaks off with an error.
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

    fn on_durable(&self) -> OnDurable {
        let acked = self.acked.clone();
        Arc::new(move |position| {
            let before = acked.swap(position, Ordering::Relaxed);
            assert!(
                before <= position,
                "{before} was acknowledged, then {position}"
            );
            Ok(())
        })
    }

    /// Returns a stream that sends exactly what was not acknowledged, some bytes at a time.
    fn stdin(&self) -> StandardInput {
        let sender = self.clone();
        Arc::new(move || {
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

/// Folder with stores.
pub struct Lab(pub TempDir);

impl Lab {
    pub fn new() -> Lab {
        Lab(in_memory())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the job `ingest - --spool`, with small segments and no clock.
    pub fn job(&self, store: &str, sender: &Sender) -> IngestJob {
        IngestJob {
            format: Some(Format::Records),
            spool: Some(SpoolOptions {
                sync_every: None,
                sync_bytes: 1500,
                segment_bytes: 4000,
                on_durable: Some(sender.on_durable()),
            }),
            stdin: sender.stdin(),
            checkpoint_every: Every::Records(7),
            source: SourceOptions {
                chunk_bytes: 600,
                ..SourceOptions::default()
            },
            ..IngestJob::new(self.path(store), vec![InputName::Stdin])
        }
    }

    /// Returns the snapshot of an undisturbed run over a file.
    pub fn undisturbed(&self, bytes: &[u8], repeat: u32) -> Vec<u8> {
        let file = self.path("whole.file");
        fs::write(&file, bytes).unwrap();
        let store = format!("whole{repeat}");
        let job = IngestJob {
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

    /// Lists the segments in a store's spool, by their first bytes.
    pub fn segments(&self, store: &str) -> Vec<u64> {
        let names = fs::read_dir(self.path(store).join("spool")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut segments: Vec<u64> = names.filter_map(|name| name.parse().ok()).collect();
        segments.sort();
        segments
    }
}

/// Observer that watches a run, and may stop it.
#[derive(Default)]
pub struct Watch {
    pub notes: Vec<String>,
    /// Pass, and number of records after which the job is stopped.
    pub stop: Option<(u32, u64, Arc<AtomicBool>)>,
    pub started: Option<u64>,
}

impl Observer for Watch {
    fn note(&mut self, note: IngestEvent<'_>) {
        self.notes.push(format!("{note:?}"));
    }

    fn progress(&mut self, standing: &ProgressReport<'_>) {
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

pub fn run(job: &IngestJob) -> Result<IngestOutcome> {
    run_on(job, Arc::new(RealDisk))
}

pub fn run_on(job: &IngestJob, disk: Arc<dyn Disk>) -> Result<IngestOutcome> {
    ingest(job, disk, &mut Watch::default())
}

/// Checks a store's spool like `verify`; returns the number of bytes checked.
pub fn verify(store: &Path) -> Result<u64> {
    let view = cashrank_store::store::open_view(&RealDisk, store)?;
    view.verify()?;
    cashrank_store::store::verify_spool(&RealDisk, store, &view.manifest.progress)
}
