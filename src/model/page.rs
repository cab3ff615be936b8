//! Dense page numbers.

/// A page's number: 0 for the first page that appears in the stream, and so on without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

impl PageId {
    /// Pages a ledger can hold at most: with 2^30 units each, no cell overflows 64 bits.
    pub const LIMIT: u64 = (1 << 34) - 1;

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
