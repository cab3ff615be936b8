//! Crawl archives: writing one, and passes over one into a store.
//!
//! Input: the sample crawl (formats/samples), whose links are known. Reading is timed as what it is
//! for, ten passes of an ingest, with the store's checkpoints and snapshot.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cashrank::Limits;
use cashrank::archive::Options;
use cashrank::ingest::{Conversion, Job, Note, Observer, ProgressReport, convert, ingest};
use cashrank::source::{InputName, SourceOptions};
use cashrank::store::RealDisk;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const LINKS: u64 = 1_036_936;
const PASSES: u32 = 10;

struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: Note<'_>) {}
    fn progress(&mut self, _: &ProgressReport<'_>) {}
}

fn archive(level: i32) -> Vec<u8> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/crawl.jsonl.zst");
    let job = Conversion {
        input: Default::default(),
        inputs: vec![InputName::File(sample)],
        format: None,
        strict: true,
        threads: 2,
        level,
        block_records: Options::BLOCK_RECORDS,
        limits: Limits::default(),
        source: SourceOptions::default(),
        stop: Arc::new(AtomicBool::new(false)),
    };
    let made = convert(&job, Vec::new(), PathBuf::new(), &mut Silent);
    let (bytes, converted) = made.expect("the sample is sound");
    assert_eq!(converted.written.links, LINKS);
    bytes
}

fn passes(archive: &Path, store: &Path) {
    let job = Job {
        repeat: PASSES,
        ..Job::new(store, vec![InputName::File(archive.into())])
    };
    let outcome = ingest(&job, Arc::new(RealDisk), &mut Silent).expect("the archive is sound");
    assert_eq!(outcome.counters.links, u64::from(PASSES) * LINKS);
}

fn archives(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crawl.cza");
    let bytes = archive(3);
    eprintln!("archive: {} bytes at level 3", bytes.len());
    std::fs::write(&file, &bytes).expect("can be written");
    let mut group = c.benchmark_group("archive");
    group.sample_size(10);
    group.throughput(Throughput::Elements(LINKS));
    group.bench_function("convert, level 3", |b| b.iter(|| archive(3).len()));
    group.throughput(Throughput::Elements(u64::from(PASSES) * LINKS));
    group.bench_function("ten passes", |b| {
        b.iter_with_setup(
            || tempfile::tempdir_in(folder.path()).expect("a folder"),
            |store| {
                passes(&file, &store.path().join("store"));
                store
            },
        );
    });
    group.finish();
}

criterion_group!(benches, archives);
criterion_main!(benches);
