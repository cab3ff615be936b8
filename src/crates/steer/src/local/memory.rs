//! Upper bound on the memory of a search: what the known pages and links take at most, in arrays that are filled once.

use super::Policy;
use crate::Result;
use crate::rows::Rows;

/// Size of the known graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of known pages.
    pub pages: u64,
    /// Number of pages that have a row.
    pub fetched: u64,
    /// Number of links of all rows.
    pub links: u64,
    /// True if links have weights.
    pub is_weighted: bool,
}

/// Bytes per page: its entry in the hash table of slots, which may be little more than half full, and in the arrays by
/// slot.
const PAGE: u64 = 36;
/// Bytes per unfetched page: its entry in the frontier, the start of its sources, its score and its position by score.
const FRONTIER: u64 = 36;
/// Maximum bytes of [`Policy::Complement`](super::select::Policy::Complement) per unfetched page.
const COMPLEMENT: u64 = 104;
/// Bytes per fetched page: its rows in the known graph and two matrices, its ranks (current, in a step and of an
/// earlier stage), its visits, its impact, and what a policy keeps of it.
const FETCHED: u64 = 200;
/// Bytes per link: in the known graph, in the matrix, as a source, and in the matrix of an earlier stage.
const LINK: u64 = 24;
/// Bytes per link for its weights in these.
const WEIGHT: u64 = 48;

impl Size {
    /// Returns the size of these rows, by one sweep.
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

    /// Returns the maximum memory of a [`LocalSearch`](super::LocalSearch) with this policy over all of it, including
    /// its estimate, in bytes.
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
