//! From the bytes of crawls to batches of records.
//!
//! | | |
//! |---|---|
//! | [`source`] | inputs as chunks of bytes: files, streams, compression, tables, folders |
//! | [`formats`], [`decode`] | formats and how they are guessed; bytes to records |
//! | [`batch`] | records as the engine takes them, with names and links checked |
//! | [`pipeline`] | the threads that read and decode, and records in their order |

#[cfg(any(test, feature = "testing"))]
use cashrank_base::fuzz;
use cashrank_base::{Error, Result};
use cashrank_base::{codec, disk, model, rules, threads, url};

pub mod batch;
pub mod decode;
pub mod formats;
pub mod pipeline;
pub mod source;
