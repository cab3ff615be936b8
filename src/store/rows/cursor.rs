//! Kept rows one after the other, for whoever reads several files of them at a time.

use super::block::{Head, Rows as Block};
use super::read::{KeptRows, row_of};
use crate::Result;
use crate::rows::Row;

type Blocks<'r> = Box<dyn Iterator<Item = Result<(u64, Block)>> + 'r>;

/// Goes through the rows that are the last of their pages, in the order of [`Rows::walk`](crate::rows::Rows::walk). A
/// block of them is in memory at a time.
pub(crate) struct RowCursor<'r> {
    rows: &'r KeptRows,
    blocks: Blocks<'r>,
    /// The number of the block's first row, and the block.
    first: u64,
    block: Block,
    /// Rows of it that were passed, with their links, and the weights of these.
    passed: usize,
    targets: usize,
    weights: usize,
}

impl<'r> RowCursor<'r> {
    /// Stands before the first row.
    ///
    /// # Errors
    /// Those of reading.
    pub fn new(rows: &'r KeptRows) -> Result<RowCursor<'r>> {
        Ok(RowCursor {
            rows,
            blocks: Box::new(rows.blocks()?),
            first: 0,
            block: Block::default(),
            passed: 0,
            targets: 0,
            weights: 0,
        })
    }

    /// The next row; `None`: there are no more.
    ///
    /// # Errors
    /// Those of reading.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>> {
        loop {
            let Some(&head) = self.block.heads.get(self.passed) else {
                let Some(block) = self.blocks.next() else {
                    return Ok(None);
                };
                (self.first, self.block) = block?;
                (self.passed, self.targets, self.weights) = (0, 0, 0);
                continue;
            };
            let number = self.first + self.passed as u64;
            let (targets, weights) = self.pass(head);
            if self.rows.counts(number) {
                let targets = &self.block.targets[targets..self.targets];
                let weights = &self.block.weights[weights..self.weights];
                return Ok(Some(row_of(head, targets, weights)));
            }
        }
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
