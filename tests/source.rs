//! Reading inputs: the same records whatever the compression, and nothing torn, unverified or
//! unbounded where an input is cut, damaged or hostile.
//!
//! Expected values come from the data that was compressed, from `flate2`'s and `zstd`'s own
//! readers, from the `gzip` and `zstd` programs, or from hand-made bytes of the formats.

#[path = "source"]
mod source {
    pub mod common;
    mod damage;
    mod dictionary;
    mod limits;
    mod open;
    mod real;
    mod same;
}
