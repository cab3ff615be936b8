//! Rows of links that come in any order and can be replaced: 4 bytes per link and 21 per page, and weights as in a
//! table.
//!
//! Replaced rows are removed whenever they outweigh the live ones, so memory stays within twice what these need.

use std::ops::Range;

use super::table::Arena;
use super::{Graph, Links};
use crate::Result;
use crate::rows::{Row, RowVisitor, Rows, Stop};

/// Rows of pages as of their last visits, in the order of first visits.
#[derive(Debug, Default)]
pub struct LatestRows {
    /// Number of known pages.
    pages: u64,
    /// Range of each row in the links, and whether its page was found gone; `None` without a row.
    rows: Vec<Range<usize>>,
    gone: Vec<Option<bool>>,
    links: Arena<u64>,
    /// Number of links in all live rows.
    live: usize,
    visited: Vec<u32>,
}

impl LatestRows {
    /// Makes `pages` pages known.
    pub fn grow(&mut self, pages: u64) {
        self.pages = self.pages.max(pages);
    }

    /// Sets the row of a page that was visited, replacing an earlier one; it and all its targets must be known.
    pub fn set(&mut self, page: u32, gone: bool, links: Links<'_>) {
        let at = page as usize;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, 0..0);
            self.gone.resize(at + 1, None);
        }
        let start = self.links.len();
        self.links.push(links);
        // An empty row has no position, so that compaction need not move it.
        let range = match links.targets.len() {
            0 => 0..0,
            len => start..start + len,
        };
        let replaced = std::mem::replace(&mut self.rows[at], range);
        self.live = self.live + links.targets.len() - replaced.len();
        if self.gone[at].replace(gone).is_none() {
            self.visited.push(page);
        }
        if self.links.len() / 2 > self.live.max(1 << 16) {
            self.compact();
        }
    }

    /// Moves the live rows together, in their stored order.
    pub(super) fn compact(&mut self) {
        let mut order: Vec<u32> = (0..self.rows.len() as u32)
            .filter(|&row| !self.rows[row as usize].is_empty())
            .collect();
        order.sort_unstable_by_key(|&row| self.rows[row as usize].start);
        let mut end = 0;
        for row in order {
            let row = &mut self.rows[row as usize];
            let moved = end..end + row.len();
            self.links.move_to(row.clone(), end);
            end = moved.end;
            *row = moved;
        }
        self.links.truncate(end);
    }

    /// Returns the number of links kept, including those of replaced rows.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.links.len()
    }

    /// Returns the links of a page; empty without a row.
    pub fn get(&self, page: u32) -> Links<'_> {
        let range = self.rows.get(page as usize).cloned();
        self.links.row(range.unwrap_or_default())
    }

    pub fn has(&self, page: u32) -> bool {
        self.gone.get(page as usize).is_some_and(Option::is_some)
    }

    fn of(&self, page: u32) -> Row<'_> {
        Row {
            gone: self.gone[page as usize] == Some(true),
            ..self.get(page).of(page)
        }
    }

    /// Returns the memory of the rows and a table made from them together, in bytes.
    pub fn bytes(&self) -> u64 {
        let links = (self.links.len() + self.live) * size_of::<u32>();
        let weights = self.links.weights() * 2 * size_of::<u64>();
        let rows = self.rows.len() * (size_of::<Range<usize>>() + size_of::<usize>());
        (links + weights + rows) as u64
    }

    /// Returns the table of the rows of all known pages.
    pub fn into_table(mut self) -> Graph {
        let weights = match self.links.weights() {
            0 => 0,
            _ => self.live,
        };
        let pages = self.rows.len().max(self.pages as usize);
        self.rows.resize(pages, 0..0);
        let mut table = Graph::with_room(pages, self.live, weights);
        for row in self.rows {
            table.push(self.links.row(row));
        }
        table
    }
}

impl Rows for LatestRows {
    fn pages(&self) -> u64 {
        self.pages
    }

    fn links(&self) -> u64 {
        self.live as u64
    }

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.visited
            .iter()
            .try_for_each(|&page| visit(self.of(page)))
    }

    fn row(&self, page: u32, read: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        if !self.has(page) {
            return Ok(false);
        }
        read(self.of(page));
        Ok(true)
    }
}
