//! Graphs held in memory and their exact PageRank: the reference that rankings are held to.

pub mod graph;
pub mod pagerank;
