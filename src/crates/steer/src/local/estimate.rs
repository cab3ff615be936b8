//! Estimate of the global PageRank of the domain's pages, and its reliability.
//!
//! **The paper's estimate** is the PageRank f of F, restricted to the domain and normalised: E_L f / ||E_L f||. Links
//! to unfetched pages are left out, which assumes that what flows over them returns where the page's other links lead.
//!
//! **The extrapolated estimate** is our own. As pages outside are fetched, the estimates approach those with all pages
//! fetched, and the flow over links that are left out goes to zero. With a, b and c the estimates after a quarter,
//! half, and all of the outside pages were fetched (in their order), and leak the rank that flows over links left out,
//!
//! ```text
//! leak(F) = sum over members i of  f[i] |links of i to pages not fetched| / |links of i|     (by weight, if they have any)
//! p[k] ~ c[k] (c[k] / b[k])^gamma (1 + leak_c outside[k])     gamma = agreement * min(1, leak_c / (leak_b - leak_c))
//! agreement = max(0, 2 sum of |c - b| over pages that move as they did from a to b / ||c - b||_1  -  1)
//! ```
//!
//! The powers are linear extrapolation of log p to leak 0, reduced where the last two moves disagree, and limited to a
//! factor of 1.5. If the leak did not decrease, its ratio is 1. The last factor assumes that what leaks returns like
//! the rank known to come from outside, page by page: a page with links from outside has more that were not found. At
//! leak 0 nothing is extrapolated. The extrapolated values are assigned to pages by their rank in c, and pages tied in
//! c share theirs: so Kendall's tau is that of c, and only the values, which distances measure, change.
//!
//! **From outside**: the part of a page's rank that links of pages outside the domain pass to it, alpha sum over i
//! outside, i -> k, of f\[i\]/o\[i\], divided by f\[k\].

use super::{LocalGraph, LocalOptions, Matrix};

/// Estimate for the domain's pages, in order of members.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalEstimate {
    /// Estimated global PageRank of each page; they sum to 1.
    pub ranks: Vec<f64>,
    /// Part of each page's rank in F that links from outside the domain pass to it, 0 to 1.
    pub outside: Vec<f64>,
    /// Rank of F that flows over links to unfetched pages, 0 to 1.
    pub leak: f64,
    /// Exponent gamma of the extrapolation.
    pub extrapolated: f64,
}

/// Computes the estimate. `matrix` has the links of all members, and `ranks` their ranks, which may be rough.
pub fn estimate(
    known: &LocalGraph,
    matrix: &Matrix,
    ranks: &[f64],
    options: &LocalOptions,
) -> LocalEstimate {
    let power = &options.power;
    let ranks = &*matrix.ranks(power, ranks);
    let mut estimate = LocalEstimate {
        ranks: normalised(&ranks[..matrix.domain]),
        outside: outside(matrix, ranks, power.damping),
        leak: leak(matrix, ranks),
        extrapolated: 0.0,
    };
    let beyond = matrix.members() - matrix.domain - matrix.failed;
    if options.extrapolates && beyond >= 4 && estimate.leak > 0.0 {
        let stage = |part: usize| {
            let matrix = known.matrix_of(matrix.domain + beyond / part);
            let ranks = matrix.ranks(power, ranks);
            (normalised(&ranks[..matrix.domain]), leak(&matrix, &ranks))
        };
        let (quarter, _) = stage(4);
        let (half, before) = stage(2);
        let ended = before - estimate.leak;
        let ratio = if ended > 0.0 {
            (estimate.leak / ended).min(1.0)
        } else {
            1.0
        };
        let gamma = ratio * agreement(&quarter, &half, &estimate.ranks);
        let outside = estimate.outside.iter();
        let unseen: Vec<f64> = outside.map(|part| 1.0 + estimate.leak * part).collect();
        estimate.ranks = extrapolated(&half, &estimate.ranks, gamma, &unseen);
        estimate.extrapolated = gamma;
    }
    estimate
}

fn normalised(ranks: &[f64]) -> Vec<f64> {
    let sum: f64 = ranks.iter().sum();
    ranks.iter().map(|rank| rank / sum).collect()
}

fn leak(matrix: &Matrix, ranks: &[f64]) -> f64 {
    let of = |(member, rank): (usize, &f64)| match matrix.leaks(member) {
        leaks if leaks > 0.0 => rank * leaks / matrix.out[member],
        _ => 0.0,
    };
    ranks.iter().enumerate().map(of).sum()
}

fn outside(matrix: &Matrix, ranks: &[f64], damping: f64) -> Vec<f64> {
    let mut handed = vec![0.0; matrix.domain];
    for (member, rank) in ranks.iter().enumerate().skip(matrix.domain) {
        let share = damping * rank / matrix.inside.at(member).weight();
        matrix.inside.at(member).each(|target, weight| {
            if let Some(handed) = handed.get_mut(target as usize) {
                *handed += share * weight;
            }
        });
    }
    let parts = handed.iter().zip(ranks);
    // After the last step of the power method a rank may be slightly less than what flows in.
    parts
        .map(|(handed, rank)| (handed / rank).min(1.0))
        .collect()
}

fn agreement(a: &[f64], b: &[f64], c: &[f64]) -> f64 {
    let (mut agreed, mut all) = (0.0, 0.0);
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        let moved = (c - b).abs();
        all += moved;
        if (b - a) * (c - b) > 0.0 {
            agreed += moved;
        }
    }
    if all > 0.0 {
        (2.0 * agreed / all - 1.0).max(0.0)
    } else {
        0.0
    }
}

/// Returns c (c/b)^gamma times `unseen`, in the order of c.
fn extrapolated(b: &[f64], c: &[f64], gamma: f64, unseen: &[f64]) -> Vec<f64> {
    let ahead = |(b, c): (&f64, &f64)| c * libm::pow(c / b, gamma).clamp(1.0 / FACTOR, FACTOR);
    let values = b.iter().zip(c).map(ahead).zip(unseen);
    let mut values: Vec<f64> = values.map(|(value, unseen)| value * unseen).collect();
    values.sort_unstable_by(f64::total_cmp);
    let mut order: Vec<u32> = (0..c.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| c[a as usize].total_cmp(&c[b as usize]).then(a.cmp(&b)));
    let mut ranks = vec![0.0; c.len()];
    let mut start = 0;
    let alike = |a: &u32, b: &u32| c[*b as usize] - c[*a as usize] <= ALIKE * c[*b as usize];
    for run in order.chunk_by(alike) {
        let values = &values[start..start + run.len()];
        let mean = values.iter().sum::<f64>() / run.len() as f64;
        for &page in run {
            ranks[page as usize] = mean;
        }
        start += run.len();
    }
    normalised(&ranks)
}

/// Maximum factor of the extrapolation: few pages move that far again.
const FACTOR: f64 = 1.5;
/// Relative difference below which ranks count as tied: they come from the same links.
const ALIKE: f64 = 1e-9;
