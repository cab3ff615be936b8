//! Graphs held in memory and their exact PageRank: the reference that rankings are held to.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod graph;
mod load;
pub mod pagerank;

pub use graph::{Graph, GraphBuilder};
pub use load::{Loaded, Page, load};
pub use pagerank::{Options, PageRank, pagerank};
