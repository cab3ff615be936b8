//! Reads rows into a graph in memory.

use super::table::{Arena, to_starts};
use super::{Graph, LinkRows, Links};
use crate::rows::Rows;
use crate::{Error, Result};

impl Graph {
    /// Returns rows as a graph in memory, with self-links, and with the weights of links if `weighted`. Reads them
    /// twice, so that it takes no more memory than the graph.
    pub fn of_rows(rows: &dyn Rows, weighted: bool) -> Result<Graph> {
        let mut ends = vec![0; rows.pages() as usize];
        let mut is_weighted = false;
        rows.sweep(&mut |row| {
            ends[row.page as usize] = row.degree();
            is_weighted |= weighted && !row.weights.is_empty();
            Ok(())
        })?;
        let sum = to_starts(&mut ends);
        let weights = if is_weighted { sum } else { 0 };
        let mut links = Arena {
            targets: vec![0; sum],
            weights: vec![1; weights],
        };
        rows.sweep(&mut |row| {
            let end = &mut ends[row.page as usize];
            for (target, weight) in Links::from(row).linked() {
                let place = links.targets.get_mut(*end);
                *place.ok_or_else(|| Error::internal("rows differ between two sweeps"))? = target;
                if let Some(place) = links.weights.get_mut(*end) {
                    *place = weight;
                }
                *end += 1;
            }
            Ok(())
        })?;
        Ok(LinkRows { ends, links })
    }
}

/// Converts a page number; fails from 2^32 - 1 on.
pub fn node(page: u64) -> Result<u32> {
    match u32::try_from(page) {
        Ok(node) if node < u32::MAX => Ok(node),
        _ => Err(Error::Unsupported(format!(
            "page {page}: a graph in memory holds at most {} pages",
            u32::MAX
        ))),
    }
}
