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

use super::{MeasureOptions, Measured, Work, hyperball};
use crate::graph::Graph;
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
