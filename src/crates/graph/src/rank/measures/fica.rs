//! FICA: distance of a node from the start of a crawl (A. Zareh Bidoki, N. Yazdani, P. Ghodsnia, "FICA: A fast
//! intelligent crawling algorithm", 2007).
//!
//! A link of node i weighs log10 O(i), with O(i) links of i (Definition 1). The *logarithmic distance* of a node is the
//! least sum of these along any path from a root (Definition 2):
//!
//! ```text
//! d_j = min over links i -> j of d_i + log10 O(i)        d = 0 at roots        (equation 2)
//! ```
//!
//! 10^-d_j is the probability that a surfer who starts there takes that path ("rank effect", Lemma 1). "Pages with
//! lower distances will have higher ranks" (section 3): scores are 1/(1 + d), 1 at roots, and 0 where no path leads.
//! They are exact.
//!
//! Roots are the chosen nodes; by default, where the crawl began: the nodes whose links were read before any link to them
//! ([`seeds`]). If links have weights, the link's share of its row replaces 1/O(i).
//!
//! **Departure from the paper**: its distances evolve while a crawl follows them, with a learning rate that goes from 1
//! to 0 (equations 3 to 5). Here all links are known, and the learning rate is 1. The crawl order `fica` has the
//! learning rate.
//!
//! Distances are computed by Dijkstra's algorithm over links in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{MeasureSpec, Measured, ScoreKind, Uses, Work};
use crate::Result;
use crate::graph::Graph;
use crate::rank::coverage::seeds;
use crate::rank::settle::Watch;
use crate::rows::Bits;

pub(super) const MEASURE: MeasureSpec = MeasureSpec {
    name: "fica",
    about: "FICA: near to where the crawl began, by logarithmic distance; exact",
    scores: ScoreKind::Other,
    uses: &[Uses::Roots],
    // Memory: links with their weights, and as many entries in the queue.
    bytes: |nodes, links, _| nodes * (16 + 8 + 8 + 16) + links * (4 + 8 + 16),
    compute: fica,
};

/// Number of nodes between two checks whether to stop.
const ASK_EVERY: u64 = 1 << 16;

fn fica(work: &mut Work<'_>) -> Result<Option<Measured>> {
    let (rows, teleport) = (work.rows, &work.options.teleport);
    let graph = Graph::of_rows(rows, true)?;
    let roots = if teleport.is_uniform() {
        seeds(rows, &Bits::default())?
    } else {
        teleport.check(rows.pages())?;
        let chosen = |node: &u32| teleport.weight(*node as usize) > 0;
        (0..graph.nodes() as u32).filter(chosen).collect()
    };
    let Some(distances) = distances(&graph, &roots, work.watch) else {
        return Ok(None);
    };
    work.swept(1);
    let scores = distances.into_iter().map(|distance| 1.0 / (1.0 + distance));
    Ok(Some(Measured::exact(scores.collect())))
}

/// Returns each node's logarithmic distance from the nearest root, infinite without a path; `None` if it was stopped.
fn distances(graph: &Graph, roots: &[u32], watch: &mut dyn Watch) -> Option<Vec<f64>> {
    let mut distances = vec![f64::INFINITY; graph.nodes()];
    // Distances are not negative, so their bits are ordered like the numbers.
    let mut queue = BinaryHeap::new();
    for &root in roots {
        distances[root as usize] = 0.0;
        queue.push(Reverse((0f64.to_bits(), root)));
    }
    let mut taken = 0u64;
    while let Some(Reverse((bits, node))) = queue.pop() {
        taken += 1;
        if taken.is_multiple_of(ASK_EVERY) && watch.is_over() {
            return None;
        }
        let distance = f64::from_bits(bits);
        if distance > distances[node as usize] {
            continue;
        }
        let links = graph.at(node as usize);
        let all = links.weight();
        for (target, weight) in links.iter() {
            let next = distance + (all / weight as f64).log10();
            let known = &mut distances[target as usize];
            if next < *known {
                *known = next;
                queue.push(Reverse((next.to_bits(), target)));
            }
        }
    }
    Some(distances)
}
