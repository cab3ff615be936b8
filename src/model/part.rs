//! Where a batch stands in the crawl archive that it was read from.

/// Where a batch stands in its archive. Names, also those that links and entries speak of, are
/// numbered through the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The input it was read from.
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
