//! Tests of every measure against its closed form, its definition, or the matrix of which it is an eigenvector.

use proptest::prelude::*;

use super::*;
use crate::graph::{Graph, GraphBuilder};
use crate::model::SelfLinks;

fn graph(rows: &[&[u32]]) -> Graph {
    let mut graph = GraphBuilder::new(SelfLinks::Keep);
    graph.grow(rows.len());
    for (page, row) in (0..).zip(rows) {
        graph.row(page, row.iter().copied());
    }
    graph.build()
}

fn options() -> MeasureOptions {
    MeasureOptions {
        until: 1e-13,
        threads: 2,
        ..MeasureOptions::default()
    }
}

fn measured(name: &str, rows: &dyn Rows, options: &MeasureOptions) -> MeasureScores {
    let found = measure(name).unwrap().compute(rows, options, &mut ());
    found.unwrap().unwrap()
}

fn scores(name: &str, rows: &dyn Rows) -> Vec<f64> {
    measured(name, rows, &options()).scores
}

fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-10 * (1.0 + b.abs());
    assert!(
        found.iter().zip(expected).all(near),
        "{found:?}, not {expected:?}"
    );
}

#[test]
fn degrees_are_counted() {
    let graph = graph(&[&[1, 2], &[0, 1, 2], &[]]);
    assert_near(&scores("in-degree", &graph), &[1.0, 2.0, 2.0]);
    assert_near(&scores("out-degree", &graph), &[2.0, 3.0, 0.0]);
    let mut weighted = GraphBuilder::new(SelfLinks::Drop);
    weighted.weighted_row(0, [(1, 7), (2, 1)]);
    let weighted = weighted.build();
    assert_near(&scores("in-degree", &weighted), &[0.0, 1.0, 1.0]);
}

/// In a chain page n has 1 + 1/2 + ... + 1/n; in a ring of n all have 1 + ... + 1/(n - 1); shortcuts count.
#[test]
fn harmonic_of_chains_and_rings() {
    let chain = graph(&[&[1], &[2], &[3], &[]]);
    let expected = [0.0, 1.0, 1.5, 1.5 + 1.0 / 3.0];
    assert_near(&scores("harmonic", &chain), &expected);
    let ring: Vec<Vec<u32>> = (0..150).map(|page| vec![(page + 1) % 150]).collect();
    let ring: Vec<&[u32]> = ring.iter().map(Vec::as_slice).collect();
    let sum: f64 = (1..150).map(|distance| 1.0 / f64::from(distance)).sum();
    assert_near(&scores("harmonic", &graph(&ring)), &[sum; 150]);
    let shortcut = graph(&[&[1, 2, 0], &[2], &[0]]);
    assert_near(&scores("harmonic", &shortcut), &[1.5, 1.5, 2.0]);
}

/// Page 0 links to pages 2 and 3, page 1 to page 3. A^T A on (2, 3) is (1, 1; 1, 2), with dominant eigenvector (1,
/// golden ratio).
#[test]
fn hubs_and_authorities() {
    let graph = graph(&[&[2, 3], &[3], &[], &[], &[5], &[]]);
    let golden = (1.0 + 5f64.sqrt()) / 2.0;
    let sum = 1.0 + golden;
    let authorities = [0.0, 0.0, 1.0 / sum, golden / sum, 0.0, 0.0];
    assert_near(&scores("hits-authorities", &graph), &authorities);
    let hubs = [golden / sum, 1.0 / sum, 0.0, 0.0, 0.0, 0.0];
    assert_near(&scores("hits-hubs", &graph), &hubs);
}

#[test]
fn what_cannot_be_computed_is_refused() {
    let empty = graph(&[]);
    let no_links = graph(&[&[], &[]]);
    for measure in MEASURES {
        let why = measure.compute(&empty, &options(), &mut ()).unwrap_err();
        assert!(why.to_string().contains("there are no pages"), "{why}");
        let found = measure.compute(&no_links, &options(), &mut ());
        match measure.name {
            "hits-authorities" | "hits-hubs" => {
                assert!(found.unwrap_err().to_string().contains("no links"));
            }
            _ => {
                let scores = found.unwrap().unwrap().scores;
                assert!(scores[0] == scores[1], "{}: {scores:?}", measure.name);
            }
        }
        let little = MeasureOptions {
            memory: Some(1),
            teleport: Teleport::of(vec![1, 1]).unwrap(),
            ..options()
        };
        let why = measure.compute(&no_links, &little, &mut ()).unwrap_err();
        assert!(matches!(why, Error::TooLarge { .. }), "{why}");
    }
    assert!(
        measure("fame")
            .err()
            .unwrap()
            .to_string()
            .contains("there are: pagerank")
    );
}

/// Generates random weighted links of 12 nodes.
fn rows() -> impl Strategy<Value = Vec<Vec<(u32, u64)>>> {
    let row = prop::collection::btree_map(0u32..12, 1u64..5, 0..5);
    prop::collection::vec(row.prop_map(|row| row.into_iter().collect()), 12)
}

fn weighted(rows: &[Vec<(u32, u64)>]) -> Graph {
    let mut graph = GraphBuilder::new(SelfLinks::Keep);
    graph.grow(rows.len());
    for (page, row) in (0..).zip(rows) {
        graph.weighted_row(page, row.iter().copied());
    }
    graph.build()
}

fn matrix(rows: &[Vec<(u32, u64)>]) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; rows.len()]; rows.len()];
    for (from, row) in rows.iter().enumerate() {
        row.iter()
            .for_each(|&(to, weight)| matrix[from][to as usize] = weight as f64);
    }
    matrix
}

proptest! {
    /// Each result is an eigenvector of its matrix, as accurate as its residual states, and no component of the start
    /// is lost.
    #[test]
    fn eigenvectors_are_those_of_their_matrices(rows in rows()) {
        let links = matrix(&rows);
        let n = links.len();
        prop_assume!(links.iter().flatten().any(|&link| link > 0.0));
        let graph = weighted(&rows);
        let found = measured("hits-authorities", &graph, &MeasureOptions { until: 1e-10, ..options() });
        // With two nearly equal eigenvalues it stops without progress and reports that.
        prop_assume!(found.reached);
        let x = &found.scores;
        prop_assert!((x.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let entry = |to: usize, from: usize| -> f64 { (0..n).map(|by| links[by][to] * links[by][from]).sum() };
        let step: Vec<f64> = (0..n).map(|to| (0..n).map(|from| entry(to, from) * x[from]).sum()).collect();
        let sum: f64 = step.iter().sum();
        prop_assert!(x.iter().zip(&step).all(|(x, step)| (step / sum - x).abs() < 1e-9));
    }

    /// The stated residual is that of the returned scores, however early it ends.
    #[test]
    fn residuals_are_those_of_the_scores(rows in rows(), until in 1e-9..0.5f64) {
        let links = matrix(&rows);
        let n = links.len();
        prop_assume!(links.iter().flatten().any(|&link| link > 0.0));
        let graph = weighted(&rows);
        for name in ["hits-authorities", "hits-hubs"] {
            let found = measured(name, &graph, &MeasureOptions { until, ..options() });
            let Accuracy::ResidualL1(stated) = found.accuracy else {
                panic!("{:?}", found.accuracy)
            };
            let x = &found.scores;
            let entry = |to: usize, from: usize| match name {
                "hits-authorities" => (0..n).map(|by| links[by][to] * links[by][from]).sum(),
                _ => (0..n).map(|by| links[to][by] * links[from][by]).sum::<f64>(),
            };
            let step: Vec<f64> = (0..n).map(|to| (0..n).map(|from| entry(to, from) * x[from]).sum()).collect();
            let sum: f64 = step.iter().sum();
            let actual: f64 = x.iter().zip(&step).map(|(x, step)| (step / sum - x).abs()).sum();
            prop_assert!((actual - stated).abs() <= 1e-12, "{name}: {actual} of {stated}");
            prop_assert_eq!(found.reached, stated <= until);
        }
    }

    /// H by breadth-first searches one at a time.
    #[test]
    fn harmonic_is_a_sum_over_distances(rows in rows()) {
        let links = matrix(&rows);
        let n = links.len();
        let mut expected = vec![0.0; n];
        for from in 0..n {
            let mut distances = vec![usize::MAX; n];
            distances[from] = 0;
            for _ in 0..n {
                for (a, row) in links.iter().enumerate() {
                    let next = distances[a].saturating_add(1);
                    let linked = row.iter().zip(&mut distances).filter(|(link, _)| **link > 0.0);
                    linked.for_each(|(_, distance)| *distance = next.min(*distance));
                }
            }
            let reached = distances.iter().enumerate().filter(|(_, d)| (1..n).contains(*d));
            reached.for_each(|(to, &d)| expected[to] += 1.0 / d as f64);
        }
        let found = scores("harmonic", &weighted(&rows));
        prop_assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
    }
}

/// Returns a random graph, determined by the seed.
fn random(nodes: u32, links: usize, seed: u64) -> Graph {
    let mut state = seed;
    let mut draw = |below: u32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as u32) % below
    };
    let mut rows = vec![Vec::new(); nodes as usize];
    for _ in 0..links {
        let (from, to) = (draw(nodes), draw(nodes));
        rows[from as usize].push(to);
    }
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    graph(&rows)
}

/// Scores are of the kind that their measure says.
#[test]
fn kinds_of_scores_are_true() {
    let graph = random(60, 240, 3);
    let teleport = (0..60).map(|page| u32::from(page % 7 == 0)).collect();
    let options = MeasureOptions {
        teleport: Teleport::of(teleport).unwrap(),
        ..options()
    };
    for measure in MEASURES {
        let scores = measured(measure.name, &graph, &options).scores;
        let sum: f64 = scores.iter().sum();
        let is_share = (sum - 1.0).abs() < 1e-9;
        let is_count = scores.iter().all(|score| score.fract() == 0.0);
        let expected = match measure.scores {
            ScoreKind::Share => (true, false),
            ScoreKind::Count => (false, true),
            ScoreKind::Other => (false, false),
        };
        assert_eq!((is_share, is_count), expected, "{}", measure.name);
    }
}

/// HyperBall compared with exact centralities: errors are as stated, and do not depend on threads.
#[test]
fn hyperball_is_within_its_standard_error() {
    let graph = random(3_000, 9_000, 5);
    let exact = measured("harmonic", &graph, &options());
    assert_eq!(exact.accuracy, Accuracy::Exact);
    let one = MeasureOptions {
        threads: 1,
        ..options()
    };
    assert_eq!(measured("harmonic", &graph, &one), exact);
    let estimated = |threads| {
        let options = MeasureOptions {
            threads,
            ..options()
        };
        let mut work = Work {
            rows: &graph,
            options: &options,
            watch: &mut (),
        };
        harmonic::estimated(&mut work).unwrap().unwrap()
    };
    let found = estimated(2);
    assert_eq!(found, estimated(1));
    let Accuracy::StandardError(stated) = found.accuracy else {
        panic!("{:?}", found.accuracy)
    };
    let errors = found
        .scores
        .iter()
        .zip(&exact.scores)
        .filter(|(_, exact)| **exact > 0.0);
    let errors: Vec<f64> = errors.map(|(found, exact)| found / exact - 1.0).collect();
    let square = errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64;
    // Balls overlap, so errors of nodes are correlated: more than the nominal share is off together.
    assert!(
        square.sqrt() < 1.5 * stated,
        "{} of {stated}",
        square.sqrt()
    );
}

/// Certificates of PageRank and personalised PageRank on random graphs and teleports, compared with [`pagerank_for`](crate::rank::pagerank::pagerank_for), which is within 1e-12.
fn certificates_hold(graphs: u64) {
    for seed in 0..graphs {
        let nodes = 1 + (seed % 40) as u32;
        let links = (seed * 7919 % (4 * u64::from(nodes) + 1)) as usize;
        let graph = random(nodes, links, seed);
        let weights: Vec<u32> = (0..nodes)
            .map(|node| node.wrapping_mul(seed as u32 | 1) % 5)
            .collect();
        let chosen = Teleport::of(weights);
        let damping = [0.0, 0.5, 0.85, 0.99][(seed % 4) as usize];
        let until = [0.5, 1e-2, 1e-4, 1e-9][(seed / 4 % 4) as usize];
        for (name, teleport) in [
            ("pagerank", Ok(Teleport::default())),
            ("personalised", chosen),
        ] {
            let Ok(teleport) = teleport else { continue };
            let asked = MeasureOptions {
                damping,
                until,
                teleport: teleport.clone(),
                ..options()
            };
            let found = measured(name, &graph, &asked);
            let exact = crate::rank::pagerank::PowerOptions {
                damping,
                residual: 1e-14,
            };
            let exact = crate::rank::pagerank::pagerank_for(&graph, exact, &teleport).unwrap();
            let off: f64 = found
                .scores
                .iter()
                .zip(&exact.scores)
                .map(|(a, b)| (a - b).abs())
                .sum();
            let bound = found.accuracy.bound_l1().unwrap_or(2.0);
            assert!(
                off <= bound + 1e-11,
                "seed {seed}, {name}: {off} of {bound}"
            );
        }
    }
}

#[test]
fn certificates_hold_on_random_graphs() {
    certificates_hold(400);
}

/// The long variant: `cargo test certificates_hold -- --ignored`.
#[test]
#[ignore = "takes long"]
fn certificates_hold_on_five_thousand_random_graphs() {
    certificates_hold(5_000);
}
