//! The memory of a search, as a bound: what the pages and links known take at most, in arrays that are filled once.

use super::Policy;
use crate::Result;
use crate::rows::Rows;

/// How much is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Pages known.
    pub pages: u64,
    /// Pages that have a row.
    pub fetched: u64,
    /// Links of all rows.
    pub links: u64,
    /// Links have weights.
    pub is_weighted: bool,
}

/// A page's place in the table of slots, which may be little more than half full, and in the arrays by slot.
const PAGE: u64 = 36;
/// A page not fetched: its place in the frontier, the start of its sources, its score and its place by score,
const FRONTIER: u64 = 36;
/// and what [`Complement`](super::select::Complement) holds of it at most.
const COMPLEMENT: u64 = 104;
/// A page fetched: its rows in the known graph and two matrices, its ranks now, in a step and of an earlier stage, its
/// visits, its impact, and what a policy holds of it.
const FETCHED: u64 = 200;
/// A link: in the known graph, in the matrix, as a source, and in the matrix of an earlier stage.
const LINK: u64 = 24;
/// Its weight in these.
const WEIGHT: u64 = 48;

impl Size {
    /// The size of these rows, by one sweep.
    ///
    /// # Errors
    /// Those of the sweep.
    pub fn of_rows(rows: &dyn Rows) -> Result<Size> {
        let mut size = Size {
            pages: rows.pages(),
            links: rows.links(),
            ..Size::default()
        };
        rows.sweep(&mut |row| {
            size.fetched += 1;
            size.is_weighted |= !row.weights.is_empty();
            Ok(())
        })?;
        Ok(size)
    }

    /// Bytes that a [`Search`](super::Search) by this policy over all of it takes at most, its estimate included.
    pub fn search_bytes(&self, policy: Policy) -> u64 {
        let of_frontier = match policy {
            Policy::Complement => FRONTIER + COMPLEMENT,
            _ => FRONTIER,
        };
        let link = if self.is_weighted {
            LINK + WEIGHT
        } else {
            LINK
        };
        let frontier = self.pages.saturating_sub(self.fetched);
        self.pages * PAGE + frontier * of_frontier + self.fetched * FETCHED + self.links * link
    }
}
