//! Links as rows of numbers in memory: one table for graphs, crawls and crawl orders.
//!
//! [`LinkRows`] has consecutive rows, read by row or transposed. [`Growing`] has rows that can be replaced while they
//! are added, [`LatestRows`] those of a crawl. A [`Graph`] is a table by page; [`GraphBuilder`] builds one by the link
//! rules of the engine.

mod build;
mod growing;
mod latest;
mod pairs;
mod rows;
mod table;

pub use build::GraphBuilder;
pub use growing::Growing;
pub use latest::LatestRows;
pub use pairs::gcd;
pub use pairs::whole_numbers;
pub use table::{LinkRows, Links, Weight};

/// Directed graph: row `i` has the distinct targets of node `i`, ascending. A node with an empty row is dangling.
pub type Graph = LinkRows<u64>;
