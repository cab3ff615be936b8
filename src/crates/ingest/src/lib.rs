//! Whole inputs: read into a store, converted, inspected, and loaded into memory.

#[cfg(any(test, feature = "testing"))]
use cashrank_base::fuzz;
use cashrank_base::{Error, Result};
use cashrank_base::{codec, disk, model, rules, threads, url};
use cashrank_crawl::{batch, decode, formats, pipeline, source};
use cashrank_graph::{engine, graph, rank, rows};
use cashrank_store::{memory, session, snapshot, store};

mod batches;
pub mod ingest;
pub mod inspect;
pub mod load;
pub mod records;

pub use batches::ReadOptions;
