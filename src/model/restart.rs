//! Where an input can be read again without what came before.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place from which on an input can be read without what came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Offset in the compressed input: of the start of a member or frame; in a plain input of
    /// anything.
    pub raw: u64,
    /// The same place in the decompressed input.
    pub offset: u64,
    /// The input's compression: its first bytes are not seen again.
    pub compression: Compression,
}

/// How an input is compressed. One input holds one kind only. Manifests hold it by its number: new
/// kinds go to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Compression {
    /// Not at all.
    Plain,
    /// RFC 1952, any number of members.
    Gzip,
    /// RFC 8878, any number of frames, skippable ones too.
    Zstd,
    /// A table, such as a Parquet file: it is read as text that stands for its rows.
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
