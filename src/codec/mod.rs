//! Encodings of numbers and short texts, which all file formats consist of.

pub(crate) mod frame;
pub(crate) mod prefix;
pub(crate) mod sealed;
pub(crate) mod varint;
