//! **In-degree and out-degree**: how many nodes link to a node, and to how many it links.
//!
//! A link counts once, whatever it weighs, if it weighs anything. Both are exact, and sum to the number of links.
//! In-degree is the first estimate of importance (J. Cho, H. Garcia-Molina, L. Page, WWW 1998: "back-link count"), and
//! easy to forge: links of unknown pages count as much as links of important ones.
//!
//! **SALSA** (R. Lempel, S. Moran, "The stochastic approach for link-structure analysis", WWW 2000): authorities reached by
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

use super::{Measured, no_links};
use crate::Result;
use crate::rows::{Row, Rows};

pub(super) fn in_degree(rows: &dyn Rows) -> Result<Option<Measured>> {
    degrees(rows, |row, degrees| {
        for target in row.links() {
            degrees[target as usize] += 1.0;
        }
    })
}

pub(super) fn out_degree(rows: &dyn Rows) -> Result<Option<Measured>> {
    degrees(rows, |row, degrees| {
        degrees[row.page as usize] = row.degree() as f64;
    })
}

fn degrees(rows: &dyn Rows, add: impl Fn(Row<'_>, &mut [f64])) -> Result<Option<Measured>> {
    let mut scores = vec![0.0; rows.pages() as usize];
    rows.sweep(&mut |row| {
        add(row, &mut scores);
        Ok(())
    })?;
    Ok(Some(Measured::exact(scores)))
}

pub(super) fn salsa(rows: &dyn Rows) -> Result<Option<Measured>> {
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
    Ok(Some(Measured::exact(scores)))
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
