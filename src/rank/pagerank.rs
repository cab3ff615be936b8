//! Exact PageRank of a graph in memory, by power iteration, with a proven bound on the error.
//!
//! The fixpoint `pi` is the engine's: damping d as [`damping_units`] has it, teleports and
//! the mass of dangling nodes spread uniformly. With l(x) the mass on nodes that have links,
//!
//! ```text
//! F(x)_j = (1 - d l(x)) / n  +  sum over links i -> j of  d x_i / out(i)
//! ```
//!
//! For x that sums to 1 this is the usual map; it makes F(x) sum to 1 for every x, so that
//! rounding does not add up over the iterations. Where links have weights, `1/out(i)` is the link's part of its
//! row's weight.
//!
//! **The lazy iteration** (Abiteboul, Preda, Cobena, WWW 2003, section 1: L + I) takes half a step,
//! G(x) = (F(x) + x)/2. Its fixpoint is the same. Where links go round in cycles, or between two groups of
//! pages, F turns what is left of the error round, and only damping shrinks it: by d a step, which for d near 1
//! is next to nothing. An eigenvalue z of F is (1 + z)/2 of G, so between two groups G halves at least, and in a
//! ring of n it shrinks by cos(pi/n). Where the error does not turn it is slower: d becomes (1 + d)/2, about twice
//! as many steps; so it does in long rings. In formulas both are one, with k = 0 or 1/2 the part that a page
//! keeps; again it sums to 1 for every x:
//!
//! ```text
//! (1 - k) F(x) + k x   computed as   k x_j  +  (1 - k sum(x) - (1 - k) d l(x)) / n  +  sum of  (1 - k) d x_i / out(i)
//! ```
//!
//! Damping 1 is refused. F is then no contraction: a graph may have many fixpoints (one for each group of pages that no
//! link leaves), and no distance between steps bounds the distance from any. The largest damping is 1 - 2^-32.
//!
//! **Bound.** Let y be the computed step from x, r = ||y - x||_1, and rho >= its rounding in L1. With M the
//! stochastic matrix, c = k + (1 - k) d and s = sum(x) - 1, the exact step less pi is (k I + (1 - k) d M)(x - pi) less
//! c s/n everywhere, and |s| <= rho since x was computed like y. So ||y - pi|| <= rho + c ||x - pi|| + c rho, and with
//! ||x - pi|| <= r + ||y - pi||:
//!
//! ```text
//! ||y - pi||_1 <= (c r + (1 + c) rho) / (1 - c)
//! ```
//!
//! Without rounding that is, for k = 0, the well-known d/(1 - d) times the last difference; for k = 1/2 it is
//! (1 + d)/(1 - d) times that, and the difference is half of the residual ||F(x) - x||, so both
//! say nearly the same of the same residual. Node j's entry is a sum of at most in(j) + 2 non-negative terms, a share has two
//! roundings, the error of the term in 1/n is at most 6u/n (u = 2^-53), halving is exact: one step's rounding is at most
//! u (sum of in(j) y_j + 9), terms of order u^2 apart. For x in place of y it is at most u n r more, since in(j) <= n.
//! Another 7 u pays for the rounding of r, and 3 u for those of the parts of links that have weights. Where the virtual
//! page pays nodes by weights ([`Teleport`]), their parts are in the place of 1/n, and u more pays for their rounding.
//!
//! Sums over all nodes are compensated and everything runs in node order on one thread: the same graph gives
//! the same bits. Memory: the graph and two `f64` a node.

use super::{Computed, Method, RESOLUTION, Teleport};
use crate::Result;
use crate::engine::damping_units;
use crate::graph::{Graph, Table, Weight};
use crate::metrics::sum::Sum;

/// Parameters of the computation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// 0 <= damping < 1; used as [`damping_units`] has it.
    pub damping: f64,
    /// Stop once a step moves the vector by at most this much in L1. Positive.
    pub residual: f64,
    /// Half steps: for damping near 1 where links go round in short cycles. The result is the same.
    pub lazy: bool,
}

impl Options {
    /// The multiple of 2^-32 that is used for the damping asked for.
    pub fn damping_used(&self) -> f64 {
        damping_units(self.damping) as f64 / 2f64.powi(32)
    }
}

impl Default for Options {
    /// Damping 0.85, residual 1e-12, whole steps.
    fn default() -> Self {
        Options {
            damping: 0.85,
            residual: 1e-12,
            lazy: false,
        }
    }
}

/// The result of [`pagerank`].
#[derive(Debug, Clone, PartialEq)]
pub struct PageRank {
    /// Importance by node; sums to 1.
    pub scores: Vec<f64>,
    /// Iterations made, each one pass over the links.
    pub iterations: u64,
    /// How far the last step would have moved the vector in L1, had it been a whole one: the distance
    /// between the last two vectors, or twice that of a half step.
    pub residual: f64,
    /// Proven bound on the L1 distance of `scores` from the exact PageRank, rounding included.
    pub bound: f64,
    /// Whether the residual asked for was reached. If not, it is below what 64-bit numbers resolve; then nobody knows whether
    /// it was, even if the last step moved nothing.
    pub converged: bool,
}

pub(super) const METHOD: Method = Method {
    name: "exact",
    about: "by power iteration on a graph in memory, with a proven bound",
    bytes: |pages, links| pages * (8 + 16 + 8) + links * 12,
    compute: |rows, options, teleport, _| {
        let in_memory = rows.in_memory().and_then(|rows| rows.downcast_ref());
        let read = match in_memory {
            None => Some(Graph::of_rows(rows, true, None, 0)?),
            Some(_) => None,
        };
        let Some(graph) = in_memory.or(read.as_ref()) else {
            return Ok(None);
        };
        let damping = options.damping();
        // The bound is d/(1 - d) times the residual, and rounding.
        let residual = 0.99 * options.until * (1.0 - damping) / damping.max(0.5);
        let steps = Options {
            damping,
            residual: options.residual.unwrap_or(residual),
            lazy: options.lazy,
        };
        let result = pagerank_for(graph, steps, teleport)?;
        let sweeps = result.iterations;
        let mut computed = Computed::new(result.scores, rows, options, sweeps, result.residual);
        computed.certificate.received_l1 = (result.bound < 2.0).then_some(result.bound);
        computed.effort.reached &= options.residual.is_some() || result.bound <= options.until;
        Ok(Some(Box::new(computed)))
    },
};

/// Computes PageRank from a uniform start. See the module's head.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) for options out of range.
pub fn pagerank(graph: &Graph, options: Options) -> Result<PageRank> {
    pagerank_for(graph, options, &Teleport::default())
}

/// The same, with a virtual page that pays some nodes more than others: personalised PageRank.
///
/// # Errors
/// As [`pagerank`]; [`Error::Usage`](crate::Error::Usage) if `teleport` has not a weight for each node.
pub fn pagerank_for(graph: &Graph, options: Options, teleport: &Teleport) -> Result<PageRank> {
    teleport.check(graph.nodes() as u64)?;
    let walk = Walk {
        links: graph,
        damping: check(options)?,
        kept: if options.lazy { 0.5 } else { 0.0 },
        teleport,
    };
    let mut result = walk.settle(
        teleport.shares(1.0, graph.nodes()).collect(),
        options.residual,
    );
    if graph.nodes() > 0 {
        result.bound = walk.bound(&result);
        result.converged &= options.residual >= RESOLUTION;
    }
    Ok(result)
}

/// Hands `each` the vectors after 1, 2, ... `iterations` steps from a uniform start: what the off-line
/// algorithm knows after reading the graph so many times.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) if damping is out of range.
pub fn iterate(
    graph: &Graph,
    damping: f64,
    iterations: u64,
    mut each: impl FnMut(&[f64]),
) -> Result<()> {
    let damping = check(Options {
        damping,
        ..Options::default()
    })?;
    let walk = Walk {
        links: graph,
        damping,
        kept: 0.0,
        teleport: &Teleport::default(),
    };
    let n = graph.nodes();
    let mut now = vec![1.0 / n as f64; n];
    let mut next = vec![0.0; n];
    for _ in 0..iterations {
        walk.step(&now, &mut next);
        std::mem::swap(&mut now, &mut next);
        each(&now);
    }
    Ok(())
}

/// The damping to use.
fn check(options: Options) -> Result<f64> {
    Ok(super::Options::residual(options.damping, options.residual)?.damping())
}

/// Iterations after which only rounding can keep the residual above `residual`: the first
/// is at most 2, and each is at most `contraction` times the one before. Twice that, for good measure.
fn iteration_limit(contraction: f64, residual: f64) -> u64 {
    if contraction == 0.0 || residual >= 2.0 {
        return 2;
    }
    let needed = (residual / 2.0).ln() / contraction.ln();
    (2.0 * needed).ceil() as u64 + 2
}

/// The damped walk over links, whatever they weigh, which the power method takes steps of.
pub(crate) struct Walk<'a, W> {
    pub links: &'a Table<W>,
    /// d
    pub damping: f64,
    /// k: 0 or 1/2.
    pub kept: f64,
    pub teleport: &'a Teleport,
}

impl<W: Weight> Walk<'_, W> {
    /// By how much a step shrinks the distance of two vectors, at least.
    fn contraction(&self) -> f64 {
        self.kept + (1.0 - self.kept) * self.damping
    }

    /// Takes steps until one moves the vector by at most `residual` in L1, or by no more than rounding does. The bound
    /// is left out.
    pub fn settle(&self, start: Vec<f64>, residual: f64) -> PageRank {
        let mut result = PageRank {
            iterations: 0,
            residual: 0.0,
            bound: 0.0,
            converged: true,
            scores: start,
        };
        if result.scores.is_empty() {
            return result;
        }
        let limit = iteration_limit(self.contraction(), residual);
        let mut next = vec![0.0; result.scores.len()];
        loop {
            self.step(&result.scores, &mut next);
            result.residual = distance(&result.scores, &next) / (1.0 - self.kept);
            std::mem::swap(&mut result.scores, &mut next);
            result.iterations += 1;
            result.converged = result.residual <= residual;
            if result.converged || result.iterations >= limit {
                return result;
            }
        }
    }

    /// `next` = (1 - k) F(`now`) + k `now`.
    fn step(&self, now: &[f64], next: &mut [f64]) {
        let handed = (1.0 - self.kept) * self.damping;
        let linked = self
            .links
            .rows()
            .zip(now)
            .filter(|(row, _)| !row.is_empty());
        let linked: Sum = linked.map(|(_, &x)| x).collect();
        let mut paid = 1.0 - handed * linked.value();
        if self.kept > 0.0 {
            let all: Sum = now.iter().copied().collect();
            paid = 1.0 - self.kept * all.value() - handed * linked.value();
        }
        if self.teleport.is_uniform() {
            next.fill(paid / now.len() as f64);
        } else {
            let shares = self.teleport.shares(paid, now.len());
            next.iter_mut()
                .zip(shares)
                .for_each(|(next, share)| *next = share);
        }
        if self.kept > 0.0 {
            let pairs = next.iter_mut().zip(now);
            pairs.for_each(|(next, &x)| *next += self.kept * x);
        }
        if !self.links.is_weighted() {
            let rows = self.links.rows().zip(now);
            for (row, &x) in rows.filter(|(row, _)| !row.is_empty()) {
                let share = handed * x / row.len() as f64;
                for &target in row {
                    next[target as usize] += share;
                }
            }
            return;
        }
        for (row, &x) in self.links.all().zip(now) {
            let all = row.weight();
            for (&target, weight) in row.targets.iter().zip(row.weights) {
                next[target as usize] += handed * x * (weight.value() / all);
            }
        }
    }

    /// The proven bound on the last vector.
    fn bound(&self, result: &PageRank) -> f64 {
        let contraction = self.contraction();
        let difference = result.residual * (1.0 - self.kept);
        let rho = self.rounding(&result.scores, difference);
        let bound = contraction * difference + (1.0 + contraction) * rho;
        (bound / (1.0 - contraction)).min(2.0)
    }

    /// Bound on one step's rounding in L1, for the last vector and the one before.
    fn rounding(&self, scores: &[f64], difference: f64) -> f64 {
        let by_links = self.links.targets().iter().map(|&t| scores[t as usize]);
        let by_links = by_links.collect::<Sum>().value();
        let unit = f64::EPSILON / 2.0;
        let terms = if self.teleport.is_uniform() {
            19.0
        } else {
            20.0
        };
        // A hundredth covers what is of order u^2, and the roundings of this sum itself.
        1.01 * unit * (by_links + terms + scores.len() as f64 * difference)
    }
}

/// ||a - b||_1.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let terms = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    terms.collect::<Sum>().value()
}

#[cfg(test)]
mod tests;
