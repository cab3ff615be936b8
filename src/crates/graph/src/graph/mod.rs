//! Links as rows of numbers in memory: one table for graphs, crawls and crawl orders.
//!
//! [`LinkRows`] has consecutive rows, read by row or transposed; [`Graph`] is one with a row per page. [`LatestRows`]
//! are the rows of a crawl, in which rows are added and replaced.

#[cfg(any(test, feature = "testing"))]
#[path = "tests/builder.rs"]
mod builder;
mod growing;
mod pairs;
mod table;

#[cfg(any(test, feature = "testing"))]
pub use builder::GraphBuilder;
pub use growing::LatestRows;
pub use pairs::{gcd, whole_numbers};
pub use table::{LinkRows, Links, Weight, node};

/// Directed graph: row `i` has the distinct targets of node `i`. A node with an empty row is dangling.
pub type Graph = LinkRows<u64>;
