//! Links as rows of numbers in memory: one table for graphs, crawls and crawl orders.
//!
//! [`LinkRows`] has consecutive rows, read by row or transposed: 4 bytes per link and 8 per row, and a weight per link if
//! weights differ. [`LatestRows`] are the rows of a crawl, which come in any order and can be replaced: 20 to 28 bytes per
//! page. A new table removes replaced rows when they outweigh the live ones.

#[cfg(any(test, feature = "testing"))]
#[path = "tests/builder.rs"]
mod builder;
mod pairs;

use crate::rows::{Row, Rows, RowsVisitor, Stop};
use crate::{Error, Result};

#[cfg(any(test, feature = "testing"))]
pub use builder::GraphBuilder;
pub use pairs::{gcd, whole_numbers};

/// Directed graph: row `i` has the distinct targets of node `i`. A node with an empty row is dangling.
pub type Graph = LinkRows<u64>;

pub trait Weight: Copy {
    /// Weight of a link in a row without weights.
    const ONE: Self;

    fn value(self) -> f64;
}

impl Weight for u64 {
    const ONE: u64 = 1;

    fn value(self) -> f64 {
        self as f64
    }
}

impl Weight for f64 {
    const ONE: f64 = 1.0;

    fn value(self) -> f64 {
        self
    }
}

/// Links of one row: distinct targets `T` with weights `W`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Links<'a, W = u64, T = u32> {
    pub targets: &'a [T],
    /// Weight of each link; empty: [`Weight::ONE`].
    pub weights: &'a [W],
}

impl<'a, T> From<&'a [T]> for Links<'a, u64, T> {
    fn from(targets: &'a [T]) -> Links<'a, u64, T> {
        Links {
            targets,
            weights: &[],
        }
    }
}

impl<'a, W: Weight, T: Copy> Links<'a, W, T> {
    pub const NONE: Links<'a, W, T> = Links {
        targets: &[],
        weights: &[],
    };

    pub fn new(targets: &'a [T], weights: &'a [W]) -> Links<'a, W, T> {
        Links { targets, weights }
    }

    pub fn iter(self) -> impl Iterator<Item = (T, W)> + 'a {
        let weights = self.weights.iter().copied();
        let weights = weights.chain(std::iter::repeat(W::ONE));
        self.targets.iter().copied().zip(weights)
    }

    pub fn each(self, mut visit: impl FnMut(T, W)) {
        let targets = self.targets.iter();
        if self.weights.is_empty() {
            targets.for_each(|&target| visit(target, W::ONE));
        } else {
            let links = targets.zip(self.weights);
            links.for_each(|(&target, &weight)| visit(target, weight));
        }
    }

    /// Returns the sum of the weights; without weights, the number of links.
    pub fn weight(self) -> f64 {
        match self.weights {
            [] => self.targets.len() as f64,
            weights => weights.iter().map(|weight| weight.value()).sum(),
        }
    }
}

/// Links whose weights sum to less than 2^63. A target of weight 0 is not linked.
impl<'a, T: Copy> Links<'a, u64, T> {
    pub fn linked(self) -> impl Iterator<Item = (T, u64)> + 'a {
        self.iter().filter(|&(_, weight)| weight > 0)
    }

    /// Returns the number of targets that are linked: the out-degree.
    pub fn degree(self) -> usize {
        match self.weights {
            [] => self.targets.len(),
            weights => weights.iter().filter(|&&weight| weight > 0).count(),
        }
    }

    /// Returns the sum of all weights; without weights, the number of links.
    pub fn total(self) -> u64 {
        match self.weights {
            [] => self.targets.len() as u64,
            weights => weights.iter().sum(),
        }
    }
}

/// Rows of links; a row is never changed once added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkRows<W = u64> {
    /// Ends of the rows: row `i` is `ends[i - 1]..ends[i]` of the links; row 0 starts at 0.
    ends: Vec<usize>,
    targets: Vec<u32>,
    /// Weight of each link; empty if no row has weights.
    weights: Vec<W>,
}

/// Returns the start of each node's row, with an entry for each occurrence of the node in `of`, and their number.
fn starts(nodes: usize, of: &[u32]) -> (Vec<usize>, usize) {
    let mut ends = vec![0; nodes];
    for &node in of {
        ends[node as usize] += 1;
    }
    let sum = to_starts(&mut ends);
    (ends, sum)
}

/// Replaces the length of each row by its start. Returns the sum of the lengths.
fn to_starts(lens: &mut [usize]) -> usize {
    let mut sum = 0;
    for len in lens {
        sum += std::mem::replace(len, sum);
    }
    sum
}

impl<W: Weight> LinkRows<W> {
    pub(crate) fn with_room(rows: usize, links: usize, weights: usize) -> LinkRows<W> {
        LinkRows {
            ends: Vec::with_capacity(rows),
            targets: Vec::with_capacity(links),
            weights: Vec::with_capacity(weights),
        }
    }

    pub fn nodes(&self) -> usize {
        self.ends.len()
    }

    pub fn links(&self) -> usize {
        self.targets.len()
    }

    pub fn bytes(&self) -> u64 {
        let links = size_of_val(&self.targets[..]) + size_of_val(&self.weights[..]);
        (links + size_of_val(&self.ends[..])) as u64
    }

    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.all().map(|links| links.targets)
    }

    pub fn row(&self, row: usize) -> &[u32] {
        self.at(row).targets
    }

    pub fn all(&self) -> impl ExactSizeIterator<Item = Links<'_, W>> {
        (0..self.ends.len()).map(|row| self.at(row))
    }

    #[inline]
    pub fn at(&self, row: usize) -> Links<'_, W> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        let row = start..self.ends[row];
        Links {
            weights: self.weights.get(row.clone()).unwrap_or_default(),
            targets: &self.targets[row],
        }
    }

    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// Adds a row. The first one with weights assigns weights to the links before it.
    pub fn push(&mut self, links: Links<'_, W>) {
        if !links.weights.is_empty() {
            self.weights.resize(self.targets.len(), W::ONE);
        }
        self.targets.extend_from_slice(links.targets);
        self.weights.extend_from_slice(links.weights);
        if !self.weights.is_empty() {
            self.weights.resize(self.targets.len(), W::ONE);
        }
        self.end();
    }

    /// Adds a link to the current row, which [`LinkRows::end`] ends. Either all links have a weight, or none.
    pub fn link(&mut self, target: u32, weight: Option<W>) {
        self.targets.push(target);
        self.weights.extend(weight);
    }

    /// Ends the row of the links added since the last call.
    pub fn end(&mut self) {
        self.ends.push(self.targets.len());
    }

    /// Returns for each of `nodes` targets the rows that link to it, ascending, with the weights of the links.
    pub fn transposed(&self, nodes: usize) -> LinkRows<W> {
        let (mut ends, sum) = starts(nodes, self.targets());
        let mut targets = vec![0; sum];
        let mut weights = vec![W::ONE; self.weights.len()];
        for (from, row) in self.all().enumerate() {
            for (target, weight) in row.iter() {
                let at = &mut ends[target as usize];
                targets[*at] = from as u32;
                if let Some(place) = weights.get_mut(*at) {
                    *place = weight;
                }
                *at += 1;
            }
        }
        LinkRows {
            ends,
            targets,
            weights,
        }
    }
}

impl<'a> Links<'a> {
    /// Returns the row of a page that exists, with these links.
    pub fn of(self, page: u32) -> Row<'a> {
        Row {
            page,
            gone: false,
            links: self,
        }
    }
}

impl Graph {
    /// Returns rows as a graph in memory, with self-links, and without the weights of links. Reads the rows twice, so
    /// that the graph is all the memory it takes.
    pub fn of_rows(rows: &dyn Rows) -> Result<Graph> {
        let mut ends = vec![0; rows.pages() as usize];
        rows.sweep(&mut |row| {
            ends[row.page as usize] = row.degree();
            Ok(())
        })?;
        let mut targets = vec![0; to_starts(&mut ends)];
        rows.sweep(&mut |row| {
            let end = &mut ends[row.page as usize];
            for target in row.links() {
                let place = targets.get_mut(*end);
                *place.ok_or_else(|| Error::internal("rows differ between two sweeps"))? = target;
                *end += 1;
            }
            Ok(())
        })?;
        Ok(LinkRows {
            ends,
            targets,
            weights: Vec::new(),
        })
    }
}

/// Converts a page number; fails from 2^32 - 1 on.
pub fn node(page: u64) -> Result<u32> {
    match u32::try_from(page) {
        Ok(node) if node < u32::MAX => Ok(node),
        _ => Err(Error::Unsupported(format!(
            "page {page}: a graph in memory holds at most {} pages",
            u32::MAX
        ))),
    }
}

/// Every node has a row, in node order.
impl Rows for Graph {
    fn pages(&self) -> u64 {
        self.nodes() as u64
    }

    fn links(&self) -> u64 {
        Graph::links(self) as u64
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        let mut rows = (0..).zip(self.all());
        rows.try_for_each(|(page, links)| visit(&[links.of(page)]))
    }
}

/// Smallest number of links or rows that are kept before replaced ones are removed.
const LEAST: usize = 1 << 16;

/// Rows of pages as of their last visits, in the order of first visits.
#[derive(Debug, Default)]
pub struct LatestRows {
    pages: u64,
    /// Rows of all visits since the last `compact`.
    log: Graph,
    /// Position of each page's row in the log, and whether the page was found gone; `None` without a row.
    rows: Vec<Option<(u32, bool)>>,
    /// Number of links in all live rows.
    live: usize,
    visited: Vec<u32>,
}

impl LatestRows {
    pub fn grow(&mut self, pages: u64) {
        self.pages = self.pages.max(pages);
    }

    /// Sets the row of a visited page, replacing an earlier one. The page and all targets must be known.
    pub fn set(&mut self, page: u32, gone: bool, links: Links<'_>) {
        let at = page as usize;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, None);
        }
        self.live += links.targets.len();
        let row = (self.log.nodes() as u32, gone);
        self.log.push(links);
        match self.rows[at].replace(row) {
            None => self.visited.push(page),
            Some((replaced, _)) => self.live -= self.log.row(replaced as usize).len(),
        }
        if self.log.links() / 2 > self.live.max(LEAST)
            || self.log.nodes() / 2 > self.rows.len().max(LEAST)
            || self.log.nodes() == u32::MAX as usize
        {
            self.compact();
        }
    }

    fn compact(&mut self) {
        self.log = self.table(self.rows.len());
        for (page, row) in (0..).zip(&mut self.rows) {
            if let Some((at, _)) = row {
                *at = page;
            }
        }
    }

    pub fn get(&self, page: u32) -> Links<'_> {
        match self.rows.get(page as usize) {
            Some(Some((at, _))) => self.log.at(*at as usize),
            _ => Links::NONE,
        }
    }

    /// Returns the memory of the rows and of a table made from them together, in bytes.
    pub fn bytes(&self) -> u64 {
        let of_page = size_of::<Option<(u32, bool)>>() + size_of::<u32>() + size_of::<usize>();
        let table = self.live * size_of::<u32>() + self.rows.len() * of_page;
        let weights = usize::from(self.log.is_weighted()) * self.live * size_of::<u64>();
        self.log.bytes() + (table + weights) as u64
    }

    fn table(&self, pages: usize) -> Graph {
        let weights = if self.log.is_weighted() { self.live } else { 0 };
        let mut table = Graph::with_room(pages, self.live, weights);
        (0..pages as u32).for_each(|page| table.push(self.get(page)));
        table
    }

    pub fn into_table(self) -> Graph {
        self.table(self.rows.len().max(self.pages as usize))
    }
}

impl Rows for LatestRows {
    fn pages(&self) -> u64 {
        self.pages
    }

    fn links(&self) -> u64 {
        self.live as u64
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        self.visited.iter().try_for_each(|&page| {
            let (at, gone) = self.rows[page as usize].unwrap_or_default();
            let row = self.log.at(at as usize).of(page);
            visit(&[Row { gone, ..row }])
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::graph::GraphBuilder;
    use crate::model::SelfLinks;

    /// Returns the links of each row by their ends, with weights summed.
    fn sums(links: impl Iterator<Item = (u32, u32, u64)>) -> BTreeMap<(u32, u32), u64> {
        let mut sums = BTreeMap::new();
        links.for_each(|(from, to, weight)| *sums.entry((from, to)).or_default() += weight);
        sums
    }

    fn links(table: &LinkRows) -> impl Iterator<Item = (u32, u32, u64)> {
        let rows = (0..).zip(table.all());
        rows.flat_map(|(from, row)| row.iter().map(move |(to, weight)| (from, to, weight)))
    }

    fn table() -> impl Strategy<Value = LinkRows> {
        let row = prop::collection::vec((0u32..9, 1u64..5), 0..6);
        prop::collection::vec((row, any::<bool>()), 9).prop_map(|rows| {
            let mut table = LinkRows::default();
            for (row, weighted) in rows {
                let (targets, mut weights): (Vec<u32>, Vec<u64>) = row.into_iter().unzip();
                if !weighted {
                    weights.clear();
                }
                table.push(Links::new(&targets, &weights));
                let row = table.at(table.nodes() - 1);
                assert!(weighted || row.iter().all(|(_, weight)| weight == 1));
            }
            table
        })
    }

    proptest! {
        #[test]
        fn a_transposed_table_has_the_same_links_the_other_way(table in table()) {
            let there = table.transposed(9);
            let back = links(&there).map(|(to, from, weight)| (from, to, weight));
            prop_assert_eq!(sums(back), sums(links(&table)));
            prop_assert!(there.rows().all(|row| row.is_sorted()));
            prop_assert_eq!(there.nodes(), 9);
        }
    }

    #[test]
    fn a_graph_is_swept_in_node_order() {
        let mut builder = GraphBuilder::new(SelfLinks::Drop);
        builder.row(2, [0, 1]);
        builder.row(0, [2]);
        let graph = builder.build();
        let mut rows = Vec::new();
        graph
            .sweep(&mut |row| {
                rows.push((row.page, row.targets.to_vec()));
                Ok(())
            })
            .unwrap();
        assert_eq!(rows, [(0, vec![2]), (1, vec![]), (2, vec![0, 1])]);
        assert_eq!((Rows::pages(&graph), Rows::links(&graph)), (3, 3));
    }

    #[test]
    fn an_error_ends_a_sweep() {
        let mut builder = GraphBuilder::new(SelfLinks::Drop);
        builder.grow(3);
        let graph = builder.build();
        let mut seen = 0;
        let swept = graph.sweep(&mut |row| {
            seen += 1;
            match row.page {
                1 => Err(crate::Error::internal("it broke").into()),
                _ => Ok(()),
            }
        });
        assert!(swept.is_err());
        assert_eq!(seen, 2);
    }

    #[test]
    fn a_sweep_stops_when_it_has_seen_enough() {
        let mut builder = GraphBuilder::new(SelfLinks::Drop);
        builder.row(2, [0, 1]);
        let graph = builder.build();
        let mut seen = Vec::new();
        let whole = graph.sweep(&mut |row| {
            seen.push(row.page);
            match row.page {
                1 => Err(Stop::Enough),
                _ => Ok(()),
            }
        });
        assert!(!whole.unwrap());
        assert_eq!(seen, [0, 1]);
        assert!(graph.sweep(&mut |_| Ok(())).unwrap());
    }
}
