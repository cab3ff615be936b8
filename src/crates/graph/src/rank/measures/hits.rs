//! Hubs and authorities (J. Kleinberg, "Authoritative sources in a hyperlinked environment", 1998): a good hub links to
//! good authorities, and a good authority is linked by good hubs.
//!
//! With A the links (A_ij: what the link from i to j weighs; 1 where links have no weights)
//!
//! ```text
//! a = A^T h / ||A^T h||      h = A a / ||A a||      so a is an eigenvector of A^T A, and h of A A^T
//! ```
//!
//! both scaled to sum 1, as in networkx. Each is iterated separately and has its own residual; hubs start from uniform
//! authorities. The matrix has no negative eigenvalues, so power iteration needs no shift. In a graph with several
//! components, only the most densely linked one has scores above 0: "topic drift".

use super::eigenvector::{PowerIteration, eigenvector, normalise, step_residual, uniform};
use super::{MeasureSpec, Measured, ScoreKind, Uses, Work};
use crate::Result;
use crate::rows::Rows;

pub(super) const AUTHORITIES: MeasureSpec = MeasureSpec {
    name: "hits-authorities",
    about: "HITS: linked by good hubs; with a residual",
    scores: ScoreKind::Share,
    uses: &[Uses::Until],
    bytes: |nodes, _, _| 24 * nodes,
    compute: |work| hits(work, false),
};

pub(super) const HUBS: MeasureSpec = MeasureSpec {
    name: "hits-hubs",
    about: "HITS: links to good authorities, as lists of links do; with a residual",
    scores: ScoreKind::Share,
    uses: &[Uses::Until],
    bytes: |nodes, _, _| 24 * nodes,
    compute: |work| hits(work, true),
};

fn hits(work: &mut Work<'_>, wants_hubs: bool) -> Result<Option<Measured>> {
    let rows = work.rows;
    let nodes = rows.pages() as usize;
    let mut start = uniform(nodes);
    let mut other = vec![0.0; nodes];
    if wants_hubs {
        multiply(rows, false, &start, &mut other)?;
        normalise(&mut other);
        std::mem::swap(&mut start, &mut other);
    }
    let mut apply = |x: &[f64], next: &mut [f64]| {
        multiply(rows, wants_hubs, x, &mut other)?;
        normalise(&mut other);
        multiply(rows, !wants_hubs, &other, next)
    };
    let power = PowerIteration {
        name: "HITS",
        start,
        shifted: false,
        residual: step_residual,
    };
    let mut measured = eigenvector(power, work, &mut apply)?;
    measured.sweeps = 2 * measured.sweeps + u64::from(wants_hubs);
    Ok(Some(measured))
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
