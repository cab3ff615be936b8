//! Kept rows one after the other, for whoever reads several files of them at a time, or stops between rows.

use std::borrow::Borrow;

use super::block::{Head, Rows as Block};
use super::read::{KeptRows, row_of};
use crate::Result;
use crate::rows::Row;

/// Goes through the rows that are the last of their pages, in the order of [`Rows::walk`](crate::rows::Rows::walk). A
/// block of them is in memory at a time.
pub(crate) struct RowCursor<R> {
    rows: R,
    /// The number of the block's first row, and the block.
    first: u64,
    block: Block,
    /// Rows of it that were passed, with their links, and the weights of these.
    passed: usize,
    targets: usize,
    weights: usize,
}

impl<R: Borrow<KeptRows>> RowCursor<R> {
    /// Stands before the first row.
    pub fn new(rows: R) -> RowCursor<R> {
        RowCursor {
            rows,
            first: 0,
            block: Block::default(),
            passed: 0,
            targets: 0,
            weights: 0,
        }
    }

    /// How many rows it goes through in all.
    pub fn rows(&self) -> u64 {
        self.rows.borrow().rows()
    }

    /// Stands before the row that so many come before, in a file that is read from there on.
    ///
    /// # Errors
    /// Those of reading.
    pub fn skip_to(&mut self, before: u64) -> Result<()> {
        let Some(row) = self.rows.borrow().number_of(before) else {
            self.first = self.rows.borrow().kept().rows;
            self.enter(Block::default());
            return Ok(());
        };
        let (first, block) = self.rows.borrow().block_of(row)?;
        self.first = first;
        self.enter(block);
        while self.first + (self.passed as u64) < row
            && let Some(&head) = self.block.heads.get(self.passed)
        {
            self.pass(head);
        }
        Ok(())
    }

    /// The next row; `None`: there are no more.
    ///
    /// # Errors
    /// Those of reading.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        loop {
            let number = self.first + self.passed as u64;
            let Some(&head) = self.block.heads.get(self.passed) else {
                if number >= self.rows.borrow().kept().rows {
                    return Ok(None);
                }
                let (first, block) = self.rows.borrow().block_of(number)?;
                self.first = first;
                self.enter(block);
                continue;
            };
            let (targets, weights) = self.pass(head);
            if self.rows.borrow().counts(number) {
                let targets = &self.block.targets[targets..self.targets];
                let weights = &self.block.weights[weights..self.weights];
                return Ok(Some(row_of(head, targets, weights)));
            }
        }
    }

    fn enter(&mut self, block: Block) {
        self.block = block;
        (self.passed, self.targets, self.weights) = (0, 0, 0);
    }

    /// Passes a row. Where its links begin, and their weights.
    fn pass(&mut self, head: Head) -> (usize, usize) {
        let begin = (self.targets, self.weights);
        let links = head.links as usize;
        self.passed += 1;
        self.targets += links;
        self.weights += if head.weighted { links } else { 0 };
        begin
    }
}
