//! The undirected matrix of the OPIC paper (section 1): a node is important if important nodes link to it, or it links
//! to important nodes.
//!
//! L is 1 for nodes i and j where there is a link from i to j, or from j to i, or both, whatever its weight. The
//! virtual page is as in [`adjacency`](super::adjacency):
//!
//! ```text
//! r x_j = sum over neighbours i of j of x_i  +  v        r v = sum of x
//! ```
//!
//! Links in both directions count once, so neighbours are held in memory: 8 bytes per link, and half as much in
//! addition during construction.

use super::adjacency::with_virtual_page;
use super::{MeasureSpec, ScoreKind, Uses, links};
use crate::Result;
use crate::graph::{Graph, Links};
use crate::rows::Rows;

pub(super) const MEASURE: MeasureSpec = MeasureSpec {
    name: "undirected",
    about: "linked with important pages, in either direction; with a residual",
    scores: ScoreKind::Share,
    uses: &[Uses::Until],
    bytes: |nodes, links, _| nodes * (16 + 40) + links * 16,
    compute: |rows, options, watch| {
        let neighbours = neighbours(rows)?;
        with_virtual_page(rows, options, watch, &mut |x, next| {
            for (next, row) in next.iter_mut().zip(neighbours.rows()) {
                *next += row.iter().map(|&near| x[near as usize]).sum::<f64>();
            }
            Ok(())
        })
    },
};

/// Returns the neighbours of each node, in either direction.
fn neighbours(rows: &dyn Rows) -> Result<Graph> {
    let to = links(rows)?;
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
