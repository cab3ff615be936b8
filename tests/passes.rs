//! Passes after the first, over the kept links: they visit every page that was read, once, with its latest links, and
//! need no input. Threads, checkpoints, compactions, stops and failures do not affect the result.

use crate::common;
use crate::crawl;
use crate::disk;
use crate::folder::in_memory;
use crate::pack;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cashrank::{Config, Engine, Error, Limits};
use cashrank_crawl::decode::{Link, Names, Record};
use cashrank_crawl::source::{InputName, SourceOptions};
use cashrank_graph::rows::Rows;
use cashrank_ingest::ingest::{
    Every, IngestEvent, IngestJob, IngestOutcome, Observer, ProgressReport, ingest,
};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::rows::{GiveUpReason, KeepRows};
use cashrank_store::store::{Disk, DiskFile, RealDisk, Settings, open_view};
use common::snapshots;
use crawl::crawl;
use disk::{Files, Meddled, MeddledFile, Over};
use serde_json::Value;
use tempfile::TempDir;

const PASSES: u32 = 4;

/// Observer that records events, and stops after some number of looks during later passes.
#[derive(Default)]
struct Watch {
    notes: Vec<String>,
    stop_after: Option<u64>,
    stop: Arc<AtomicBool>,
    looks: u64,
}

impl Watch {
    fn said(&self, what: &str) -> usize {
        self.notes.iter().filter(|note| note.contains(what)).count()
    }
}

impl Observer for Watch {
    fn note(&mut self, note: IngestEvent<'_>) {
        self.notes.push(format!("{note:?}"));
    }

    fn progress(&mut self, standing: &ProgressReport<'_>) {
        assert_eq!(standing.input.is_none(), standing.pass > 1);
        if standing.pass > 1 {
            assert!(standing.done <= standing.length.unwrap());
            self.looks += 1;
            if self.stop_after.is_some_and(|looks| self.looks > looks) {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

struct Lab {
    dir: TempDir,
    inputs: Vec<InputName>,
    /// All records, as lines.
    records: Vec<String>,
}

impl Lab {
    /// Creates records of three kinds: plain with lines that are skipped, compressed, and compressed in pieces.
    fn new() -> Lab {
        let dir = in_memory();
        let path = |name: &str| dir.path().join(name);
        let [a, b, c] =
            [(31, 900), (32, 600), (33, 750)].map(|(seed, records)| crawl(seed, records));
        let mut lines = a.clone();
        lines.insert(20, "{\"url\": 3}\n".into());
        lines.insert(91, "\n".into());
        lines.push("no record, and no line end".into());
        std::fs::write(path("a.jsonl"), lines.concat()).unwrap();
        std::fs::write(path("b.jsonl.gz"), pack::gzip(b.concat().as_bytes())).unwrap();
        let frames = pack::in_pieces(c.concat().as_bytes(), 4_000, pack::zstandard);
        std::fs::write(path("c.jsonl.zst"), frames).unwrap();
        let inputs = ["a.jsonl", "b.jsonl.gz", "c.jsonl.zst"];
        Lab {
            inputs: inputs.map(|name| InputName::File(path(name))).into(),
            records: [a, b, c].concat(),
            dir,
        }
    }

    fn store(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn job(&self, store: &str) -> IngestJob {
        IngestJob {
            repeat: PASSES,
            threads: 2,
            checkpoint_every: Every::Records(83),
            snapshot_every: Every::Records(211),
            // Many pieces.
            source: SourceOptions {
                chunk_bytes: 3_000,
                ..SourceOptions::default()
            },
            ..IngestJob::new(self.store(store), self.inputs.clone())
        }
    }
}

fn run(job: &IngestJob) -> (cashrank::Result<IngestOutcome>, Watch) {
    run_on(job, Arc::new(RealDisk), None)
}

fn run_on(
    job: &IngestJob,
    disk: Arc<dyn Disk>,
    stop_after: Option<u64>,
) -> (cashrank::Result<IngestOutcome>, Watch) {
    job.stop.store(false, Ordering::Relaxed);
    let mut watch = Watch {
        stop: job.stop.clone(),
        stop_after,
        ..Watch::default()
    };
    let result = ingest(job, disk, &mut watch);
    (result, watch)
}

/// Asserts that two stores published the same.
#[track_caller]
fn assert_same(found: &[(String, Vec<u8>)], expected: &[(String, Vec<u8>)], what: &str) {
    let names =
        |of: &[(String, Vec<u8>)]| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found == expected, "{what}: {} differs", found.0);
    }
}

fn last(store: &Path) -> Vec<u8> {
    std::fs::read(Snapshot::latest(&RealDisk, store).unwrap().path()).unwrap()
}

/// Returns what records say: the rows that count, in the order of their visits, and the number of records about a page.
fn rows_of(records: &[String]) -> Vec<(String, bool, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut rows: Vec<(String, bool, Vec<String>)> = Vec::new();
    for record in records {
        let record: Value = serde_json::from_str(record).unwrap();
        let url = text(&record["url"]);
        let links = match record["status"].as_u64() {
            Some(404 | 410) => None,
            Some(301) => Some(vec![text(&record["redirect"])]),
            None | Some(200) => {
                let links = record["links"].as_array().into_iter().flatten();
                Some(links.map(text).collect())
            }
            Some(_) => continue,
        };
        rows.retain(|row| row.0 != url);
        rows.push((url, links.is_none(), links.unwrap_or_default()));
    }
    rows
}

fn record_of<'a>(url: &'a str, links: impl Iterator<Item = &'a str>) -> Record<'a> {
    Record {
        url: url.as_bytes().into(),
        links: links.map(|link| Link::to(link.as_bytes())).collect(),
        ..Record::default()
    }
}

/// The engine in memory is given the records and then, pass by pass, a record of each page with its last links.
#[test]
fn later_passes_visit_what_the_records_left() {
    let lab = Lab::new();
    let mut engine = Engine::new(Config::default()).unwrap();
    let mut reader = cashrank::Reader::new(&engine, Names::Url).unwrap();
    for record in &lab.records {
        let read: Value = serde_json::from_str(record).unwrap();
        let links: Vec<&str> = read["links"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|link| link.as_str().unwrap())
            .collect();
        let record = Record {
            fetched_at: read["fetched_at"].as_i64(),
            status: read["status"].as_i64().map(|status| status as i32),
            redirect: read["redirect"].as_str().map(|to| to.as_bytes().into()),
            ..record_of(read["url"].as_str().unwrap(), links.into_iter())
        };
        reader.apply(&mut engine, &record).unwrap();
    }
    let first = engine.ranking().unwrap();
    let rows = rows_of(&lab.records);
    assert!(rows.len() < lab.records.len() * 3 / 4 && rows.iter().any(|row| row.1));
    for _ in 1..PASSES {
        engine.begin_pass().unwrap();
        for (url, gone, links) in &rows {
            let record = Record {
                status: gone.then_some(404),
                ..record_of(url, links.iter().map(String::as_str))
            };
            reader.apply(&mut engine, &record).unwrap();
        }
    }
    let expected = engine.ranking().unwrap();

    let job = IngestJob {
        settle: None,
        ..lab.job("s")
    };
    let (outcome, watch) = run(&job);
    let counters = outcome.unwrap().counters;
    let later = u64::from(PASSES - 1) * rows.len() as u64;
    assert_eq!(counters.records, lab.records.len() as u64 + later);
    assert_eq!(
        watch.said("4 passes: all but the first use the links kept"),
        1
    );
    let snapshot = Snapshot::latest(&RealDisk, &job.store).unwrap();
    let names: Vec<String> = snapshot.names().collect::<cashrank::Result<_>>().unwrap();
    assert_eq!(names.len(), expected.pages.len());
    for (((name, page), expected), first) in names
        .iter()
        .zip(snapshot.pages())
        .zip(&expected.pages)
        .zip(&first.pages)
    {
        let page = page.unwrap();
        assert_eq!(*name, expected.url);
        assert_eq!(page.importance, expected.importance, "{name}");
        assert_eq!(
            (page.rank, page.fetches.visits),
            (expected.rank, expected.visits),
            "{name}"
        );
        // Nothing was fetched again.
        assert_eq!(page.fetches.last, first.last_fetch, "{name}");
    }
}

/// If each page is read once, a pass over links equals one over inputs.
#[test]
fn without_recaptures_a_pass_over_rows_equals_rereading() {
    let lab = Lab::new();
    let mut seen = std::collections::HashSet::new();
    let once: Vec<String> = crawl(34, 900)
        .into_iter()
        .filter(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let status = record["status"].as_u64();
            // Unchanged and failed ones count as records where they are read again, and end rounds.
            !matches!(status, Some(304 | 503))
                && seen.insert(record["url"].as_str().unwrap().to_owned())
        })
        .collect();
    std::fs::write(lab.store("once"), once.concat()).unwrap();
    type Change = fn(&mut Config);
    let configs: [Change; 2] = [
        |_| {},
        |config| {
            config.follow = "internal=3,external=1".parse().unwrap();
            config.window = "fixed:500s".parse().unwrap();
        },
    ];
    for (at, change) in configs.into_iter().enumerate() {
        let mut config = Config::default();
        change(&mut config);
        let job = |kept: bool| IngestJob {
            settle: None,
            settings: Settings::new(config.clone(), &Limits::default()),
            keep_links: if kept {
                KeepRows::Usual(u64::MAX)
            } else {
                KeepRows::None
            },
            inputs: vec![InputName::File(lab.store("once"))],
            ..lab.job(&format!("{at}{kept}"))
        };
        let [kept, read] = [true, false].map(|kept| {
            let job = job(kept);
            let mut quiet = Quiet;
            ingest(&job, Arc::new(RealDisk), &mut quiet).unwrap();
            let snapshot = Snapshot::latest(&RealDisk, &job.store).unwrap();
            let pages: Vec<_> = snapshot.pages().map(Result::unwrap).collect();
            format!("{pages:?}")
        });
        assert!(kept.len() > 10_000);
        assert!(kept == read, "{at}");
    }
}

struct Quiet;

impl Observer for Quiet {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

#[test]
fn threads_checkpoints_and_compactions_do_not_show() {
    let lab = Lab::new();
    let expected = lab.job("expected");
    run(&expected).0.unwrap();
    let expected = snapshots(&expected.store);
    assert!(expected.len() > 5);
    let mut numbers = Vec::new();
    for (threads, every) in [
        (1, Every::Never),
        (3, Every::Never),
        (1, Every::Records(7)),
        (1, Every::Records(29)),
        (2, Every::Records(140)),
        (3, Every::Records(500)),
    ] {
        let what = format!("{threads}{every:?}");
        let job = IngestJob {
            threads,
            checkpoint_every: every,
            ..lab.job(&what)
        };
        run(&job).0.unwrap();
        assert_same(&snapshots(&job.store), &expected, &what);
        let rows = open_view(&RealDisk, &job.store).unwrap().rows().unwrap();
        numbers.push(rows.kept().number);
    }
    // Rows were dropped repeatedly, and at different positions.
    assert!(numbers.iter().all(|&number| number > 1), "{numbers:?}");
    numbers.sort_unstable();
    numbers.dedup();
    assert!(numbers.len() > 1, "{numbers:?}");
}

#[test]
fn a_stopped_run_continues_to_the_same_bytes() {
    let lab = Lab::new();
    let expected = lab.job("expected");
    run(&expected).0.unwrap();
    let expected = snapshots(&expected.store);
    for every in [Every::Records(83), Every::Never] {
        // Once or more often in each pass.
        for stop_after in 0..PASSES as u64 - 1 {
            let job = IngestJob {
                checkpoint_every: every,
                ..lab.job(&format!("{every:?}{stop_after}"))
            };
            let (stopped, _) = run_on(&job, Arc::new(RealDisk), Some(stop_after));
            assert!(stopped.unwrap().stopped, "after {stop_after}");
            assert!(!run(&job).0.unwrap().stopped);
            let what = format!("{every:?}, after {stop_after}");
            assert_same(&snapshots(&job.store), &expected, &what);
        }
    }
}

/// Disk on which all writes fail after some number of them.
#[derive(Clone)]
struct Failing(Arc<AtomicU64>);

impl Over for Failing {
    fn over(&self, _: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(MeddledFile(file, Arc::new(self.clone())))
    }
}

impl Files for Failing {
    fn write(&self, file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
        let one_less = |left: u64| left.checked_sub(1);
        let left = &self.0;
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => file.write_at(data, offset),
            Err(_) => Err(io::Error::other("it broke")),
        }
    }
}

/// Interrupted at every possible position, including the end of the first pass and the moments between passes.
#[test]
fn a_run_cut_off_anywhere_continues_to_the_same_bytes() {
    let lab = Lab::new();
    std::fs::write(lab.store("short"), crawl(35, 40).concat()).unwrap();
    let job = |store: &str| IngestJob {
        checkpoint_every: Every::Records(17),
        snapshot_every: Every::Never,
        repeat: 3,
        inputs: vec![InputName::File(lab.store("short"))],
        ..lab.job(store)
    };
    let writes = Failing(Arc::new(AtomicU64::new(u64::MAX)));
    let whole = job("whole");
    run_on(&whole, Arc::new(Meddled(writes.clone())), None)
        .0
        .unwrap();
    let expected = last(&whole.store);
    let writes = u64::MAX - writes.0.load(Ordering::Relaxed);
    let (mut resumed, mut over, mut whole) = (0, 0, 0);
    for after in (0..writes).step_by(3) {
        let job = job(&after.to_string());
        let failing = Failing(Arc::new(AtomicU64::new(after)));
        let (failed, _) = run_on(&job, Arc::new(Meddled(failing)), None);
        // How often a database writes depends on its keys.
        whole += u64::from(failed.is_ok());
        let (done, watch) = run(&job);
        done.unwrap();
        resumed += watch.said("over the links of the store: continuing");
        over += usize::from(
            watch.said("continuing after record")
                + watch.said("over the links of the store: continuing")
                == 0,
        );
        assert!(last(&job.store) == expected, "after {after} of {writes}");
        std::fs::remove_dir_all(&job.store).unwrap();
    }
    assert!(resumed > 3 && over > 3, "{resumed}, {over}");
    assert!(whole < writes / 12, "{whole} of {writes}");
}

/// The input may be gone or replaced once it was read.
#[test]
fn no_input_is_reread() {
    let lab = Lab::new();
    let expected = lab.job("expected");
    run(&expected).0.unwrap();
    struct Remover(Vec<InputName>);
    impl Observer for Remover {
        fn note(&mut self, _: IngestEvent<'_>) {}
        fn progress(&mut self, standing: &ProgressReport<'_>) {
            if standing.pass > 1 {
                for input in self.0.drain(..) {
                    let InputName::File(path) = input else {
                        panic!()
                    };
                    std::fs::remove_file(path).unwrap();
                }
            }
        }
    }
    let job = lab.job("s");
    let mut remover = Remover(lab.inputs.clone());
    ingest(&job, Arc::new(RealDisk), &mut remover).unwrap();
    assert!(remover.0.is_empty());
    assert_same(&snapshots(&job.store), &snapshots(&expected.store), "gone");
}

/// If links are given up in the first pass, files are read again, which is reported.
#[test]
fn files_are_reread_if_links_do_not_fit() {
    let lab = Lab::new();
    let small = |store: &str| IngestJob {
        keep_links: KeepRows::AtMost(2_000),
        ..lab.job(store)
    };
    let job = small("files");
    let mut told = Watch::default();
    struct Any<'a>(&'a mut Watch);
    impl Observer for Any<'_> {
        fn note(&mut self, note: IngestEvent<'_>) {
            self.0.note(note);
        }
        fn progress(&mut self, standing: &ProgressReport<'_>) {
            assert!(standing.input.is_some());
        }
    }
    ingest(&job, Arc::new(RealDisk), &mut Any(&mut told)).unwrap();
    assert_eq!(
        told.said("4 passes: all but the first use the links kept"),
        1
    );
    assert_eq!(told.said("4 passes: each reads the inputs"), 1);
    let none = IngestJob {
        keep_links: KeepRows::None,
        ..lab.job("none")
    };
    ingest(&none, Arc::new(RealDisk), &mut Quiet).unwrap();
    assert!(last(&none.store) == last(&job.store));
}

/// Links are not given up while passes use them.
#[test]
fn links_are_kept_to_the_last_pass() {
    let lab = Lab::new();
    let job = lab.job("s");
    assert!(run_on(&job, Arc::new(RealDisk), Some(1)).0.unwrap().stopped);
    for keep_links in [KeepRows::None, KeepRows::AtMost(100)] {
        let without = IngestJob {
            keep_links,
            ..job.clone()
        };
        let refused = run(&without).0;
        assert!(matches!(refused, Err(Error::Conflict(what)) if what.contains("`keep_links`")));
    }
    run(&job).0.unwrap();
    let expected = lab.job("expected");
    run(&expected).0.unwrap();
    assert_same(&snapshots(&job.store), &snapshots(&expected.store), "kept");
    // Then they may be dropped.
    let without = IngestJob {
        keep_links: KeepRows::None,
        ..job
    };
    let (done, watch) = run(&without);
    done.unwrap();
    assert_eq!(watch.said(&format!("{:?}", GiveUpReason::Asked)), 1);
    let view = open_view(&RealDisk, &without.store).unwrap();
    assert!(view.manifest.retention.kept().is_none());
}

/// A damaged row ends a later pass; what was published stays.
#[test]
fn damaged_links_end_a_pass() {
    let lab = Lab::new();
    let once = IngestJob {
        repeat: 1,
        ..lab.job("s")
    };
    run(&once).0.unwrap();
    let before = last(&once.store);
    let view = open_view(&RealDisk, &once.store).unwrap();
    let rows = view.rows().unwrap();
    assert!(rows.links() > 500);
    let path = once.store.join("rows").join(rows.kept().number.to_string());
    drop((rows, view));
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let more = IngestJob { repeat: 2, ..once };
    match run(&more).0 {
        Err(Error::Damaged { path: found, .. }) => assert_eq!(found, path),
        other => panic!("{other:?}"),
    }
    assert!(last(&more.store) == before);
}
