//! The stages between decoding and the disk: batches, the engine, the ranking.
//!
//! Input: the sample crawl (formats/samples), whose links and pages are known.

use std::hint::black_box;
use std::path::Path;

use cashrank::Limits;
use cashrank_crawl::batch::{Batch, Builder, HashKey, Rules};
use cashrank_crawl::decode::Decoder;
use cashrank_crawl::formats::Format;
use cashrank_graph::engine::{Config, Engine, Ledger, PageId, SelfLinks, age, damping_units};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

fn sample() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats/samples/crawl.jsonl.zst");
    let packed = std::fs::read(path).expect("the sample is in the repository");
    zstd::decode_all(&packed[..]).expect("is sound")
}

fn batches(text: &[u8]) -> Vec<Batch> {
    let decoder: &dyn Decoder = Format::Records.decoder();
    let rules = Rules {
        limits: Limits::default(),
        self_links: SelfLinks::Drop,
        key: HashKey([1, 2]),
        input: Default::default(),
        follow: Default::default(),
    };
    let mut builder = Builder::new(rules, decoder.names());
    let mut batches = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let until = text.len().min(at + (1 << 20));
        let len = match decoder.whole(&text[at..until]) {
            len @ 1.. if until < text.len() => len,
            _ => text.len() - at,
        };
        builder.run(decoder, &text[at..at + len], |batch, _| {
            batches.push(batch);
            Some(Batch::default())
        });
        at += len;
    }
    batches
}

fn apply(batches: &[Batch]) -> Engine {
    let mut engine = Engine::new(Config::default()).expect("memory can be reserved");
    for batch in batches {
        engine.begin_batch();
        for at in 0..batch.entries.len() {
            engine.apply_entry(batch, at).expect("applies");
        }
    }
    engine
}

fn stages(c: &mut Criterion) {
    let text = sample();
    let built = batches(&text);
    let engine = apply(&built);
    let links = engine.counters().links;
    // A check of the results: the counts are those of formats/samples/README.md.
    assert_eq!((engine.counters().records, links), (2_959, 1_036_936));
    let mut group = c.benchmark_group("stages");
    group.sample_size(20);
    group.throughput(Throughput::Elements(links));
    group.bench_function("decode and batch", |b| {
        b.iter(|| black_box(batches(&text)).len());
    });
    group.bench_function("apply", |b| {
        b.iter(|| black_box(apply(&built)).counters().links);
    });
    group.throughput(Throughput::Elements(engine.ledger().totals().pages));
    group.bench_function("ranking", |b| {
        b.iter_batched(
            || apply(&built),
            |mut engine| engine.ranking().expect("ranks"),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// The ledger alone: visits of pages with 20 links each, over a million pages.
fn ledger(c: &mut Criterion) {
    const PAGES: u64 = 1 << 20;
    const LINKS: u64 = 20;
    let mut ledger = Ledger::new(damping_units(0.85), 4, PAGES).expect("memory can be reserved");
    for _ in 0..PAGES {
        ledger.admit().expect("there is room");
    }
    let mut at = 0u64;
    let mut next = || {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        PageId((at >> 33) % PAGES)
    };
    let visits: Vec<(PageId, Vec<PageId>)> = (0..10_000)
        .map(|_| (next(), (0..LINKS).map(|_| next()).collect()))
        .collect();
    let mut group = c.benchmark_group("ledger");
    group.throughput(Throughput::Elements(visits.len() as u64 * LINKS));
    group.bench_function("visit", |b| {
        b.iter(|| {
            for (page, targets) in &visits {
                black_box(ledger.visit(*page, &targets[..], age::NOW));
            }
        });
    });
    group.finish();
    ledger.check_law().expect("the law holds");
}

criterion_group!(benches, stages, ledger);
criterion_main!(benches);
