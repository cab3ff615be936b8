//! PageRank of the fetched pages by the power method of Algorithm 1.
//!
//! ```text
//! f <- alpha F D^-1 f + (1 - alpha) e/l      until a step moves f by less than delta in L1
//! ```
//!
//! If links have weights, a column of F D^-1 holds each link's part of the column's weight. Only links among members
//! count: one to an unfetched page is left out of F and of the out-degree D. A member without links among members is
//! dangling, its column the uniform vector. Alpha is 0.85 and delta 1e-6 by default (section 6.1). The paper starts at
//! random; this starts at the last round's result, or uniformly, so that the same rows give the same bytes; the result
//! is the same to delta/(1 - alpha).

use super::Matrix;
use crate::rank::Teleport;
use crate::rank::pagerank::Walk;

/// Settings of the power method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerMethod {
    /// Alpha, the random surfer's probability of following a link: at least 0, less than 1.
    pub damping: f64,
    /// Delta: stops when a step moves the vector by less than this in L1. Above 0.
    pub threshold: f64,
}

impl Default for PowerMethod {
    fn default() -> PowerMethod {
        PowerMethod {
            damping: 0.85,
            threshold: 1e-6,
        }
    }
}

impl PowerMethod {
    /// Returns the PageRank of the members, which sums to 1, from a uniform start.
    pub fn rank(&self, matrix: &Matrix) -> Vec<f64> {
        self.rank_from(matrix, &[])
    }

    /// Returns the PageRank starting from earlier ranks of the first members; new members start with an even share.
    pub fn rank_from(&self, matrix: &Matrix, before: &[f64]) -> Vec<f64> {
        let members = matrix.len();
        let even = 1.0 / members as f64;
        let before = &before[..before.len().min(members)];
        let mut now: Vec<f64> = before
            .iter()
            .map(|rank| rank * before.len() as f64 * even)
            .collect();
        now.resize(members, even);
        let walk = Walk {
            links: &matrix.inside,
            damping: self.damping,
            teleport: &Teleport::default(),
        };
        walk.settle(now, self.threshold).scores
    }
}
