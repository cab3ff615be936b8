//! The eigenvector of the largest eigenvalue of a matrix L without negative entries, by power iteration.
//!
//! ```text
//! x <- (L x + s x)/||L x + s x||_1        s: half of ||L x||_1, or 0
//! ```
//!
//! The paper's (†') (section 1: L + I) is the case s = 1. Every s has the same eigenvector; s > 0 is needed if both r,
//! the largest, and -r may be eigenvalues, as in bipartite graphs, where steps of L alone oscillate. The virtual page,
//! which is linked with all n nodes, causes eigenvalues of about sqrt(n) and -sqrt(n); with s = 1 the second shrinks by
//! (sqrt(n) - 1)/(sqrt(n) + 1) per step only, with s = r/2 by 1/3.
//!
//! If the largest eigenvalue is multiple, the iteration converges to the projection of the start onto its eigenvectors.
//! The residual is that of the returned vector, ||L x/||L x|| - x|| in L1, without s, or the one that a measure defines
//! ([`PowerIteration::residual`]).

use super::{Accuracy, Measured, Work, no_links};
use crate::Result;
use crate::metrics::sum::CompensatedSum;

/// Number of steps without a gain of a thousandth after which iteration ends: 64-bit numbers resolve no more.
const PATIENCE: u32 = 64;

/// Writes L x into the second vector, or adds it, where x is the first.
pub(super) type Step<'s> = dyn FnMut(&[f64], &mut [f64]) -> Result<()> + 's;

pub(super) struct PowerIteration {
    /// Name of the measure, for the error that it is not defined if L is 0.
    pub name: &'static str,
    pub start: Vec<f64>,
    /// True to add half of ||L x||_1 times the identity to L.
    pub shifted: bool,
    /// Function that returns the residual of x, given x and L x, neither of them 0.
    pub residual: fn(&[f64], &[f64]) -> f64,
}

pub(super) fn uniform(len: usize) -> Vec<f64> {
    vec![1.0 / len as f64; len]
}

/// Returns ||L x/||L x|| - x|| given x, which sums to 1, and L x.
pub(super) fn step_residual(x: &[f64], step: &[f64]) -> f64 {
    let norm = CompensatedSum::of(step.iter().copied());
    CompensatedSum::of(x.iter().zip(step).map(|(x, step)| (step / norm - x).abs()))
}

/// Runs the iteration. `apply` writes L x for a vector x. The scores are the eigenvector, and sum to 1. Fails with
/// [`Error::Unsupported`](crate::Error::Unsupported) if L is 0.
pub(super) fn eigenvector(
    power: PowerIteration,
    work: &mut Work<'_>,
    apply: &mut Step<'_>,
) -> Result<Measured> {
    let mut x = power.start;
    let mut next = vec![0.0; x.len()];
    let mut best = (f64::INFINITY, 0);
    let mut steps = 0;
    loop {
        apply(&x, &mut next)?;
        steps += 1;
        work.swept(steps);
        let norm = CompensatedSum::of(next.iter().copied());
        if norm == 0.0 {
            return Err(no_links(power.name));
        }
        let residual = (power.residual)(&x, &next);
        best = if residual < 0.999 * best.0 {
            (residual, 0)
        } else {
            (best.0, best.1 + 1)
        };
        let reached = residual <= work.options.until;
        if reached || best.1 > PATIENCE || work.watch.is_over() {
            return Ok(Measured {
                scores: x,
                accuracy: Accuracy::ResidualL1(residual),
                reached,
                sweeps: steps,
            });
        }
        let shift = if power.shifted { norm / 2.0 } else { 0.0 };
        let scale = 1.0 / (norm + shift);
        x.iter_mut()
            .zip(&next)
            .for_each(|(x, next)| *x = (next + shift * *x) * scale);
        normalise(&mut x);
    }
}

/// Scales a vector to sum 1, unless it is 0.
pub(super) fn normalise(x: &mut [f64]) {
    let sum = CompensatedSum::of(x.iter().copied());
    if sum > 0.0 {
        x.iter_mut().for_each(|x| *x /= sum);
    }
}
