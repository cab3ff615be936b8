//! Global PageRank of a local domain (J. V. Davis, I. S. Dhillon: Estimating the global PageRank of web communities,
//! KDD 2006).
//!
//! A crawl of one site, some hosts or a topic gives wrong ranks, since importance also flows in from pages that were
//! not crawled. This module chooses a few pages outside to fetch, and estimates the domain's PageRank in the whole web,
//! which is partitioned (equation 2)
//!
//! ```text
//! G = [ L     G_out    ]     L: links within the domain, n pages
//!     [ L_out G_within ]     L_out: from the domain to pages outside, which are not fetched: the frontier
//! ```
//!
//! and p* = E_L g / ||E_L g||_1 is sought, the PageRank g of G on the domain (section 4). [`LocalOptions`] has the steps
//! of FindGlobalPR (Algorithm 2): F begins as L; in each of T rounds a [`Policy`] chooses k pages of the frontier, they
//! are fetched and join F, and the PageRank f of F is recomputed by the power method; at the end `estimate` restricts it
//! to the domain. When no page is left to fetch, F is everything reachable, and if that is the web, f is g.
//!
//! **Power method** (Algorithm 1):
//!
//! ```text
//! f <- alpha F D^-1 f + (1 - alpha) e/l      until a step moves f by less than delta in L1
//! ```
//!
//! If links have weights, a column of F D^-1 holds each link's part of the column's weight. Only links among members
//! count: one to an unfetched page is left out of F and of the out-degree D. A member without links among members is
//! dangling, its column the uniform vector. Alpha is 0.85 by default, and delta 1e-6 (section 6.1). A round starts at the
//! last round's result, or uniformly, where the paper starts at random.
//!
//! **Departures.** Self-links and repeats are dropped (as in the paper, section 5.1). [`Policy::Share`] and the
//! extrapolated estimate are ours. Links may have weights. Pages that are gone or cannot be fetched have no links.

mod estimate;
mod graph;
mod select;
#[cfg(test)]
mod tests;

use crate::rank::Teleport;
use crate::rank::pagerank::{PowerOptions, Walk};
pub use estimate::{LocalEstimate, estimate};
pub use graph::{LocalGraph, Matrix, search_bytes};
pub use select::{Policy, best_by};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalOptions {
    pub policy: Policy,
    /// True for the extrapolated estimate, which is our own; false for the paper's.
    pub extrapolates: bool,
    /// Alpha, and delta as the residual.
    pub power: PowerOptions,
    /// Seed of the draws of [`Policy::Random`].
    pub seed: u64,
}

/// Page to fetch, with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageRequest {
    pub page: u32,
    /// Score by the policy: higher is sooner.
    pub score: f64,
    /// PageRank that links from fetched pages pass to it, where the fetched pages' ranks sum to 1.
    pub flow: f64,
}

impl LocalOptions {
    /// Returns the usual options with this damping.
    pub fn of(damping: f64) -> LocalOptions {
        LocalOptions {
            policy: Policy::default(),
            extrapolates: true,
            power: PowerOptions {
                damping,
                residual: 1e-6,
            },
            seed: 1,
        }
    }

    /// Returns the `count` pages of the frontier to fetch next, best first; fewer if there are no more. Among equal
    /// scores, those with the smallest `tie` come first, then those known first.
    pub fn requests(
        &self,
        matrix: &Matrix,
        ranks: &[f64],
        count: usize,
        tie: impl Fn(u32) -> u64,
    ) -> Vec<PageRequest> {
        let damping = self.power.damping;
        let scores = self.policy.scores(matrix, ranks, damping, self.seed);
        let places = best_by(&scores, count, |place| tie(matrix.frontier[place as usize]));
        let asked = places.into_iter().map(|place| {
            let place = place as usize;
            let flow = matrix.flow(place, |k, weight| ranks[k] * weight / matrix.out[k]);
            PageRequest {
                page: matrix.frontier[place],
                score: scores[place],
                flow: damping * flow,
            }
        });
        asked.collect()
    }
}

impl Matrix {
    /// Returns the PageRank of the members, which sums to 1. Starts from earlier ranks of the first members, and an
    /// even share of the others.
    pub fn ranks(&self, power: &PowerOptions, before: &[f64]) -> Vec<f64> {
        let members = self.members();
        let even = 1.0 / members as f64;
        let before = &before[..before.len().min(members)];
        let mut now: Vec<f64> = before
            .iter()
            .map(|rank| rank * before.len() as f64 * even)
            .collect();
        now.resize(members, even);
        let walk = Walk {
            links: &self.inside,
            damping: power.damping,
            teleport: &Teleport::default(),
        };
        walk.settle(now, power.residual).scores
    }
}
