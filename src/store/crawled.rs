//! The rows of all partitions in about the order in which their pages were read.
//!
//! Each partition keeps its rows in that order; how those of two lie to each other is not kept. But pages are numbered in the
//! order of first appearance: so a row was read when at least all pages were known that it, and those before it in its
//! partition, name. The rows are put together by that. Of a store without partitions, and where all rows of a new partition
//! come from one of the old ones, the order is exactly the one in which they were read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::all::{AllRows, PartRows};
use super::rows::{KeptRows, RowCursor};
use crate::Result;
use crate::rows::{Row, RowVisitor, Rows, Stop};

impl AllRows {
    /// Calls `visit` with the row of each page that has one, in that order. Of each partition there is a block of rows in memory.
    ///
    /// # Errors
    /// As of [`Rows::walk`].
    pub(crate) fn as_crawled(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        match self {
            AllRows::One(rows) => rows.walk(visit),
            AllRows::Parts(rows) => rows.as_crawled(visit),
        }
    }

    /// By partition, the number of each page that it knows among all; none of a store without.
    pub(crate) fn numbers(&self) -> &[Vec<u32>] {
        match self {
            AllRows::One(_) => &[],
            AllRows::Parts(rows) => &rows.numbers,
        }
    }
}

/// The rows of a partition that are still to be given.
struct Source<'r> {
    number: usize,
    rows: RowCursor<&'r KeptRows>,
    /// The next one, by the numbers of all pages.
    page: u32,
    gone: bool,
    targets: Vec<u32>,
    weights: Vec<u64>,
    /// The last page that it, or one before it, names.
    known: u32,
}

impl Source<'_> {
    /// Reads the next row. False: there is none.
    fn advance(&mut self, all: &PartRows) -> Result<bool> {
        let Some(row) = self.rows.next_row()? else {
            return Ok(false);
        };
        let row = all.global(self.number, row, &mut self.targets)?;
        (self.page, self.gone) = (row.page, row.gone);
        self.weights.clear();
        self.weights.extend_from_slice(row.weights);
        let named = self.targets.iter().copied().max();
        self.known = self.known.max(self.page).max(named.unwrap_or(0));
        Ok(true)
    }

    fn row(&self) -> Row<'_> {
        Row {
            page: self.page,
            gone: self.gone,
            targets: &self.targets,
            weights: &self.weights,
        }
    }
}

impl PartRows {
    fn as_crawled(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        let mut sources = Vec::with_capacity(self.parts.len());
        let mut next = BinaryHeap::new();
        for (number, part) in self.parts.iter().enumerate() {
            let mut source = Source {
                number,
                rows: RowCursor::new(part),
                page: 0,
                gone: false,
                targets: Vec::new(),
                weights: Vec::new(),
                known: 0,
            };
            if source.advance(self)? {
                next.push(Reverse((source.known, number)));
            }
            sources.push(source);
        }
        while let Some(Reverse((_, number))) = next.pop() {
            let source = &mut sources[number];
            visit(source.row())?;
            if source.advance(self)? {
                next.push(Reverse((source.known, number)));
            }
        }
        Ok(())
    }
}
