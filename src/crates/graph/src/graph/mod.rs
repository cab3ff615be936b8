//! Links as rows of numbers in memory: one table for graphs, crawls and crawl orders.
//!
//! [`LinkRows`] has consecutive rows, read by row or transposed. [`LatestRows`] are those of a crawl, which can be
//! replaced while others are added. A [`Graph`] is a table by page; [`GraphBuilder`] builds one by the link
//! rules of the engine.

mod build;
mod growing;
mod pairs;
mod table;

pub use build::GraphBuilder;
pub use growing::LatestRows;
pub use pairs::{gcd, whole_numbers};
pub use table::{LinkRows, Links, Weight};

/// Directed graph: row `i` has the distinct targets of node `i`, ascending. A node with an empty row is dangling.
pub type Graph = LinkRows<u64>;
