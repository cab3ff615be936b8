//! A graph in compressed sparse rows: 4 bytes a link and 8 a node; 12 a link where links have weights.
//!
//! Built from rows as they are read. Link rules are those of the engine: a repeated target
//! counts once, links from a page to itself are dropped unless kept by option, and when a page
//! is seen again its last row is the one that counts. A node without a row, or with an empty
//! one, is dangling.

mod rows;

use std::ops::Range;

use crate::model::SelfLinks;
use crate::{Error, Result};

/// A directed graph. Nodes are numbered 0 to `nodes() - 1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Row `i` is `targets[ends[i - 1]..ends[i]]`; row 0 starts at 0.
    ends: Vec<usize>,
    targets: Vec<u32>,
    /// Empty, or of each link the part of its row's weight that is its own.
    parts: Vec<f64>,
}

impl Graph {
    /// Number of nodes, dangling ones included.
    pub fn nodes(&self) -> usize {
        self.ends.len()
    }

    /// Number of links, all distinct.
    pub fn links(&self) -> usize {
        self.targets.len()
    }

    /// Number of nodes without links.
    pub fn dangling(&self) -> usize {
        self.rows().filter(|row| row.is_empty()).count()
    }

    /// The rows in node order: each node's distinct targets, ascending.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let row = &self.targets[start..end];
            start = end;
            row
        })
    }

    /// The distinct targets of one node, ascending.
    pub fn row(&self, node: usize) -> &[u32] {
        let start = if node == 0 { 0 } else { self.ends[node - 1] };
        &self.targets[start..self.ends[node]]
    }

    /// All links' targets, row after row.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// What each link is handed of all that its row hands on, row after row; none: all links of a row the
    /// same.
    pub fn parts(&self) -> &[f64] {
        &self.parts
    }
}

/// Collects rows in any order and makes a [`Graph`] of them.
///
/// Ids must be dense: space is taken for every id up to the largest. Rows that were replaced
/// are cleared away whenever they come to outweigh the live ones, so memory stays within twice
/// what the graph needs.
#[derive(Debug)]
pub struct GraphBuilder {
    self_links: SelfLinks,
    /// Where each node's row stands in `arena`.
    rows: Vec<Range<usize>>,
    arena: Vec<u32>,
    /// The weight of each link in `arena`; none: all are alike.
    weights: Vec<u64>,
    weighted: bool,
    scratch: Vec<(u32, u64)>,
    /// Length of all live rows.
    live: usize,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new(self_links: SelfLinks) -> GraphBuilder {
        GraphBuilder {
            self_links,
            rows: Vec::new(),
            arena: Vec::new(),
            weights: Vec::new(),
            weighted: false,
            scratch: Vec::new(),
            live: 0,
        }
    }

    /// An empty graph whose links have weights: for [`GraphBuilder::weighted_row`].
    pub fn weighted(self_links: SelfLinks) -> GraphBuilder {
        GraphBuilder {
            weighted: true,
            ..GraphBuilder::new(self_links)
        }
    }

    /// Converts a page number; refused from 2^32 - 1 on.
    pub fn node(page: u64) -> Result<u32> {
        match u32::try_from(page) {
            Ok(node) if node < u32::MAX => Ok(node),
            _ => Err(Error::Unsupported(format!(
                "page {page}: a graph in memory holds at most {} pages",
                u32::MAX
            ))),
        }
    }

    /// Makes sure that nodes 0 to `count - 1` exist.
    pub fn grow(&mut self, count: usize) {
        if count > self.rows.len() {
            self.rows.resize(count, 0..0);
        }
    }

    /// Sets the row of `source`, in place of an earlier one. Targets may repeat.
    pub fn row(&mut self, source: u32, targets: impl IntoIterator<Item = u32>) {
        let start = self.arena.len();
        let keep = self.self_links == SelfLinks::Keep;
        let mut largest = source;
        for target in targets {
            largest = largest.max(target);
            if keep || target != source {
                self.arena.push(target);
            }
        }
        self.grow(largest as usize + 1);
        self.arena[start..].sort_unstable();
        let end = start + dedup(&mut self.arena[start..]);
        self.arena.truncate(end);
        self.replace(source, start..end);
    }

    /// The same for a graph whose links have weights: of a target that repeats, the largest counts; one
    /// without weight is a node, but no link.
    pub fn weighted_row(&mut self, source: u32, links: impl IntoIterator<Item = (u32, u64)>) {
        debug_assert!(self.weighted);
        let start = self.arena.len();
        let keep = self.self_links == SelfLinks::Keep;
        self.scratch.clear();
        self.scratch.extend(links);
        let largest = self.scratch.iter().map(|link| link.0).max();
        self.grow(largest.unwrap_or(source).max(source) as usize + 1);
        let counts = |link: &(u32, u64)| link.1 > 0 && (keep || link.0 != source);
        self.scratch.retain(counts);
        self.scratch
            .sort_unstable_by_key(|&(target, weight)| (target, std::cmp::Reverse(weight)));
        self.scratch.dedup_by_key(|link| link.0);
        self.arena.extend(self.scratch.iter().map(|link| link.0));
        self.weights.extend(self.scratch.iter().map(|link| link.1));
        self.replace(source, start..self.arena.len());
    }

    /// The row just put at the arena's end is that of `source`.
    fn replace(&mut self, source: u32, Range { start, end }: Range<usize>) {
        // An empty row points at no place, so that clearing need not move it.
        let row = if start < end { start..end } else { 0..0 };
        let replaced = std::mem::replace(&mut self.rows[source as usize], row);
        self.live = self.live + (end - start) - replaced.len();
        if self.arena.len() / 2 > self.live.max(1 << 16) {
            self.compact();
        }
    }

    /// Moves the live rows together, in the order they stand.
    fn compact(&mut self) {
        let mut order: Vec<u32> = (0..self.rows.len() as u32)
            .filter(|&node| !self.rows[node as usize].is_empty())
            .collect();
        order.sort_unstable_by_key(|&node| self.rows[node as usize].start);
        let mut end = 0;
        for node in order {
            let row = &mut self.rows[node as usize];
            let len = row.len();
            self.arena.copy_within(row.clone(), end);
            if self.weighted {
                self.weights.copy_within(row.clone(), end);
            }
            *row = end..end + len;
            end += len;
        }
        self.arena.truncate(end);
        self.weights.truncate(end);
    }

    /// Bytes that the rows and the graph made of them take together.
    pub fn bytes(&self) -> u64 {
        let (target, weight) = (size_of::<u32>(), size_of::<u64>());
        let link = target + if self.weighted { weight } else { 0 };
        let node = size_of::<Range<usize>>() + size_of::<usize>();
        (self.rows.len() * node + (self.arena.len() + self.live) * link) as u64
    }

    /// The graph of all rows.
    pub fn build(self) -> Graph {
        let mut targets = Vec::with_capacity(self.live);
        let mut parts = Vec::new();
        let ends = self
            .rows
            .into_iter()
            .map(|row| {
                targets.extend_from_slice(&self.arena[row.clone()]);
                if self.weighted {
                    let weights = &self.weights[row];
                    let all: u64 = weights.iter().sum();
                    parts.extend(weights.iter().map(|&weight| weight as f64 / all as f64));
                }
                targets.len()
            })
            .collect();
        Graph {
            ends,
            targets,
            parts,
        }
    }
}

/// Moves the distinct values of a sorted slice to its front and returns their number.
fn dedup(sorted: &mut [u32]) -> usize {
    let mut len = 0;
    for i in 0..sorted.len() {
        if len == 0 || sorted[i] != sorted[len - 1] {
            sorted[len] = sorted[i];
            len += 1;
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn rows(graph: &Graph) -> Vec<Vec<u32>> {
        graph.rows().map(<[u32]>::to_vec).collect()
    }

    #[test]
    fn rows_follow_the_link_rules() {
        for (rule, first) in [
            (SelfLinks::Drop, vec![1, 3]),
            (SelfLinks::Keep, vec![0, 1, 3]),
        ] {
            let mut builder = GraphBuilder::new(rule);
            builder.row(2, [0, 1]);
            builder.row(0, [3, 1, 0, 3, 1]);
            builder.row(2, [4]); // The page again: its earlier row is gone.
            builder.grow(7);
            let graph = builder.build();
            let expected = [first, vec![], vec![4], vec![], vec![], vec![], vec![]];
            assert_eq!(rows(&graph), expected);
            assert_eq!(graph.dangling(), 5);
        }
    }

    #[test]
    fn no_rows_no_nodes() {
        let graph = GraphBuilder::new(SelfLinks::Drop).build();
        assert_eq!((graph.nodes(), graph.links(), graph.dangling()), (0, 0, 0));
    }

    #[test]
    fn page_numbers_are_checked() {
        assert_eq!(
            GraphBuilder::node(u64::from(u32::MAX) - 1).unwrap(),
            u32::MAX - 1
        );
        assert!(GraphBuilder::node(u64::from(u32::MAX)).is_err());
        assert!(GraphBuilder::node(1 << 32).is_err());
    }

    /// Rows replaced many times: the arena is bounded and the last rows stand.
    #[test]
    fn replaced_rows_are_cleared_away() {
        let mut builder = GraphBuilder::new(SelfLinks::Drop);
        for round in 0..300u32 {
            for node in 0..10 {
                builder.row(node, (0..1000).map(|t| 10 + (t * 7 + round + node) % 5000));
                assert!(builder.arena.len() <= (2 << 16) + 2000);
            }
        }
        for (node, row) in builder.build().rows().take(10).enumerate() {
            let expected: BTreeSet<u32> = (0..1000)
                .map(|t| 10 + (t * 7 + 299 + node as u32) % 5000)
                .collect();
            assert!(row.iter().copied().eq(expected));
        }
    }

    proptest! {
        #[test]
        fn agrees_with_sets(input in prop::collection::vec((0u32..20, prop::collection::vec(0u32..25, 0..12)), 0..40)) {
            let mut builder = GraphBuilder::new(SelfLinks::Drop);
            let mut expected: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            let mut nodes = 0;
            for (i, (source, targets)) in input.iter().enumerate() {
                if i % 5 == 4 {
                    builder.compact();
                }
                builder.row(*source, targets.iter().copied());
                let row = targets.iter().copied().filter(|t| t != source).collect();
                expected.insert(*source, row);
                nodes = nodes.max(*source + 1).max(targets.iter().max().map_or(0, |t| t + 1));
            }
            let graph = builder.build();
            prop_assert_eq!(graph.nodes(), nodes as usize);
            for (node, row) in graph.rows().enumerate() {
                let set = expected.remove(&(node as u32)).unwrap_or_default();
                prop_assert!(row.iter().copied().eq(set));
            }
        }
    }
}
