//! Where a batch stands in the crawl archive that it was read from, and what its block says by hosts.

use std::collections::HashMap;

/// Where a batch stands in its archive. Names, also those that links and entries speak of, are
/// numbered through the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// What it was read from.
    pub(crate) kind: PartKind,
    /// Records before it.
    pub first_record: u64,
    /// Its records; of the end, none.
    pub records: u32,
    /// Names before it.
    pub first_name: u32,
    /// Its names, given or not.
    pub names: u32,
    /// Whether its names are URLs.
    pub urls: bool,
    /// Whether it is told by hosts, and to be completed.
    pub(crate) hosts: bool,
    /// Whether the host of a name is that of its URL.
    pub(crate) sites: bool,
    /// Bytes of its names.
    pub(crate) text: u64,
    /// Its links as read; of the end, those of the archive.
    pub(crate) links: u64,
    /// Its place in the chunk.
    pub start: usize,
    /// See `start`.
    pub end: usize,
    /// Checksum of its head.
    pub(crate) sum: u64,
    /// The same of the section before.
    pub(crate) before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Header,
    Block,
    End { blocks: u64 },
}

/// What a block says by hosts, packed or not. Empty: nothing.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    /// Hosts before the block.
    pub first_host: u32,
    /// Whether the names that hosts had before the block are told, in `before`.
    pub counted: bool,
    /// The host of each entry's page, for those of a page, and whether the page is new.
    pub pages: Vec<(u32, bool)>,
    /// The host of each new name. One that is not below those before is new with it.
    pub names: Vec<u32>,
    /// Names before the block of each older host that it tells; reading, if they are told.
    pub before: HashMap<u32, u32>,
}

impl Sites {
    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.first_host = 0;
        self.counted = false;
        self.pages.clear();
        self.names.clear();
        self.before.clear();
    }
}
