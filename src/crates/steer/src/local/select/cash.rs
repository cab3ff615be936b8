//! Frontier cash: what the domain's pages pass on until it reaches an unfetched page. Our own policy.

use super::flow::{flows, returning};
use super::{Matrix, Select};

/// Each page of the domain begins with one unit of cash, pages outside with none. Cash circulates over the kept rows as
/// in OPIC: a fetched page passes on alpha of what it receives, evenly over all of its links, including those to the
/// frontier; an unfetched page keeps what reaches it. With h\[k\] all that member k received,
///
/// ```text
/// h = e_L + alpha P' h                     P' : all links read, E_L e = 1 in the domain
/// score(j) = sum over k -> j of  h[k] / (o[k] + 1)  *  c[k]
/// ```
///
/// with the denominator of PF-Select and the c\[k\] of [`SharePolicy`](super::SharePolicy): what an unfetched page
/// receives counts in proportion to the links into the domain of the pages that link to it. In contrast to
/// `SharePolicy`, which takes the PageRank of F for h, cash begins only in the domain, and what flows to unfetched
/// pages is gone: no ranks of F are needed, and pages that only the outside links to come late.
///
/// Cash moves until all but a hundredth of what was handed out has reached the frontier or was given up. That takes at
/// most log(1/100)/log(alpha) steps: the scores are sums of cash that certainly arrived.
#[derive(Debug, Clone, Copy)]
pub struct FrontierCash;

/// Part of the cash that may still be in motion at the end.
const LEFT: f64 = 0.01;

impl Select for FrontierCash {
    fn scores(&mut self, matrix: &Matrix, _: &[f64], damping: f64) -> Vec<f64> {
        let is_local = |k: usize| f64::from(u8::from(k < matrix.domain));
        let mut moving: Vec<f64> = (0..matrix.len()).map(is_local).collect();
        let mut held = moving.clone();
        let mut next = vec![0.0; matrix.len()];
        let share: Vec<f64> = (0..matrix.len()).map(|k| damping / matrix.out(k)).collect();
        while moving.iter().sum::<f64>() > LEFT * matrix.domain as f64 {
            next.fill(0.0);
            for (k, cash) in moving.iter().enumerate().filter(|(_, cash)| **cash > 0.0) {
                let part = cash * share[k];
                matrix.inside.at(k).each(|target, weight| {
                    next[target as usize] += part * weight;
                });
            }
            std::mem::swap(&mut moving, &mut next);
            for (held, cash) in held.iter_mut().zip(&moving) {
                *held += cash;
            }
        }
        for (k, held) in held.iter_mut().enumerate() {
            *held *= returning(matrix, k);
        }
        flows(matrix, &held)
    }

    /// Ranks between rounds are not used.
    fn threshold(&self, threshold: f64) -> f64 {
        threshold.max(1.0)
    }
}
