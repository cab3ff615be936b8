//! SALSA (R. Lempel, S. Moran, "The stochastic approach for link-structure analysis", WWW 2000): authorities that a surfer
//! reaches who goes a link back and a link forward by turns, from any authority.
//!
//! From authority j the surfer goes to a node i that links to it, by the link's part of what links to j weigh, and on to one
//! of the targets of i, by the link's part of its row. This walk is reversible, so its limit has a closed form. Let authorities that a
//! node links to together be of one component, in(j) what links to j weigh, W what all links of j's component weigh, and a and
//! A the numbers of authorities, nodes with links to them, in the component and in all:
//!
//! ```text
//! x_j = a/A  in(j)/W
//! ```
//!
//! for a surfer who begins at any authority with equal chances. So this is exact, by one sweep, in which sets of nodes are joined. In a graph
//! in one component it is in-degree by weight; it has none of the drift of HITS.

use super::{Accuracy, MeasureSpec, Measured, no_links};
use crate::Result;
use crate::graph::Links;
use crate::rows::Rows;

pub(super) const MEASURE: MeasureSpec = MeasureSpec {
    name: "salsa",
    about: "SALSA: reached by going links back and forth; exact",
    uses: &[],
    bytes: |nodes, _, _| nodes * (8 + 4 + 4 + 8),
    compute: |rows, _, _| salsa(rows).map(Some),
};

fn salsa(rows: &dyn Rows) -> Result<Measured> {
    let nodes = rows.pages() as usize;
    let mut scores = vec![0.0; nodes];
    let mut sets = Sets((0..nodes as u32).collect());
    rows.sweep(&mut |row| {
        let mut first = None;
        Links::from(row).each(|target, weight: u64| {
            if weight > 0 {
                scores[target as usize] += weight as f64;
                sets.join(*first.get_or_insert(target), target);
            }
        });
        Ok(())
    })?;
    let mut components = vec![(0u32, 0.0); nodes];
    let mut authorities = 0u32;
    for (node, &weight) in (0..).zip(&scores) {
        if weight > 0.0 {
            authorities += 1;
            let (count, sum) = &mut components[sets.of(node) as usize];
            *count += 1;
            *sum += weight;
        }
    }
    if authorities == 0 {
        return Err(no_links("SALSA"));
    }
    for (node, score) in (0..).zip(&mut scores) {
        if *score > 0.0 {
            let (count, sum) = components[sets.of(node) as usize];
            *score = f64::from(count) / f64::from(authorities) * (*score / sum);
        }
    }
    Ok(Measured {
        scores,
        accuracy: Accuracy::Exact,
        reached: true,
        sweeps: 1,
    })
}

/// Sets of nodes: each node's next towards the least of its set, which has itself.
struct Sets(Vec<u32>);

impl Sets {
    /// The least node of the set of `node`. Paths are halved on the way.
    fn of(&mut self, mut node: u32) -> u32 {
        let next = &mut self.0;
        while next[node as usize] != node {
            let over = next[next[node as usize] as usize];
            next[node as usize] = over;
            node = over;
        }
        node
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.of(one), self.of(other));
        self.0[one.max(other) as usize] = one.min(other);
    }
}
