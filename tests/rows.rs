//! Kept rows: a store's links of pages are those of its input, read independently, whatever checkpoints, failures and
//! compactions occurred; and if they cannot be kept, that is reported.

use crate::crawl;
use crate::disk;
use crate::folder::in_memory;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cashrank::{Error, Result};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::Config;
use cashrank_graph::rows::Rows;
use cashrank_ingest::ingest::{
    Every, IngestEvent, IngestJob, IngestOutcome, Observer, ProgressReport, ingest,
};
use cashrank_ingest::load::load;
use cashrank_store::check::{Depth, check};
use cashrank_store::snapshot::Snapshot;
use cashrank_store::store::rows::{CommittedRows, GiveUpReason, KeepRows, KeptRows, Retention};
use cashrank_store::store::{Disk, DiskFile, RealDisk, open_view};
use crawl::crawl;
use disk::{Files, Meddled, MeddledFile, Over};
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

/// Row by names: the page, whether it is gone, its targets.
pub type Named = (String, bool, BTreeSet<String>);

/// Returns the last row of each page, in the order of the last visits, from the records themselves.
pub fn expected(records: &[String]) -> Vec<Named> {
    let mut rows: Vec<Named> = Vec::new();
    for record in records {
        let record: Value = serde_json::from_str(record).unwrap();
        let url = record["url"].as_str().unwrap().to_owned();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (gone, mut targets): (bool, BTreeSet<String>) = match record["status"].as_u64() {
            Some(404 | 410) => (true, BTreeSet::new()),
            Some(301) => (false, [text(&record["redirect"])].into()),
            None | Some(200) => {
                let links = record["links"].as_array().into_iter().flatten();
                (false, links.map(text).collect())
            }
            // Unchanged or failed: nothing is known about its links.
            Some(_) => continue,
        };
        targets.remove(&url);
        rows.retain(|row| row.0 != url);
        rows.push((url, gone, targets));
    }
    rows
}

fn swept(rows: &KeptRows, kept: &CommittedRows, names: &[String]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut links = 0;
    rows.sweep(&mut |row| {
        let name = |page: &u32| names[*page as usize].clone();
        let targets: BTreeSet<String> = row.targets.iter().map(name).collect();
        assert_eq!(targets.len(), row.targets.len(), "targets are distinct");
        assert!(row.targets.is_sorted());
        links += targets.len() as u64;
        found.push((name(&row.page), row.gone, targets));
        Ok(())
    })
    .unwrap();
    assert_eq!(
        (kept.rows - kept.superseded, rows.links()),
        (found.len() as u64, links)
    );
    let last: HashMap<&str, &Named> = found.iter().map(|row| (&*row.0, row)).collect();
    // A thousand pages: each unpacks a block.
    let step = names.len() / 1000 + 1;
    for (page, of) in (0..).zip(names).take(rows.pages() as usize).step_by(step) {
        let mut one = None;
        let known = rows.row(page, &mut |row| {
            let name = |page: &u32| names[*page as usize].clone();
            one = Some((of.clone(), row.gone, row.targets.iter().map(name).collect()));
        });
        assert_eq!(known.unwrap(), one.is_some());
        assert_eq!(one.as_ref(), last.get(&**of).copied());
    }
    found
}

fn names(store: &Path) -> Vec<String> {
    let snapshot = Snapshot::latest(&RealDisk, store).unwrap();
    snapshot.names().collect::<Result<_>>().unwrap()
}

/// Reads the rows of a store, as of its checkpoint and of its snapshot, which must agree.
fn rows_of(store: &Path) -> Vec<Named> {
    let names = names(store);
    let committed = open_view(&RealDisk, store).unwrap().rows().unwrap();
    let published = Snapshot::latest(&RealDisk, store).unwrap().rows().unwrap();
    let rows = swept(&committed, committed.kept(), &names);
    assert_eq!(swept(&published, published.kept(), &names), rows);
    rows
}

#[derive(Default)]
struct Told(Vec<GiveUpReason>);

impl Observer for Told {
    fn note(&mut self, note: IngestEvent<'_>) {
        if let IngestEvent::RowsGivenUp { reason } = note {
            self.0.push(reason);
        }
    }
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

struct Lab(TempDir);

impl Lab {
    fn new() -> Lab {
        Lab(in_memory())
    }

    fn store(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn input(&self, name: &str, records: &[String]) -> InputName {
        let path = self.0.path().join(name);
        fs::write(&path, records.concat()).unwrap();
        InputName::File(path)
    }

    fn job(&self, store: &str, inputs: &[InputName]) -> IngestJob {
        IngestJob {
            format: Some(Format::Records),
            checkpoint_every: Every::Never,
            ..IngestJob::new(self.store(store), inputs.to_vec())
        }
    }
}

fn run(job: &IngestJob) -> (Result<IngestOutcome>, Vec<GiveUpReason>) {
    run_on(job, Arc::new(RealDisk))
}

fn run_on(job: &IngestJob, disk: Arc<dyn Disk>) -> (Result<IngestOutcome>, Vec<GiveUpReason>) {
    let mut told = Told::default();
    let result = ingest(job, disk, &mut told);
    (result, told.0)
}

fn row_files(store: &Path) -> Vec<String> {
    RealDisk.list(&store.join("rows")).unwrap()
}

fn snapshot_bytes(store: &Path) -> Vec<u8> {
    fs::read(Snapshot::latest(&RealDisk, store).unwrap().path()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    /// Re-crawls, gone pages that come back, redirects, unchanged and failed ones; checkpoints anywhere; repeated
    /// passes; a disk that fails anywhere, and the same command again.
    #[test]
    fn rows_are_those_of_the_input(
        seed in any::<u64>(), records in 1u64..250, every in 1u64..60, repeat in 1u32..3, fails in 0u64..600
    ) {
        let lab = Lab::new();
        let records = crawl(seed, records);
        let input = lab.input("a", &records);
        let mut job = lab.job("s", &[input]);
        job.checkpoint_every = Every::Records(every);
        job.repeat = repeat;
        let failing = Failing::after(fails);
        let (_, told) = run_on(&job, Arc::new(Meddled(Arc::new(failing))));
        prop_assert!(told.is_empty());
        let (result, told) = run(&job);
        result.unwrap();
        prop_assert!(told.is_empty());
        let store = lab.store("s");
        prop_assert_eq!(rows_of(&store), expected(&records));
        let checked = check(&RealDisk, &store, Depth::Deep, None).unwrap();
        prop_assert!(checked.damage.is_empty() && checked.strangers.is_empty(), "{:?}", checked);
    }
}

/// Disk on which a write fails, and all after it.
pub struct Failing {
    /// Number of writes that succeed.
    writes: AtomicU64,
    kind: io::ErrorKind,
    /// True if only files of rows fail.
    rows_only: bool,
}

impl Failing {
    /// Returns a disk that fails after `writes` writes of any file.
    pub fn after(writes: u64) -> Failing {
        Failing {
            writes: AtomicU64::new(writes),
            kind: io::ErrorKind::Other,
            rows_only: false,
        }
    }
}

impl Over for Arc<Failing> {
    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let of_rows = path.parent().is_some_and(|parent| parent.ends_with("rows"));
        if of_rows || !self.rows_only {
            Box::new(MeddledFile(file, self.clone()))
        } else {
            file
        }
    }
}

impl Files for Failing {
    fn write(&self, file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
        let one_less = |left: u64| left.checked_sub(1);
        let left = &self.writes;
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => file.write_at(data, offset),
            Err(_) => Err(self.kind.into()),
        }
    }
}

/// Returns the only file of rows.
fn row_file(store: &Path) -> Vec<u8> {
    let files = row_files(store);
    assert_eq!(files.len(), 2, "a file and its index: {files:?}");
    fs::read(store.join("rows").join(&files[0])).unwrap()
}

/// Forty captures of sixty pages: most rows are superseded, so the file is compacted repeatedly. An earlier reader
/// keeps its rows.
#[test]
fn superseded_rows_go_and_readers_keep_theirs() {
    let lab = Lab::new();
    let store = lab.store("s");
    let all: Vec<String> = (0..14).flat_map(|seed| crawl(seed, 180)).collect();
    let (first, second) = all.split_at(900);
    let inputs = [lab.input("a", first), lab.input("b", second)];
    let mut job = lab.job("s", &inputs[..1]);
    job.checkpoint_every = Every::Records(50);
    run(&job).0.unwrap();
    let reader = Snapshot::latest(&RealDisk, &store).unwrap().rows().unwrap();
    let known = names(&store);
    assert_eq!(swept(&reader, reader.kept(), &known), expected(first));

    job.inputs = inputs.to_vec();
    run(&job).0.unwrap();
    assert_eq!(swept(&reader, reader.kept(), &known), expected(first));
    assert_eq!(rows_of(&store), expected(&all));
    let rows = open_view(&RealDisk, &store).unwrap().rows().unwrap();
    let kept = *rows.kept();
    assert!(kept.number > 3, "{kept:?}");
    assert!(kept.superseded < kept.rows);
    let number = kept.number.to_string();
    assert_eq!(
        row_files(&store),
        [number.clone(), format!("{number}.index")]
    );
}

#[test]
fn passes_after_the_first_add_nothing() {
    let lab = Lab::new();
    let records = crawl(3, 300);
    let input = lab.input("a", &records);
    for repeat in [1, 4] {
        let mut job = lab.job(&repeat.to_string(), std::slice::from_ref(&input));
        job.repeat = repeat;
        run(&job).0.unwrap();
    }
    let files = ["1", "4"].map(|store| row_file(&lab.store(store)));
    assert!(files[0] == files[1]);
}

/// All ways to lose rows: too little room, a full disk, on request. Results that do not need them have the same bytes.
#[test]
fn ingest_continues_if_rows_do_not_fit() {
    let lab = Lab::new();
    let records = crawl(4, 400);
    let input = lab.input("a", &records);
    // Settling needs rows; nothing else does.
    let job = |store: &str| IngestJob {
        settle: None,
        checkpoint_every: Every::Records(100),
        ..lab.job(store, std::slice::from_ref(&input))
    };
    run(&job("whole")).0.unwrap();
    let size = row_file(&lab.store("whole")).len() as u64;

    let mut small = job("small");
    small.keep_links = KeepRows::AtMost(size / 2);
    let (result, told) = run(&small);
    result.unwrap();
    assert_eq!(told, [GiveUpReason::TooLarge(size / 2)]);

    let full = Failing {
        writes: AtomicU64::new(2),
        kind: io::ErrorKind::StorageFull,
        rows_only: true,
    };
    // A full disk ends the run, as for every other file; with room again it continues to the same end.
    let (result, told) = run_on(&job("full"), Arc::new(Meddled(Arc::new(full))));
    assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
    assert_eq!(told, []);
    run(&job("full")).0.unwrap();
    assert!(snapshot_bytes(&lab.store("full")) == snapshot_bytes(&lab.store("whole")));
    assert_eq!(
        row_files(&lab.store("full")),
        row_files(&lab.store("whole"))
    );

    run(&job("dropped")).0.unwrap();
    let more = lab.input("b", &crawl(5, 50));
    let mut dropped = job("dropped");
    dropped.inputs.push(more.clone());
    dropped.keep_links = KeepRows::None;
    let (result, told) = run(&dropped);
    result.unwrap();
    assert_eq!(told, [GiveUpReason::Asked]);

    let mut none = job("none");
    none.keep_links = KeepRows::None;
    let (result, told) = run(&none);
    result.unwrap();
    assert_eq!(told, []);

    for name in ["small", "dropped", "none"] {
        let store = lab.store(name);
        if name != "dropped" {
            assert!(
                snapshot_bytes(&store) == snapshot_bytes(&lab.store("whole")),
                "{name}"
            );
        }
        assert_eq!(row_files(&store), [""; 0], "{name}");
        let view = open_view(&RealDisk, &store).unwrap();
        let snapshot = Snapshot::latest(&RealDisk, &store).unwrap();
        for refused in [view.rows().err(), snapshot.rows().err()] {
            let text = refused.unwrap().to_string();
            assert!(
                text.contains("keeps no rows") && text.contains("new store"),
                "{text}"
            );
        }
        assert_eq!(
            matches!(&view.manifest.retention, Retention::NotKept),
            name == "none"
        );
        drop(view);
        // Half of the rows cannot be kept afterwards.
        let mut again = job(name);
        if name == "dropped" {
            again.inputs.push(more.clone());
        }
        again.keep_links = KeepRows::AtMost(1 << 30);
        let (result, _) = run(&again);
        let text = result.unwrap_err().to_string();
        assert!(text.contains("cannot be added later"), "{text}");
        again.keep_links = KeepRows::Usual(1 << 30);
        let (result, told) = run(&again);
        assert!(result.unwrap().nothing_to_do && told.is_empty());
    }
}

/// Returns a disk with room for `writes` more writes of rows.
fn filling(writes: u64) -> Arc<dyn Disk> {
    let full = Failing {
        writes: AtomicU64::new(writes),
        kind: io::ErrorKind::StorageFull,
        rows_only: true,
    };
    Arc::new(Meddled(Arc::new(full)))
}

/// Wherever the disk becomes full while rows are kept, the run ends, and the store is at a checkpoint: with the rows of
/// all records until there, and no others. With room again the same command continues to the same end; without, it
/// continues without rows if that is requested.
#[test]
fn a_full_disk_leaves_the_rows_of_a_checkpoint() {
    let lab = Lab::new();
    let records = crawl(7, 300);
    let input = lab.input("a", &records);
    let job = |store: &str| IngestJob {
        checkpoint_every: Every::Records(40),
        ..lab.job(store, std::slice::from_ref(&input))
    };
    run(&job("whole")).0.unwrap();
    let whole = lab.store("whole");
    // Pages have the numbers of their first appearance, whatever fails.
    let names = names(&whole);
    let mut reached = BTreeSet::new();
    for writes in 0.. {
        let full = job(&format!("full-{writes}"));
        let (result, told) = run_on(&full, filling(writes));
        assert_eq!(told, []);
        match result {
            Ok(_) => break,
            Err(Error::Io { source, .. }) => {
                assert_eq!(source.kind(), io::ErrorKind::StorageFull);
            }
            Err(other) => panic!("{other}"),
        }
        let view = open_view(&RealDisk, &full.store).unwrap();
        let committed = view.manifest.engine.counters.records as usize;
        assert!(
            committed < 300 && committed.is_multiple_of(40),
            "{committed}"
        );
        // Before the first record there are no rows.
        if committed > 0 {
            let rows = view.rows().unwrap();
            let rows = swept(&rows, rows.kept(), &names);
            assert_eq!(rows, expected(&records[..committed]));
        }
        reached.insert(committed);
        drop(view);

        match writes % 2 {
            0 => {
                run(&full).0.unwrap();
                assert!(snapshot_bytes(&full.store) == snapshot_bytes(&whole));
                assert_eq!(rows_of(&full.store), expected(&records));
            }
            _ => {
                let mut without = full.clone();
                without.keep_links = KeepRows::None;
                let (result, told) = run_on(&without, filling(0));
                result.unwrap();
                let dropped = if committed > 0 {
                    &[GiveUpReason::Asked][..]
                } else {
                    &[]
                };
                assert_eq!(told, dropped);
                assert_eq!(row_files(&full.store), [""; 0]);
                assert!(
                    Snapshot::latest(&RealDisk, &full.store)
                        .unwrap()
                        .rows()
                        .is_err()
                );
            }
        }
    }
    assert!(reached.len() > 3, "{reached:?}");
}

/// The requested size belongs to the store: if left out it stays, even if it exceeds the default.
#[test]
fn the_requested_size_stays() {
    let lab = Lab::new();
    let inputs = [1, 2, 3].map(|seed| lab.input(&seed.to_string(), &crawl(seed, 300)));
    let mut job = lab.job("s", &inputs[..1]);
    job.keep_links = KeepRows::AtMost(1 << 20);
    run(&job).0.unwrap();
    job.keep_links = KeepRows::Usual(10);
    job.inputs = inputs[..2].to_vec();
    let (result, told) = run(&job);
    result.unwrap();
    assert_eq!(told, []);
    job.keep_links = KeepRows::AtMost(20);
    job.inputs = inputs.to_vec();
    let (result, told) = run(&job);
    result.unwrap();
    assert_eq!(told, [GiveUpReason::TooLarge(20)]);
}

/// Disk that delays the writing of the first snapshot until some number of checkpoints were made.
struct Slow {
    checkpoints: AtomicU64,
    until: u64,
    in_vain: AtomicU64,
}

impl Over for Arc<Slow> {
    fn over(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        if path.ends_with("000000000100.tmp") {
            Box::new(MeddledFile(file, self.clone()))
        } else {
            file
        }
    }
}

impl Files for Slow {
    fn write(&self, file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
        for _ in 0..6_000 {
            if self.checkpoints.load(Ordering::Relaxed) >= self.until {
                return file.write_at(data, offset);
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        self.in_vain.fetch_add(1, Ordering::Relaxed);
        file.write_at(data, offset)
    }
}

struct Counting(Arc<Slow>);

impl Observer for Counting {
    fn note(&mut self, note: IngestEvent<'_>) {
        if let IngestEvent::Checkpoint { .. } = note {
            self.0.checkpoints.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// All rankings of a store, oldest first.
fn all_snapshots(store: &Path) -> Vec<(String, Vec<u8>)> {
    let dir = store.join("snapshots");
    let mut names = RealDisk.list(&dir).unwrap();
    names.retain(|name| name != "latest.json");
    names.sort();
    let read = |name: String| {
        let bytes = fs::read(dir.join(&name)).unwrap();
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

/// A settled snapshot that takes long delays nothing, and is that of the records where it began: later checkpoints
/// overwrite the cash from which it was made.
#[test]
fn a_settling_holds_up_no_checkpoint() {
    let lab = Lab::new();
    let records = crawl(8, 300);
    let input = lab.input("a", &records);
    let job = |store: &str| IngestJob {
        checkpoint_every: Every::Records(20),
        snapshot_every: Every::Records(100),
        keep_snapshots: cashrank::KeepSnapshots::ALL,
        ..lab.job(store, std::slice::from_ref(&input))
    };
    // At 100 records five were made.
    let slow = Arc::new(Slow {
        checkpoints: AtomicU64::new(0),
        until: 8,
        in_vain: AtomicU64::new(0),
    });
    ingest(
        &job("slow"),
        Arc::new(Meddled(slow.clone())),
        &mut Counting(slow.clone()),
    )
    .unwrap();
    assert_eq!(slow.in_vain.load(Ordering::Relaxed), 0, "it was waited for");
    run(&job("straight")).0.unwrap();
    let found = all_snapshots(&lab.store("slow"));
    assert!(found == all_snapshots(&lab.store("straight")));
    let names: Vec<&str> = found.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(
        names,
        [
            "000000000100.snapshot",
            "000000000200.snapshot",
            "000000000300.snapshot"
        ]
    );
    let settled = Snapshot::latest(&RealDisk, &lab.store("slow")).unwrap();
    assert!(settled.info().window.settled.is_some());
}

/// An I/O error is not a full disk: it ends the run, and the same command continues with its rows.
#[test]
fn a_failing_disk_costs_no_rows() {
    let lab = Lab::new();
    let records = crawl(6, 200);
    let mut job = lab.job("s", &[lab.input("a", &records)]);
    job.checkpoint_every = Every::Records(20);
    let failing = Failing {
        writes: AtomicU64::new(5),
        kind: io::ErrorKind::Other,
        rows_only: true,
    };
    let (result, told) = run_on(&job, Arc::new(Meddled(Arc::new(failing))));
    assert!(matches!(result, Err(Error::Io { .. })) && told.is_empty());
    run(&job).0.unwrap();
    assert_eq!(rows_of(&lab.store("s")), expected(&records));
}

/// A flipped bit at the end: ingesting stops until the rows are dropped; rankings stay readable.
#[test]
fn damaged_rows_are_named_and_can_be_dropped() {
    let lab = Lab::new();
    let input = lab.input("a", &crawl(8, 200));
    let mut job = lab.job("s", std::slice::from_ref(&input));
    run(&job).0.unwrap();
    let store = lab.store("s");
    let path = store.join("rows").join(&row_files(&store)[0]);
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let checked = check(&RealDisk, &store, Depth::Deep, None).unwrap();
    assert!(matches!(&checked.damage[..], [Error::Damaged { path: at, .. }] if *at == path));
    assert!(!names(&store).is_empty());
    job.inputs.push(lab.input("b", &crawl(9, 20)));
    let (result, _) = run(&job);
    let text = result.unwrap_err().to_string();
    assert!(
        text.contains("rows/1") && text.contains("`keep_links` none"),
        "{text}"
    );
    job.keep_links = KeepRows::None;
    let (result, told) = run(&job);
    result.unwrap();
    assert_eq!(told, [GiveUpReason::Asked]);
}

/// Links have their weights, except in rows whose links all weigh 1.
#[test]
fn weights_are_kept() {
    let lab = Lab::new();
    let records: Vec<String> = [
        r#"{"url":"http://a.example/","links":["/near","http://b.example/"]}"#,
        r#"{"url":"http://b.example/","links":["http://a.example/","http://c.example/"]}"#,
        r#"{"url":"http://c.example/","links":["/1", {"url":"/2","rel":"nofollow"}, "http://a.example/"]}"#,
    ]
    .map(|line| format!("{line}\n"))
    .into();
    let mut job = lab.job("s", &[lab.input("a", &records)]);
    let mut config = Config::default();
    config.follow = "external=3,nofollow=0".parse().unwrap();
    job.settings.config = config;
    run(&job).0.unwrap();
    let names = names(&lab.store("s"));
    let rows = open_view(&RealDisk, &lab.store("s"))
        .unwrap()
        .rows()
        .unwrap();
    let mut found = Vec::new();
    rows.sweep(&mut |row| {
        let named = row.targets.iter().map(|&page| names[page as usize].clone());
        found.push(named.zip(row.weights.to_vec()).collect::<HashMap<_, _>>());
        Ok(())
    })
    .unwrap();
    let map = |pairs: &[(&str, u64)]| -> HashMap<String, u64> {
        pairs
            .iter()
            .map(|&(url, weight)| (url.to_owned(), weight))
            .collect()
    };
    let a = map(&[("http://a.example/near", 1), ("http://b.example/", 3)]);
    let b = map(&[("http://a.example/", 3), ("http://c.example/", 3)]);
    let c = map(&[
        ("http://c.example/1", 1),
        ("http://c.example/2", 0),
        ("http://a.example/", 3),
    ]);
    assert_eq!(found, [a, b, c]);
}

/// Real crawls, against the graph that `load::load` makes of them, by names: of a page with several captures the last,
/// gone pages without links.
#[test]
fn rows_of_real_crawls_are_those_of_the_graph() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    for (folder, files) in [
        ("cnr-2000", &["adjacency.tsv.zst"][..]),
        ("flink-history", &["flink.jsonl.zst"]),
        ("postgresql", &[]),
        ("boost", &[]),
    ] {
        let folder = data.join(folder);
        let mut paths: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
        if paths.is_empty() && folder.exists() {
            let names = RealDisk.list(&folder).unwrap();
            let warcs = names.iter().filter(|name| name.ends_with(".warc.gz"));
            paths = warcs.map(|name| folder.join(name)).collect();
        }
        if paths.is_empty() || !paths[0].exists() {
            eprintln!("SKIPPED: {} is not there", folder.display());
            continue;
        }
        let inputs: Vec<InputName> = paths.into_iter().map(InputName::File).collect();
        let temp = in_memory();
        let mut job = IngestJob::new(temp.path().join("s"), inputs.clone());
        job.checkpoint_every = Every::Records(10_000);
        run(&job).0.unwrap();
        let names = names(&job.store);
        let rows = open_view(&RealDisk, &job.store).unwrap().rows().unwrap();
        let config = Config::default();
        let graph = load(&inputs, None, &config, &Default::default(), &job.limits).unwrap();
        let of_name: HashMap<&str, u32> = (0..)
            .zip(&names)
            .map(|(page, name)| (name.as_str(), page))
            .collect();
        let page = |node: u32| of_name[graph.pages[node as usize].name.as_str()];
        let mut found: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut longest = 0;
        rows.sweep(&mut |row| {
            longest = longest.max(row.targets.len());
            let before = found.insert(row.page, row.targets.to_vec());
            assert!(before.is_none(), "page {} has two rows", row.page);
            Ok(())
        })
        .unwrap();
        assert_eq!(rows.links(), graph.graph.links() as u64);
        for (node, row) in (0..).zip(graph.graph.rows()) {
            let mut targets: Vec<u32> = row.iter().map(|&node| page(node)).collect();
            targets.sort_unstable();
            let visited = graph.pages[node as usize].visits > 0;
            assert_eq!(found.contains_key(&page(node)), visited);
            assert_eq!(found.remove(&page(node)).unwrap_or_default(), targets);
        }
        let kept = rows.kept();
        eprintln!(
            "{}: {} rows, {} links, {:.3} bytes a link, {} superseded, longest {longest}, file {}",
            folder.display(),
            rows.rows(),
            rows.links(),
            kept.lengths.data as f64 / kept.links as f64,
            kept.superseded,
            kept.number
        );
    }
}
