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
//! The residual is that of the returned vector, ||L x/||L x|| - x|| in L1, without s, or the one that a measure defines.
//!
//! **Hubs and authorities** (J. Kleinberg, "Authoritative sources in a hyperlinked environment", 1998): a good hub links to
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
//!
//! **The adjacency matrix and the undirected matrix** of the OPIC paper (section 1): a node is important if important nodes
//! link to it, or also if it links to important nodes.
//!
//! L is 1 where there is a link, whatever its weight: a node gives all of its importance to each of its targets,
//! instead of dividing it among them as in PageRank. In the undirected matrix L is 1 for nodes i and j where there is a
//! link from i to j or from j to i. Links in both directions count once, so neighbours are held in memory: 8 bytes per
//! link, and as many again during construction.
//!
//! The virtual page, to which every node links and which links to every node, makes the graph strongly connected, so
//! that the eigenvector is unique. With r the largest eigenvalue
//!
//! ```text
//! r x_j = sum over links i -> j of x_i  +  v        r v = sum of x
//! ```
//!
//! Without the virtual page this is eigenvector centrality. Scores sum to 1 without the virtual page; then v = 1/r, and
//! with A x the sums over links, the residual of scores x in the equation above is
//!
//! ```text
//! ||(A x + 1/r)/r - x||_1      r = (a + sqrt(a^2 + 4n))/2,  a = sum of A x, so that the step sums to 1
//! ```

use super::{Accuracy, Measured, Work, no_links};
use crate::Result;
use crate::graph::{Graph, Links};
use crate::metrics::sum::CompensatedSum;
use crate::rows::Rows;

/// Number of steps without a gain of a thousandth after which iteration ends: 64-bit numbers resolve no more.
const PATIENCE: u32 = 64;

/// Writes L x into the second vector, or adds it, where x is the first.
type Step<'s> = dyn FnMut(&[f64], &mut [f64]) -> Result<()> + 's;

fn uniform(len: usize) -> Vec<f64> {
    vec![1.0 / len as f64; len]
}

/// Returns ||L x/||L x|| - x|| given x, which sums to 1, and L x.
fn step_residual(x: &[f64], step: &[f64]) -> f64 {
    let norm = CompensatedSum::of(step.iter().copied());
    CompensatedSum::of(x.iter().zip(step).map(|(x, step)| (step / norm - x).abs()))
}

/// Runs the iteration from `x`, with s if `shifted`. `apply` writes L x for a vector x, and `residual` is that of x,
/// given x and L x, neither of them 0. The scores are the eigenvector, and sum to 1. Fails with
/// [`Error::Unsupported`](crate::Error::Unsupported) with the `name` of the measure if L is 0.
fn eigenvector(
    work: &mut Work<'_>,
    name: &str,
    mut x: Vec<f64>,
    shifted: bool,
    residual: fn(&[f64], &[f64]) -> f64,
    apply: &mut Step<'_>,
) -> Result<Measured> {
    let mut next = vec![0.0; x.len()];
    let mut best = (f64::INFINITY, 0);
    let mut steps = 0;
    loop {
        apply(&x, &mut next)?;
        steps += 1;
        work.swept(steps);
        let norm = CompensatedSum::of(next.iter().copied());
        if norm == 0.0 {
            return Err(no_links(name));
        }
        let residual = residual(&x, &next);
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
        let shift = if shifted { norm / 2.0 } else { 0.0 };
        let scale = 1.0 / (norm + shift);
        x.iter_mut()
            .zip(&next)
            .for_each(|(x, next)| *x = (next + shift * *x) * scale);
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

pub(super) fn hits(work: &mut Work<'_>, wants_hubs: bool) -> Result<Option<Measured>> {
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
    let mut measured = eigenvector(work, "HITS", start, false, step_residual, &mut apply)?;
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

pub(super) fn adjacency(work: &mut Work<'_>) -> Result<Option<Measured>> {
    let rows = work.rows;
    with_virtual_page(work, &mut |x, next| {
        let whole = rows.sweep(&mut |row| {
            let own = x[row.page as usize];
            row.links().for_each(|target| next[target as usize] += own);
            Ok(())
        });
        whole.map(drop)
    })
}

pub(super) fn undirected(work: &mut Work<'_>) -> Result<Option<Measured>> {
    let neighbours = neighbours(work.rows)?;
    with_virtual_page(work, &mut |x, next| {
        for (next, row) in next.iter_mut().zip(neighbours.rows()) {
            *next += row.iter().map(|&near| x[near as usize]).sum::<f64>();
        }
        Ok(())
    })
}

fn neighbours(rows: &dyn Rows) -> Result<Graph> {
    let to = Graph::of_rows(rows, false)?;
    let from = to.transposed(rows.pages() as usize);
    let mut both = Graph::default();
    let mut near = Vec::new();
    for (to, from) in to.rows().zip(from.rows()) {
        near.clear();
        near.extend(to.iter().chain(from));
        near.sort_unstable();
        near.dedup();
        both.push(Links::new(&near, &[]));
    }
    Ok(both)
}

/// Computes the eigenvector of links and the virtual page; `add` adds what the first vector passes on to the second.
fn with_virtual_page(work: &mut Work<'_>, add: &mut Step<'_>) -> Result<Option<Measured>> {
    let nodes = work.rows.pages() as usize;
    let mut apply = |x: &[f64], next: &mut [f64]| {
        next[..nodes].fill(x[nodes]);
        next[nodes] = CompensatedSum::of(x[..nodes].iter().copied());
        add(&x[..nodes], &mut next[..nodes])
    };
    let start = uniform(nodes + 1);
    let mut measured = eigenvector(work, "an eigenvector", start, true, residual, &mut apply)?;
    measured.scores.truncate(nodes);
    normalise(&mut measured.scores);
    Ok(Some(measured))
}

/// Returns the residual in the module's head; in both vectors the virtual page follows the nodes.
fn residual(x: &[f64], step: &[f64]) -> f64 {
    let ([x @ .., paid], [step @ .., all]) = (x, step) else {
        return 0.0;
    };
    // The virtual page pays all nodes alike and receives the sum of the nodes.
    let linked = || step.iter().map(|step| (step - paid) / all);
    let sum = CompensatedSum::of(linked());
    let r = (sum + (sum * sum + 4.0 * x.len() as f64).sqrt()) / 2.0;
    let apart = x.iter().zip(linked());
    CompensatedSum::of(apart.map(|(x, linked)| ((linked + 1.0 / r) / r - x / all).abs()))
}
