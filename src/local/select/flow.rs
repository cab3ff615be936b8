//! PF-Select: the PageRank that flows into a page (section 5.2.2).

use super::{Matrix, Select};

/// Scores a page j of the frontier by f'(D + diag(u_j))^-1 u_j, the sum over the members k that link to it of
///
/// ```text
/// f[k] / (o[k] + 1)
/// ```
///
/// with o\[k\] the links of k among members. The paper's denominator; that of Cho and others is o\[k\].
#[derive(Debug, Clone, Copy)]
pub struct Flow;

impl Select for Flow {
    fn scores(&mut self, matrix: &Matrix, ranks: &[f64], _: f64) -> Vec<f64> {
        flows(matrix, |k| ranks[k])
    }
}

/// Of each page of the frontier, the sum of `held(k)/(o[k] + 1)` over the members k that link to it.
pub(super) fn flows(matrix: &Matrix, held: impl Fn(usize) -> f64) -> Vec<f64> {
    let members = matrix.inside.iter().enumerate();
    let handed: Vec<f64> = members
        .map(|(k, row)| held(k) / (row.len() as f64 + 1.0))
        .collect();
    let sources = matrix.sources.iter();
    sources
        .map(|sources| sources.iter().map(|&k| handed[k as usize]).sum())
        .collect()
}
