//! How near the windows come to exact PageRank on a real graph whose pages are visited in another
//! order in every pass. The limits are those of a second implementation, in exact integers.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use cashrank::decode::Names;
use cashrank::engine::{Config, Engine, InMemory, SelfLinks};
use cashrank::sim::graph::GraphBuilder;
use cashrank::sim::pagerank::{Options, pagerank};

mod common;

use common::record;

/// A shuffle that is the same each time.
struct Shuffle(u64);

impl Shuffle {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * n as u128) >> 64) as usize
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for at in (1..order.len()).rev() {
            order.swap(at, self.below(at + 1));
        }
    }
}

/// L1 distance of an engine's importance to `exact`, by node, and the bound it gives.
fn distance(engine: &mut Engine<InMemory>, exact: &[f64]) -> (f64, Option<f64>) {
    let ranking = engine.ranking().unwrap();
    let off = ranking.pages.iter().map(|page| {
        let node: usize = page.url.parse().unwrap();
        (page.importance - exact[node]).abs()
    });
    let certificate = ranking.window.certificate.unwrap();
    (off.sum(), certificate.received_l1)
}

/// Twenty passes over cnr-2000, every one in an order of its own: `auto`, and a window of half the time.
#[test]
fn windows_come_near_in_any_order() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/cnr-2000/adjacency.tsv.zst");
    let Ok(file) = File::open(&path) else {
        eprintln!("SKIPPED: {} is absent", path.display());
        return;
    };
    let mut text = String::new();
    zstd::Decoder::new(file)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_terminator('\t').collect())
        .collect();
    let mut graph = GraphBuilder::new(SelfLinks::Drop);
    for names in &lines {
        let mut ids = names.iter().map(|id| id.parse().unwrap());
        graph.row(ids.next().unwrap(), ids);
    }
    let options = Options {
        residual: 1e-13,
        ..Options::default()
    };
    let exact = pagerank(&graph.build(), options).unwrap().scores;

    // A pass distributes 1.7 turnovers: ten of them are 17.
    let windows = ["auto", "fixed:17"];
    let mut engines = windows.map(|window| {
        let mut config = Config::default();
        config.window = window.parse().unwrap();
        Engine::new(config).unwrap()
    });
    let mut reader = engines[0].reader(Names::Opaque).unwrap();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    let mut shuffle = Shuffle(0x9e37_79b9_7f4a_7c15);
    for pass in 1..=20 {
        shuffle.shuffle(&mut order);
        for engine in &mut engines {
            for &at in &order {
                let (page, links) = lines[at].split_first().unwrap();
                reader
                    .apply(engine, &record(page, links.iter().copied()))
                    .unwrap();
            }
            engine.begin_pass().unwrap();
        }
        if pass % 5 == 0 {
            for (window, engine) in windows.iter().zip(&mut engines) {
                let totals = engine.state().totals;
                let turnovers = totals.clock as f64 / totals.supply() as f64;
                let (l1, bound) = distance(engine, &exact);
                eprintln!(
                    "{pass} passes, {turnovers:.2} turnovers, {window}: L1 {l1:.4}, bound {bound:?}"
                );
                assert!(l1 <= bound.unwrap_or(2.0), "{window}");
            }
        }
    }
    let [auto, half] = engines.each_mut().map(|engine| distance(engine, &exact).0);
    assert!(auto <= 0.025, "auto: {auto}");
    assert!(half <= 0.017, "fixed: {half}");
}
