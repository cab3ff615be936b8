//! Rows of links that come in any order and can be replaced: 4 bytes per link and 20 to 28 per page, and weights as in
//! a table.
//!
//! A new table beside the old one removes replaced rows when they outweigh the live ones, so memory stays within three
//! times the need of the live rows.

use super::{Graph, Links};
use crate::Result;
use crate::rows::{Row, Rows, RowsVisitor, Stop};

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

    pub(super) fn compact(&mut self) {
        self.log = self.table(self.rows.len());
        for (page, row) in (0..).zip(&mut self.rows) {
            if let Some((at, _)) = row {
                *at = page;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.log.links()
    }

    /// Returns the links of a page; empty without a row.
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

    /// Returns the table of the rows of all known pages.
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
