//! Pages and their links: the ledger of cash (Adaptive OPIC), PageRank with certificates, other measures, and sites.
//!
//! ```
//! use cashrank_base::model::SelfLinks;
//! use cashrank_graph::graph::Graph;
//! use cashrank_graph::rank::pagerank::{PowerOptions, pagerank};
//!
//! let graph = Graph::of_pairs(2, &[0, 1], &[1, 0], SelfLinks::Drop);
//! let ranking = pagerank(&graph, PowerOptions::default())?;
//! assert!((ranking.scores[0] - 0.5).abs() <= ranking.bound);
//! # Ok::<(), cashrank_base::Error>(())
//! ```

#[cfg(any(test, feature = "testing"))]
use cashrank_base::fuzz;
use cashrank_base::{Error, Limits, Result};
use cashrank_base::{codec, disk, model, rules, threads, url};

pub mod engine;
pub mod graph;
pub mod metrics;
pub mod rank;
pub mod rows;
pub mod sites;
