//! cashrank
pub mod decode;
mod error;
mod limits;
pub mod metrics;
pub mod sim;
pub mod snapshot;
pub mod source;
pub mod url;

pub use error::{Error, Result};
pub use limits::Limits;
