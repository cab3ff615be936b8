//! The off-line reference and the comparison of rankings, each next to the simplest code that touches the same data.
//! Results are checked, so that a wrong answer does not pass for a fast one.

use std::hint::black_box;

use cashrank_graph::engine::SelfLinks;
use cashrank_graph::graph::{Graph, GraphBuilder};
use cashrank_graph::metrics::{Scores, compare, kendall};
use cashrank_graph::rank::pagerank::{PowerOptions, pagerank};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// Fixed sequence of numbers by SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns a graph of `nodes` nodes with 0 to 20 links each; half lead to a neighbourhood, half anywhere, with a
/// preference for low ids.
fn synthetic(nodes: u32) -> Graph {
    let mut random = Random(1);
    let mut builder = GraphBuilder::new(SelfLinks::Drop);
    builder.grow(nodes as usize);
    for source in 0..nodes {
        let degree = random.next() % 21;
        let row: Vec<u32> = (0..degree)
            .map(|_| {
                let near = random.next().is_multiple_of(2);
                let place = random.unit();
                if near {
                    (source + (place * 100.0) as u32) % nodes
                } else {
                    (place.powi(3) * f64::from(nodes)) as u32
                }
            })
            .collect();
        builder.row(source, row);
    }
    builder.build()
}

fn pagerank_iteration(c: &mut Criterion) {
    let graph = synthetic(325_000);
    let mut group = c.benchmark_group(format!("pagerank, {} links", graph.links()));
    group.throughput(Throughput::Elements(graph.links() as u64));
    group.sample_size(20);
    // The first iteration reaches a residual of 2, so this measures one iteration, with the start and the bound.
    for (name, residual) in [("1 iteration", 2.0), ("to 1e-9", 1e-9)] {
        let options = PowerOptions {
            residual,
            ..PowerOptions::default()
        };
        let result = pagerank(&graph, options).expect("options are in range");
        assert!(result.converged);
        let name = format!("{name} ({})", result.iterations);
        group.bench_function(name, |b| b.iter(|| pagerank(black_box(&graph), options)));
    }
    group.bench_function("sum of the targets", |b| {
        b.iter(|| {
            black_box(&graph)
                .targets()
                .iter()
                .map(|&t| u64::from(t))
                .sum::<u64>()
        })
    });
    group.finish();
}

/// Returns two rankings of a million pages that mostly agree; every tenth score is tied.
fn pairs() -> Vec<(f64, f64)> {
    let mut random = Random(2);
    let mut score = || -> (f64, f64) {
        let x = if random.next().is_multiple_of(10) {
            0.5
        } else {
            random.unit()
        };
        (x, x + 0.2 * random.unit())
    };
    (0..1_000_000).map(|_| score()).collect()
}

fn comparing(c: &mut Criterion) {
    let pairs = pairs();
    let mut group = c.benchmark_group("1 M pages");
    group.throughput(Throughput::Elements(1_000_000));
    group.sample_size(10);
    assert!(kendall::tau_b(pairs.clone()).is_some_and(|tau| tau > 0.5 && tau < 1.0));
    group.bench_function("kendall tau-b", |b| {
        b.iter_batched(|| pairs.clone(), kendall::tau_b, BatchSize::LargeInput)
    });
    group.bench_function("one sort of the pairs", |b| {
        let sort = |mut pairs: Vec<(f64, f64)>| {
            pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            pairs
        };
        b.iter_batched(|| pairs.clone(), sort, BatchSize::LargeInput)
    });
    let side = |pick: fn(&(f64, f64)) -> f64| {
        let mut scores = Scores::new();
        for (i, pair) in pairs.iter().enumerate() {
            let name = format!("http://www.example.org/{i}");
            scores
                .push(name.as_bytes(), pick(pair))
                .expect("a fit score");
        }
        scores
    };
    let (left, right) = (side(|pair| pair.0), side(|pair| pair.1));
    group.bench_function("compare", |b| {
        let sides = || (left.clone(), right.clone());
        b.iter_batched(sides, |(l, r)| compare(l, r), BatchSize::LargeInput)
    });
    group.finish();
}

criterion_group!(benches, pagerank_iteration, comparing);
criterion_main!(benches);
