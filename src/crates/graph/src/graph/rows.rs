//! Graph in memory as rows that can be read repeatedly.

use std::any::Any;

use super::{Graph, GraphBuilder, Links};
use crate::Result;
use crate::model::SelfLinks;
use crate::rows::{Row, RowVisitor, Rows, Stop};

impl Graph {
    /// Returns the graph of all rows with their weights, including self-links.
    pub fn of_rows(rows: &dyn Rows) -> Result<Graph> {
        let mut builder = GraphBuilder::new(SelfLinks::Keep);
        builder.grow(rows.pages() as usize);
        rows.sweep(&mut |row| {
            builder.weighted_row(row.page, Links::from(row).iter());
            Ok(())
        })?;
        Ok(builder.build())
    }
}

impl<'a> From<Row<'a>> for Links<'a> {
    fn from(row: Row<'a>) -> Links<'a> {
        Links {
            targets: row.targets,
            weights: row.weights,
        }
    }
}

impl<'a> Links<'a> {
    /// Returns the row of a page that exists, with these links.
    pub fn of(self, page: u32) -> Row<'a> {
        Row {
            page,
            gone: false,
            targets: self.targets,
            weights: self.weights,
        }
    }
}

/// Every node has a row, in node order.
impl Rows for Graph {
    fn pages(&self) -> u64 {
        self.nodes() as u64
    }

    fn links(&self) -> u64 {
        Graph::links(self) as u64
    }

    fn walk(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        for (page, links) in (0..).zip(self.all()) {
            visit(links.of(page))?;
        }
        Ok(())
    }

    fn in_memory(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                1 => Err(crate::Error::internal("it broke").into()),
                _ => Ok(()),
            }
        });
        assert!(swept.is_err());
        assert_eq!(seen, 2);
    }

    #[test]
    fn a_sweep_stops_when_it_has_seen_enough() {
        let mut builder = GraphBuilder::new(SelfLinks::Drop);
        builder.row(2, [0, 1]);
        let graph = builder.build();
        let mut seen = Vec::new();
        let whole = graph.sweep(&mut |row| {
            seen.push(row.page);
            match row.page {
                1 => Err(Stop::Enough),
                _ => Ok(()),
            }
        });
        assert!(!whole.unwrap());
        assert_eq!(seen, [0, 1]);
        assert!(graph.sweep(&mut |_| Ok(())).unwrap());
        let mut found: Vec<u32> = Vec::new();
        assert!(Rows::row(&graph, 2, &mut |row| found.extend(row.targets)).unwrap());
        assert_eq!(found, [0, 1]);
        assert!(!Rows::row(&graph, 3, &mut |_| panic!("no page 3")).unwrap());
    }
}
