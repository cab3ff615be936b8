//! Accounts: one number per page, updated by page and by link, with a record of which chunks changed. Additions wrap:
//! see [`super::ledger`].

use prefetch_index::prefetch_index;

use super::cells::Cells;
use crate::model::PageId;
use crate::{Error, Result};

/// Number of pages in a chunk, the unit that a checkpoint writes: 1 MiB of accounts.
pub const CHUNK_PAGES: u64 = 1 << 17;

/// Distinct link targets of a page with their weights; without weights, all links weigh the same.
#[derive(Debug, Clone, Copy)]
pub struct TargetLinks<'a> {
    /// Target pages, each at most once.
    pub targets: &'a [PageId],
    /// Weight of each target, or empty; the sum is below 2^63.
    pub weights: &'a [u64],
}

impl<'a> From<&'a [PageId]> for TargetLinks<'a> {
    fn from(targets: &'a [PageId]) -> TargetLinks<'a> {
        let weights = &[];
        TargetLinks { targets, weights }
    }
}

impl<'a> TargetLinks<'a> {
    /// Links of a page that has none.
    pub const NONE: TargetLinks<'static> = TargetLinks {
        targets: &[],
        weights: &[],
    };

    /// Iterates over the targets of nonzero weight, with their weights.
    pub(super) fn iter(self) -> impl Iterator<Item = (PageId, u64)> + 'a {
        let weights = self.weights.iter().copied().chain(std::iter::repeat(1));
        let all = self.targets.iter().copied().zip(weights);
        all.filter(|&(_, weight)| weight > 0)
    }

    /// Returns the number of targets of nonzero weight.
    pub(super) fn len(self) -> usize {
        match self.weights {
            [] => self.targets.len(),
            weights => weights.iter().filter(|&&weight| weight > 0).count(),
        }
    }

    /// Returns the sum of all weights, by which `units` are divided.
    fn weight(self) -> u64 {
        match self.weights {
            [] => self.targets.len() as u64,
            weights => weights.iter().sum(),
        }
    }
}

/// Returns `floor(units x d)`, with damping d in 1/2^32.
pub(super) fn damped(units: u64, damping: u64) -> u64 {
    ((u128::from(units) * u128::from(damping)) >> 32) as u64
}

/// Cash that a page passes on over its links: `floor(units x d x w / all weights)` over a link of weight w, with
/// damping d in 1/2^32. A page without links passes on nothing.
#[derive(Clone, Copy)]
pub struct Shares {
    damped: u64,
    weight: u64,
}

impl Shares {
    /// Splits `units` over `links`.
    pub fn of(units: u64, damping: u64, links: TargetLinks<'_>) -> Shares {
        Shares::over(units, damping, links.weight())
    }

    /// Splits `units` over links whose weights sum to `weight`.
    pub fn over(units: u64, damping: u64, weight: u64) -> Shares {
        Shares {
            damped: damped(units, damping),
            weight,
        }
    }

    pub fn at(self, weight: u64) -> u64 {
        match (self.weight, weight) {
            (0, _) => 0,
            (all, 1) => self.damped / all,
            (all, weight) => {
                (u128::from(self.damped) * u128::from(weight) / u128::from(all)) as u64
            }
        }
    }
}

/// One number per page; see the module documentation.
pub(super) struct Accounts {
    cells: Cells<u64>,
    /// Bitmap of the chunks that changed since the last [`Accounts::clean`].
    dirty: Vec<u64>,
    pages: usize,
}

impl Accounts {
    /// Creates an empty table with room for `limit` pages (address space only).
    pub fn new(limit: usize) -> Result<Accounts> {
        Ok(Accounts {
            cells: Cells::reserve(limit)?,
            dirty: Vec::new(),
            pages: 0,
        })
    }

    /// Resizes to the `pages` of a checkpoint, all 0; the caller fills them by [`Accounts::all_mut`].
    pub fn restore(&mut self, pages: usize) {
        self.pages = pages;
        self.cells.in_use(pages.next_power_of_two());
        self.dirty = vec![0; pages.div_ceil(CHUNK_PAGES as usize).div_ceil(64)];
    }

    /// Makes room for `limit` pages, which must be more than before.
    pub fn make_room(&mut self, limit: usize) -> Result<()> {
        self.cells.resize(limit)
    }

    /// Returns the largest number of pages that fit.
    pub fn limit(&self) -> usize {
        self.cells.len()
    }

    /// Returns all accounts, in page order.
    pub fn all(&self) -> &[u64] {
        &self.cells[..self.pages]
    }

    /// Returns all accounts for filling from a checkpoint; no chunk is marked as changed.
    pub fn all_mut(&mut self) -> &mut [u64] {
        &mut self.cells[..self.pages]
    }

    /// Appends the account of the next page.
    pub fn open(&mut self, value: u64) -> Result<PageId> {
        let page = PageId(self.pages as u64);
        if self.pages >= self.limit() {
            return Err(Error::TooManyPages {
                limit: self.limit() as u64,
                keeps_links: false,
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

    pub fn get(&self, page: PageId) -> u64 {
        self.cells[page.index()]
    }

    pub fn prefetch(&self, page: PageId) {
        prefetch_index(&*self.cells, page.index());
    }

    pub fn set(&mut self, page: PageId, value: u64) {
        self.cells[page.index()] = value;
        self.touch(page);
    }

    /// Adds the `share` of its weight to each target's account (the inner loop of section 2 of the paper). Returns the
    /// sum of all shares, wrapping.
    pub fn hand_out(&mut self, links: TargetLinks<'_>, share: impl Fn(u64) -> u64) -> u64 {
        let cells: &mut [u64] = &mut self.cells;
        let dirty = &mut self.dirty;
        let mut add = |page: PageId, share: u64| {
            let cell = &mut cells[page.index()];
            *cell = cell.wrapping_add(share);
            touch(dirty, page);
        };
        if links.weights.is_empty() {
            let share = share(1);
            links.targets.iter().for_each(|&page| add(page, share));
            return share.wrapping_mul(links.targets.len() as u64);
        }
        let mut sum = 0u64;
        for (page, weight) in links.iter() {
            let share = share(weight);
            add(page, share);
            sum = sum.wrapping_add(share);
        }
        sum
    }

    /// Marks the chunk of a page as changed.
    pub fn touch(&mut self, page: PageId) {
        touch(&mut self.dirty, page);
    }

    /// Iterates over the chunks changed since the last [`Accounts::clean`], in order.
    pub fn dirty_chunks(&self) -> impl Iterator<Item = u64> + '_ {
        let chunks = (self.pages as u64).div_ceil(CHUNK_PAGES);
        (0..chunks).filter(|&c| self.dirty[c as usize / 64] >> (c % 64) & 1 == 1)
    }

    /// Marks all chunks as unchanged, after they were written to disk.
    pub fn clean(&mut self) {
        self.dirty.fill(0);
    }
}

/// Marks the chunk of a page as changed in `dirty`, a bitmap of chunks.
fn touch(dirty: &mut [u64], page: PageId) {
    let chunk = page.index() / CHUNK_PAGES as usize;
    // The bit is usually set already; writing it again would serialise the loop over links.
    let (word, bit) = (&mut dirty[chunk / 64], 1 << (chunk % 64));
    if *word & bit == 0 {
        *word |= bit;
    }
}
