//! Policies that go by what links pass to a page: PF-Select (section 5.2.2), OutlinkCount and Random (section 6.1), and
//! Share, our own.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

use super::{Matrix, Select};

/// Scores a page j of the frontier by f'(D + diag(u_j))^-1 u_j, the sum over the members k that link to it of
///
/// ```text
/// f[k] / (o[k] + 1)
/// ```
///
/// with o\[k\] the links of k among members; for a link of weight w, f\[k\] w/(o\[k\] + w) with the weight o\[k\]. This
/// is the paper's denominator; that of Cho and others is o\[k\].
#[derive(Debug, Clone, Copy)]
pub struct FlowPolicy;

impl Select for FlowPolicy {
    fn scores(&mut self, matrix: &Matrix, ranks: &[f64], _: f64) -> Vec<f64> {
        flows(matrix, ranks)
    }
}

/// Returns for each page of the frontier the sum of `held[k] w/(o[k] + w)` over the members k that link to it.
pub(super) fn flows(matrix: &Matrix, held: &[f64]) -> Vec<f64> {
    let out: Vec<f64> = (0..held.len())
        .map(|k| matrix.inside.at(k).weight())
        .collect();
    let flow = |place| {
        let mut flow = 0.0;
        matrix.sources.at(place).each(|k, weight| {
            let k = k as usize;
            flow += held[k] * weight / (out[k] + weight);
        });
        flow
    };
    (0..matrix.sources.nodes()).map(flow).collect()
}

/// Returns the part of what a member holds that can return to the domain: 1 in the domain, outside the part of its
/// links that lead into the domain.
pub(super) fn returning(matrix: &Matrix, member: usize) -> f64 {
    if member < matrix.domain {
        return 1.0;
    }
    let mut local = 0.0;
    matrix.inside.at(member).each(|target, weight| {
        if (target as usize) < matrix.domain {
            local += weight;
        }
    });
    if local > 0.0 {
        local / matrix.out(member)
    } else {
        0.0
    }
}

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

/// Scores a page by the number of links to it from the local domain (section 6.1), or by their weights.
#[derive(Debug, Clone, Copy)]
pub struct OutlinkCount;

impl Select for OutlinkCount {
    fn scores(&mut self, matrix: &Matrix, _: &[f64], _: f64) -> Vec<f64> {
        let count = |place| {
            let mut count = 0.0;
            matrix.sources.at(place).each(|k, weight| {
                if (k as usize) < matrix.domain {
                    count += weight;
                }
            });
            count
        };
        (0..matrix.sources.nodes()).map(count).collect()
    }
}

/// Draws pages uniformly (section 6.1): the same seed gives the same pages.
#[derive(Debug, Clone)]
pub struct RandomPolicy(Pcg64);

impl RandomPolicy {
    /// Returns a policy with this seed.
    pub fn new(seed: u64) -> RandomPolicy {
        RandomPolicy(Pcg64::new(u128::from(seed), 0))
    }
}

impl Select for RandomPolicy {
    fn scores(&mut self, matrix: &Matrix, _: &[f64], _: f64) -> Vec<f64> {
        let draw = |_: &u32| (self.0.next_u64() >> 11) as f64;
        matrix.frontier.iter().map(draw).collect()
    }
}
