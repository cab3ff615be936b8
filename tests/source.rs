//! Reading of inputs: the same records whatever the compression, and nothing torn, unverified or unbounded if an input
//! is cut, damaged or hostile.
//!
//! Expected values come from the data that was compressed, from `flate2`'s and `zstd`'s own readers, from the `gzip`
//! and `zstd` programs, or from hand-made bytes of the formats.

#[path = "source/common.rs"]
mod common;
#[path = "source/damage.rs"]
mod damage;
#[path = "source/dictionary.rs"]
mod dictionary;
#[path = "source/limits.rs"]
mod limits;
#[path = "source/open.rs"]
mod open;
#[path = "source/real.rs"]
mod real;
#[path = "source/same.rs"]
mod same;
