//! The links of pages as page numbers: what settling, crawl orders, local ranks and exact PageRank
//! read, wherever the links are kept.
//!
//! A *row* is what the latest visit of a page found: the page's distinct targets. A page that was
//! visited and has no links has an empty row; a page that is only known as a target has none.

use crate::{Error, Result};

/// Page numbers in rows are below this: they are kept in 32 bits.
pub const PAGES_MAX: u64 = u32::MAX as u64;

/// The row of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// The page.
    pub page: u32,
    /// It was found gone (404, 410): it has no links, and is not to be crawled.
    pub gone: bool,
    /// Its distinct targets, in no particular order.
    pub targets: &'a [u32],
    /// Empty: all links weigh the same. Else the weight of each target; their sum is below 2^63. A
    /// target of weight 0 is a page, but no link.
    pub weights: &'a [u64],
}

impl<'a> Row<'a> {
    /// Of a page that was found, with links that all weigh the same.
    pub fn new(page: u32, targets: &'a [u32]) -> Row<'a> {
        Row {
            page,
            gone: false,
            targets,
            weights: &[],
        }
    }
}

/// Rows that can be read again and again, from the first to the last.
pub trait Rows: Sync {
    /// Pages known: all page numbers are below it.
    fn pages(&self) -> u64;

    /// Links of all rows that a sweep reads.
    fn links(&self) -> u64;

    /// Calls `visit` with the row of each page that has one, once a page, in the order in which the rows
    /// lie: the same in every sweep.
    ///
    /// # Errors
    ///
    /// Those of `visit`, which end the sweep, and those of reading.
    fn sweep(&self, visit: &mut dyn FnMut(Row<'_>) -> Result<()>) -> Result<()>;
}

/// What `read` makes of the row of one page, by a sweep that ends there; `None`: the page has none.
///
/// # Errors
///
/// Those of the sweep before it.
pub fn row_of<T>(
    rows: &dyn Rows,
    page: u32,
    mut read: impl FnMut(Row<'_>) -> T,
) -> Result<Option<T>> {
    let mut found = None;
    let swept = rows.sweep(&mut |row| {
        if row.page != page {
            return Ok(());
        }
        found = Some(read(row));
        // There is no other row of the page: this error ends the sweep, and nobody sees it.
        Err(Error::internal("found"))
    });
    match found {
        None => swept.map(|()| None),
        found => Ok(found),
    }
}
