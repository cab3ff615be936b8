//! What all crates of cashrank share: numbers, errors, limits, files, threads, URLs, and the rules for what is read.
//!
//! ```
//! use cashrank_base::url::canonical;
//!
//! let mut out = Vec::new();
//! let read = b"HTTP://Example.org:80/a/../b#top";
//! let form = canonical(read, None, 8192, &mut out).unwrap();
//! assert_eq!(form.text(read, &out), b"http://example.org/b");
//! ```
//!
//! | | |
//! |---|---|
//! | [`model`] | pages and their names, records, limits, damage and errors |
//! | [`codec`], [`disk`] | numbers as bytes; files that are written safely, and sorted outside memory |
//! | [`threads`] | threads that may be refused |
//! | [`url`], [`rules`] | canonical URLs, hosts and domains; scopes, weights of links, shards |

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
