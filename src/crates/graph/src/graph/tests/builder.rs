//! Graphs of rows as tests write them, by the link rules of the engine: a repeated target counts once, self-links are
//! dropped unless kept by option, and the last row of a page counts.

use crate::graph::{Graph, LatestRows, Links};
use crate::model::SelfLinks;

/// Collects rows in any order and builds a [`Graph`].
///
/// Ids must be dense: memory is taken for every id up to the largest.
#[derive(Debug)]
pub struct GraphBuilder {
    self_links: SelfLinks,
    rows: LatestRows,
    links: Vec<(u32, u64)>,
}

impl GraphBuilder {
    pub fn new(self_links: SelfLinks) -> GraphBuilder {
        GraphBuilder {
            self_links,
            rows: LatestRows::default(),
            links: Vec::new(),
        }
    }

    /// Makes nodes 0 to `count - 1` exist.
    pub fn grow(&mut self, count: usize) {
        self.rows.grow(count as u64);
    }

    /// Sets the row of `source`, replacing an earlier one. Targets may repeat.
    pub fn row(&mut self, source: u32, targets: impl IntoIterator<Item = u32>) {
        self.set(source, targets.into_iter().map(|target| (target, 1)), false);
    }

    /// Sets the row of `source` with weighted links: of a repeated target the largest weight counts; a target of weight
    /// 0 is a node, but not linked.
    pub fn weighted_row(&mut self, source: u32, links: impl IntoIterator<Item = (u32, u64)>) {
        self.set(source, links.into_iter(), true);
    }

    fn set(&mut self, source: u32, links: impl Iterator<Item = (u32, u64)>, weighted: bool) {
        let keep = self.self_links == SelfLinks::Keep;
        self.links.clear();
        self.links.extend(links);
        self.links
            .sort_unstable_by_key(|&(target, weight)| (target, std::cmp::Reverse(weight)));
        self.links.dedup_by_key(|link| link.0);
        let last = self.links.last().map_or(0, |link| link.0 as usize + 1);
        self.grow(last.max(source as usize + 1));
        self.links
            .retain(|&(target, weight)| weight > 0 && (keep || target != source));
        let (targets, mut weights): (Vec<u32>, Vec<u64>) = self.links.iter().copied().unzip();
        if !weighted {
            weights.clear();
        }
        self.rows.set(source, false, Links::new(&targets, &weights));
    }

    pub fn build(self) -> Graph {
        self.rows.into_table()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::node;
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
        }
    }

    #[test]
    fn no_rows_no_nodes() {
        let graph = GraphBuilder::new(SelfLinks::Drop).build();
        assert_eq!((graph.nodes(), graph.links()), (0, 0));
    }

    #[test]
    fn page_numbers_are_checked() {
        assert_eq!(node(u64::from(u32::MAX) - 1).unwrap(), u32::MAX - 1);
        assert!(node(u64::from(u32::MAX)).is_err());
        assert!(node(1 << 32).is_err());
    }

    /// Rows replaced many times: the arena is bounded and the last rows remain.
    #[test]
    fn replaced_rows_are_removed() {
        let mut builder = GraphBuilder::new(SelfLinks::Drop);
        for round in 0..300u32 {
            for node in 0..10 {
                builder.row(node, (0..1000).map(|t| 10 + (t * 7 + round + node) % 5000));
                assert!(builder.rows.log.links() <= (2 << 16) + 2000);
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
                    builder.rows.compact();
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
