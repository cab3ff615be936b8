//! Frontier cash: what the domain's pages hand out until it reaches a page that was not fetched. Ours.

use super::flow::{flows, returning};
use super::{Matrix, Select};

/// Each page of the domain begins with one unit of cash, pages outside with none. Cash circulates over the kept rows
/// as in OPIC: a page that was fetched hands on alpha of what it gets, evenly over all of its links, those to the
/// frontier included; a page that was not fetched keeps what reaches it. With h\[k\] all that member k got,
///
/// ```text
/// h = e_L + alpha P' h                     P' : all links read, E_L e = 1 in the domain
/// score(j) = sum over k -> j of  h[k] / (o[k] + 1)  *  c[k]
/// ```
///
/// with the denominator of PF-Select and the c\[k\] of [`Share`](super::Share): what a page not fetched gets counts as
/// far as the links of the pages that link to it lead into the domain. Beside `Share`, which takes the PageRank of F
/// for h, cash begins in the domain only, and what flows to pages not fetched is gone: there is no rank of F to wait
/// for, and pages that only the outside leads to come late.
///
/// Cash is moved until all but a hundredth of what was handed out has reached the frontier or was given up. That takes
/// log(1/100)/log(alpha) steps at most: the scores are sums of cash that certainly got there.
#[derive(Debug, Clone, Copy)]
pub struct FrontierCash;

/// The part of the cash that may still be on its way.
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

    /// Ranks between rounds are not looked at.
    fn threshold(&self, threshold: f64) -> f64 {
        threshold.max(1.0)
    }
}
