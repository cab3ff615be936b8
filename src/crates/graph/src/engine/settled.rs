//! Result of a settling, from which a later one may start (warm start): see `rank::settle`.

use super::scores::Effort;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SettledTotals {
    /// Number of pages at that time.
    pub pages: u64,
    /// Damping, in 1/2^32.
    pub damping: u64,
    /// Sum of X over all pages.
    pub sum: i128,
    /// T: units received by the virtual page.
    pub virtual_page: i128,
    /// F: bound on the additional rounding error of larger units.
    pub strayed: u128,
    pub effort: Effort,
}

/// Numbers of a settled state per page, in page order.
#[derive(Debug, Clone, Copy)]
pub struct SettledPages<'a> {
    /// X of each page.
    pub own: &'a [i64],
    /// D of each page.
    pub accounts: &'a [i64],
    /// Cost of a visit, which also tells whether the page has a row and links.
    pub costs: &'a [u8],
}

/// Numbers of a settled state per page, for filling.
#[derive(Debug)]
pub struct SettledPagesMut<'a> {
    /// X of each page.
    pub own: &'a mut [i64],
    /// D of each page.
    pub accounts: &'a mut [i64],
    /// See [`SettledPages::costs`].
    pub costs: &'a mut [u8],
}
