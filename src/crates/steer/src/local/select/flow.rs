//! PF-Select: the PageRank that flows into a page (section 5.2.2).

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
