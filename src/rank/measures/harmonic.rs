//! Harmonic centrality: how near all others are to a node (P. Boldi, S. Vigna, "Axioms for centrality", 2014).
//!
//! ```text
//! H(x) = sum over nodes y other than x that reach x of 1/d(y, x)
//! ```
//!
//! where d counts links, whatever they weigh. Small graphs are computed exactly: breadth-first searches from 64 nodes at a time, a
//! bit of a word for each, so that a search of all goes over each link n/64 times a level. Threads divide searches among
//! them; sums are in the same order however many there are. Others are estimated by [`hyperball`], with the standard
//! error stated. A graph is small if nodes times links are at most 2^36.
//!
//! Common Crawl publishes it for hosts and domains. It is harder to forge than PageRank from a few pages, and knows less of how
//! good the pages are that link.

use super::{Accuracy, MeasureOptions, MeasureSpec, Measured, Uses, hyperball, links, swept};
use crate::graph::Graph;
use crate::rank::settle::Watch;
use crate::rows::Rows;
use crate::threads::each_of;
use crate::{Error, Result};

pub(super) const MEASURE: MeasureSpec = MeasureSpec {
    name: "harmonic",
    about: "harmonic centrality: near to many; exact for small graphs, else with a standard error",
    uses: &[Uses::Registers],
    bytes: |nodes, links, options| match registers(nodes, links, options) {
        None => nodes * (8 * (GROUPS + 1) + 24 * options.threads as u64 + 24) + 8 * links,
        Some(registers) => hyperball::bytes(nodes, registers),
    },
    compute: harmonic,
};

/// Registers of a counter, by default: a standard error of 6.5 %, and 512 bytes of memory a node.
pub const REGISTERS: u32 = 256;
/// Nodes times links up to which it is exact.
const SMALL: u64 = 1 << 36;
/// Parts of all searches, each with sums of its own.
const GROUPS: u64 = 8;

/// Registers to use; `None`: none, it is computed exactly.
fn registers(nodes: u64, links: u64, options: &MeasureOptions) -> Option<u32> {
    let is_small = nodes.saturating_mul(links) <= SMALL;
    options.registers.or((!is_small).then_some(REGISTERS))
}

/// Refuses a number of registers that a counter cannot have.
pub(in crate::rank) fn check(registers: u32) -> Result<()> {
    if !registers.is_power_of_two() || !(64..=1 << 16).contains(&registers) {
        return Err(Error::Usage(format!(
            "`registers` is {registers}: a power of 2 from 64 to 65536"
        )));
    }
    Ok(())
}

fn harmonic(
    rows: &dyn Rows,
    options: &MeasureOptions,
    watch: &mut dyn Watch,
) -> Result<Option<Measured>> {
    let Some(registers) = registers(rows.pages(), rows.links(), options) else {
        return exact(rows, options, watch);
    };
    check(registers)?;
    hyperball::harmonic(rows, registers, options, watch)
}

fn exact(
    rows: &dyn Rows,
    options: &MeasureOptions,
    watch: &mut dyn Watch,
) -> Result<Option<Measured>> {
    let graph = links(rows)?;
    let nodes = graph.nodes();
    let threads = options.threads.clamp(1, GROUPS as usize);
    let parts = each_of(threads, |thread| {
        let groups = (thread..GROUPS as usize).step_by(threads);
        let mut search = Search::new(nodes);
        let group = |group: usize| (group, search.group(&graph, group));
        groups.map(group).collect::<Vec<_>>()
    });
    let mut groups: Vec<_> = parts.into_iter().flatten().collect();
    groups.sort_by_key(|&(group, _)| group);
    let mut scores = vec![0.0; nodes];
    for (_, sums) in groups {
        scores
            .iter_mut()
            .zip(sums)
            .for_each(|(score, sum)| *score += sum);
    }
    swept(watch, rows, 1);
    Ok(Some(Measured {
        scores,
        accuracy: Accuracy::Exact,
        reached: true,
        sweeps: 1,
    }))
}

/// Searches from 64 nodes at a time: by node, a bit for each.
struct Search {
    /// Has reached it.
    seen: Vec<u64>,
    /// Has reached it in the last level.
    level: Vec<u64>,
    next: Vec<u64>,
}

impl Search {
    fn new(nodes: usize) -> Search {
        Search {
            seen: vec![0; nodes],
            level: vec![0; nodes],
            next: vec![0; nodes],
        }
    }

    /// Sums of every eighth 64 nodes.
    fn group(&mut self, graph: &Graph, group: usize) -> Vec<f64> {
        let nodes = graph.nodes();
        let mut sums = vec![0.0; nodes];
        let firsts = (64 * group..nodes).step_by(64 * GROUPS as usize);
        firsts.for_each(|first| self.from(graph, first..nodes.min(first + 64), &mut sums));
        sums
    }

    fn from(&mut self, graph: &Graph, sources: std::ops::Range<usize>, sums: &mut [f64]) {
        self.seen.fill(0);
        self.level.fill(0);
        for (bit, node) in sources.enumerate() {
            self.seen[node] = 1 << bit;
            self.level[node] = 1 << bit;
        }
        for distance in 1u32.. {
            for (row, &level) in graph.rows().zip(&self.level) {
                if level != 0 {
                    row.iter().for_each(|&to| self.next[to as usize] |= level);
                }
            }
            let mut any = false;
            for (node, next) in self.next.iter_mut().enumerate() {
                let new = std::mem::take(next) & !self.seen[node];
                self.level[node] = new;
                if new != 0 {
                    any = true;
                    self.seen[node] |= new;
                    sums[node] += f64::from(new.count_ones()) / f64::from(distance);
                }
            }
            if !any {
                return;
            }
        }
    }
}
