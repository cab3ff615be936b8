//! The adjacency matrix and the undirected matrix of the OPIC paper (section 1): a node is important if important nodes
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

use super::eigenvector::{PowerIteration, Step, eigenvector, normalise, uniform};
use super::{MeasureSpec, Measured, ScoreKind, Uses, Work};
use crate::Result;
use crate::graph::{Graph, Links};
use crate::metrics::sum::CompensatedSum;
use crate::rows::Rows;

pub(super) const ADJACENCY: MeasureSpec = MeasureSpec {
    name: "adjacency",
    about: "linked by important pages, which hand all they have to each; with a residual",
    scores: ScoreKind::Share,
    uses: &[Uses::Until],
    bytes: |nodes, _, _| 16 * nodes,
    compute: |work| {
        let rows = work.rows;
        with_virtual_page(work, &mut |x, next| {
            rows.sweep(&mut |row| {
                let own = x[row.page as usize];
                row.links().for_each(|target| next[target as usize] += own);
                Ok(())
            })?;
            Ok(())
        })
    },
};

pub(super) const UNDIRECTED: MeasureSpec = MeasureSpec {
    name: "undirected",
    about: "linked with important pages, in either direction; with a residual",
    scores: ScoreKind::Share,
    uses: &[Uses::Until],
    bytes: |nodes, links, _| nodes * (16 + 40) + links * 16,
    compute: |work| {
        let neighbours = neighbours(work.rows)?;
        with_virtual_page(work, &mut |x, next| {
            for (next, row) in next.iter_mut().zip(neighbours.rows()) {
                *next += row.iter().map(|&near| x[near as usize]).sum::<f64>();
            }
            Ok(())
        })
    },
};

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
    let power = PowerIteration {
        name: "an eigenvector",
        start: uniform(nodes + 1),
        shifted: true,
        residual,
    };
    let mut measured = eigenvector(power, work, &mut apply)?;
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
