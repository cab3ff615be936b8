//! Accounts: a number for each page, changed page by page and link by link, and which chunks of them
//! changed. Both ledgers keep theirs here: the cash in units ([`super::ledger`]), and what is to be
//! corrected in units with a sign ([`super::correction`]). Additions wrap, so that two's complement
//! serves both.

use super::cells::Cells;
use super::page::PageId;
use crate::{Error, Result};

/// Pages a chunk holds: 1 MiB of accounts. Chunks are what a checkpoint writes.
pub const CHUNK_PAGES: u64 = 1 << 17;

/// What a page hands on over each of its `links`: `floor(units x d / links)`, with damping d in
/// 1/2^32. A page without links hands on nothing.
pub(super) fn share(units: u64, damping: u64, links: usize) -> u64 {
    let damped = ((u128::from(units) * u128::from(damping)) >> 32) as u64;
    damped.checked_div(links as u64).unwrap_or(0)
}

/// One number a page. See the module's head.
pub(super) struct Accounts {
    cells: Cells<u64>,
    /// A bit for each chunk changed since the last [`Accounts::clean`].
    dirty: Vec<u64>,
    pages: usize,
}

impl Accounts {
    /// None yet, with room for `limit` pages (address space only).
    pub fn new(limit: usize) -> Result<Accounts> {
        Ok(Accounts {
            cells: Cells::reserve(limit)?,
            dirty: Vec::new(),
            pages: 0,
        })
    }

    /// As many as a checkpoint had, all 0 and to be filled ([`Accounts::all_mut`]).
    pub fn restore(&mut self, pages: usize) {
        self.pages = pages;
        self.cells.in_use(pages.next_power_of_two());
        self.dirty = vec![0; pages.div_ceil(CHUNK_PAGES as usize).div_ceil(64)];
    }

    /// Most pages there may be.
    pub fn limit(&self) -> usize {
        self.cells.len()
    }

    /// All, in page order.
    pub fn all(&self) -> &[u64] {
        &self.cells[..self.pages]
    }

    /// All, to be filled with what a checkpoint had: no chunk counts as changed.
    pub fn all_mut(&mut self) -> &mut [u64] {
        &mut self.cells[..self.pages]
    }

    /// The next page's.
    pub fn open(&mut self, value: u64) -> Result<PageId> {
        let page = PageId(self.pages as u64);
        if self.pages >= self.limit() {
            return Err(Error::TooManyPages {
                limit: self.limit() as u64,
            });
        }
        self.pages += 1;
        if self.pages.is_power_of_two() {
            self.cells.in_use(self.pages);
        }
        if page.0.is_multiple_of(64 * CHUNK_PAGES) {
            self.dirty.push(0);
        }
        self.set(page, value);
        Ok(page)
    }

    /// A page's.
    pub fn get(&self, page: PageId) -> u64 {
        self.cells[page.index()]
    }

    /// All, to be changed: every chunk counts as changed.
    pub fn change_all(&mut self) -> &mut [u64] {
        self.dirty.fill(u64::MAX);
        &mut self.cells[..self.pages]
    }

    /// Sets a page's.
    pub fn set(&mut self, page: PageId, value: u64) {
        self.cells[page.index()] = value;
        self.touch(page);
    }

    /// Adds the same to each page's: what section 2's inner loop does.
    pub fn hand_out(&mut self, pages: &[PageId], share: u64) {
        let cells: &mut [u64] = &mut self.cells;
        for &page in pages {
            let cell = &mut cells[page.index()];
            *cell = cell.wrapping_add(share);
            touch(&mut self.dirty, page);
        }
    }

    /// Notes that something of a page changed.
    pub fn touch(&mut self, page: PageId) {
        touch(&mut self.dirty, page);
    }

    /// The chunks changed since the last [`Accounts::clean`], in order.
    pub fn dirty_chunks(&self) -> impl Iterator<Item = u64> + '_ {
        let chunks = (self.pages as u64).div_ceil(CHUNK_PAGES);
        (0..chunks).filter(|&c| self.dirty[c as usize / 64] >> (c % 64) & 1 == 1)
    }

    /// Forgets which chunks changed: they are on disk.
    pub fn clean(&mut self) {
        self.dirty.fill(0);
    }
}

/// Notes that a page's chunk changed. `dirty` has a bit for the chunk of every page.
fn touch(dirty: &mut [u64], page: PageId) {
    let chunk = page.index() / CHUNK_PAGES as usize;
    // Most often it is noted already. To write it again would make each link wait for the one before.
    let (word, bit) = (&mut dirty[chunk / 64], 1 << (chunk % 64));
    if *word & bit == 0 {
        *word |= bit;
    }
}
