//! Settling of a real graph in the orders in which it may have been read: the certified bound holds against the ranks
//! that WebGraph computed, and few sweeps suffice.

use std::io::BufRead;

use cashrank::Result;
use cashrank_graph::engine::{Config, SelfLinks};
use cashrank_graph::graph::Graph;
use cashrank_graph::rank::RankOptions;
use cashrank_graph::rank::settle::settle;
use cashrank_graph::rows::{Row, Rows, RowsVisitor, Stop};

use super::order::{Random, breadth_first};
use crate::cnr;

/// Graph whose rows come in some order.
struct Ordered {
    pages: u64,
    links: u64,
    rows: Vec<(u32, Vec<u32>)>,
}

impl Ordered {
    fn new(graph: &Graph, order: &[u32]) -> Ordered {
        let rows: Vec<&[u32]> = graph.rows().collect();
        Ordered {
            pages: graph.nodes() as u64,
            links: graph.links() as u64,
            rows: order
                .iter()
                .map(|&page| (page, rows[page as usize].to_vec()))
                .collect(),
        }
    }
}

impl Rows for Ordered {
    fn pages(&self) -> u64 {
        self.pages
    }

    fn links(&self) -> u64 {
        self.links
    }

    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        self.rows
            .iter()
            .try_for_each(|(page, targets)| visit(&[Row::new(*page, targets)]))
    }
}

/// Loads the graph, and PageRank as WebGraph computed it.
fn cnr() -> Option<(Graph, Vec<f64>)> {
    let folder = cnr::folder()?;
    let graph = cnr::graph(&cnr::adjacency(&folder), SelfLinks::Drop);
    let lines = cnr::ranks(&folder, "pagerank-0.85.txt.gz").lines();
    let exact = lines.map(|line| line.unwrap().parse().unwrap()).collect();
    Some((graph, exact))
}

/// Maximum cost of settling to a bound: links touched divided by links of the graph.
const COSTS: [(f64, f64); 3] = [(0.01, 4.0), (1e-4, 7.0), (1e-9, 14.0)];

#[test]
fn settled_ranks_are_within_their_bounds_of_webgraphs() {
    let Some((graph, exact)) = cnr() else {
        return;
    };
    let archive: Vec<u32> = (0..graph.nodes() as u32).collect();
    let links: Vec<&[u32]> = graph.rows().collect();
    let crawls = [1, 2].map(|seed| (seed, breadth_first(&links, 10, &mut Random::new(seed))));
    for (seed, order) in [(0, archive)].into_iter().chain(crawls) {
        let rows = Ordered::new(&graph, &order);
        for (until, most) in COSTS {
            let options = RankOptions::until(Config::default().damping_units(), until);
            let settled = settle(&rows, &options, &mut ()).unwrap().unwrap();
            let cost = settled.effort.links_touched as f64 / rows.links as f64;
            let importance = settled.importance();
            let off: f64 = importance
                .iter()
                .zip(&exact)
                .map(|(x, y)| (x - y).abs())
                .sum();
            let bound = settled.certificate.received_l1.unwrap();
            let sweeps = settled.effort.sweeps;
            eprintln!(
                "order {seed}, {until:e}: {cost:.2} sweeps' links in {sweeps} sweeps, L1 {off:.3e}, bound {bound:.3e}"
            );
            // WebGraph's are within 1e-13 of exact.
            assert!(settled.effort.reached && bound <= until && off <= bound + 1e-12);
            assert!(cost <= most, "order {seed}, {until:e}: {cost}");
        }
    }
}
