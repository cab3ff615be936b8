//! Batches of records as the engine takes them: in one arena, with every distinct name found, put in canonical form and
//! hashed once.
//!
//! Web links repeat (navigation), so processing a name once per batch instead of once per link is most of the speed.
//! Batches are cut from chunks by any number of threads; because names are numbered in order of first appearance and
//! admitted record by record, results don't depend on where batches begin and end.

mod build;
mod names;

pub use crate::model::{Batch, BatchEntry, Fingerprints, HashKey, LinkCounts, What};
pub use build::{Builder, Rules};
