//! Batches of records for the engine: one arena, in which every distinct name is put in canonical form and hashed once.
//!
//! Names of web links repeat (navigation), so processing a name once per batch instead of once per link brings most of
//! the speed. Names are numbered in order of first appearance and admitted record by record, so results do not depend on
//! where batches begin and end.

mod build;
mod names;

pub use crate::model::{Batch, BatchEntry, Fingerprints, HashKey, LinkCounts, What};
pub use build::{Builder, Rules};
