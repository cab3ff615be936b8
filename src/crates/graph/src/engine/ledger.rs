//! The ledger: every page's cash, in integers, so that the sum is exact to the unit.
//!
//! After S. Abiteboul, M. Preda, G. Cobena, "Adaptive On-Line Page Importance Computation" (WWW 2003), section 2. A
//! visited page passes its cash to the pages it links to; the virtual page (section 1) takes the teleport part, all
//! rounding and all that dangling pages cannot pass on, and pays it out to all pages alike.
//!
//! Departures from the paper: cash is whole units; a page is admitted with [`ENDOWMENT`] units, so that the supply grows
//! with the graph; and pages that nobody fetches are emptied at the end of every *round* ([`Ledger::end_round`]), because
//! the cash they hoard would stop the clock G.
//!
//! One cell per page: `cash(i) = cells[i] + paid`, wrapping, where `paid` is the sum that every page has received from
//! the virtual page. So paying all pages is one addition.
//!
//! **Law** (Lemma 2.2): after every record, the sum of all cash + `virtual_cash` = pages x [`ENDOWMENT`], exactly.

use prefetch_index::prefetch_index;
use serde::{Deserialize, Serialize};

use super::cells::Cells;
use crate::graph::Links;
use crate::model::PageId;
use crate::rows::Bits;
use crate::{Error, Result};

/// Number of pages in a chunk, the unit that a checkpoint writes: 1 MiB of cells.
pub const CHUNK_PAGES: u64 = 1 << 17;
/// Units minted when a page is admitted.
pub const ENDOWMENT: u64 = 1 << 30;
/// Length of the shortest round, in records.
pub const ROUND_MIN: u64 = 1024;

/// Number of rounds since a page was visited, encoded in four bits.
pub mod age {
    pub const NEVER: u8 = 0;
    /// Age of a page visited in the current round; 2 is the round before, and so on up to [`OLDEST`].
    pub const NOW: u8 = 1;
    /// Age of a page visited this many rounds ago or more.
    pub const OLDEST: u8 = 13;
    /// Age of a page without a record that an earlier version visited as dangling at the end of a pass.
    pub const COMPLETED: u8 = 14;
    /// Age of a page that was gone at its last visit (404, 410).
    pub const GONE: u8 = 15;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub pages: u64,
    /// A: units that every page has received from the virtual page, wrapping.
    pub paid: u64,
    /// V: units that the virtual page holds.
    pub virtual_cash: u64,
    /// W: units that the virtual page has ever received.
    pub virtual_received: u128,
    /// G: units ever distributed, which serve as the clock.
    pub clock: u128,
    /// Number of links followed: distinct targets, over all visits.
    pub followed: u128,
    /// Number of visits, without recyclings.
    pub visits: u64,
    pub rounds: u64,
    pub round_records: u64,
    pub round_length: u64,
}

impl Totals {
    pub fn start() -> Totals {
        Totals {
            round_length: ROUND_MIN,
            ..Totals::default()
        }
    }

    pub fn supply(&self) -> u128 {
        u128::from(self.pages) * u128::from(ENDOWMENT)
    }
}

pub type TargetLinks<'a> = Links<'a, u64, PageId>;

/// Returns `floor(units x d)`, with damping d in 1/2^32.
fn damped(units: u64, damping: u64) -> u64 {
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

pub struct Ledger {
    /// Cell of each page, in address space for all pages that fit.
    cells: Cells<u64>,
    /// Bitmap of the chunks that changed since the last [`Ledger::clean`].
    dirty: Bits,
    /// Ages packed two per byte, the even page in the low half.
    ages: Cells<u8>,
    totals: Totals,
    /// Damping x 2^32.
    damping: u64,
    recycle_after: u8,
}

/// Default damping, 0.85, as all versions have rounded it: the multiple of 2^-32 below.
pub(super) const USUAL_DAMPING: u64 = 3_650_722_201;

/// Converts damping to 1/2^32: the nearest multiple below 1, except for `USUAL_DAMPING`.
pub fn damping_units(damping: f64) -> u64 {
    match damping {
        0.85 => USUAL_DAMPING,
        _ => ((damping * 2f64.powi(32)).round() as u64).min((1 << 32) - 1),
    }
}

pub fn checked_damping(damping: f64) -> Result<u64> {
    if !(0.0..1.0).contains(&damping) {
        return Err(crate::Error::Usage(format!(
            "damping {damping} is outside 0 <= damping < 1 (at 1 there may be many solutions, and none has a bound; \
             0.9999999997 is about the largest)"
        )));
    }
    Ok(damping_units(damping))
}

impl Ledger {
    /// Creates an empty ledger with address space for `limit` pages. `damping` is in 1/2^32.
    pub fn new(damping: u64, recycle_after: u8, limit: u64) -> Result<Ledger> {
        let limit = limit.min(PageId::LIMIT) as usize;
        Ok(Ledger {
            cells: Cells::reserve(limit)?,
            dirty: Bits::default(),
            ages: Cells::reserve(limit.div_ceil(2))?,
            totals: Totals::start(),
            damping,
            recycle_after,
        })
    }

    /// Restores the state of a checkpoint: `load` fills cells and ages of `totals.pages` pages, at most the limit.
    pub fn restore(
        &mut self,
        totals: Totals,
        load: impl FnOnce(&mut [u64], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let pages = totals.pages as usize;
        self.totals = totals;
        self.clean();
        load(
            &mut self.cells[..pages],
            &mut self.ages[..pages.div_ceil(2)],
        )
    }

    pub(super) fn release_memory(&mut self) {
        (self.cells, self.ages) = Default::default();
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn page_limit(&self) -> u64 {
        self.cells.len() as u64
    }

    pub fn cells(&self) -> &[u64] {
        &self.cells[..self.totals.pages as usize]
    }

    pub fn ages(&self) -> &[u8] {
        &self.ages[..(self.totals.pages as usize).div_ceil(2)]
    }

    pub fn arrays(&self) -> [&[u8]; 2] {
        [bytemuck::cast_slice(self.cells()), self.ages()]
    }

    pub fn cash(&self, page: PageId) -> u64 {
        self.cells[page.index()].wrapping_add(self.totals.paid)
    }

    pub fn age(&self, page: PageId) -> u8 {
        age_at(&self.ages, page.0)
    }

    pub fn prefetch(&self, visited: impl Iterator<Item = PageId>, targets: &[PageId]) {
        for page in targets {
            prefetch_index(&*self.cells, page.index());
        }
        for page in visited {
            prefetch_index(&*self.cells, page.index());
            prefetch_index(&*self.ages, page.index() / 2);
        }
    }

    fn set_age(&mut self, page: PageId, value: u8) {
        let byte = &mut self.ages[page.index() / 2];
        let shift = (page.0 & 1) * 4;
        *byte = (*byte & !(15 << shift)) | (value << shift);
    }

    pub fn admit(&mut self) -> Result<PageId> {
        let page = PageId(self.totals.pages);
        if page.0 >= self.page_limit() {
            return Err(Error::TooManyPages {
                limit: self.page_limit(),
                keeps_links: false,
            });
        }
        self.totals.pages += 1;
        if page.0.is_multiple_of(CHUNK_PAGES) {
            self.dirty.grow(page.0 / CHUNK_PAGES + 1);
        }
        self.set(page, ENDOWMENT.wrapping_sub(self.totals.paid));
        Ok(page)
    }

    fn set(&mut self, page: PageId, cell: u64) {
        self.cells[page.index()] = cell;
        touch(&mut self.dirty, page);
    }

    /// Visits `page` with these links: distributes its cash by `Shares`, then lets the virtual page pay. `age` is the
    /// page's age after the visit: now or gone. Returns C, the units distributed by the visit.
    pub fn visit<'a>(&mut self, page: PageId, links: impl Into<TargetLinks<'a>>, age: u8) -> u64 {
        let links = links.into();
        let cash = self.empty(page);
        let shares = Shares::over(cash, self.damping, links.total());
        let kept = cash - self.hand_out(links, shares);
        self.totals.followed += links.degree() as u128;
        self.totals.visits += 1;
        self.set_age(page, age);
        self.receive(kept);
        self.pay();
        cash
    }

    /// Adds a share to each target's cell: the inner loop of section 2 of the paper. Returns the sum, wrapping.
    fn hand_out(&mut self, links: TargetLinks<'_>, shares: Shares) -> u64 {
        let cells: &mut [u64] = &mut self.cells;
        let dirty = &mut self.dirty;
        let mut add = |page: PageId, share: u64| {
            let cell = &mut cells[page.index()];
            *cell = cell.wrapping_add(share);
            touch(dirty, page);
        };
        if links.weights.is_empty() {
            let share = shares.at(1);
            links.targets.iter().for_each(|&page| add(page, share));
            return share.wrapping_mul(links.targets.len() as u64);
        }
        let mut sum = 0u64;
        for (page, weight) in links.linked() {
            let share = shares.at(weight);
            add(page, share);
            sum = sum.wrapping_add(share);
        }
        sum
    }

    /// Adds visits that are in the history but were not made by `visit`.
    pub(super) fn count_visits(&mut self, visits: u64) {
        self.totals.visits += visits;
    }

    /// Takes a page's cash, and advances G by it.
    fn empty(&mut self, page: PageId) -> u64 {
        let cash = self.cash(page);
        self.set(page, 0u64.wrapping_sub(self.totals.paid));
        self.totals.clock += u128::from(cash);
        cash
    }

    fn receive(&mut self, units: u64) {
        self.totals.virtual_cash += units;
        self.totals.virtual_received += u128::from(units);
    }

    /// Pays out the virtual page's cash to all pages alike, in whole units.
    fn pay(&mut self) {
        let each = self.totals.virtual_cash / self.totals.pages;
        self.totals.paid = self.totals.paid.wrapping_add(each);
        self.totals.virtual_cash -= each * self.totals.pages;
    }

    /// Counts one applied record. Returns true if it completes the round.
    pub fn count_record(&mut self) -> bool {
        self.totals.round_records += 1;
        self.totals.round_records >= self.totals.round_length
    }

    /// Ends the round: visits every page that was never visited, is gone, or was not visited in the last
    /// `recycle_after` rounds as a dangling page, followed by one payment; with `recycle_after` 0, none. Calls `log`
    /// with each such page, its cash (never 0) and G after its visit, in page order; an error ends the round half-way.
    pub fn end_round<E>(
        &mut self,
        mut log: impl FnMut(PageId, u64, u128) -> Result<(), E>,
    ) -> Result<(), E> {
        for page in 0..self.totals.pages {
            let id = PageId(page);
            let was = self.age(id);
            if is_recycled(was, self.recycle_after) && self.cash(id) != 0 {
                let cash = self.empty(id);
                self.receive(cash);
                log(id, cash, self.totals.clock)?;
            }
            if (age::NOW..age::OLDEST).contains(&was) {
                self.set_age(id, was + 1);
                touch(&mut self.dirty, id);
            }
        }
        if self.totals.pages > 0 {
            self.pay();
        }
        self.totals.rounds += 1;
        self.totals.round_records = 0;
        self.totals.round_length = self.totals.pages.max(ROUND_MIN);
        Ok(())
    }

    pub fn dirty_chunks(&self) -> impl Iterator<Item = u64> + '_ {
        self.dirty.all()
    }

    pub fn clean(&mut self) {
        self.dirty = Bits::new(self.totals.pages.div_ceil(CHUNK_PAGES));
    }

    pub fn check_law(&self) -> Result<(), String> {
        let paid = self.totals.paid;
        let cash: u128 = self
            .cells()
            .iter()
            .map(|&cell| u128::from(cell.wrapping_add(paid)))
            .sum();
        check_law(cash, &self.totals)
    }
}

fn touch(dirty: &mut Bits, page: PageId) {
    dirty.set(page.0 / CHUNK_PAGES);
}

/// Checks the law, given the sum of all cash.
pub fn check_law(cash: u128, totals: &Totals) -> Result<(), String> {
    let found = cash + u128::from(totals.virtual_cash);
    let expected = totals.supply();
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "the books do not balance: all cash is {found} units, but {} pages were endowed with {expected}",
        totals.pages
    ))
}

/// Returns true if a page of this age is recycled at the end of a round; never with `recycle_after` 0.
pub fn is_recycled(age: u8, recycle_after: u8) -> bool {
    match age {
        _ if recycle_after == 0 => false,
        age::NEVER | age::GONE => true,
        age::COMPLETED => false,
        rounds => rounds > recycle_after,
    }
}

/// Returns the age of a page, from ages packed two per byte.
pub fn age_at(ages: &[u8], page: u64) -> u8 {
    ages[page as usize / 2] >> ((page & 1) * 4) & 15
}
