//! Accuracy of windows and of settling on a real graph, in its own order and in others, against exact PageRank. The
//! limits come from a second implementation, in exact integers.

use std::collections::HashMap;

use cashrank::Reader;
use cashrank_crawl::decode::Names;
use cashrank_graph::engine::{Config, Engine, InMemory, PageId, SelfLinks};
use cashrank_graph::rank::Teleport;
use cashrank_graph::rank::pagerank::{PowerOptions, Walk, pagerank};

use crate::{cnr, common};
#[path = "../src/crates/lab/src/commands/bfs_order/order.rs"]
mod order;
#[path = "accuracy/settled.rs"]
mod settled;

use common::record;

/// Shuffle with a fixed seed.
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

/// Returns the L1 distance of an engine's importance from `exact`, by node, and the bound it claims.
fn distance(engine: &mut Engine<InMemory>, exact: &[f64]) -> (f64, Option<f64>) {
    let ranking = engine.ranking().unwrap();
    let off = ranking.pages.iter().map(|page| {
        let node: usize = page.url.parse().unwrap();
        (page.importance - exact[node]).abs()
    });
    let certificate = ranking.window.certificate.unwrap();
    (off.sum(), certificate.received_l1)
}

/// Graph: names of each page and its links, and its PageRank.
struct Graph {
    text: String,
    exact: Vec<f64>,
    /// L1 distance of power iteration from PageRank after 1, 2, ... 20 iterations.
    offline: Vec<f64>,
}

impl Graph {
    /// Loads cnr-2000; `None` if it is absent.
    fn cnr() -> Option<Graph> {
        let text = cnr::adjacency(&cnr::folder()?);
        let options = PowerOptions {
            damping: 0.85,
            residual: 1e-13,
        };
        let graph = cnr::graph(&text, SelfLinks::Drop);
        let exact = pagerank(&graph, options).unwrap().scores;
        let walk = Walk {
            links: &graph,
            damping: options.damping,
            teleport: &Teleport::default(),
        };
        let mut now = vec![1.0 / exact.len() as f64; exact.len()];
        let mut next = now.clone();
        let iterate = |_| {
            walk.step(&now, &mut next);
            std::mem::swap(&mut now, &mut next);
            let off = now.iter().zip(&exact).map(|(a, b)| (a - b).abs());
            off.sum()
        };
        let offline = (0..20).map(iterate).collect();
        Some(Graph {
            text,
            exact,
            offline,
        })
    }

    fn lines(&self) -> Vec<Vec<&str>> {
        let lines = self.text.lines();
        lines
            .map(|line| line.split_terminator('\t').collect())
            .collect()
    }
}

/// Visits the pages of these lines.
fn visit(engine: &mut Engine<InMemory>, reader: &mut Reader, lines: &[Vec<&str>], order: &[usize]) {
    for &at in order {
        let (page, links) = lines[at].split_first().unwrap();
        let record = record(page, links.iter().copied());
        reader.apply(engine, &record).unwrap();
    }
}

/// Visits the pages of these rows, which were visited before.
fn visit_again(engine: &mut Engine<InMemory>, rows: &[(PageId, Vec<PageId>)], order: &[usize]) {
    for &at in order {
        let (page, targets) = &rows[at];
        let links = targets.as_slice().into();
        engine.replay_visit(*page, false, links).unwrap();
    }
}

/// Returns the lines as numbers of pages, which are given as names appear when lines are read in this order.
fn numbered(lines: &[Vec<&str>], order: &[usize]) -> Vec<(PageId, Vec<PageId>)> {
    let mut numbers = HashMap::new();
    let mut rows = vec![(PageId(0), Vec::new()); lines.len()];
    for &at in order {
        let line = lines[at].iter().map(|&name| {
            let next = PageId(numbers.len() as u64);
            *numbers.entry(name).or_insert(next)
        });
        let line: Vec<PageId> = line.collect();
        let others = line[1..].iter().filter(|&&target| target != line[0]);
        rows[at] = (line[0], others.copied().collect());
    }
    rows
}

/// In the graph's own order, the best window is more accurate after every pass than power iteration, which needs all
/// links at hand, is after as many iterations.
#[test]
fn windows_beat_power_iteration() {
    let Some(graph) = Graph::cnr() else {
        return;
    };
    let lines = graph.lines();
    let order: Vec<usize> = (0..lines.len()).collect();
    let rows = numbered(&lines, &order);
    let limits = [(1, 0.41), (2, 0.28), (5, 0.058), (10, 0.0082), (20, 0.0003)];
    let mut engine = Engine::new(Config::default()).unwrap();
    let mut reader = cashrank::Reader::new(&engine, Names::Opaque).unwrap();
    assert_eq!(graph.offline.len(), 20);
    for (pass, offline) in (1..).zip(&graph.offline) {
        if pass == 1 {
            visit(&mut engine, &mut reader, &lines, &order);
        } else {
            visit_again(&mut engine, &rows, &order);
        }
        let (l1, bound) = distance(&mut engine, &graph.exact);
        eprintln!("{pass} passes: L1 {l1:.6}, bound {bound:?}; power iteration {offline:.6}");
        assert!(l1 <= bound.unwrap_or(2.0) && l1 < *offline, "{pass}: {l1}");
        let limit = limits.iter().find(|(at, _)| *at == pass);
        assert!(limit.is_none_or(|(_, limit)| l1 <= *limit), "{pass}: {l1}");
        engine.begin_pass().unwrap();
    }
}

/// Twenty passes over cnr-2000, each in a different order: `auto`, and a window of half the time.
#[test]
fn windows_come_near_in_any_order() {
    let Some(graph) = Graph::cnr() else {
        return;
    };
    let (lines, exact) = (graph.lines(), &graph.exact);
    // A pass distributes 1.7 turnovers: ten of them are 17.
    let windows = ["auto", "fixed:17"];
    let mut engines = windows.map(|window| {
        let mut config = Config::default();
        config.window = window.parse().unwrap();
        Engine::new(config).unwrap()
    });
    let mut reader = cashrank::Reader::new(&engines[0], Names::Opaque).unwrap();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    let mut shuffle = Shuffle(0x9e37_79b9_7f4a_7c15);
    let mut rows = Vec::new();
    for pass in 1..=20 {
        shuffle.shuffle(&mut order);
        for engine in &mut engines {
            if pass == 1 {
                visit(engine, &mut reader, &lines, &order);
                rows = numbered(&lines, &order);
            } else {
                visit_again(engine, &rows, &order);
            }
            engine.begin_pass().unwrap();
        }
        if pass % 5 == 0 {
            for (window, engine) in windows.iter().zip(&mut engines) {
                let totals = engine.state().totals;
                let turnovers = totals.clock as f64 / totals.supply() as f64;
                let (l1, bound) = distance(engine, exact);
                eprintln!(
                    "{pass} passes, {turnovers:.2} turnovers, {window}: L1 {l1:.4}, bound {bound:?}"
                );
                assert!(l1 <= bound.unwrap_or(2.0), "{window}");
            }
        }
    }
    let [auto, half] = engines.each_mut().map(|engine| distance(engine, exact).0);
    assert!(auto <= 0.025, "auto: {auto}");
    assert!(half <= 0.017, "fixed: {half}");
}
