//! Harmonic centrality: closeness of all other nodes to a node (P. Boldi, S. Vigna, "Axioms for centrality", 2014).
//!
//! ```text
//! H(x) = sum over nodes y other than x that reach x of 1/d(y, x)
//! ```
//!
//! where d counts links, whatever their weight. Common Crawl publishes it for hosts and domains. It is harder to forge
//! from a few pages than PageRank, but reflects the quality of the linking pages less.
//!
//! **Exact**, if nodes times links are at most 2^36: breadth-first searches from 64 nodes at a time, one bit of a word
//! each. Threads share the searches; the order of sums does not depend on their number.
//!
//! **Estimated** for larger graphs, by HyperBall (P. Boldi, S. Vigna, "In-core computation of geometric centralities with
//! HyperBall: A hundred billion nodes and beyond", 2013). The ball B_t(x) holds the nodes that reach x over at most t
//! links. B_0(x) = {x}, and B_t(x) is B_(t-1)(x) with the B_(t-1)(y) of all y that link to x. Each ball is a HyperLogLog
//! counter of m registers, of which a union is the maximum, register by register. Then
//!
//! ```text
//! H(x) = sum over t >= 1 of (|B_t(x)| - |B_(t-1)(x)|)/t = sum over t of |B_t(x)| (1/t - 1/(t+1)), up to its end
//! ```
//!
//! a sum of counts with positive factors, so its relative standard error is at most that of a counter: 1.04/sqrt(m).
//! Counters are read by O. Ertl's estimator ("New cardinality estimation algorithms for HyperLogLog sketches", 2017),
//! whose bias is at most 1.1/m. Rows are read once per step, and used where the node's ball grew in the step before.

use xxhash_rust::xxh3::xxh3_64;

use super::{Accuracy, MeasureOptions, MeasureScores, Work};
use crate::Result;
use crate::graph::Graph;
use crate::threads::{each_of, par_map};

/// Number of registers of a counter, a power of 2: a standard error of 6.5 %, and 512 bytes of memory per node.
const REGISTERS: usize = 256;
/// Largest product of nodes and links for which scores are exact.
const SMALL: u64 = 1 << 36;
/// Number of groups of searches, each with its own sums.
const GROUPS: usize = 8;
/// Number of links that are gathered before threads process them.
const BATCH: usize = 1 << 20;

fn is_small(nodes: u64, links: u64) -> bool {
    nodes.saturating_mul(links) <= SMALL
}

pub(super) fn bytes(nodes: u64, links: u64, options: &MeasureOptions) -> u64 {
    if is_small(nodes, links) {
        nodes * (8 * (GROUPS as u64 + 1) + 24 * options.threads as u64 + 24) + 4 * links
    } else {
        nodes * (2 * REGISTERS as u64 + 17) + 16 * BATCH as u64
    }
}

pub(super) fn harmonic(work: &mut Work<'_>) -> Result<Option<MeasureScores>> {
    if is_small(work.rows.pages(), work.rows.links()) {
        exact(work)
    } else {
        estimated(work)
    }
}

fn exact(work: &mut Work<'_>) -> Result<Option<MeasureScores>> {
    let graph = Graph::of_rows(work.rows)?;
    let threads = work.options.threads.clamp(1, GROUPS);
    let parts = each_of(threads, |thread| {
        let groups = (thread..GROUPS).step_by(threads);
        groups
            .map(|group| sums_of(&graph, group))
            .collect::<Vec<_>>()
    });
    let mut scores = vec![0.0; graph.nodes()];
    for group in 0..GROUPS {
        let sums = scores
            .iter_mut()
            .zip(&parts[group % threads][group / threads]);
        sums.for_each(|(score, sum)| *score += sum);
    }
    work.swept(1);
    Ok(Some(MeasureScores::exact(scores)))
}

/// Returns the sums over every eighth batch of 64 sources, from batch `group` on.
fn sums_of(graph: &Graph, group: usize) -> Vec<f64> {
    let nodes = graph.nodes();
    let mut sums = vec![0.0; nodes];
    // For each node, one bit for each source that has reached it, and for each that did so in the last level.
    let (mut seen, mut level) = (vec![0u64; nodes], vec![0u64; nodes]);
    let mut next = vec![0u64; nodes];
    for first in (64 * group..nodes).step_by(64 * GROUPS) {
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

pub(super) fn estimated(work: &mut Work<'_>) -> Result<Option<MeasureScores>> {
    let rows = work.rows;
    let mut balls = Balls::new(rows.pages() as usize, work.options.threads);
    let mut sweeps = 0;
    let mut reached = false;
    while !reached && !work.watch.is_over() {
        let mut links = Vec::new();
        rows.sweep(&mut |row| {
            if balls.grew[row.page as usize] {
                links.extend(row.links().map(|target| (row.page, target)));
                if links.len() >= BATCH {
                    balls.join(&links)?;
                    links.clear();
                }
            }
            Ok(())
        })?;
        balls.join(&links)?;
        sweeps += 1;
        reached = !balls.step(sweeps)?;
        work.swept(sweeps);
    }
    Ok((sweeps > 0).then_some(MeasureScores {
        scores: balls.scores,
        accuracy: Accuracy::StandardError(1.04 / (REGISTERS as f64).sqrt()),
        reached,
        sweeps,
    }))
}

struct Balls {
    threads: usize,
    now: Vec<u8>,
    next: Vec<u8>,
    grew: Vec<bool>,
    sizes: Vec<f64>,
    scores: Vec<f64>,
}

impl Balls {
    /// Creates balls that hold their own nodes only.
    fn new(nodes: usize, threads: usize) -> Balls {
        let mut now = vec![0; nodes * REGISTERS];
        for (node, ball) in now.chunks_exact_mut(REGISTERS).enumerate() {
            let hash = xxh3_64(&(node as u64).to_le_bytes());
            let at = hash as usize & (REGISTERS - 1);
            // Takes the bits above those that select the register, and a sentinel.
            let bits = hash >> REGISTERS.trailing_zeros() | 1 << (64 - REGISTERS.trailing_zeros());
            ball[at] = bits.trailing_zeros() as u8 + 1;
        }
        Balls {
            threads: threads.clamp(1, nodes.max(1)),
            next: now.clone(),
            now,
            grew: vec![true; nodes],
            sizes: vec![1.0; nodes],
            scores: vec![0.0; nodes],
        }
    }

    fn join(&mut self, links: &[(u32, u32)]) -> Result<()> {
        let part = self.grew.len().div_ceil(self.threads).max(1);
        let now = &self.now;
        let mut parts: Vec<_> = self.next.chunks_mut(part * REGISTERS).collect();
        par_map(&mut parts, |at, next| {
            let first = at * part;
            for &(from, to) in links {
                let Some(to) = (to as usize).checked_sub(first).filter(|&to| to < part) else {
                    continue;
                };
                let from = &now[from as usize * REGISTERS..][..REGISTERS];
                let to = &mut next[to * REGISTERS..][..REGISTERS];
                to.iter_mut()
                    .zip(from)
                    .for_each(|(to, from)| *to = (*to).max(*from));
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Ends step t. Returns true if any ball grew.
    fn step(&mut self, t: u64) -> Result<bool> {
        let part = self.grew.len().div_ceil(self.threads).max(1);
        let balls = self.now.chunks_mut(part * REGISTERS);
        let balls = balls.zip(self.next.chunks(part * REGISTERS));
        let known = self.grew.chunks_mut(part).zip(self.sizes.chunks_mut(part));
        let known = known.zip(self.scores.chunks_mut(part));
        let mut parts: Vec<_> = balls.zip(known).collect();
        let grown = par_map(&mut parts, |_, ((now, next), ((grew, sizes), scores))| {
            let balls = now
                .chunks_exact_mut(REGISTERS)
                .zip(next.chunks_exact(REGISTERS));
            let mut any = false;
            for (node, (now, next)) in balls.enumerate() {
                grew[node] = now != next;
                if grew[node] {
                    any = true;
                    now.copy_from_slice(next);
                    let size = count(now);
                    scores[node] += (size - sizes[node]) / t as f64;
                    sizes[node] = size;
                }
            }
            Ok(any)
        })?;
        Ok(grown.contains(&true))
    }
}

fn count(ball: &[u8]) -> f64 {
    let mut with = [0u32; 66];
    ball.iter().for_each(|&value| with[usize::from(value)] += 1);
    let m = ball.len() as f64;
    let most = 64 - ball.len().trailing_zeros() as usize;
    let share = |count: u32| f64::from(count) / m;
    let mut z = m * tau(1.0 - share(with[most + 1]));
    for &count in with[1..=most].iter().rev() {
        z = 0.5 * (z + f64::from(count));
    }
    z += m * sigma(share(with[0]));
    m * m / (2.0 * std::f64::consts::LN_2 * z)
}

/// Computes x + sum over k >= 1 of x^(2^k) 2^(k-1).
fn sigma(x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut x, mut y, mut z) = (x, 1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// Computes (1 - x - sum over k >= 1 of (1 - x^(2^-k))^2 2^-k)/3.
fn tau(x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut x, mut y, mut z) = (x, 1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Balls of known sizes: the mean error of a thousand of each size (three hundred of the largest) is within three
    /// of its standard errors of 0, and the root mean square within a tenth of 1.04/sqrt(m).
    #[test]
    fn counts_have_no_bias_and_the_error_stated() {
        for size in [1usize, 2, 5, 20, 100, 600, 3_000] {
            let balls = if size == 3_000 { 300 } else { 1_000 };
            let all = Balls::new(size * balls, 1);
            let m = REGISTERS;
            let errors = all.now.chunks(size * m).map(|nodes| {
                let mut ball = vec![0; m];
                for node in nodes.chunks(m) {
                    ball.iter_mut()
                        .zip(node)
                        .for_each(|(to, from)| *to = (*to).max(*from));
                }
                count(&ball) / size as f64 - 1.0
            });
            let errors: Vec<f64> = errors.collect();
            let mean = errors.iter().sum::<f64>() / balls as f64;
            let square = errors.iter().map(|error| error * error).sum::<f64>() / balls as f64;
            let stated = 1.04 / (m as f64).sqrt();
            let slack = 3.3 * square.sqrt() / (balls as f64).sqrt();
            // P. Flajolet and others (2007): m registers count 1 + 1.079/m too many with the constant for many.
            let most = slack + 1.1 / m as f64;
            assert!(mean.abs() <= most, "{size}: mean {mean}");
            assert!(square.sqrt() <= 1.12 * stated, "{size}: {}", square.sqrt());
        }
    }
}
