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
use super::{MeasureOptions, MeasureSpec, Measured, ScoreKind, Uses};
use crate::Result;
use crate::graph::Links;
use crate::rank::settle::Watch;
use crate::rows::Rows;

pub(super) const AUTHORITIES: MeasureSpec = MeasureSpec {
    name: "hits-authorities",
    about: "HITS: linked by good hubs; with a residual",
    scores: ScoreKind::Share,
    uses: &[Uses::Until],
    bytes: |nodes, _, _| 24 * nodes,
    compute: |rows, options, watch| hits(rows, options, watch, false),
};

pub(super) const HUBS: MeasureSpec = MeasureSpec {
    name: "hits-hubs",
    about: "HITS: links to good authorities, as lists of links do; with a residual",
    scores: ScoreKind::Share,
    uses: &[Uses::Until],
    bytes: |nodes, _, _| 24 * nodes,
    compute: |rows, options, watch| hits(rows, options, watch, true),
};

fn hits(
    rows: &dyn Rows,
    options: &MeasureOptions,
    watch: &mut dyn Watch,
    wants_hubs: bool,
) -> Result<Option<Measured>> {
    let nodes = rows.pages() as usize;
    let mut start = uniform(nodes);
    let mut other = vec![0.0; nodes];
    if wants_hubs {
        gather(rows, &start, &mut other)?;
        normalise(&mut other);
        std::mem::swap(&mut start, &mut other);
    }
    let mut apply = |x: &[f64], next: &mut [f64]| {
        if wants_hubs {
            scatter(rows, x, &mut other)?;
            normalise(&mut other);
            return gather(rows, &other, next);
        }
        gather(rows, x, &mut other)?;
        normalise(&mut other);
        scatter(rows, &other, next)
    };
    let power = PowerIteration {
        name: "HITS",
        start,
        shifted: false,
        until: options.until,
        residual: step_residual,
    };
    let mut measured = eigenvector(power, rows, watch, &mut apply)?;
    measured.sweeps = 2 * measured.sweeps + u64::from(wants_hubs);
    Ok(Some(measured))
}

/// Computes A^T x: the sum of x over the pages that link to each page.
fn scatter(rows: &dyn Rows, x: &[f64], out: &mut [f64]) -> Result<()> {
    out.fill(0.0);
    rows.sweep(&mut |row| {
        let hub = x[row.page as usize];
        Links::from(row).each(|target, weight: u64| out[target as usize] += hub * weight as f64);
        Ok(())
    })?;
    Ok(())
}

/// Computes A x: the sum of x over the pages that each page links to.
fn gather(rows: &dyn Rows, x: &[f64], out: &mut [f64]) -> Result<()> {
    out.fill(0.0);
    rows.sweep(&mut |row| {
        let sum = &mut out[row.page as usize];
        Links::from(row).each(|target, weight: u64| *sum += x[target as usize] * weight as f64);
        Ok(())
    })?;
    Ok(())
}
