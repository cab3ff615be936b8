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
//! computed for all pages at once ([`norms`](super::norms)), and corrected at each page's siblings.
//!
//! **Dangling members** (columns e/l, section 6.1) are ignored in the formulas, as in the paper ("L has no dangling
//! links"): f\[k\]/(o\[k\] + 1) is all of f\[k\] if o\[k\] is 0, and no sibling loses by it. With
//! [`dangling`](Complement::dangling) they are exact: with j added, one that links to j has the one link; another has
//! the column e/(l + 1). With delta the rank of all dangling members and delta_j of those that link to j, the sums
//! above become
//!
//! ```text
//! y = -( (1 - alpha) + alpha (delta - delta_j) ) e/(l (l + 1))  -  alpha delta_j e/l
//! g = ( (1 - alpha) + alpha (delta - delta_j) )/(l + 1)  +  alpha sum over k -> j of f[k]/(o[k] + 1)
//! ```
//!
//! y is still constant over members, and S f - f still sums to 0. Measured, the exact form is no better (20 domains of
//! cnr-2000: L1 0.132 instead of 0.127), so the paper's is the default. Algorithm 3's "x\[k\] > 0" is read as "not 0":
//! x is never positive.
//!
//! **Weights.** If links have weights, o\[k\] and s are sums of weights, and for a link k -> j of weight w,
//! f\[k\]/(o\[k\] + 1) becomes f\[k\] w/(o\[k\] + w), and x, for k -> k' of weight v, f\[k\] v w/(o\[k\] (o\[k\] + w)).
//!
//! Without weights, pages with the same sources have the same influence, which is computed once: pages that only one
//! member links to cost that member's links together, not each.

use std::collections::HashMap;

use super::norms::{Exact, NormTable, Norms};
use super::{Matrix, Select};

/// Scores pages by influence.
#[derive(Debug, Clone, Copy, Default)]
pub struct Complement {
    /// Number of values of g at which norms are tabulated; `None`: exact norms.
    pub values: Option<usize>,
    /// Treats dangling members exactly instead of ignoring them.
    pub dangling: bool,
}

/// S f - f for one page of the frontier, in parts: x + (g z - y) at each member.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Flow into the page.
    pub g: f64,
    /// Loss of every member.
    pub y: f64,
    /// Siblings and their losses: members, each once.
    pub x: Vec<(u32, f64)>,
}

impl Complement {
    /// Returns z, and g and y for each page of the frontier.
    fn parts(&self, matrix: &Matrix, ranks: &[f64], damping: f64) -> (Vec<f64>, Vec<(f64, f64)>) {
        let l = matrix.len() as f64;
        let mut z = vec![0.0; matrix.len()];
        let out: Vec<f64> = (0..matrix.len())
            .map(|k| matrix.inside.at(k).weight())
            .collect();
        for k in 0..matrix.len() {
            matrix
                .inside
                .at(k)
                .each(|target, weight| z[target as usize] += weight);
        }
        let links: f64 = z.iter().sum();
        let w = (1.0 - damping) / (l + 1.0);
        for z in &mut z {
            // Without links among members, all targets are equally likely.
            let s = if links > 0.0 { *z / links } else { 1.0 / l };
            *z = (damping * s + w) / (1.0 - w);
        }
        let rows = out.iter().zip(ranks);
        let counts = |out: f64| self.dangling && out == 0.0;
        let dangling: f64 = rows
            .filter(|(out, _)| counts(**out))
            .map(|(_, rank)| rank)
            .sum();
        let mut pairs = Vec::with_capacity(matrix.frontier.len());
        for place in 0..matrix.sources.nodes() {
            let (mut flow, mut freed) = (0.0, 0.0);
            matrix.sources.at(place).each(|k, weight| {
                let (out, rank) = (out[k as usize], ranks[k as usize]);
                flow += rank * weight / (out + weight);
                if counts(out) {
                    freed += rank;
                }
            });
            let spread = (1.0 - damping) + damping * (dangling - freed);
            let g = spread / (l + 1.0) + damping * flow;
            let y = spread / (l * (l + 1.0)) + damping * freed / l;
            pairs.push((g, y));
        }
        (z, pairs)
    }

    fn norms(&self, z: &[f64], pairs: &[(f64, f64)], usual: f64) -> Box<dyn Norms> {
        let Some(values) = self.values else {
            return Box::new(Exact::new(z));
        };
        let scaled = pairs.iter().map(|&(g, y)| g * usual / y);
        let range = scaled.fold((f64::INFINITY, 0.0f64), |(low, high), g| {
            (low.min(g), high.max(g))
        });
        Box::new(NormTable::new(z, usual, range, values))
    }
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

impl Complement {
    /// Returns z, and S f - f for each page of the frontier.
    pub fn differences(
        &self,
        matrix: &Matrix,
        ranks: &[f64],
        damping: f64,
    ) -> (Vec<f64>, Vec<Difference>) {
        let (z, pairs) = self.parts(matrix, ranks, damping);
        let mut siblings = Siblings {
            x: vec![0.0; matrix.len()],
            touched: Vec::new(),
        };
        let differences = pairs.into_iter().enumerate();
        let differences = differences
            .map(|(place, (g, y))| {
                let mut x = Vec::new();
                let gather = |sibling, lost| x.push((sibling, lost));
                siblings.each(matrix, ranks, damping, place, gather);
                Difference { g, y, x }
            })
            .collect();
        (z, differences)
    }
}

impl Select for Complement {
    fn scores(&mut self, matrix: &Matrix, ranks: &[f64], damping: f64) -> Vec<f64> {
        let (z, pairs) = self.parts(matrix, ranks, damping);
        // The y of a page that no dangling member links to, which is the smallest.
        let usual = pairs
            .iter()
            .map(|pair| pair.1)
            .fold(f64::INFINITY, f64::min);
        let norms = self.norms(&z[..matrix.domain], &pairs, usual);
        let mut siblings = Siblings {
            x: vec![0.0; matrix.len()],
            touched: Vec::new(),
        };
        let mut known: HashMap<&[u32], f64> = HashMap::new();
        let mut scores = Vec::with_capacity(pairs.len());
        for (place, (g, y)) in pairs.into_iter().enumerate() {
            let mut influence = || {
                let mut score = norms.norm(g, y);
                siblings.each(matrix, ranks, damping, place, |sibling, x| {
                    if (sibling as usize) < matrix.domain {
                        let rest = g * z[sibling as usize] - y;
                        score += (x + rest).abs() - rest.abs();
                    }
                });
                score
            };
            scores.push(if matrix.sources.is_weighted() {
                influence()
            } else {
                let sources = matrix.sources.row(place);
                *known.entry(sources).or_insert_with(influence)
            });
        }
        scores
    }
}
