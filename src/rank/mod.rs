//! Rankings computed from the links of pages.

pub mod pagerank;
