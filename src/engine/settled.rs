//! What a settling came to, but for the numbers of each page. A later settling may start from it: see `rank::settle`.

use super::scores::Effort;

/// Totals of a settled state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SettledTotals {
    /// Pages known then.
    pub pages: u64,
    /// The damping, in 1/2^32.
    pub damping: u64,
    /// The sum of X.
    pub sum: i128,
    /// T: what the virtual page has received.
    pub virtual_page: i128,
    /// F: what larger units may have added to the rounding.
    pub strayed: u128,
    /// What it took.
    pub effort: Effort,
}

/// The numbers of pages in a settled state, in page order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettledPages<'a> {
    /// X.
    pub own: &'a [i64],
    /// D.
    pub accounts: &'a [i64],
    /// What a visit costs, which says whether the page has a row, and links.
    pub costs: &'a [u8],
}

/// The same, to be filled.
#[derive(Debug)]
pub(crate) struct SettledPagesMut<'a> {
    /// X.
    pub own: &'a mut [i64],
    /// D.
    pub accounts: &'a mut [i64],
    /// See [`SettledPages::costs`].
    pub costs: &'a mut [u8],
}
