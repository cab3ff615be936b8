//! Whichever thread is slow, and wherever a run is stopped and continued, the snapshots are those of an undisturbed
//! run: for every kind of input that can be continued, with delays drawn from a seed at every hand-over between threads
//! ([`IngestJob::delays`]).

use crate::common::snapshots;
use crate::crawl;
use crate::folder::in_memory;
use crate::pack;

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cashrank_crawl::formats::Format;
use cashrank_crawl::source::{InputName, SourceOptions};
use cashrank_ingest::ingest::{
    Every, IngestEvent, IngestJob, Observer, ProgressReport, StandardInput, ingest,
};
use cashrank_store::store::rows::KeepRows;
use cashrank_store::store::{RealDisk, SpoolOptions};
use crawl::{Dice, crawl};
use tempfile::TempDir;

/// Observer that stops a job after some number of records.
struct Stopper {
    after: u64,
    started: Option<u64>,
    stop: Arc<AtomicBool>,
}

impl Observer for Stopper {
    fn note(&mut self, _: IngestEvent<'_>) {}

    fn progress(&mut self, standing: &ProgressReport<'_>) {
        let records = standing.counters.records;
        if records - *self.started.get_or_insert(records) >= self.after {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Source of records.
enum From {
    Files(Vec<InputName>),
    /// Stream that is sent again from its start. The format of streams is given: guessing takes a large first piece.
    Pipe(Format, Vec<u8>),
    /// Stream that is sent again from the first byte that is not durable.
    Spool(Format, Vec<u8>),
}

struct Lab(TempDir);

impl Lab {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> InputName {
        std::fs::write(self.path(name), bytes).unwrap();
        InputName::File(self.path(name))
    }

    fn job(&self, store: &str, from: &From, acked: &Arc<AtomicU64>) -> IngestJob {
        let (inputs, stdin, spool) = match from {
            From::Files(files) => (files.clone(), sending(&[], None), None),
            From::Pipe(_, bytes) => (vec![InputName::Stdin], sending(bytes, None), None),
            From::Spool(_, bytes) => {
                let told = acked.clone();
                let spool = SpoolOptions {
                    sync_bytes: 1500,
                    segment_bytes: 4000,
                    on_durable: Some(Arc::new(move |upto| {
                        told.store(upto, Ordering::Relaxed);
                        Ok(())
                    })),
                    ..SpoolOptions::default()
                };
                let stdin = sending(bytes, Some(acked.clone()));
                (vec![InputName::Stdin], stdin, Some(spool))
            }
        };
        let format = match from {
            From::Files(_) => None,
            From::Pipe(format, _) | From::Spool(format, _) => Some(*format),
        };
        IngestJob {
            format,
            repeat: if matches!(from, From::Files(_)) { 4 } else { 1 },
            threads: 3,
            stdin,
            spool,
            checkpoint_every: Every::Records(83),
            snapshot_every: Every::Records(211),
            source: SourceOptions {
                chunk_bytes: 900,
                ..SourceOptions::default()
            },
            ..IngestJob::new(self.path(store), inputs)
        }
    }
}

fn sending(bytes: &[u8], acked: Option<Arc<AtomicU64>>) -> StandardInput {
    let bytes = bytes.to_vec();
    Arc::new(move || {
        let from = acked.as_ref().map_or(0, |a| a.load(Ordering::Relaxed)) as usize;
        Box::new(Cursor::new(bytes[from.min(bytes.len())..].to_vec()))
    })
}

/// Runs a job with delays, stopping it at random times again and again. Returns the number of stops.
fn disturbed(job: &mut IngestJob, dice: &mut Dice, what: &str) -> u64 {
    for stops in 0.. {
        job.delays = Some(dice.roll(u64::MAX));
        job.stop.store(false, Ordering::Relaxed);
        let mut stopper = Stopper {
            after: match stops {
                4.. => u64::MAX,
                _ => 20 + dice.roll(200 * u64::from(job.repeat)),
            },
            started: None,
            stop: job.stop.clone(),
        };
        let done = ingest(job, Arc::new(RealDisk), &mut stopper);
        let done = done.unwrap_or_else(|error| panic!("{what}, after {stops} stops: {error}"));
        if !done.stopped {
            return stops;
        }
    }
    unreachable!()
}

/// Regression: an input of a repeated pass was once begun while the last blocks of the pass before were still being
/// applied, so that some of its names, by chance, counted as known: a sound input was called damaged, after every third
/// stop.
#[test]
fn no_thread_is_waited_for_by_luck() {
    let lab = Lab(in_memory());
    let text = crawl(71, 400).concat();
    let bytes = text.as_bytes();
    let plain = lab.file("a.jsonl", bytes);
    let packed = pack::in_pieces(bytes, 5_000, pack::gzip);
    let gzip = lab.file("b.jsonl.gz", &packed);
    let zstd = lab.file("c.jsonl.zst", &pack::zstandard(bytes));
    let links: String = (0..900)
        .map(|n: u64| {
            format!(
                "20240501,http://e.example/{},http://e.example/{},x\n",
                n / 3,
                n * n % 131
            )
        })
        .collect();
    let links = lab.file("d.csv", links.as_bytes());
    let kinds = [
        ("records", From::Files(vec![plain])),
        ("gzip", From::Files(vec![gzip])),
        ("zstd and links", From::Files(vec![zstd, links])),
        ("a pipe", From::Pipe(Format::Records, packed.clone())),
        ("a spool", From::Spool(Format::Records, bytes.to_vec())),
        ("a packed spool", From::Spool(Format::Records, packed)),
    ];
    let mut stores = 0;
    for (what, from) in &kinds {
        let acked = Arc::default();
        // Half of the later passes over files use kept links, and half read the files again.
        let ways = if let From::Files(_) = from { 2 } else { 1 };
        let keeping = [KeepRows::Usual(u64::MAX), KeepRows::None];
        let undisturbed = keeping[..ways].iter().zip(0..).map(|(keep_links, way)| {
            let whole = IngestJob {
                keep_links: *keep_links,
                ..lab.job(&format!("whole {what} {way}"), from, &acked)
            };
            let mut never = Stopper {
                after: u64::MAX,
                started: None,
                stop: Arc::default(),
            };
            ingest(&whole, Arc::new(RealDisk), &mut never).unwrap();
            snapshots(&whole.store)
        });
        let undisturbed: Vec<_> = undisturbed.collect();
        let mut stopped = 0;
        for seed in 0..3 {
            stores += 1;
            let mut dice = Dice::numbered(72, stores);
            acked.store(0, Ordering::Relaxed);
            let mut job = lab.job(&format!("s{stores}"), from, &acked);
            let way = seed as usize % ways;
            job.keep_links = keeping[way];
            let expected = &undisturbed[way];
            stopped += disturbed(&mut job, &mut dice, &format!("{what}, seed {seed}"));
            let mut found = snapshots(&job.store);
            if !matches!(from, From::Files(_)) {
                // A stopped stream is ranked, too.
                found.retain(|(name, _)| expected.iter().any(|(own, _)| own == name));
            }
            let names = |of: &[(String, Vec<u8>)]| -> Vec<String> {
                of.iter().map(|(name, _)| name.clone()).collect()
            };
            assert_eq!(names(&found), names(expected), "{what}, seed {seed}");
            assert!(&found == expected, "{what}, seed {seed}: other bytes");
        }
        assert!(stopped >= 2, "{what}: stopped {stopped} times only");
    }
}
