//! Hubs and authorities (J. Kleinberg, "Authoritative sources in a hyperlinked environment", 1998): a good hub links to
//! good authorities, and a good authority is linked by good hubs.
//!
//! With A the links (A_ij: what the link from i to j weighs; 1 where links have no weights)
//!
//! ```text
//! a = A^T h / ||A^T h||      h = A a / ||A a||      so a is an eigenvector of A^T A, and h of A A^T
//! ```
//!
//! both scaled to sum 1, as in networkx. Each is computed separately, by power iteration x <- L x/||L x||; hubs start
//! from uniform authorities. L has no negative eigenvalues, so steps do not oscillate. If its largest eigenvalue is
//! multiple, the iteration converges to the projection of the start onto its eigenvectors. In a graph with several
//! components, only the most densely linked one has scores above 0: "topic drift".
//!
//! The residual is that of the returned scores x: ||L x/||L x|| - x|| in L1.

use super::{Accuracy, MeasureScores, Work};
use crate::metrics::sum::CompensatedSum;
use crate::rows::Rows;
use crate::{Error, Result};

/// Number of steps without a gain of a thousandth after which iteration ends: 64-bit numbers resolve no more.
const PATIENCE: u32 = 64;

/// Computes hubs or authorities. Fails with [`Error::Unsupported`] if there are no links.
pub(super) fn hits(work: &mut Work<'_>, wants_hubs: bool) -> Result<Option<MeasureScores>> {
    let rows = work.rows;
    let nodes = rows.pages() as usize;
    let mut x = vec![1.0 / nodes as f64; nodes];
    let (mut other, mut next) = (vec![0.0; nodes], vec![0.0; nodes]);
    if wants_hubs {
        multiply(rows, false, &x, &mut other)?;
        normalise(&mut other);
        std::mem::swap(&mut x, &mut other);
    }
    let (mut best, mut since_best) = (f64::INFINITY, 0);
    let mut steps = 0;
    loop {
        multiply(rows, wants_hubs, &x, &mut other)?;
        normalise(&mut other);
        multiply(rows, !wants_hubs, &other, &mut next)?;
        steps += 1;
        work.swept(steps);
        let norm = CompensatedSum::of(next.iter().copied());
        if norm == 0.0 {
            return Err(Error::Unsupported(
                "there are no links, so HITS is not defined".into(),
            ));
        }
        let moved = x.iter().zip(&next).map(|(x, next)| (next / norm - x).abs());
        let residual = CompensatedSum::of(moved);
        since_best += 1;
        if residual < 0.999 * best {
            (best, since_best) = (residual, 0);
        }
        let reached = residual <= work.options.until;
        if reached || since_best > PATIENCE || work.watch.is_over() {
            return Ok(Some(MeasureScores {
                scores: x,
                accuracy: Accuracy::ResidualL1(residual),
                reached,
                sweeps: 2 * steps + u64::from(wants_hubs),
            }));
        }
        let scale = 1.0 / norm;
        let scaled = x.iter_mut().zip(&next);
        scaled.for_each(|(x, next)| *x = next * scale);
        normalise(&mut x);
    }
}

/// Scales a vector to sum 1, unless it is 0.
fn normalise(x: &mut [f64]) {
    let sum = CompensatedSum::of(x.iter().copied());
    if sum > 0.0 {
        x.iter_mut().for_each(|x| *x /= sum);
    }
}

/// Computes A x, the sum of x over the pages that each page links to, or if `transposed` A^T x, over those that link to it.
fn multiply(rows: &dyn Rows, transposed: bool, x: &[f64], out: &mut [f64]) -> Result<()> {
    out.fill(0.0);
    let all = rows.sweep(&mut |row| {
        let (page, links) = (row.page as usize, row.links);
        if transposed {
            let hub = x[page];
            links.each(|target, weight: u64| out[target as usize] += hub * weight as f64);
        } else {
            let sum = &mut out[page];
            links.each(|target, weight: u64| *sum += x[target as usize] * weight as f64);
        }
        Ok(())
    });
    all.map(drop)
}
