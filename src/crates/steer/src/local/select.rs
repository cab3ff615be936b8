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
//! | `sc` | how far the page would move the domain's ranks, by stochastic complementation |
//! | `pf` | f\[k\], the PageRank of F (PF-Select, section 5.2.2) |
//! | `outlink` | the number of links from the domain, or their weights (section 6.1) |
//! | `random` | a uniform draw (section 6.1): the same seed gives the same pages |
//! | `share` | c\[k\] f\[k\]: our own |
//!
//! **Share.** c\[k\] is 1 in the domain L, and outside the part of the links of k that lead into L. The effect of an
//! unfetched page on the domain is what flows into it times the share of its links that lead there (the paper's impact,
//! section 6.2). The first is known; for the second, a page is assumed to link like the pages that link to it. Pages of
//! score 0 come in the order in which they became known: measured, that is better than by flow.
//!
//! **Stochastic complementation** (SC-Select, Algorithm 3) takes the pages that would change the domain's ranks most.
//!
//! The influence of a page j of the frontier is ||E_L (f_j - f)||_1: f is the PageRank of F, f_j that of F with j
//! added, restricted to F and normalised. j's links are unknown; they are assumed to be distributed over F as links
//! into F are (equation 5): s\[k\] is the number of links to member k divided by that of all links. (The paper writes
//! F'e, but says in-links, which with its F_ji for i -> j is Fe.) f_j is the fixpoint of the stochastic complement
//! (equation 10)
//!
//! ```text
//! S = F~ + s~ u~' / (1 - w)        f_j ~ S f        (one power iteration, from f: equation 11)
//!
//! s~ = alpha s + (1 - alpha) e/(l + 1)      w = (1 - alpha)/(l + 1)
//! u~' f = (1 - alpha)/(l + 1) + alpha sum over k -> j of f[k]/(o[k] + 1)  =: g
//! ```
//!
//! and S f - f = x + y + g z with z = s~/(1 - w), y = -(1 - alpha) e/(l (l + 1)), and x, which is nonzero only at the
//! siblings of j: x\[k'\] = -alpha sum over k -> j, k -> k' of f\[k\]/(o\[k\] (o\[k\] + 1)). So the norm of y + g z is
//! computed for all pages at once, and corrected at each page's siblings.
//!
//! **Dangling members** (columns e/l, section 6.1) are ignored in the formulas, as in the paper ("L has no dangling
//! links"): f\[k\]/(o\[k\] + 1) is all of f\[k\] if o\[k\] is 0, and no sibling loses by it. Measured, exact
//! formulas are no better. Algorithm 3's "x\[k\] > 0" is read as "not 0": x is never positive.
//!
//! **Norms.** With t = y/g, N(t) = ||z - t e|| = sum over k of |z\[k\] - t|, so ||g z - y e|| = g N(t). z is sorted
//! once, with prefix sums, and N(t) is one binary search.
//!
//! **Weights.** If links have weights, o\[k\] and s are sums of weights, and for a link k -> j of weight w,
//! f\[k\]/(o\[k\] + 1) becomes f\[k\] w/(o\[k\] + w), and x, for k -> k' of weight v, f\[k\] v w/(o\[k\] (o\[k\] + w)).
//!
//! Without weights, pages with the same sources have the same influence, which is computed once: pages that only one
//! member links to cost that member's links together, not each.

use std::collections::HashMap;

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
    /// PageRanks at this damping; `seed` is for `Random`.
    pub fn scores(self, matrix: &Matrix, ranks: &[f64], damping: f64, seed: u64) -> Vec<f64> {
        match self {
            Policy::Complement => influences(matrix, ranks, damping),
            Policy::Flow => flows(matrix, ranks),
            Policy::OutlinkCount => {
                matrix.flows(|k, weight| if k < matrix.domain { weight } else { 0.0 })
            }
            Policy::Random => {
                let mut draws = Pcg64::new(seed.into(), 0);
                let draw = |_: &u32| (draws.next_u64() >> 11) as f64;
                matrix.frontier.iter().map(draw).collect()
            }
            Policy::Share => flows(matrix, &returned(matrix, ranks)),
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
        let is_local = |&(target, _): &(u32, f64)| (target as usize) < matrix.domain;
        let links = matrix.inside.at(k).iter().filter(is_local);
        let local: f64 = links.map(|(_, weight)| weight).sum();
        if local > 0.0 {
            local / matrix.out[k]
        } else {
            0.0
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

/// Returns the function ||g z - y e||_1 of any g and y above 0.
pub(super) fn norms(z: &[f64]) -> impl Fn(f64, f64) -> f64 + use<> {
    let mut sorted = z.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut sum = 0.0;
    // Prefix sums: `sums[i]` is the sum of the first i.
    let mut sums = vec![0.0];
    sums.extend(sorted.iter().map(|value| {
        sum += value;
        sum
    }));
    move |g, y| {
        let t = y / g;
        let below = sorted.partition_point(|&value| value < t);
        let above = sorted.len() - below;
        let under = below as f64 * t - sums[below];
        let over = sum - sums[below] - above as f64 * t;
        g * (under + over)
    }
}

/// Returns z, y, and g for each page of the frontier.
pub(super) fn parts(matrix: &Matrix, ranks: &[f64], damping: f64) -> (Vec<f64>, f64, Vec<f64>) {
    let l = matrix.members() as f64;
    let mut z = vec![0.0; matrix.members()];
    for links in matrix.inside.all() {
        links.each(|target, weight| z[target as usize] += weight);
    }
    let links: f64 = z.iter().sum();
    let w = (1.0 - damping) / (l + 1.0);
    for z in &mut z {
        // Without links among members, all targets are equally likely.
        let s = if links > 0.0 { *z / links } else { 1.0 / l };
        *z = (damping * s + w) / (1.0 - w);
    }
    let g = flows(matrix, ranks).into_iter();
    (z, w / l, g.map(|flow| w + damping * flow).collect())
}

/// Returns the siblings of the page at `place` of the frontier, each with its x, in order of first occurrence. `x` has
/// a cell of 0 for each member.
pub(super) fn siblings(
    matrix: &Matrix,
    ranks: &[f64],
    damping: f64,
    place: usize,
    x: &mut [f64],
) -> Vec<(u32, f64)> {
    let mut siblings = Vec::new();
    matrix.sources.at(place).each(|k, weight| {
        let links = matrix.inside.at(k as usize);
        let o = links.weight();
        let lost = damping * ranks[k as usize] * weight / (o * (o + weight));
        links.each(|sibling, part| {
            let x = &mut x[sibling as usize];
            if *x == 0.0 {
                siblings.push((sibling, 0.0));
            }
            *x -= lost * part;
        });
    });
    for (sibling, lost) in &mut siblings {
        *lost = std::mem::take(&mut x[*sibling as usize]);
    }
    siblings
}

/// Returns the influence of each page of the frontier.
fn influences(matrix: &Matrix, ranks: &[f64], damping: f64) -> Vec<f64> {
    let (z, y, into) = parts(matrix, ranks, damping);
    let norm = norms(&z[..matrix.domain]);
    let mut x = vec![0.0; matrix.members()];
    let mut known: HashMap<&[u32], f64> = HashMap::new();
    let influence = |(place, g)| {
        let mut influence = || {
            let mut score = norm(g, y);
            for (sibling, x) in siblings(matrix, ranks, damping, place, &mut x) {
                if (sibling as usize) < matrix.domain {
                    let rest = g * z[sibling as usize] - y;
                    score += (x + rest).abs() - rest.abs();
                }
            }
            score
        };
        if matrix.sources.is_weighted() {
            influence()
        } else {
            *known
                .entry(matrix.sources.row(place))
                .or_insert_with(influence)
        }
    };
    into.into_iter().enumerate().map(influence).collect()
}
