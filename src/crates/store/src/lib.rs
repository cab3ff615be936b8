//! Stores on disk: what a crawl said, in checkpoints that survive crashes, and the rankings published from it.
//! [`session::Writer`] has an example.

#[cfg(any(test, feature = "testing"))]
use cashrank_base::fuzz;
use cashrank_base::{Error, Limits, Result};
use cashrank_base::{codec, disk, model, rules, threads, url};
#[cfg(any(test, feature = "testing"))]
use cashrank_crawl::formats;
use cashrank_crawl::{batch, decode, source};
use cashrank_graph::{engine, graph, metrics, rank, rows, sites};

pub mod check;
pub mod memory;
pub mod session;
pub mod shards;
pub mod snapshot;
pub mod store;
