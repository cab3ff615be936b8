//! Cost of a store: a checkpoint, a snapshot, and opening it again, compared with a plain write.
//!
//! The store knows a million pages, and all cash has changed at each checkpoint. Syncs are real, so the disk determines
//! the times. "plain write" writes and syncs as many bytes as the cash takes; a checkpoint also writes a row of history
//! per page.

use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;

use cashrank::Limits;
use cashrank_crawl::source::InputName;
use cashrank_graph::engine::{Engine, PageId, TargetLinks};
use cashrank_ingest::ingest::{IngestEvent, IngestJob, Observer, ProgressReport, ingest};
use cashrank_store::snapshot::{KeepSnapshots, publish};
use cashrank_store::store::rows::KeepRows;
use cashrank_store::store::{RealDisk, Settings, StoreWriter, checkpoint, open_view};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PAGES: u64 = 1 << 20;

struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: IngestEvent<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

/// Creates a store in which most pages are link targets only.
fn make(folder: &Path) -> Settings {
    let lists = folder.join("lists.tsv");
    let mut text = Vec::new();
    for page in 0..PAGES / 64 {
        write!(text, "{page}").expect("is memory");
        for target in 0..64 {
            write!(text, "\t{}", (page * 64 + target) % PAGES).expect("is memory");
        }
        text.push(b'\n');
    }
    std::fs::write(&lists, text).expect("can be written");
    let job = IngestJob::new(folder.join("store"), vec![InputName::File(lists)]);
    let outcome = ingest(&job, Arc::new(RealDisk), &mut Silent).expect("the lists are sound");
    assert_eq!(outcome.pages, PAGES);
    job.settings
}

fn open(folder: &Path, settings: &Settings) -> Engine<StoreWriter> {
    let (disk, limits) = (Arc::new(RealDisk), Limits::default());
    let opened = StoreWriter::open(
        disk,
        &folder.join("store"),
        settings,
        &limits,
        KeepRows::None,
        false,
    );
    opened.expect("the store opens")
}

fn store(c: &mut Criterion) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let folder = folder.path();
    let settings = make(folder);
    let mut group = c.benchmark_group("store");
    group.sample_size(10);
    group.throughput(Throughput::Elements(PAGES));
    group.bench_function("open", |b| {
        b.iter(|| open(folder, &settings).ledger().totals().pages);
    });
    group.bench_function("snapshot", |b| {
        b.iter(|| {
            let view = open_view(&RealDisk, &folder.join("store")).expect("opens");
            let keep = KeepSnapshots::newest(1);
            let published = publish(&RealDisk, &view, keep, None).expect("is published");
            let (_, info) = published.expect("nobody stops it");
            assert_eq!(info.pages, PAGES);
        });
    });
    let mut engine = open(folder, &settings);
    let progress = engine.storage().manifest.progress.clone();
    let visit_all = |engine: &mut Engine<StoreWriter>| {
        for page in (0..PAGES).map(PageId) {
            let visited = engine.replay_visit(page, false, TargetLinks::NONE);
            visited.expect("is visited");
        }
    };
    group.bench_function("visit all", |b| b.iter(|| visit_all(&mut engine)));
    group.bench_function("visit all and checkpoint", |b| {
        b.iter(|| {
            visit_all(&mut engine);
            checkpoint(&mut engine, &progress).expect("is durable");
        });
    });
    let bytes = vec![1; (PAGES * 17 / 2) as usize];
    let mut file = std::fs::File::create(folder.join("plain")).expect("can be written");
    group.bench_function("plain write", |b| {
        b.iter(|| {
            file.rewind().expect("seeks");
            file.write_all(&bytes).expect("can be written");
            file.sync_data().expect("syncs");
        });
    });
    group.finish();
}

criterion_group!(benches, store);
criterion_main!(benches);
