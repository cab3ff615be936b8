//! Rows of links that come in any order and can be replaced: 4 bytes per link and 16 per row, and weights as in a
//! table.
//!
//! Replaced rows are removed whenever they outweigh the live ones, so memory stays within twice what these need.

use std::ops::Range;

use super::table::Arena;
use super::{LinkRows, Links, Weight};

/// Rows that can be added and replaced.
#[derive(Debug)]
pub struct Growing<W = u64> {
    /// Range of each row in the links.
    rows: Vec<Range<usize>>,
    links: Arena<W>,
    /// Number of links in all live rows.
    live: usize,
}

impl<W> Default for Growing<W> {
    fn default() -> Growing<W> {
        Growing {
            rows: Vec::new(),
            links: Arena::default(),
            live: 0,
        }
    }
}

impl<W: Weight> Growing<W> {
    /// Returns the number of rows.
    pub fn nodes(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of links in all rows.
    pub fn links(&self) -> usize {
        self.live
    }

    /// Returns the number of links kept, including those of replaced rows.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.links.len()
    }

    /// Makes rows 0 to `count - 1` exist.
    pub fn grow(&mut self, count: usize) {
        if count > self.rows.len() {
            self.rows.resize(count, 0..0);
        }
    }

    /// Returns a row; empty if it does not exist.
    pub fn row(&self, row: usize) -> Links<'_, W> {
        let range = self.rows.get(row).cloned().unwrap_or_default();
        self.links.row(range)
    }

    /// Sets a row, replacing an earlier one.
    pub fn set(&mut self, row: usize, links: Links<'_, W>) {
        self.grow(row + 1);
        let start = self.links.len();
        self.links.push(links, self.rows.iter().cloned());
        // An empty row has no position, so that compaction need not move it.
        let range = match links.targets.len() {
            0 => 0..0,
            len => start..start + len,
        };
        let replaced = std::mem::replace(&mut self.rows[row], range);
        self.live = self.live + links.targets.len() - replaced.len();
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

    /// Returns the memory of the rows and a table made from them together, in bytes.
    pub fn bytes(&self) -> u64 {
        let links = (self.links.len() + self.live) * size_of::<u32>();
        let weights = self.links.weights() * 2 * size_of::<W>();
        let rows = self.rows.len() * (size_of::<Range<usize>>() + size_of::<usize>());
        (links + weights + rows) as u64
    }

    /// Returns the table of all rows.
    pub fn into_table(self) -> LinkRows<W> {
        let weights = if self.links.weights() > 0 {
            self.live
        } else {
            0
        };
        let mut table = LinkRows::with_room(self.rows.len(), self.live, weights);
        for row in self.rows {
            table.push(self.links.row(row));
        }
        table
    }
}
