//! Graphs held in memory and their exact PageRank, the reference that rankings are held to; and
//! simulated crawls, which hold the engine to it.

pub mod crawl;
pub mod crawled;
pub mod errors;
pub mod experiment;
pub mod figures;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod graph;
mod load;
pub mod local;
pub mod pagerank;
pub mod plot;
pub(crate) mod random;
mod read;
mod rows;
pub mod steer;
pub mod strategy;
pub mod web;

pub use graph::{Graph, GraphBuilder};
pub use load::{LoadedGraph, Page, load};
pub use pagerank::{Options, PageRank, pagerank};
