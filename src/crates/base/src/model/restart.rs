//! Positions from which an input can be read without what came before.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Position from which an input can be read without what came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Offset in the compressed input of the start of a member or frame; in a plain input, any offset.
    pub raw: u64,
    /// Offset of this position in the decompressed input.
    pub offset: u64,
    /// Compression of the input, whose first bytes are not read again.
    pub compression: Compression,
}

/// Compression of an input, the same throughout. Manifests store its number: new kinds must be added at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Compression {
    /// Uncompressed.
    Plain,
    /// gzip (RFC 1952), any number of members.
    Gzip,
    /// zstd (RFC 8878), any number of frames, including skippable ones.
    Zstd,
    /// Table, such as a Parquet file: its rows are read as text.
    Table,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Table => "table",
        })
    }
}
