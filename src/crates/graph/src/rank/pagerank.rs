//! Exact PageRank of a graph in memory, by power iteration, with a proven bound on the error: what 64-bit numbers resolve,
//! where [`settle`](super::settle) ends at units of 2^-58 for each link.
//!
//! With l(x) the mass on nodes that have links, and damping d as the engine rounds it,
//!
//! ```text
//! F(x)_j = (1 - d l(x)) / n  +  sum over links i -> j of  d x_i / out(i)
//! ```
//!
//! For x of sum 1 this is the usual map; F(x) sums to 1 for every x, so that rounding does not accumulate over
//! iterations. If links have weights, the link's share of its row's weight replaces `1/out(i)`.
//!
//! **Bound.** Let y be the computed step from x, r = ||y - x||_1, and rho at least its rounding in L1. With M the
//! stochastic matrix and s = sum(x) - 1, the exact step less pi is d M (x - pi) less d s/n everywhere, and |s| <= rho
//! since x was computed like y. So ||y - pi|| <= rho + d ||x - pi|| + d rho, and with ||x - pi|| <= r + ||y - pi||:
//!
//! ```text
//! ||y - pi||_1 <= (d r + (1 + d) rho) / (1 - d)
//! ```
//!
//! Node j's entry is a sum of at most in(j) + 2 non-negative terms, a share has two roundings, the error of the term in
//! 1/n is at most 6u/n (u = 2^-53): one step's rounding is at most u (sum of in(j) y_j + 9), terms of order u^2 apart. For
//! x in place of y it is at most u n r more, since in(j) <= n. Another 7 u covers the rounding of r, and 3 u that of the
//! shares of weighted links. If the virtual page pays nodes by weights ([`Teleport`]), their shares replace 1/n, and u
//! more covers their rounding.
//!
//! Sums over all nodes are compensated and everything runs in node order on one thread: the same graph gives the same
//! bits. Memory: the graph and two `f64` per node.

use super::{RankOptions, Teleport};
use crate::engine::checked_damping;
use crate::graph::{Graph, LinkRows, Weight};
use crate::metrics::sum::CompensatedSum;
use crate::{Error, Result};

/// Smallest residual that 64-bit numbers can distinguish from 0: the rounding of a step in a graph where each page has
/// at most one link (see "Bound").
const RESOLUTION: f64 = 20.0 * f64::EPSILON / 2.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerOptions {
    /// Damping, 0 <= damping < 1, rounded as by [`damping_units`](crate::engine::damping_units).
    pub damping: f64,
    /// Residual at which it stops: the change by a step in L1. Positive.
    pub residual: f64,
}

impl Default for PowerOptions {
    fn default() -> Self {
        PowerOptions {
            damping: 0.85,
            residual: 1e-12,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct PageRank {
    /// Importance of each node; sums to 1.
    pub scores: Vec<f64>,
    /// Number of iterations, each one pass over the links.
    pub iterations: u64,
    /// Change by the last step in L1.
    pub residual: f64,
    /// Proven bound on the L1 distance of `scores` from the exact PageRank, rounding included.
    pub bound: f64,
    /// True if the requested residual was reached. If false, it is below the resolution of 64-bit numbers, even if the
    /// last step changed nothing.
    pub converged: bool,
}

/// Computes PageRank from a uniform start.
pub fn pagerank(graph: &Graph, options: PowerOptions) -> Result<PageRank> {
    pagerank_for(graph, options, &Teleport::default())
}

/// Computes personalised PageRank, with a virtual page that pays nodes by weights. Fails with [`Error::Usage`] if
/// `teleport` does not have a weight for each node, or an option is out of range.
pub fn pagerank_for(graph: &Graph, options: PowerOptions, teleport: &Teleport) -> Result<PageRank> {
    teleport.check(graph.nodes() as u64)?;
    let PowerOptions { damping, residual } = options;
    if !(residual > 0.0 && residual.is_finite()) {
        return Err(Error::Usage(format!(
            "residual {residual} is not a positive number"
        )));
    }
    let walk = Walk {
        links: graph,
        damping: RankOptions::until(checked_damping(damping)?, residual).damping(),
        teleport,
    };
    let start = teleport.shares(1.0, graph.nodes()).collect();
    let mut result = walk.settle(start, residual);
    if graph.nodes() > 0 {
        result.bound = walk.bound(&result);
        result.converged &= residual >= RESOLUTION;
    }
    Ok(result)
}

/// Returns the number of iterations after which only rounding can keep the residual above `residual`: the first
/// residual is at most 2, and each is at most `damping` times the one before. Doubled for safety.
fn iteration_limit(damping: f64, residual: f64) -> u64 {
    if damping == 0.0 || residual >= 2.0 {
        return 2;
    }
    let needed = (residual / 2.0).ln() / damping.ln();
    (2.0 * needed).ceil() as u64 + 2
}

/// Damped walk over links, with or without weights, iterated by the power method.
pub struct Walk<'a, W> {
    pub links: &'a LinkRows<W>,
    pub damping: f64,
    pub teleport: &'a Teleport,
}

impl<W: Weight> Walk<'_, W> {
    /// Takes steps until one changes the vector by at most `residual` in L1, or by no more than rounding does. Does not
    /// compute the bound.
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
        let limit = iteration_limit(self.damping, residual);
        let mut next = vec![0.0; result.scores.len()];
        loop {
            self.step(&result.scores, &mut next);
            result.residual = distance(&result.scores, &next);
            std::mem::swap(&mut result.scores, &mut next);
            result.iterations += 1;
            result.converged = result.residual <= residual;
            if result.converged || result.iterations >= limit {
                return result;
            }
        }
    }

    /// Computes `next` = F(`now`).
    pub fn step(&self, now: &[f64], next: &mut [f64]) {
        let linked = || (self.links.rows().zip(now)).filter(|(row, _)| !row.is_empty());
        let paid = 1.0 - self.damping * CompensatedSum::of(linked().map(|(_, &x)| x));
        let shares = next.iter_mut().zip(self.teleport.shares(paid, now.len()));
        shares.for_each(|(next, share)| *next = share);
        if !self.links.is_weighted() {
            for (row, &x) in linked() {
                let share = self.damping * x / row.len() as f64;
                for &target in row {
                    next[target as usize] += share;
                }
            }
            return;
        }
        for (row, &x) in self.links.all().zip(now) {
            let all = row.weight();
            for (&target, weight) in row.targets.iter().zip(row.weights) {
                next[target as usize] += self.damping * x * (weight.value() / all);
            }
        }
    }

    /// Returns the bound of the module's head, given the last vector and its difference from the one before.
    fn bound(&self, last: &PageRank) -> f64 {
        let (damping, scores) = (self.damping, &last.scores);
        let by_links = self.links.targets().iter().map(|&t| scores[t as usize]);
        let by_links = CompensatedSum::of(by_links);
        let terms = 19.0 + f64::from(u8::from(!self.teleport.is_uniform()));
        // A hundredth covers terms of order u^2 and the roundings of this sum itself.
        let unit = 1.01 * f64::EPSILON / 2.0;
        let rho = unit * (by_links + terms + scores.len() as f64 * last.residual);
        let bound = damping * last.residual + (1.0 + damping) * rho;
        (bound / (1.0 - damping)).min(2.0)
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    CompensatedSum::of(a.iter().zip(b).map(|(a, b)| (a - b).abs()))
}

#[cfg(test)]
mod tests;
