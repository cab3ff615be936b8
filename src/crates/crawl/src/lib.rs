//! From the bytes of crawls to batches of records.

#[cfg(any(test, feature = "testing"))]
use cashrank_base::fuzz;
use cashrank_base::{Error, Result};
use cashrank_base::{codec, disk, model, rules, threads, url};

pub mod batch;
pub mod decode;
pub mod formats;
pub mod pipeline;
pub mod source;
