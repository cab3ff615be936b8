//! cashrank
pub mod decode;
mod error;
mod limits;
pub mod source;
pub mod url;

pub use error::{Error, Result};
pub use limits::Limits;
