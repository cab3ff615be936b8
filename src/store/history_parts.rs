//! The history of all partitions of a state, in the order of all pages: whoever reads it goes through the order once, and
//! takes the rows of each page from its partition.

use std::cmp::Ordering;
use std::path::PathBuf;

use super::view_parts::{PartAt, ViewParts};
use super::{View, partition_dir};
use crate::engine::{Blocks, Row};
use crate::rows::Ghost;
use crate::{Error, Result};

/// Rows from which on a block is given.
const BLOCK: usize = 1 << 8;

impl ViewParts {
    /// See [`HistoryView::rows`](crate::engine::HistoryView::rows).
    ///
    /// # Errors
    /// Those of reading; [`Error::Damaged`]: the order is not that of the partitions' pages.
    pub(super) fn rows<'v>(
        &'v self,
        whole: &'v View,
        since: u64,
        start: u128,
    ) -> Result<Blocks<'v>> {
        let parts = self.seen.iter().enumerate().map(|(number, part)| {
            let rows = match self.part_at(number)? {
                PartAt::Here(view) => view.own_rows(since, start)?,
                PartAt::Elsewhere(_, ask) => {
                    whole.rows_elsewhere((number, part), ask, (since, start))
                }
            };
            let part = &part.published;
            Ok(Part {
                dir: partition_dir(whole.dir(), number as u32),
                rows,
                held: Vec::new(),
                taken: 0,
                next: 0,
                left: part.pages.saturating_sub(part.ghosts.count),
            })
        });
        let mut parts = parts.collect::<Result<Vec<Part<'_>>>>()?;
        let mut order = self.order.entries(0)?;
        Ok(Box::new(move |rows: &mut Vec<Row>| {
            while rows.len() < BLOCK {
                let Some(address) = order.next() else {
                    return parts.iter_mut().try_for_each(|part| match part.left {
                        0 => part.end(),
                        left => Err(self.order.damaged(format!(
                            "{left} pages of {} are not in it",
                            part.dir.display()
                        ))),
                    });
                };
                let Ghost { page, owner, at } = address?;
                let part = parts.get_mut(owner as usize);
                let part = part.filter(|part| part.left > 0 && at >= part.next);
                let part = part.ok_or_else(|| self.order.nowhere(page))?;
                part.take(at.into(), page.into(), rows)?;
                (part.next, part.left) = (at.saturating_add(1), part.left - 1);
            }
            Ok(())
        }))
    }
}

/// The history of a partition.
struct Part<'v> {
    dir: PathBuf,
    rows: Blocks<'v>,
    held: Vec<Row>,
    taken: usize,
    /// Where its next page may be, and pages of its own that are yet to come.
    next: u32,
    left: u64,
}

impl Part<'_> {
    /// Reads on, if all that is held was taken. Whether there is a row.
    fn fill(&mut self) -> Result<bool> {
        if self.taken == self.held.len() {
            self.held.clear();
            self.taken = 0;
            (self.rows)(&mut self.held)?;
        }
        Ok(self.taken < self.held.len())
    }

    /// Takes the rows of its page `at`, whose number among all is `page`, as rows of that.
    fn take(&mut self, at: u64, page: u64, rows: &mut Vec<Row>) -> Result<()> {
        while self.fill()? {
            let row = &self.held[self.taken];
            match row.page.cmp(&at) {
                Ordering::Less => self.check_ghost(row)?,
                Ordering::Equal => rows.push(Row { page, ..*row }),
                Ordering::Greater => break,
            }
            self.taken += 1;
        }
        Ok(())
    }

    /// All pages of its own were read.
    fn end(&mut self) -> Result<()> {
        while self.fill()? {
            self.check_ghost(&self.held[self.taken])?;
            self.taken += 1;
        }
        Ok(())
    }

    /// Ghosts were never visited, but their cash was recycled: that is left out.
    fn check_ghost(&self, row: &Row) -> Result<()> {
        if row.visits == 0 {
            return Ok(());
        }
        let what = format!("history of page {}, which is another partition's", row.page);
        Err(Error::damaged(self.dir.join("store.redb"), what))
    }
}
