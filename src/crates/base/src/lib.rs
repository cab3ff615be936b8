//! What all crates of cashrank share: numbers, errors, limits, files, threads, URLs, and the rules for what is read.

pub mod codec;
pub mod disk;
#[cfg(any(test, feature = "testing"))]
pub mod folder;
pub mod model;
pub mod rules;
pub mod threads;
pub mod url;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz {
    //! What fuzz targets share.

    pub mod dice;
    pub mod memory;
}

pub use model::{Error, Limits, Result};
