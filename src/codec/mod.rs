//! Numbers and small texts as bytes: what all file formats here are put together from.

pub(crate) mod frame;
pub(crate) mod prefix;
pub(crate) mod sealed;
pub(crate) mod varint;
