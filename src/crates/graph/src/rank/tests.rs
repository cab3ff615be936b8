//! Tests that settling and power iteration give PageRank, for any virtual page.

use proptest::prelude::*;

use super::pagerank::{PowerOptions, pagerank_for};
use super::settle::settle_for;
use super::*;
use crate::Result;
use crate::graph::{Graph, GraphBuilder};
use crate::model::SelfLinks;

/// Returns what settling and power iteration give: the scores of all pages and their proven bound.
fn computed(
    graph: &Graph,
    options: &RankOptions,
    teleport: &Teleport,
) -> Result<[(Vec<f64>, f64); 2]> {
    let settled = settle_for(graph, options, teleport, &mut ())?.unwrap();
    let power = PowerOptions {
        damping: options.damping(),
        residual: 1e-11,
    };
    let exact = pagerank_for(graph, power, teleport)?;
    assert!(settled.effort.reached && exact.converged);
    let bound = settled.certificate.received_l1.unwrap();
    Ok([(settled.importance(), bound), (exact.scores, exact.bound)])
}

/// Iterates x = (1 - d l) t + d M x, with l on linked pages, to its fixpoint.
fn expected(rows: &[(Vec<u32>, Vec<u64>)], d: f64, teleport: &[u32]) -> Vec<f64> {
    let all: u32 = teleport.iter().sum();
    let mut now: Vec<f64> = teleport
        .iter()
        .map(|&of| f64::from(of) / f64::from(all))
        .collect();
    let paid = now.clone();
    for _ in 0..800 {
        let mut next = vec![0.0; now.len()];
        for ((targets, weights), x) in rows.iter().zip(&now) {
            let sum: u64 = weights.iter().sum();
            for (&target, &weight) in targets.iter().zip(weights) {
                next[target as usize] += d * x * weight as f64 / sum as f64;
            }
        }
        let rest = 1.0 - next.iter().sum::<f64>();
        next.iter_mut()
            .zip(&paid)
            .for_each(|(next, paid)| *next += rest * paid);
        now = next;
    }
    now
}

/// Generates rows of ten pages: distinct targets and their weights.
fn rows() -> impl Strategy<Value = Vec<(Vec<u32>, Vec<u64>)>> {
    let row = prop::collection::btree_map(0u32..10, 1u64..9, 0..5);
    prop::collection::vec(row.prop_map(|row| row.into_iter().unzip()), 10)
}

proptest! {
    #[test]
    fn all_agree(
        rows in rows(),
        damping in 0.0..0.95f64,
        weighted in any::<bool>(),
        weights in prop::option::of(prop::collection::vec(0u32..4, 10)),
    ) {
        let mut rows = rows;
        let mut graph = GraphBuilder::new(SelfLinks::Keep);
        graph.grow(10);
        for (page, (targets, weights)) in (0..).zip(&mut rows) {
            if !weighted {
                weights.fill(1);
                graph.row(page, targets.iter().copied());
            } else {
                graph.weighted_row(page, targets.iter().copied().zip(weights.iter().copied()));
            }
        }
        let graph = graph.build();
        let weights = weights.filter(|weights| weights.iter().any(|&weight| weight > 0));
        let teleport = weights.clone().map_or(Ok(Teleport::default()), Teleport::of).unwrap();
        let options = RankOptions::until((damping * 2f64.powi(32)) as u64, 1e-9);
        let expected = expected(&rows, options.damping(), &weights.unwrap_or(vec![1; 10]));
        for (scores, bound) in computed(&graph, &options, &teleport).unwrap() {
            let off: f64 = scores.iter().zip(&expected).map(|(a, b)| (a - b).abs()).sum();
            prop_assert!(bound <= options.until && off <= bound + 1e-13, "{off} {bound:?}");
        }
    }
}

/// All surfers begin at page 0 of a chain, and again at its end: page i has d^i times the share of page 0. A page to
/// which nothing leads has 0.
#[test]
fn a_chain_from_one_page() {
    let mut graph = GraphBuilder::new(SelfLinks::Drop);
    (0..3).for_each(|page| graph.row(page, [page + 1]));
    graph.row(4, [0]);
    let graph = graph.build();
    let options = RankOptions::until(1 << 31, 1e-9);
    let teleport = Teleport::of(vec![7, 0, 0, 0, 0]).unwrap();
    let first = 1.0 / (1.0 + 0.5 + 0.25 + 0.125);
    for (scores, _) in computed(&graph, &options, &teleport).unwrap() {
        let expected = [first, first / 2.0, first / 4.0, first / 8.0, 0.0];
        for (score, expected) in scores.iter().zip(expected) {
            assert!((score - expected).abs() < 1e-9, "{scores:?}");
        }
    }
    let short = Teleport::of(vec![1]).unwrap();
    assert!(settle_for(&graph, &options, &short, &mut ()).is_err());
    assert!(pagerank_for(&graph, PowerOptions::default(), &short).is_err());
}

#[test]
fn weights_are_checked() {
    assert!(Teleport::of(vec![0, 0]).is_err());
    assert!(Teleport::of(vec![u32::MAX, 2]).is_err());
    let teleport = Teleport::of(vec![u32::MAX, 1]).unwrap();
    assert!(teleport.check(2).is_ok() && teleport.check(3).is_err());
    assert!(Teleport::default().check(3).is_ok());
    let shares: Vec<f64> = Teleport::of(vec![3, 0, 1])
        .unwrap()
        .shares(8.0, 3)
        .collect();
    assert_eq!(shares, [6.0, 0.0, 2.0]);
    let floats = Teleport::of_floats(&[0.75, 0.0, 0.25]).unwrap();
    assert_eq!(floats, Teleport::of(vec![3, 0, 1]).unwrap());
    assert!(Teleport::of_floats(&[0.0, 0.0]).is_err());
}
