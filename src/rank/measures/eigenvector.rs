//! The eigenvector of the largest eigenvalue of a matrix L without negative entries, by power iteration.
//!
//! ```text
//! x <- (L x + s x)/||L x + s x||_1        s: half of ||L x||_1, or 0
//! ```
//!
//! The paper's (†') (section 1: L + I) is the case s = 1. Any s has the same eigenvector; s > 0 is needed where an eigenvalue -r may
//! stand beside the largest r, as links between two groups of nodes have it: a step of L alone then turns round for ever. The virtual page, which is
//! linked with all n nodes, has eigenvalues of about sqrt(n) and -sqrt(n); with s = 1 the second shrinks by
//! (sqrt(n) - 1)/(sqrt(n) + 1) a step only, with s = r/2 by 1/3.
//!
//! It comes, where the largest eigenvalue is a multiple one, to the projection of
//! the start on its eigenvectors. The residual is that of the vector which is returned, ||L x/||L x|| - x|| in L1, without s, or
//! what a measure has in its place ([`Power::residual`]).

use super::swept;
use crate::Result;
use crate::metrics::sum::Sum;
use crate::rank::settle::Watch;
use crate::rows::Rows;

/// So many steps without a thousandth gained are the end: 64-bit numbers resolve no more.
const PATIENCE: u32 = 64;

/// Writes L x, or adds it, into the second vector, where x is the first.
pub(super) type Step<'s> = dyn FnMut(&[f64], &mut [f64]) -> Result<()> + 's;

/// An eigenvector.
pub(super) struct Eigenvector {
    /// Sums to 1.
    pub x: Vec<f64>,
    pub residual: f64,
    pub reached: bool,
    /// Times that L was applied.
    pub steps: u64,
}

/// How an eigenvector is looked for.
pub(super) struct Power {
    /// The first vector.
    pub start: Vec<f64>,
    /// Half of ||L x||_1 is added to L.
    pub shifted: bool,
    /// The residual to end at.
    pub until: f64,
    /// The residual of x, given x and L x, neither of them 0.
    pub residual: fn(&[f64], &[f64]) -> f64,
}

/// The vector of sum 1 that is the same everywhere.
pub(super) fn uniform(len: usize) -> Vec<f64> {
    vec![1.0 / len as f64; len]
}

/// ||L x/||L x|| - x|| of x and L x, where x sums to 1.
pub(super) fn step_residual(x: &[f64], step: &[f64]) -> f64 {
    let norm = sum(step);
    let apart = x.iter().zip(step).map(|(x, step)| (step / norm - x).abs());
    apart.collect::<Sum>().value()
}

/// Finds it. `None`: there is nothing, L is 0. `apply` writes L x, of a vector x.
pub(super) fn eigenvector(
    power: Power,
    rows: &dyn Rows,
    watch: &mut dyn Watch,
    apply: &mut Step<'_>,
) -> Result<Option<Eigenvector>> {
    let mut x = power.start;
    let mut next = vec![0.0; x.len()];
    let mut best = (f64::INFINITY, 0);
    let mut steps = 0;
    loop {
        apply(&x, &mut next)?;
        steps += 1;
        swept(watch, rows, steps);
        let norm = sum(&next);
        if norm == 0.0 {
            return Ok(None);
        }
        let residual = (power.residual)(&x, &next);
        best = if residual < 0.999 * best.0 {
            (residual, 0)
        } else {
            (best.0, best.1 + 1)
        };
        let reached = residual <= power.until;
        if reached || best.1 > PATIENCE || watch.is_over() {
            return Ok(Some(Eigenvector {
                x,
                residual,
                reached,
                steps,
            }));
        }
        let shift = if power.shifted { norm / 2.0 } else { 0.0 };
        let scale = 1.0 / (norm + shift);
        x.iter_mut()
            .zip(&next)
            .for_each(|(x, next)| *x = (next + shift * *x) * scale);
        normalise(&mut x);
    }
}

fn sum(x: &[f64]) -> f64 {
    x.iter().copied().collect::<Sum>().value()
}

/// Makes it sum to 1, unless it is 0.
pub(super) fn normalise(x: &mut [f64]) {
    let sum = sum(x);
    if sum > 0.0 {
        x.iter_mut().for_each(|x| *x /= sum);
    }
}
