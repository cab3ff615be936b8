//! Policies that choose which pages outside to fetch next: SelectNodes of the paper.
//!
//! Each policy scores the pages j of the frontier. Policies by flow add up what the members k that link to j hold, with
//! o\[k\] the links of k among members:
//!
//! ```text
//! score(j) = sum over k -> j of  held[k] / (o[k] + 1)      for a link of weight w:  held[k] w / (o[k] + w), o[k] a weight
//! ```
//!
//! with the paper's denominator; that of Cho and others is o\[k\].
//!
//! | name | held\[k\], or score |
//! |---|---|
//! | `sc` | how far the page would move the domain's ranks, by stochastic complementation (SC-Select): [`complement`] |
//! | `pf` | f\[k\], the PageRank of F (PF-Select, section 5.2.2) |
//! | `outlink` | the number of links from the domain, or their weights (section 6.1) |
//! | `random` | a uniform draw (section 6.1): the same seed gives the same pages |
//! | `share` | c\[k\] f\[k\]: our own |
//!
//! **Share.** c\[k\] is 1 in the domain L, and outside the part of the links of k that lead into L. The effect of an
//! unfetched page on the domain is what flows into it times the share of its links that lead there (the paper's impact,
//! section 6.2). The first is known; for the second, a page is assumed to link like the pages that link to it. Unlike
//! stochastic complementation, which assumes that every page links into F alike, this distinguishes pages next to the
//! domain from pages that only lead further away from it, and needs no sort and no pass over siblings. Pages of score 0
//! come in the order in which they became known, breadth-first: measured, that is better than by flow, which follows
//! chains away from the domain.

pub(super) mod complement;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

use super::Matrix;
use crate::graph::Links;
use crate::metrics::BestItems;

cashrank_base::words! {
    /// Policy that scores pages of the frontier; the paper's come first, in its order.
    #[derive(Default)]
    Policy {
        /// Stochastic complementation.
        Complement = "sc",
        /// PageRank that flows into a page.
        Flow = "pf",
        /// Links from the domain.
        OutlinkCount = "outlink",
        Random = "random",
        /// Flow from pages that link into the domain.
        #[default]
        Share = "share",
    }
}

impl Policy {
    /// Returns a score for each page of the frontier, never NaN: the higher, the sooner. `ranks` are the members'
    /// PageRanks at this damping; `draws` is for `Random`.
    pub fn scores(
        self,
        matrix: &Matrix,
        ranks: &[f64],
        damping: f64,
        draws: &mut Pcg64,
    ) -> Vec<f64> {
        match self {
            Policy::Complement => complement::scores(matrix, ranks, damping),
            Policy::Flow => flows(matrix, ranks),
            Policy::OutlinkCount => {
                matrix.flows(|k, weight| if k < matrix.domain { weight } else { 0.0 })
            }
            Policy::Random => {
                let draw = |_: &u32| (draws.next_u64() >> 11) as f64;
                matrix.frontier.iter().map(draw).collect()
            }
            Policy::Share => flows(matrix, &returned(matrix, ranks)),
        }
    }

    /// Returns the threshold of the power method that scores need, if the estimate needs `threshold`.
    pub fn threshold(self, threshold: f64) -> f64 {
        match self {
            // Coarse ranks suffice: measured, no distance changed in three digits, at a sixth of the steps.
            Policy::Share => threshold.max(1e-2),
            _ => threshold,
        }
    }
}

/// Returns for each page of the frontier the sum of `held[k] w/(o[k] + w)` over the members k that link to it.
fn flows(matrix: &Matrix, held: &[f64]) -> Vec<f64> {
    let out: Vec<f64> = matrix.inside.all().map(Links::weight).collect();
    matrix.flows(|k, weight| held[k] * weight / (out[k] + weight))
}

/// Returns c\[k\] times what each member k holds: the part that can return to the domain.
fn returned(matrix: &Matrix, held: &[f64]) -> Vec<f64> {
    let part = |k: usize| {
        if k < matrix.domain {
            return 1.0;
        }
        match matrix.into_domain(k) {
            local if local > 0.0 => local / matrix.out(k),
            _ => 0.0,
        }
    };
    let members = held.iter().enumerate();
    members.map(|(k, held)| held * part(k)).collect()
}

/// Returns the `count` positions of the frontier with the highest scores, best first; among equal scores, those with the
/// smallest `tie` come first, then those known first.
pub fn best_by(scores: &[f64], count: usize, tie: impl Fn(u32) -> u64) -> Vec<u32> {
    let order = |&a: &u32, &b: &u32| {
        let (x, y) = (scores[a as usize], scores[b as usize]);
        let ties = || tie(a).cmp(&tie(b)).then(a.cmp(&b));
        y.total_cmp(&x).then_with(ties)
    };
    let mut best = BestItems::new(count);
    (0..scores.len() as u32).for_each(|place| best.add(place, order));
    best.finish(order)
}
