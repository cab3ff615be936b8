//! The links of pages as page numbers: what settling, crawl orders, local ranks and exact PageRank
//! read, wherever the links are kept.
//!
//! A *row* is what the latest visit of a page found: the page's distinct targets. A page that was
//! visited and has no links has an empty row; a page that is only known as a target has none.

use crate::sim::Graph;
use crate::{Error, Result};

/// Page numbers in rows are below this: they are kept in 32 bits.
pub const PAGES_MAX: u64 = u32::MAX as u64;

/// The row of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// The page.
    pub page: u32,
    /// It was found gone (404, 410): it has no links, and is not to be crawled.
    pub gone: bool,
    /// Its distinct targets, in no particular order.
    pub targets: &'a [u32],
    /// Empty: all links weigh the same. Else the weight of each target; their sum is below 2^63. A
    /// target of weight 0 is a page, but no link.
    pub weights: &'a [u64],
}

/// Rows that can be read again and again, from the first to the last.
pub trait Rows: Sync {
    /// Pages known: all page numbers are below it.
    fn pages(&self) -> u64;

    /// Links of all rows that a sweep reads.
    fn links(&self) -> u64;

    /// Calls `visit` with the row of each page that has one, once a page, in the order in which the rows
    /// lie: the same in every sweep.
    ///
    /// # Errors
    ///
    /// Those of `visit`, which end the sweep, and those of reading.
    fn sweep(&self, visit: &mut dyn FnMut(Row<'_>) -> Result<()>) -> Result<()>;
}

/// Every node has a row, in node order. Links must not have weights.
impl Rows for Graph {
    fn pages(&self) -> u64 {
        self.nodes() as u64
    }

    fn links(&self) -> u64 {
        Graph::links(self) as u64
    }

    fn sweep(&self, visit: &mut dyn FnMut(Row<'_>) -> Result<()>) -> Result<()> {
        if !self.parts().is_empty() {
            return Err(Error::Refused(
                "a graph whose links have weights does not keep them as whole numbers".into(),
            ));
        }
        for (page, targets) in self.rows().enumerate() {
            visit(Row {
                page: page as u32,
                gone: false,
                targets,
                weights: &[],
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::SelfLinks;
    use crate::sim::GraphBuilder;

    #[test]
    fn a_graph_is_swept_in_node_order() {
        let mut builder = GraphBuilder::new(SelfLinks::Drop);
        builder.row(2, [0, 1]);
        builder.row(0, [2]);
        let graph = builder.build();
        let mut rows = Vec::new();
        graph
            .sweep(&mut |row| {
                rows.push((row.page, row.targets.to_vec()));
                Ok(())
            })
            .unwrap();
        assert_eq!(rows, [(0, vec![2]), (1, vec![]), (2, vec![0, 1])]);
        assert_eq!((Rows::pages(&graph), Rows::links(&graph)), (3, 3));
    }

    #[test]
    fn an_error_ends_a_sweep() {
        let mut builder = GraphBuilder::new(SelfLinks::Drop);
        builder.grow(3);
        let graph = builder.build();
        let mut seen = 0;
        let swept = graph.sweep(&mut |row| {
            seen += 1;
            match row.page {
                1 => Err(Error::Refused("enough".into())),
                _ => Ok(()),
            }
        });
        assert!(swept.is_err());
        assert_eq!(seen, 2);
    }
}
