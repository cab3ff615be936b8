//! SC-Select (Algorithm 3): the pages that would change the domain's ranks most.
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
//! formulas are no better (20 domains of cnr-2000: L1 0.132 instead of 0.127). Algorithm 3's "x\[k\] > 0" is read as
//! "not 0": x is never positive.
//!
//! **Norms.** With t = y/g, N(t) = ||z - t e|| = sum over k of |z\[k\] - t|, so ||g z - y e|| = g N(t). z is sorted
//! once, with prefix sums, and N(t) is one binary search: O(n log n + m log n) for m pages. That is the algorithm "in
//! O(l log l) that is not described" (section 5.2.1); the paper's own divides the range of g into c values.
//!
//! **Weights.** If links have weights, o\[k\] and s are sums of weights, and for a link k -> j of weight w,
//! f\[k\]/(o\[k\] + 1) becomes f\[k\] w/(o\[k\] + w), and x, for k -> k' of weight v, f\[k\] v w/(o\[k\] (o\[k\] + w)).
//!
//! Without weights, pages with the same sources have the same influence, which is computed once: pages that only one
//! member links to cost that member's links together, not each.

use std::collections::HashMap;

use crate::local::Matrix;

/// Returns the function ||g z - y e||_1 of any g and y above 0.
fn norms(z: &[f64]) -> impl Fn(f64, f64) -> f64 + use<> {
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
fn parts(matrix: &Matrix, ranks: &[f64], damping: f64) -> (Vec<f64>, f64, Vec<f64>) {
    let l = matrix.len() as f64;
    let mut z = vec![0.0; matrix.len()];
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
    let g = super::flows(matrix, ranks).into_iter();
    (z, w / l, g.map(|flow| w + damping * flow).collect())
}

/// x of the paper, gathered with one cell per member.
struct Siblings {
    x: Vec<f64>,
    touched: Vec<u32>,
}

impl Siblings {
    /// Passes each sibling of the page at `place` of the frontier, with its x, to `each`, in order of first occurrence.
    fn each(
        &mut self,
        matrix: &Matrix,
        ranks: &[f64],
        damping: f64,
        place: usize,
        mut each: impl FnMut(u32, f64),
    ) {
        matrix.sources.at(place).each(|k, weight| {
            let o = matrix.inside.at(k as usize).weight();
            let lost = damping * ranks[k as usize] * weight / (o * (o + weight));
            matrix.inside.at(k as usize).each(|sibling, part| {
                let x = &mut self.x[sibling as usize];
                if *x == 0.0 {
                    self.touched.push(sibling);
                }
                *x -= lost * part;
            });
        });
        for sibling in self.touched.drain(..) {
            each(sibling, std::mem::take(&mut self.x[sibling as usize]));
        }
    }
}

pub(super) fn scores(matrix: &Matrix, ranks: &[f64], damping: f64) -> Vec<f64> {
    let (z, y, into) = parts(matrix, ranks, damping);
    let norm = norms(&z[..matrix.domain]);
    let mut siblings = Siblings {
        x: vec![0.0; matrix.len()],
        touched: Vec::new(),
    };
    let mut known: HashMap<&[u32], f64> = HashMap::new();
    let mut influence = |(place, g)| {
        let mut influence = || {
            let mut score = norm(g, y);
            siblings.each(matrix, ranks, damping, place, |sibling, x| {
                if (sibling as usize) < matrix.domain {
                    let rest = g * z[sibling as usize] - y;
                    score += (x + rest).abs() - rest.abs();
                }
            });
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
    into.into_iter().enumerate().map(&mut influence).collect()
}

/// S f - f for one page of the frontier, in parts: x + (g z - y) at each member.
#[cfg(test)]
#[derive(Debug)]
pub(in crate::local) struct Difference {
    pub g: f64,
    pub y: f64,
    /// Siblings and their losses: members, each once.
    pub x: Vec<(u32, f64)>,
}

/// Returns z, and S f - f for each page of the frontier.
#[cfg(test)]
pub(in crate::local) fn differences(
    matrix: &Matrix,
    ranks: &[f64],
    damping: f64,
) -> (Vec<f64>, Vec<Difference>) {
    let (z, y, into) = parts(matrix, ranks, damping);
    let mut siblings = Siblings {
        x: vec![0.0; matrix.len()],
        touched: Vec::new(),
    };
    let differences = into.into_iter().enumerate().map(|(place, g)| {
        let mut x = Vec::new();
        let gather = |sibling, lost| x.push((sibling, lost));
        siblings.each(matrix, ranks, damping, place, gather);
        Difference { g, y, x }
    });
    let differences = differences.collect();
    (z, differences)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn norms_are_sums(z in prop::collection::vec(1e-6f64..1.0, 1..40), g in 1e-3f64..1.0, y in 1e-6f64..0.5) {
            let sum: f64 = z.iter().map(|z| (g * z - y).abs()).sum();
            prop_assert!((norms(&z)(g, y) - sum).abs() < 1e-12);
        }
    }
}
