//! The ledger: every page's cash, in integers, so that the books balance to the last unit.
//!
//! After S. Abiteboul, M. Preda, G. Cobena, "Adaptive On-Line Page Importance Computation" (WWW
//! 2003), section 2. A visited page hands its cash to the pages it links to; the virtual page
//! (section 1) takes the teleport part, all rounding and all that dangling pages cannot hand on,
//! and pays it out to all pages alike.
//!
//! Departures from the paper: money is whole units, not fractions of 1; a page brings
//! [`ENDOWMENT`] units with it when it is admitted, so that the supply grows with the graph; and
//! pages that nobody fetches are emptied at the end of every *round* ([`Ledger::end_round`]),
//! because the cash they hoard would stop the clock G. With `recycle_after` 0 none is, as in the paper, whose
//! proof (Lemma 6.2) has every page visited again and again.
//!
//! One cell a page: `cash(i) = cells[i] + paid`, wrapping, where `paid` is what every page has
//! received from the virtual page since the start. Paying all pages is one addition.
//!
//! **Law** (Lemma 2.2): after every record, the sum of all cash + `virtual_cash` = pages x
//! [`ENDOWMENT`], exactly.

use prefetch_index::prefetch_index;
use serde::{Deserialize, Serialize};

use super::accounts::{Accounts, Links, Shares};
use super::cells::Cells;
use crate::Result;
use crate::model::PageId;

/// Units minted when a page is admitted.
pub const ENDOWMENT: u64 = 1 << 30;

/// Shortest round, in records.
pub const ROUND_MIN: u64 = 1024;

/// How long ago a page was visited, in four bits.
pub mod age {
    /// Never visited.
    pub const NEVER: u8 = 0;
    /// Visited in the running round; 2: in the one before; and so on up to [`OLDEST`].
    pub const NOW: u8 = 1;
    /// That many rounds ago or more.
    pub const OLDEST: u8 = 13;
    /// Known as a link target only, and visited as dangling at the end of every pass.
    pub const COMPLETED: u8 = 14;
    /// The last visit found the page gone (404, 410).
    pub const GONE: u8 = 15;
}

/// The sums of the ledger. Plain values: the manifest stores them, marks keep copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Pages admitted.
    pub pages: u64,
    /// A: what every page has received from the virtual page, wrapping.
    pub paid: u64,
    /// V: what the virtual page holds.
    pub virtual_cash: u64,
    /// W: all the virtual page ever received.
    pub virtual_received: u128,
    /// G: all cash ever distributed. The clock.
    pub clock: u128,
    /// Links followed: distinct targets, over all visits.
    pub followed: u128,
    /// Visits, recyclings not counted.
    pub visits: u64,
    /// Rounds ended.
    pub rounds: u64,
    /// Records of the running round so far.
    pub round_records: u64,
    /// Records after which the running round ends.
    pub round_length: u64,
}

impl Totals {
    /// Before the first record.
    pub fn start() -> Totals {
        Totals {
            round_length: ROUND_MIN,
            ..Totals::default()
        }
    }

    /// All units minted: pages x [`ENDOWMENT`].
    pub fn supply(&self) -> u128 {
        u128::from(self.pages) * u128::from(ENDOWMENT)
    }
}

/// The record of a visit for the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paid {
    /// Cash distributed: C.
    pub cash: u64,
    /// G right after.
    pub clock: u128,
}

/// The money of all pages. See the module's head.
pub struct Ledger {
    cells: Accounts,
    /// Two pages a byte, the even one in the low half.
    ages: Cells<u8>,
    totals: Totals,
    /// Damping x 2^32.
    damping: u64,
    /// Rounds without a visit after which a page's cash is recycled; 0: no page's ever is.
    recycle_after: u8,
}

/// The usual damping, 0.85, as all versions have taken it: the multiple of 2^-32 below.
pub(super) const USUAL_DAMPING: u64 = 3_650_722_201;

/// Damping as it is used, in 1/2^32: the nearest multiple below 1, but for `USUAL_DAMPING`.
pub fn damping_units(damping: f64) -> u64 {
    match damping {
        0.85 => USUAL_DAMPING,
        _ => ((damping * 2f64.powi(32)).round() as u64).min((1 << 32) - 1),
    }
}

/// The same of a damping that is in range.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage): it is not.
pub fn checked_damping(damping: f64) -> Result<u64> {
    if !(0.0..1.0).contains(&damping) {
        return Err(crate::Error::Usage(format!(
            "damping {damping} is outside 0 <= damping < 1 (at 1 there may be many solutions, and none has a bound; \
             0.9999999997 is about the largest)"
        )));
    }
    Ok(damping_units(damping))
}

/// Whether the system grants the address space for a ledger of so many pages.
pub(crate) fn has_room(pages: u64) -> bool {
    Ledger::new(0, 0, pages).is_ok()
}

impl Ledger {
    /// An empty ledger with room for `limit` pages (address space only).
    /// `damping` is in 1/2^32 ([`Config::damping_units`](super::Config::damping_units)); `recycle_after` at most 12.
    pub fn new(damping: u64, recycle_after: u8, limit: u64) -> Result<Ledger> {
        let limit = limit.min(PageId::LIMIT) as usize;
        Ok(Ledger {
            cells: Accounts::new(limit)?,
            ages: Cells::reserve(limit.div_ceil(2))?,
            totals: Totals::start(),
            damping,
            recycle_after,
        })
    }

    /// Takes up where a checkpoint left off: `load` fills cells and ages of `totals.pages` pages, at
    /// most the limit.
    pub(crate) fn restore(
        &mut self,
        totals: Totals,
        load: impl FnOnce(&mut [u64], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let pages = totals.pages as usize;
        self.totals = totals;
        self.cells.restore(pages);
        self.ages.in_use(pages.next_power_of_two() / 2);
        load(self.cells.all_mut(), &mut self.ages[..pages.div_ceil(2)])
    }

    /// Gives up cells and ages.
    pub(super) fn rest(&mut self) -> Result<()> {
        self.cells = Accounts::new(0)?;
        self.ages = Cells::reserve(0)?;
        Ok(())
    }

    /// The sums.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Most pages there may be.
    pub fn page_limit(&self) -> u64 {
        self.cells.limit() as u64
    }

    /// Makes room for so many pages, if there is less; for half as many more than before, up to `limit`, so that growing bit by
    /// bit costs little.
    pub(crate) fn make_room(&mut self, pages: u64, limit: u64) -> Result<()> {
        let room = self.page_limit();
        if pages <= room {
            return Ok(());
        }
        let room = pages.max(room + room / 2).min(limit).max(room) as usize;
        self.cells.make_room(room)?;
        self.ages.resize(room.div_ceil(2))
    }

    /// The cells of all pages. See the module's head for what they mean.
    pub fn cells(&self) -> &[u64] {
        self.cells.all()
    }

    /// The ages of all pages, two a byte ([`age`]).
    pub fn ages(&self) -> &[u8] {
        &self.ages[..(self.totals.pages as usize).div_ceil(2)]
    }

    /// Cells and ages, as bytes.
    pub(crate) fn arrays(&self) -> [&[u8]; 2] {
        [bytemuck::cast_slice(self.cells()), self.ages()]
    }

    /// A page's cash.
    pub fn cash(&self, page: PageId) -> u64 {
        self.cells.get(page).wrapping_add(self.totals.paid)
    }

    /// A page's age ([`age`]).
    pub fn age(&self, page: PageId) -> u8 {
        age_at(&self.ages, page.0)
    }

    /// Asks for what a visit of `page` needs to be brought near.
    pub(crate) fn prefetch(&self, page: PageId) {
        self.cells.prefetch(page);
        prefetch_index(&*self.ages, page.index() / 2);
    }

    /// The same of a link to `page`.
    pub(crate) fn prefetch_target(&self, page: PageId) {
        self.cells.prefetch(page);
    }

    fn set_age(&mut self, page: PageId, value: u8) {
        let byte = &mut self.ages[page.index() / 2];
        let shift = (page.0 & 1) * 4;
        *byte = (*byte & !(15 << shift)) | (value << shift);
    }

    /// Admits the next page with its endowment.
    pub fn admit(&mut self) -> Result<PageId> {
        let page = self.cells.open(ENDOWMENT.wrapping_sub(self.totals.paid))?;
        self.totals.pages += 1;
        if self.totals.pages.is_power_of_two() {
            self.ages.in_use(self.totals.pages as usize / 2);
        }
        Ok(page)
    }

    /// Visits `page`, which has these links: distributes its cash, then lets the virtual page pay. `age`
    /// is what the visit makes of it: now, completed or gone.
    ///
    /// Section 2's inner loop; a link's share is `floor(cash x d x weight / all weights)`, the rest goes to
    /// the virtual page.
    pub fn visit<'a>(&mut self, page: PageId, links: impl Into<Links<'a>>, age: u8) -> Paid {
        let links = links.into();
        let cash = self.empty(page);
        let shares = Shares::of(cash, self.damping, links);
        let kept = cash - self.cells.hand_out(links, |weight| shares.at(weight));
        self.totals.followed += links.len() as u128;
        self.totals.visits += 1;
        self.set_age(page, age);
        self.receive(kept);
        self.pay();
        Paid {
            cash,
            clock: self.totals.clock,
        }
    }

    /// Counts visits that were made elsewhere: the history has them.
    pub(super) fn count_visits(&mut self, visits: u64) {
        self.totals.visits += visits;
    }

    /// Takes a page's cash and counts it as distributed.
    fn empty(&mut self, page: PageId) -> u64 {
        let cash = self.cash(page);
        self.cells.set(page, 0u64.wrapping_sub(self.totals.paid));
        self.totals.clock += u128::from(cash);
        cash
    }

    fn receive(&mut self, units: u64) {
        self.totals.virtual_cash += units;
        self.totals.virtual_received += u128::from(units);
    }

    /// The virtual page pays all pages alike, as far as whole units go.
    fn pay(&mut self) {
        let each = self.totals.virtual_cash / self.totals.pages;
        self.totals.paid = self.totals.paid.wrapping_add(each);
        self.totals.virtual_cash -= each * self.totals.pages;
    }

    /// Counts one applied record; true if it fills the round.
    pub fn count_record(&mut self) -> bool {
        self.totals.round_records += 1;
        self.totals.round_records >= self.totals.round_length
    }

    /// Ends the round: every page that never was visited, is gone, or was not visited in the last
    /// `recycle_after` rounds is visited as a dangling page, in bulk, followed by one payment. With
    /// `recycle_after` 0 no page is.
    /// `log` is called with each page and its cash (never 0), in page order; its errors end the round
    /// half-way.
    pub fn end_round<E>(
        &mut self,
        mut log: impl FnMut(PageId, Paid) -> Result<(), E>,
    ) -> Result<(), E> {
        for page in 0..self.totals.pages {
            let id = PageId(page);
            let was = self.age(id);
            if is_recycled(was, self.recycle_after) && self.cash(id) != 0 {
                let cash = self.empty(id);
                self.receive(cash);
                log(
                    id,
                    Paid {
                        cash,
                        clock: self.totals.clock,
                    },
                )?;
            }
            if (age::NOW..age::OLDEST).contains(&was) {
                self.set_age(id, was + 1);
                self.cells.touch(id);
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

    /// The chunks changed since the last [`Ledger::clean`], in order.
    pub(crate) fn dirty_chunks(&self) -> impl Iterator<Item = u64> + '_ {
        self.cells.dirty_chunks()
    }

    /// Forgets which chunks changed: they are on disk.
    pub(crate) fn clean(&mut self) {
        self.cells.clean();
    }

    /// Checks the law over all pages; the error says by how much it fails.
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

/// The law, given the sum of all cash.
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

/// Returns whether a page of this age is recycled at the end of a round; with `recycle_after` 0 none is.
pub fn is_recycled(age: u8, recycle_after: u8) -> bool {
    match age {
        _ if recycle_after == 0 => false,
        age::NEVER | age::GONE => true,
        age::COMPLETED => false,
        rounds => rounds > recycle_after,
    }
}

/// The age of page `page` in ages packed two a byte.
pub fn age_at(ages: &[u8], page: u64) -> u8 {
    ages[page as usize / 2] >> ((page & 1) * 4) & 15
}
