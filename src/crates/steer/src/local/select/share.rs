//! Share: the PageRank that flows into a page from pages that link into the domain. Our own policy.

use super::flow::{flows, returning};
use super::{Matrix, Select};

/// Scores by PageRank flow; that of a page outside counts by the share of its links that lead into the local domain L:
///
/// ```text
/// score(j) = sum over k -> j of  f[k] / (o[k] + 1)  *  c[k]
/// c[k] = 1 for k in L,   |links of k into L| / |links of k| outside
/// ```
///
/// The effect of an unfetched page on the domain is what flows into it times the share of its links that lead there
/// (the paper's impact, section 6.2). The first is known; for the second, a page is assumed to link like the pages that
/// link to it. Unlike stochastic complementation, which assumes that every page links into F alike, this distinguishes
/// pages next to the domain from pages that only lead further away from it, and needs no sort and no pass over
/// siblings. Pages of score 0 come in the order in which they became known, breadth-first: measured, that is better
/// than by flow, which runs away along chains.
#[derive(Debug, Clone, Copy)]
pub struct SharePolicy;

impl Select for SharePolicy {
    fn scores(&mut self, matrix: &Matrix, ranks: &[f64], _: f64) -> Vec<f64> {
        let members = ranks.iter().enumerate();
        let held = members.map(|(k, rank)| rank * returning(matrix, k));
        flows(matrix, &held.collect::<Vec<f64>>())
    }

    /// Coarse ranks suffice: measured, no distance changed in three digits, at a sixth of the steps.
    fn threshold(&self, threshold: f64) -> f64 {
        threshold.max(1e-2)
    }
}
