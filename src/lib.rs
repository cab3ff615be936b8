//! cashrank
pub mod batch;
pub mod decode;
pub mod engine;
mod error;
pub mod ingest;
mod limits;
pub mod metrics;
pub mod sim;
pub mod snapshot;
pub mod source;
pub mod store;
pub mod url;

pub use error::{Error, Result};
pub use limits::Limits;
