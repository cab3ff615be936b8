//! Encodings of numbers and short texts, which all file formats consist of.

pub mod frame;
pub mod prefix;
pub mod sealed;
pub mod varint;
