use super::*;
use crate::graph::GraphBuilder;
use crate::model::SelfLinks;
use proptest::prelude::*;

/// 0.85 as used: floor(0.85 x 2^32) = 3,650,722,201.
const D: f64 = 3_650_722_201.0 / 4_294_967_296.0;

fn graph(nodes: usize, links: &[(u32, u32)], self_links: SelfLinks) -> Graph {
    let mut builder = GraphBuilder::new(self_links);
    builder.grow(nodes);
    for source in 0..nodes as u32 {
        let row = links.iter().filter(|(from, _)| *from == source);
        builder.row(source, row.map(|&(_, to)| to));
    }
    builder.build()
}

/// Checks the results against the expected vector (scaled to sum 1), within the bound that they state.
fn check_scores(graph: &Graph, expected: &[f64]) {
    let options = PowerOptions {
        residual: 1e-14,
        ..PowerOptions::default()
    };
    let result = pagerank(graph, options).unwrap();
    assert!(result.converged && result.bound < 1e-12, "{result:?}");
    let sum: f64 = expected.iter().sum();
    let expected: Vec<f64> = expected.iter().map(|x| x / sum).collect();
    let error = distance(&result.scores, &expected);
    assert!(
        error <= result.bound + 1e-15,
        "{error:e} > {:e}",
        result.bound
    );
}

#[test]
fn cycle_is_uniform() {
    let links: Vec<_> = (0..7).map(|i| (i, (i + 1) % 7)).collect();
    check_scores(&graph(7, &links, SelfLinks::Drop), &[1.0; 7]);
}

#[test]
fn two_cycles_are_uniform() {
    let links = [(0, 1), (1, 0), (2, 3), (3, 4), (4, 2)];
    check_scores(&graph(5, &links, SelfLinks::Drop), &[1.0; 5]);
}

#[test]
fn all_dangling_is_uniform() {
    check_scores(&graph(5, &[], SelfLinks::Drop), &[1.0; 5]);
}

/// k leaves link to a dangling hub. A leaf has b = (1 - d + d h)/n, the hub h = b + d k b:
/// 1 to 1 + d k.
#[test]
fn star_with_dangling_hub() {
    let links: Vec<_> = (1..=9).map(|leaf| (leaf, 0)).collect();
    let mut expected = [1.0; 10];
    expected[0] = 1.0 + 9.0 * D;
    check_scores(&graph(10, &links, SelfLinks::Drop), &expected);
}

/// Leaves and hub link to each other. With t = (1 - d)/n: l = t + d h/k, h = t + d k l, so
/// h = t (1 + d k)/(1 - d^2).
#[test]
fn star_both_ways() {
    let links: Vec<_> = (1..=9).flat_map(|leaf| [(leaf, 0), (0, leaf)]).collect();
    let t = (1.0 - D) / 10.0;
    let hub = t * (1.0 + 9.0 * D) / (1.0 - D * D);
    let mut expected = [t + D * hub / 9.0; 10];
    expected[0] = hub;
    check_scores(&graph(10, &links, SelfLinks::Drop), &expected);
}

/// A clique of m; node 0 also links to m, m to m + 1, which is dangling. In units of what every node gets from
/// everywhere: the other nodes of the clique c = 1 + d a/m + d c (m-2)/(m-1), node 0 a = 1 + d c, the tail t = 1 + d
/// a/m, its end u = 1 + d t. Hence c (1 - d^2/m - d (m-2)/(m-1)) = 1 + d/m.
#[test]
fn clique_with_a_tail() {
    let m = 6u32;
    let mut links: Vec<_> = (0..m).flat_map(|i| (0..m).map(move |j| (i, j))).collect();
    links.extend([(0, m), (m, m + 1)]);
    let k = f64::from(m);
    let c = (1.0 + D / k) / (1.0 - D * D / k - D * (k - 2.0) / (k - 1.0));
    let a = 1.0 + D * c;
    let t = 1.0 + D * a / k;
    let mut expected = vec![c; m as usize + 2];
    expected[0] = a;
    expected[m as usize] = t;
    expected[m as usize + 1] = 1.0 + D * t;
    check_scores(&graph(m as usize + 2, &links, SelfLinks::Drop), &expected);
}

/// 1 links to 0, 0 to itself. Kept: 1 has (1 - d)/2, 0 the rest. Dropped: 0 is dangling, and this
/// is the star of one leaf.
#[test]
fn self_links_kept_and_dropped() {
    let links = [(1, 0), (0, 0)];
    let low = (1.0 - D) / 2.0;
    check_scores(&graph(2, &links, SelfLinks::Keep), &[1.0 - low, low]);
    check_scores(&graph(2, &links, SelfLinks::Drop), &[1.0 + D, 1.0]);
}

#[test]
fn edges_of_the_options() {
    let cycle = graph(3, &[(0, 1), (1, 0)], SelfLinks::Drop);
    let run = |damping, residual| pagerank(&cycle, PowerOptions { damping, residual });
    for (damping, residual) in [
        (1.0, 0.1),
        (-0.1, 0.1),
        (f64::NAN, 0.1),
        (0.5, 0.0),
        (0.5, f64::NAN),
    ] {
        assert!(run(damping, residual).is_err(), "{damping} {residual}");
    }
    let flat = run(0.0, 1e-14).unwrap();
    assert_eq!(flat.scores, [1.0 / 3.0; 3]);
    // Below the resolution of 64-bit numbers it ends and reports that, also if the last step changed nothing.
    let star = graph(
        4,
        &[(1, 0), (2, 0), (3, 0), (0, 1), (0, 2)],
        SelfLinks::Drop,
    );
    let options = PowerOptions {
        residual: 1e-300,
        ..PowerOptions::default()
    };
    let result = pagerank(&star, options).unwrap();
    assert!(!result.converged);
    assert!(result.residual < 1e-14);
    let nothing = pagerank(&graph(0, &[], SelfLinks::Drop), PowerOptions::default()).unwrap();
    assert!(nothing.scores.is_empty() && nothing.converged);
}

/// A ring of n, and a page that links to node 0 of it. With t = (1 - d)/(n + 1) that page has t, and node i of the
/// ring t/(1 - d) + e d^i, where e (1 - d^n) = d t, or e = d / ((n + 1)(1 + d + ... + d^(n - 1))).
fn ring_with_a_feeder(n: u32, d: f64) -> (Graph, Vec<f64>) {
    let mut links: Vec<_> = (0..n).map(|i| (i, (i + 1) % n)).collect();
    links.push((n, 0));
    let pages = f64::from(n) + 1.0;
    let geometric: f64 = (0..n as i32).map(|i| d.powi(i)).sum();
    let e = d / (pages * geometric);
    let ring = (0..n as i32).map(|i| 1.0 / pages + e * d.powi(i));
    let expected = ring.chain([(1.0 - d) / pages]).collect();
    (graph(n as usize + 1, &links, SelfLinks::Drop), expected)
}

/// Even rings: steps rotate the error, and only damping shrinks it: by a factor of d per step, so with e = 1 - d to 1e-12
/// in some 25/e steps.
#[test]
fn only_damping_shrinks_errors_that_go_round_in_rings() {
    for n in [2, 4, 10] {
        let d = (0.9999f64 * 2f64.powi(32)).round() / 2f64.powi(32);
        let (ring, expected) = ring_with_a_feeder(n, d);
        let options = PowerOptions {
            damping: 0.9999,
            ..PowerOptions::default()
        };
        let result = pagerank(&ring, options).unwrap();
        let error = distance(&result.scores, &expected);
        assert!(result.converged && error <= result.bound, "{error}");
        assert!(result.iterations > 100_000, "{}", result.iterations);
    }
}

/// Computes PageRank by Gaussian elimination of (I - d M) x = (1 - d)/n, M with dangling columns uniform.
fn by_elimination(graph: &Graph, d: f64) -> Vec<f64> {
    let n = graph.nodes();
    let mut a = vec![vec![0.0; n + 1]; n];
    for (i, row) in a.iter_mut().enumerate() {
        row[i] = 1.0;
        row[n] = (1.0 - d) / n as f64;
    }
    for (source, row) in graph.rows().enumerate() {
        if row.is_empty() {
            a.iter_mut().for_each(|line| line[source] -= d / n as f64);
        }
        for &target in row {
            a[target as usize][source] -= d / row.len() as f64;
        }
    }
    // Columns are diagonally dominant: no pivoting is needed.
    for k in 0..n {
        let (done, below) = a.split_at_mut(k + 1);
        for line in below {
            let factor = line[k] / done[k][k];
            line.iter_mut()
                .zip(&done[k])
                .for_each(|(x, y)| *x -= factor * y);
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i][j] * x[j]).sum();
        x[i] = (a[i][n] - known) / a[i][i];
    }
    x
}

proptest! {
    #[test]
    fn the_bound_holds(
        links in prop::collection::vec((0u32..12, 0u32..12), 0..60),
        damping in 0.0..0.99f64,
        residual in prop::sample::select(vec![1.0, 0.1, 1e-3, 1e-9, 1e-13]),
        keep in any::<bool>(),
    ) {
        let rule = if keep { SelfLinks::Keep } else { SelfLinks::Drop };
        let graph = graph(12, &links, rule);
        let result = pagerank(&graph, PowerOptions { damping, residual }).unwrap();
        let d = (damping * 4_294_967_296.0).round() / 4_294_967_296.0;
        let exact = by_elimination(&graph, d);
        let error = distance(&result.scores, &exact);
        // Error of the elimination: 12 unknowns, condition at most 2/(1 - d).
        let slack = 1e-14 / (1.0 - d);
        prop_assert!(result.converged && result.residual <= residual);
        prop_assert!(error <= result.bound + slack, "{} > {}", error, result.bound);
        let sum: f64 = result.scores.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-14);
    }
}
