//! Latest row of each page of a crawl, in memory.

use super::{Graph, Growing, Links};
use crate::Result;
use crate::rows::{Row, RowVisitor, Rows, Stop};

/// Rows of pages as of their last visits, in the order of first visits: 21 bytes per page, and like [`Growing`] per
/// link.
#[derive(Debug, Default)]
pub struct LatestRows {
    /// Number of known pages.
    pages: u64,
    rows: Growing,
    /// For each page, whether it was found gone; `None` without a row.
    gone: Vec<Option<bool>>,
    visited: Vec<u32>,
}

impl LatestRows {
    /// Makes `pages` pages known.
    pub fn grow(&mut self, pages: u64) {
        self.pages = self.pages.max(pages);
    }

    /// Sets the row of a page that was visited; it and all its targets must be known.
    pub fn set(&mut self, page: u32, gone: bool, links: Links<'_>) {
        self.rows.set(page as usize, links);
        self.gone
            .resize(self.rows.nodes().max(self.gone.len()), None);
        if self.gone[page as usize].replace(gone).is_none() {
            self.visited.push(page);
        }
    }

    /// Returns the links of a page; empty without a row.
    pub fn get(&self, page: u32) -> Links<'_> {
        self.rows.row(page as usize)
    }

    /// Returns whether a page has a row.
    pub fn has(&self, page: u32) -> bool {
        self.gone.get(page as usize).is_some_and(Option::is_some)
    }

    /// Returns the table of the rows of all known pages.
    pub fn into_table(mut self) -> Graph {
        self.rows.grow(self.pages as usize);
        self.rows.into_table()
    }

    fn of(&self, page: u32) -> Row<'_> {
        Row {
            gone: self.gone[page as usize] == Some(true),
            ..self.get(page).of(page)
        }
    }

    /// Returns the memory of links and rows, in bytes.
    pub fn bytes(&self) -> u64 {
        self.rows.bytes()
    }
}

impl Rows for LatestRows {
    fn pages(&self) -> u64 {
        self.pages
    }

    fn links(&self) -> u64 {
        self.rows.links() as u64
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
