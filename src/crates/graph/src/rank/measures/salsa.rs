//! SALSA (R. Lempel, S. Moran, "The stochastic approach for link-structure analysis", WWW 2000): authorities reached by
//! a surfer who alternately follows a link backwards and a link forwards, starting from any authority.
//!
//! From authority j the surfer goes to a node i that links to it, with probability proportional to the weight of the
//! link, and on to one of the targets of i, likewise. This walk is reversible, so its limit has a closed form. Two
//! authorities to which a node links are in one component. With in(j) the weight of all links to j, W the weight of all
//! links of j's component, and a and A the numbers of authorities (nodes with incoming links) in the component and in
//! total,
//!
//! ```text
//! x_j = a/A  in(j)/W
//! ```
//!
//! for a surfer who starts at a uniformly random authority. So one sweep that joins sets of nodes gives the exact
//! result. In a graph with one component it is the weighted in-degree; it does not have the drift of HITS.

use super::{MeasureSpec, Measured, ScoreKind, no_links};
use crate::Result;
use crate::rows::Rows;

pub(super) const MEASURE: MeasureSpec = MeasureSpec {
    name: "salsa",
    about: "SALSA: reached by going links back and forth; exact",
    scores: ScoreKind::Share,
    uses: &[],
    bytes: |nodes, _, _| nodes * (8 + 4 + 4 + 8),
    compute: |work| salsa(work.rows).map(Some),
};

fn salsa(rows: &dyn Rows) -> Result<Measured> {
    let nodes = rows.pages() as usize;
    let mut scores = vec![0.0; nodes];
    let mut sets = Sets((0..nodes as u32).collect());
    rows.sweep(&mut |row| {
        let mut first = None;
        row.links.each(|target, weight: u64| {
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
    Ok(Measured::exact(scores))
}

/// Disjoint sets of nodes: each node refers to a smaller one of its set, the smallest to itself.
struct Sets(Vec<u32>);

impl Sets {
    /// Returns the smallest node of the set of `node`, with path halving.
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
