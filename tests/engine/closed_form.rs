//! Ranks of small graphs with known PageRank. After enough passes the importance is within its own certified bound, and
//! within 1e-6.

use cashrank_graph::engine::Config;

use super::common::{self, CLIQUE_WITH_TAIL, clique_with_tail, l1, record};
use super::stream::Run;

/// Replays `graph` and compares. `expected` is called with the damping; it returns pages in order of first appearance.
fn check(graph: &[(&str, &[&str])], expected: impl Fn(f64) -> Vec<f64>) {
    for damping in [0.0, 0.5, 0.85, 0.95] {
        let mut config = Config::default();
        config.set_damping(damping).unwrap();
        let expected = expected(config.damping());
        assert!(
            (expected.iter().sum::<f64>() - 1.0).abs() < 1e-12,
            "the formula"
        );
        let mut run = Run::new(&config);
        for _ in 0..400 {
            run.engine.begin_pass().unwrap();
            for (page, links) in graph {
                run.record(&record(page, links.iter().copied()));
            }
        }
        let ranking = run.engine.ranking().unwrap();
        let certificate = ranking.window.certificate.unwrap();
        let distance = l1(&run.importance(), &expected);
        let bound = certificate.received_l1.unwrap_or(2.0);
        assert!(
            distance <= bound + 1e-14,
            "damping {damping}: {distance} > {bound}"
        );
        assert!(
            distance <= 1e-6 && bound <= 1e-6,
            "damping {damping}: {distance}, {bound}"
        );
        run.engine.ledger().check_law().unwrap();
    }
}

#[test]
fn the_small_graph() {
    check(&CLIQUE_WITH_TAIL, clique_with_tail);
}

/// All pages are equal: 1/n.
#[test]
fn a_cycle_is_uniform() {
    check(
        &[("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &["a"])],
        |_| vec![0.25; 4],
    );
}

/// A hub and k = 3 leaves, linked both ways, n = 4. All leaves link to the hub only, so h = (1 - d)/n + d (1 - h), and
/// the leaves share the rest: h = ((1 - d)/n + d)/(1 + d).
#[test]
fn a_star() {
    check(
        &[
            ("hub", &["x", "y", "z"]),
            ("x", &["hub"]),
            ("y", &["hub"]),
            ("z", &["hub"]),
        ],
        |d| {
            let hub = ((1.0 - d) / 4.0 + d) / (1.0 + d);
            let leaf = (1.0 - hub) / 3.0;
            vec![hub, leaf, leaf, leaf]
        },
    );
}

/// p links to k = 3 pages without links, n = 4; their mass is spread over all. With q the share of one of them:
/// p = (1 - d)/n + d (3 q)/n and p + 3 q = 1, so p (1 + d/n) = 1/n, p = 1/(n + d).
#[test]
fn dangling_pages() {
    check(
        &[("p", &["x", "y", "z"]), ("x", &[]), ("y", &[]), ("z", &[])],
        |d| {
            let p = 1.0 / (4.0 + d);
            let q = (1.0 - p) / 3.0;
            vec![p, q, q, q]
        },
    );
}

/// Link targets that nobody ever fetches are dangling pages too: recycling empties them.
#[test]
fn pages_never_fetched() {
    check(&[("p", &["x", "y", "z"])], |d| {
        let p = 1.0 / (4.0 + d);
        let q = (1.0 - p) / 3.0;
        vec![p, q, q, q]
    });
}

/// Two components: a pair, 1/5 each by symmetry (no mass leaves it over links, none comes in but
/// teleports: 2/5 together), and a star of three with h = (1 - d)/5 + d (3/5 - h).
#[test]
fn two_components() {
    check(
        &[
            ("a", &["b"]),
            ("b", &["a"]),
            ("hub", &["x", "y"]),
            ("x", &["hub"]),
            ("y", &["hub"]),
        ],
        |d| {
            let hub = ((1.0 - d) / 5.0 + d * 3.0 / 5.0) / (1.0 + d);
            let leaf = (3.0 / 5.0 - hub) / 2.0;
            vec![0.2, 0.2, hub, leaf, leaf]
        },
    );
}

/// Check of the formulas: the small graph's vector is a fixpoint, written out page by page.
#[test]
fn the_small_graphs_formula_is_a_fixpoint() {
    let d = 0.85;
    let pi = common::clique_with_tail(d);
    let [a, b, c, s, t] = pi[..] else { panic!() };
    let z = (1.0 - d + d * t) / 5.0;
    let next = [
        z + d * (b / 2.0 + c / 3.0),
        z + d * (a / 2.0 + c / 3.0),
        z + d * (a + b) / 2.0,
        z + d * c / 3.0,
        z + d * s,
    ];
    assert!(l1(&pi, &next) < 1e-15);
}
