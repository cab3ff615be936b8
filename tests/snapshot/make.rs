//! Makes small stores, and reads all of a snapshot.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank::Result;
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::rows::Rows;
use cashrank_ingest::ingest::{Every, IngestEvent, IngestJob, Observer, ProgressReport, ingest};
use cashrank_store::snapshot::{Snapshot, SnapshotPage};
use cashrank_store::store::RealDisk;

pub fn samples(kind: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("formats/samples").join(kind).join("snapshot")
}

/// Parts of a store that a reader of snapshots needs.
pub const READ_PARTS: [&str; 7] = [
    "identity.json",
    "urls",
    "urls.index",
    "fingerprints",
    "fingerprints.index",
    "snapshots/latest.json",
    "snapshots/000000000300.snapshot",
];
pub const SNAPSHOT: &str = READ_PARTS[6];

/// Path of the ranking of [`make_settled`].
pub const SETTLED: &str = "snapshots/000000000005.snapshot";

/// Files of its rows.
pub const ROW_PARTS: [&str; 2] = ["rows/1", "rows/1.index"];

/// Observer that ignores everything.
pub struct Quiet;

impl Observer for Quiet {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// Reads the sample's five records 60 times into a new store.
pub fn make_store(store: &Path) {
    let outcome = ingest(&job(store), Arc::new(RealDisk), &mut Quiet).unwrap();
    assert_eq!(outcome.counters.records, 300);
}

/// Returns the job of [`make_store`]: a window's ranking, as of the 60 passes.
pub fn job(store: &Path) -> IngestJob {
    let input = samples("good").join("records.jsonl");
    IngestJob {
        format: Some(Format::Records),
        repeat: 60,
        settle: None,
        strict: true,
        checkpoint_every: Every::Records(50),
        ..IngestJob::new(store, vec![InputName::File(input)])
    }
}

/// Reads the sample's five records once into a new store, and settles them.
pub fn make_settled(store: &Path) {
    let job = IngestJob {
        repeat: 1,
        settle: Some(1e-9.into()),
        ..job(store)
    };
    let outcome = ingest(&job, Arc::new(RealDisk), &mut Quiet).unwrap();
    assert_eq!(outcome.counters.records, 5);
}

/// Copies the files that a reader needs.
pub fn copy_parts(from: &Path, to: &Path) {
    copy_with(from, to, SNAPSHOT);
}

/// Copies the files that a reader needs from a store whose current ranking is `snapshot`.
pub fn copy_with(from: &Path, to: &Path, snapshot: &str) {
    fs::create_dir_all(to.join("snapshots")).unwrap();
    fs::create_dir_all(to.join("rows")).unwrap();
    let others = READ_PARTS.into_iter().filter(|part| *part != SNAPSHOT);
    for part in others.chain(ROW_PARTS).chain([snapshot]) {
        fs::copy(from.join(part), to.join(part)).unwrap();
    }
}

/// Reads all rows, as of the current snapshot: page, whether it is gone, targets.
pub fn read_rows(store: &Path) -> Result<Vec<(u32, bool, Vec<u32>)>> {
    let mut rows = Vec::new();
    let kept = Snapshot::latest(&RealDisk, store)?.rows()?;
    kept.sweep(&mut |row| {
        rows.push((row.page, row.gone, row.targets.to_vec()));
        Ok(())
    })?;
    Ok(rows)
}

/// Reads and checks the whole current snapshot.
pub fn read_all(store: &Path) -> Result<Vec<(String, SnapshotPage)>> {
    let snapshot = Snapshot::latest(&RealDisk, store)?;
    snapshot.verify()?;
    snapshot
        .pages()
        .zip(snapshot.names())
        .map(|(page, name)| {
            let (name, page) = (name?, page?);
            // The same name through the index.
            assert_eq!(snapshot.names_of(&[page.page])?[0], name);
            Ok((name, page))
        })
        .collect()
}
