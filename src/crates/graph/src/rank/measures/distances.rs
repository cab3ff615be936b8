//! **Harmonic centrality**: closeness of all other nodes to a node (P. Boldi, S. Vigna, "Axioms for centrality", 2014).
//!
//! ```text
//! H(x) = sum over nodes y other than x that reach x of 1/d(y, x)
//! ```
//!
//! where d counts links, whatever their weight. A graph is small if nodes times links are at most 2^36. Small graphs
//! are computed exactly: breadth-first searches from 64 nodes at a time, one bit of a word each, so that all searches
//! visit each link n/64 times per level. Threads share the searches; the order of sums does not depend on their number.
//! Larger graphs are estimated by [`hyperball`], with a standard error.
//!
//! Common Crawl publishes it for hosts and domains. It is harder to forge from a few pages than PageRank, but reflects
//! the quality of the linking pages less.
//!
//! **FICA**: distance of a node from the start of a crawl (A. Zareh Bidoki, N. Yazdani, P. Ghodsnia, "FICA: A fast
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
//! Departure from the paper: its distances evolve while a crawl follows them, with a learning rate that goes from 1
//! to 0 (equations 3 to 5). Here all links are known, and the learning rate is 1. The crawl order `fica` has the
//! learning rate.
//!
//! Distances are computed by Dijkstra's algorithm over links in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{MeasureOptions, Measured, Work, hyperball};
use crate::graph::Graph;
use crate::rank::coverage::seeds;
use crate::rows::Bits;
use crate::threads::each_of;
use crate::{Error, Result};

/// Default number of registers of a counter: a standard error of 6.5 %, and 512 bytes of memory per node.
pub const REGISTERS: u32 = 256;
/// Largest product of nodes and links for which scores are exact.
const SMALL: u64 = 1 << 36;
/// Number of groups of searches, each with its own sums.
const GROUPS: u64 = 8;

/// Returns the number of registers to use; `None` for an exact computation.
fn registers(nodes: u64, links: u64, options: &MeasureOptions) -> Option<u32> {
    let is_small = nodes.saturating_mul(links) <= SMALL;
    options.registers.or((!is_small).then_some(REGISTERS))
}

pub(in crate::rank) fn check_registers(registers: u32) -> Result<()> {
    if !registers.is_power_of_two() || !(64..=1 << 16).contains(&registers) {
        return Err(Error::Usage(format!(
            "`registers` is {registers}: a power of 2 from 64 to 65536"
        )));
    }
    Ok(())
}

pub(super) fn harmonic_bytes(nodes: u64, links: u64, options: &MeasureOptions) -> u64 {
    match registers(nodes, links, options) {
        None => nodes * (8 * (GROUPS + 1) + 24 * options.threads as u64 + 24) + 4 * links,
        Some(registers) => hyperball::bytes(nodes, registers),
    }
}

pub(super) fn harmonic(work: &mut Work<'_>) -> Result<Option<Measured>> {
    let Some(registers) = registers(work.rows.pages(), work.rows.links(), work.options) else {
        return exact(work);
    };
    check_registers(registers)?;
    hyperball::harmonic(work, registers)
}

fn exact(work: &mut Work<'_>) -> Result<Option<Measured>> {
    let graph = Graph::of_rows(work.rows, false)?;
    let threads = work.options.threads.clamp(1, GROUPS as usize);
    let parts = each_of(threads, |thread| {
        let groups = (thread..GROUPS as usize).step_by(threads);
        let group = |group: usize| (group, sums_of(&graph, group));
        groups.map(group).collect::<Vec<_>>()
    });
    let mut groups: Vec<_> = parts.into_iter().flatten().collect();
    groups.sort_by_key(|&(group, _)| group);
    let mut scores = vec![0.0; graph.nodes()];
    for (_, sums) in groups {
        let sums = scores.iter_mut().zip(sums);
        sums.for_each(|(score, sum)| *score += sum);
    }
    work.swept(1);
    Ok(Some(Measured::exact(scores)))
}

/// Returns the sums over every eighth batch of 64 sources, from batch `group` on.
fn sums_of(graph: &Graph, group: usize) -> Vec<f64> {
    let nodes = graph.nodes();
    let mut sums = vec![0.0; nodes];
    // For each node, one bit for each source that has reached it, and for each that did so in the last level.
    let (mut seen, mut level) = (vec![0u64; nodes], vec![0u64; nodes]);
    let mut next = vec![0u64; nodes];
    for first in (64 * group..nodes).step_by(64 * GROUPS as usize) {
        level.fill(0);
        for (bit, node) in (first..nodes.min(first + 64)).enumerate() {
            level[node] = 1 << bit;
        }
        seen.copy_from_slice(&level);
        let mut distance = 0u32;
        while level.iter().any(|&level| level != 0) {
            distance += 1;
            for (row, &level) in graph.rows().zip(&level) {
                if level != 0 {
                    row.iter().for_each(|&to| next[to as usize] |= level);
                }
            }
            for (node, next) in next.iter_mut().enumerate() {
                let new = std::mem::take(next) & !seen[node];
                level[node] = new;
                if new != 0 {
                    seen[node] |= new;
                    sums[node] += f64::from(new.count_ones()) / f64::from(distance);
                }
            }
        }
    }
    sums
}

/// Number of nodes between two checks whether to stop.
const ASK_EVERY: u64 = 1 << 16;

pub(super) fn fica(work: &mut Work<'_>) -> Result<Option<Measured>> {
    let (rows, teleport) = (work.rows, &work.options.teleport);
    let graph = Graph::of_rows(rows, true)?;
    let roots = if teleport.is_uniform() {
        seeds(rows, &Bits::default())?
    } else {
        teleport.check(rows.pages())?;
        let chosen = |node: &u32| teleport.weight(*node as usize) > 0;
        (0..graph.nodes() as u32).filter(chosen).collect()
    };
    let mut distances = vec![f64::INFINITY; graph.nodes()];
    // Distances are not negative, so their bits are ordered like the numbers.
    let mut queue = BinaryHeap::new();
    for root in roots {
        distances[root as usize] = 0.0;
        queue.push(Reverse((0f64.to_bits(), root)));
    }
    let mut taken = 0u64;
    while let Some(Reverse((bits, node))) = queue.pop() {
        taken += 1;
        if taken.is_multiple_of(ASK_EVERY) && work.watch.is_over() {
            return Ok(None);
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
    work.swept(1);
    let scores = distances.into_iter().map(|distance| 1.0 / (1.0 + distance));
    Ok(Some(Measured::exact(scores.collect())))
}
