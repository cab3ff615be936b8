//! Exact PageRank and the metrics on a real graph, against the ranks that WebGraph computed.

use cashrank::Limits;
use cashrank_graph::engine::SelfLinks;
use cashrank_graph::metrics::{Scores, compare, read_scores};
use cashrank_graph::rank::pagerank::{PowerOptions, pagerank};

use crate::cnr;

fn check(rule: SelfLinks, links: usize, reference: &str) {
    let Some(folder) = cnr::folder() else { return };
    let graph = cnr::graph(&cnr::adjacency(&folder), rule);
    assert_eq!((graph.nodes(), graph.links()), (325_557, links));

    let options = PowerOptions {
        residual: 1e-13,
        ..PowerOptions::default()
    };
    let ranks = pagerank(&graph, options).unwrap();
    assert!(ranks.converged);
    let mut ours = Scores::new();
    for (node, score) in ranks.scores.iter().enumerate() {
        ours.push(node.to_string().as_bytes(), *score).unwrap();
    }
    let text = cnr::ranks(&folder, reference);
    let theirs = read_scores(text, reference, &Limits::default()).unwrap();

    let c = compare(ours, theirs).unwrap();
    eprintln!(
        "{reference}: {} iterations, bound {:e}\n{c}",
        ranks.iterations, ranks.bound
    );
    assert_eq!((c.common_pages, c.union_pages), (325_557, 325_557));
    // Ours uses floor(0.85 x 2^32) / 2^32, 1.4e-10 less than 0.85.
    assert!(c.l1 < 1e-9 && ranks.bound < 1e-11);
    assert!(c.relative_error_percent < 1e-6 && c.relative_error_top_tenth_percent < 1e-6);
    // Pages that agree to the last digits (some at rank 10) may come in either order.
    assert!(c.kendall_tau_b.is_some_and(|tau| tau > 0.9999));
    assert!(c.top.iter().all(|top| top.k - top.common <= 1));
}

/// 3,216,152 links, 87,442 of them from a node to itself.
#[test]
fn self_links_dropped() {
    check(SelfLinks::Drop, 3_216_152 - 87_442, "pagerank-0.85.txt.gz");
}

#[test]
fn self_links_kept() {
    check(
        SelfLinks::Keep,
        3_216_152,
        "pagerank-0.85-with-self-links.txt.gz",
    );
}
