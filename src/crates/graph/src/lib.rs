//! Pages and their links: the ledger of cash (Adaptive OPIC), PageRank with certificates, other measures, and sites.

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
