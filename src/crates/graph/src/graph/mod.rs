//! Links as rows of numbers in memory: one table for graphs, crawls and crawl orders.
//!
//! [`LinkRows`] has consecutive rows, read by row or transposed. [`LatestRows`] are those of a crawl, which can be
//! replaced while others are added. A [`Graph`] is a table by page.

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
