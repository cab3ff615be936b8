//! The adjacency matrix of the OPIC paper (section 1): a node is important if important nodes link to it.
//!
//! L is 1 where there is a link, whatever its weight: a node gives all of its importance to each of its targets,
//! instead of dividing it among them as in PageRank. The virtual page, to which every node links and which links to
//! every node, makes the graph strongly connected, so that the eigenvector is unique. With r the largest eigenvalue
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
use super::{MeasureOptions, MeasureSpec, Measured, ScoreKind, Uses};
use crate::Result;
use crate::metrics::sum::CompensatedSum;
use crate::rank::settle::Watch;
use crate::rows::Rows;

pub(super) const MEASURE: MeasureSpec = MeasureSpec {
    name: "adjacency",
    about: "linked by important pages, which hand all they have to each; with a residual",
    scores: ScoreKind::Share,
    uses: &[Uses::Until],
    bytes: |nodes, _, _| 16 * nodes,
    compute: |rows, options, watch| {
        with_virtual_page(rows, options, watch, &mut |x, next| {
            rows.sweep(&mut |row| {
                let own = x[row.page as usize];
                row.parts()
                    .for_each(|(target, _)| next[target as usize] += own);
                Ok(())
            })?;
            Ok(())
        })
    },
};

/// Computes the eigenvector of links and the virtual page. `add` adds to the second vector what the first passes on
/// over links.
pub(super) fn with_virtual_page(
    rows: &dyn Rows,
    options: &MeasureOptions,
    watch: &mut dyn Watch,
    add: &mut Step<'_>,
) -> Result<Option<Measured>> {
    let nodes = rows.pages() as usize;
    let mut apply = |x: &[f64], next: &mut [f64]| {
        next[..nodes].fill(x[nodes]);
        next[nodes] = x[..nodes]
            .iter()
            .copied()
            .collect::<CompensatedSum>()
            .value();
        add(&x[..nodes], &mut next[..nodes])
    };
    let power = PowerIteration {
        name: "an eigenvector",
        start: uniform(nodes + 1),
        shifted: true,
        until: options.until,
        residual,
    };
    let mut measured = eigenvector(power, rows, watch, &mut apply)?;
    measured.scores.truncate(nodes);
    normalise(&mut measured.scores);
    Ok(Some(measured))
}

/// Returns the residual of the nodes' scores; in both vectors the virtual page follows the nodes. See the module
/// documentation.
fn residual(x: &[f64], step: &[f64]) -> f64 {
    let ([x @ .., paid], [step @ .., all]) = (x, step) else {
        return 0.0;
    };
    // The virtual page pays all nodes alike and receives the sum of the nodes.
    let linked = || step.iter().map(|step| (step - paid) / all);
    let sum = linked().collect::<CompensatedSum>().value();
    let r = (sum + (sum * sum + 4.0 * x.len() as f64).sqrt()) / 2.0;
    let apart = x.iter().zip(linked());
    let apart = apart.map(|(x, linked)| ((linked + 1.0 / r) / r - x / all).abs());
    apart.collect::<CompensatedSum>().value()
}
