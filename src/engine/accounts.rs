//! Accounts: a number for each page, changed page by page and link by link, and which chunks of them
//! changed. Additions wrap: see [`super::ledger`].

use prefetch_index::prefetch_index;

use super::cells::Cells;
use crate::model::PageId;
use crate::{Error, Result};

/// Pages a chunk holds: 1 MiB of accounts. Chunks are what a checkpoint writes.
pub const CHUNK_PAGES: u64 = 1 << 17;

/// A page's distinct targets, and what each weighs; no weights: all alike.
#[derive(Debug, Clone, Copy)]
pub struct Links<'a> {
    /// The targets.
    pub targets: &'a [PageId],
    /// Empty, or the weight of each; their sum is below 2^63.
    pub weights: &'a [u64],
}

impl<'a> From<&'a [PageId]> for Links<'a> {
    fn from(targets: &'a [PageId]) -> Links<'a> {
        let weights = &[];
        Links { targets, weights }
    }
}

impl<'a> Links<'a> {
    /// Those of a page without links.
    pub const NONE: Links<'static> = Links {
        targets: &[],
        weights: &[],
    };

    /// The targets that weigh something, with what they weigh.
    pub(super) fn iter(self) -> impl Iterator<Item = (PageId, u64)> + 'a {
        let weights = self.weights.iter().copied().chain(std::iter::repeat(1));
        let all = self.targets.iter().copied().zip(weights);
        all.filter(|&(_, weight)| weight > 0)
    }

    /// Number of targets that weigh something.
    pub(super) fn len(self) -> usize {
        match self.weights {
            [] => self.targets.len(),
            weights => weights.iter().filter(|&&weight| weight > 0).count(),
        }
    }

    /// The divisor of `units`.
    fn weight(self) -> u64 {
        match self.weights {
            [] => self.targets.len() as u64,
            weights => weights.iter().sum(),
        }
    }
}

/// `floor(units x d)`, with damping d in 1/2^32.
pub(super) fn damped(units: u64, damping: u64) -> u64 {
    ((u128::from(units) * u128::from(damping)) >> 32) as u64
}

/// The cash that a page hands on over its links: over one of weight w, `floor(units x d x w / all weights)`, with
/// damping d in 1/2^32. A page without links hands on nothing.
#[derive(Clone, Copy)]
pub(crate) struct Shares {
    damped: u64,
    weight: u64,
}

impl Shares {
    /// Those of `units` over `links`.
    pub fn of(units: u64, damping: u64, links: Links<'_>) -> Shares {
        Shares::over(units, damping, links.weight())
    }

    /// Those of `units` over links that weigh `weight` together.
    pub fn over(units: u64, damping: u64, weight: u64) -> Shares {
        Shares {
            damped: damped(units, damping),
            weight,
        }
    }

    /// That of a link of this weight.
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

    /// Makes room for `limit` pages, which are more than before.
    pub fn make_room(&mut self, limit: usize) -> Result<()> {
        self.cells.resize(limit)
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

    /// A page's.
    pub fn get(&self, page: PageId) -> u64 {
        self.cells[page.index()]
    }

    /// Asks for a page's to be brought near.
    pub fn prefetch(&self, page: PageId) {
        prefetch_index(&*self.cells, page.index());
    }

    /// Sets a page's.
    pub fn set(&mut self, page: PageId, value: u64) {
        self.cells[page.index()] = value;
        self.touch(page);
    }

    /// Adds to each target's the `share` of its weight: what section 2's inner loop does. Returns the
    /// sum of all shares, wrapping.
    pub fn hand_out(&mut self, links: Links<'_>, share: impl Fn(u64) -> u64) -> u64 {
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
