//! The correction ledger: exponential convergence, in whatever order pages are visited.
//!
//! Where cash flows through a graph that does not change, importance converges with 1/G: what a page
//! was given once is never taken back. Here it is. Let X be any estimate, and Y = L'X, one step of the
//! damped walk from it. K = Y - X is *signed cash*: it sums to 0, and where it is 0 everywhere X is
//! PageRank. A visit of page i adds K_i to X_i and hands it on as cash is handed on; credits and debts
//! cancel on the way. (K. Avrachenkov, P. Brown, N. Litvak, "Red Light Green Light Method for Solving
//! Large Markov Chains", 2022; OPIC is the case without debts.)
//!
//! In integers: `accounts` hold D, the link part of Y - X; `own` holds X; T is all that went to the
//! virtual page. K_i = D_i + T / pages. A page has handed on `share(X_i)` over each link, so that a
//! visit hands on the difference between the new share and the old one: rounding does not add up, and
//! is less than a unit for each link, however often the page is visited.
//!
//! **Law**: sum of D + T = 0 and sum of X = `sum`, exactly, after every record.
//!
//! **Two phases.** *Gathering* copies the cash ledger: a visit adds what the page distributes there.
//! That makes a pair X, Y of a window, and the certificate holds for it, too. *Correcting* pays where
//! pages come back: it begins with a repeated pass, or after a round in half of whose visits they did,
//! once half a turnover is complete.
//!
//! **Rows.** All of this holds for links that stay as they are. Of each page's links a hash is kept.
//! When a visit finds others, at most 2 d |X_i| of Y is in the wrong places and nobody knows which:
//! that much is added to `stale`, and the certificate counts it. A page that had no links, or was never
//! visited, has put nothing in wrong places: it hands on the share of all of X_i. When `stale` is a
//! 64th of all and four times what waits, there is little left to correct, and with 1 - d of all nothing
//! is certain: gathering begins again. In a repeated pass links don't change, but a page may have several records: the last one of a pass
//! counts, others are passed over, and what the first pass made of them is given up with it.
//!
//! The hash is a sum over the targets, so that their order does not matter. It has no key: with
//! knowledge of page numbers, links could be made up that have the hash of others.
//!
//! **Recycling.** Pages without links, and those never visited, are settled at the end of every round.
//! Pages with links that are not visited any more keep what waits for them.
//!
//! **Certificate.** With s = `sum`, r = ||Y - X||_1, and e = (2 x `rounding` + `stale`) / s, by which Y
//! is off from one step over today's links: ||Y - pi||_1 <= (d r + e)/(1 - d) and ||X - pi||_1 <=
//! (r + e)/(1 - d). pi is the PageRank of the graph as last crawled; a page not fetched yet has no
//! links. Each holds because the damped walk shrinks differences by d: ||X - pi|| <= ||X - L'X|| +
//! d ||X - pi||, and ||L'X - X|| <= r + e; and Y is within e of L'X.

use prefetch_index::prefetch_index;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::accounts::{Accounts, Links, Shares, damped};
use super::cells::Cells;
use super::ledger::{ENDOWMENT, Paid};
use crate::Result;
use crate::model::PageId;

/// Bytes of memory a page.
pub(crate) const BYTES: u64 = 24;

/// `sum` is kept below. With `stale` at most (1 - d) of it, all |X| together are at most three times as
/// much, and no account leaves 63 bits.
const SUM_MAX: i128 = 1 << 60;
/// Gathering begins anew where more than this is in the wrong places. Links that come and go leave at most half of
/// `stale` at a page, and one visit adds at most 2 d SUM_MAX to it: so an account is at most SUM_MAX +
/// (SUM_MAX/4 + 2 d SUM_MAX)/2 < 2^63, and no number overflows.
const STALE_MAX: u128 = SUM_MAX as u128 / 4;
/// Gathering begins with units so small that a turnover has at most so many bits, but at most
/// [`SHIFT_MAX`] bits smaller than those of cash.
const TURNOVER_BITS: u32 = 58;
const SHIFT_MAX: u32 = 27;

/// The hash of a page never visited: it has no links.
const NEVER: u64 = 0;
/// The hash of no links.
const EMPTY: u64 = 1;

/// What a page's links are known by, in any order.
fn row_hash(links: Links<'_>) -> u64 {
    let sum = links.iter().fold(0u64, |sum, (target, weight)| {
        // Pages are below 2^34; a weight is another link.
        let link = u128::from(target.0) | u128::from(weight - 1) << 64;
        sum.wrapping_add(match weight {
            1 => xxh3_64(&target.0.to_le_bytes()),
            _ => xxh3_64(&link.to_le_bytes()),
        })
    });
    match links.len() {
        0 => EMPTY,
        _ => sum.max(EMPTY + 1),
    }
}

/// Whether a page with this hash of its links has none.
pub(super) fn has_no_links(row: u64) -> bool {
    row <= EMPTY
}

/// What the correction ledger does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It copies the cash ledger.
    #[default]
    Gathering,
    /// It hands on what waits.
    Correcting,
}

/// The sums of the correction ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionTotals {
    /// What it does.
    pub phase: Phase,
    /// G when gathering began.
    pub began: u128,
    /// The sum of X.
    pub sum: i128,
    /// T: what went to the virtual page.
    pub virtual_page: i128,
    /// At most so many units of Y are where links no longer lead, and as many are missing where they do.
    pub stale: u128,
    /// Y is off by at most so many units because of rounding, and the virtual page by as many.
    pub rounding: u128,
    /// Links in rows, each counted when its row was first seen.
    pub links: u128,
    /// Gathered units are cash x 2^this.
    pub shift: u32,
    /// Visits of the running round.
    pub visits: u64,
    /// And how many of them of pages visited before.
    pub returned: u64,
    /// A pass is repeated: links don't change.
    pub again: bool,
}

impl CorrectionTotals {
    /// Before the first record.
    pub fn start() -> CorrectionTotals {
        CorrectionTotals {
            shift: SHIFT_MAX,
            ..CorrectionTotals::default()
        }
    }

    /// What each page has of the virtual page's.
    pub(super) fn each(&self, pages: u64) -> i64 {
        self.virtual_page.div_euclid(i128::from(pages.max(1))) as i64
    }
}

/// The three arrays of a chunk, or of all pages.
#[derive(Debug, Default)]
pub struct Arrays<T> {
    /// D.
    pub accounts: T,
    /// X.
    pub own: T,
    /// Hashes of the links.
    pub rows: T,
}

impl<'a> Arrays<&'a mut [u64]> {
    /// As they are stored.
    pub(crate) fn into_bytes(self) -> Vec<&'a mut [u8]> {
        [self.accounts, self.own, self.rows]
            .map(bytemuck::cast_slice_mut)
            .into()
    }
}

impl<'a> Arrays<&'a [u64]> {
    /// As they are stored.
    pub(crate) fn into_bytes(self) -> [&'a [u8]; 3] {
        [self.accounts, self.own, self.rows].map(bytemuck::cast_slice)
    }
}

/// See the module's head.
pub(crate) struct Correction {
    accounts: Accounts,
    own: Cells<u64>,
    rows: Cells<u64>,
    totals: CorrectionTotals,
    damping: u64,
}

impl Correction {
    /// An empty one, with room for `limit` pages (address space only).
    pub fn new(damping: u64, limit: u64) -> Result<Correction> {
        let limit = limit.min(PageId::LIMIT) as usize;
        Ok(Correction {
            accounts: Accounts::new(limit)?,
            own: Cells::reserve(limit)?,
            rows: Cells::reserve(limit)?,
            totals: CorrectionTotals::start(),
            damping,
        })
    }

    /// Takes up where a checkpoint left off.
    pub fn restore(
        &mut self,
        totals: CorrectionTotals,
        pages: usize,
        load: impl FnOnce(Arrays<&mut [u64]>) -> Result<()>,
    ) -> Result<()> {
        self.totals = totals;
        self.accounts.restore(pages);
        self.own.in_use(pages.next_power_of_two());
        self.rows.in_use(pages.next_power_of_two());
        load(Arrays {
            accounts: self.accounts.all_mut(),
            own: &mut self.own[..pages],
            rows: &mut self.rows[..pages],
        })
    }

    /// The sums.
    pub fn totals(&self) -> &CorrectionTotals {
        &self.totals
    }

    /// The arrays of all pages.
    pub fn arrays(&self) -> Arrays<&[u64]> {
        let accounts = self.accounts.all();
        Arrays {
            accounts,
            own: &self.own[..accounts.len()],
            rows: &self.rows[..accounts.len()],
        }
    }

    /// The chunks changed since the last [`Correction::clean`], in order.
    pub fn dirty_chunks(&self) -> impl Iterator<Item = u64> + '_ {
        self.accounts.dirty_chunks()
    }

    /// Forgets which chunks changed: they are on disk.
    pub fn clean(&mut self) {
        self.accounts.clean();
    }

    /// Asks for what a visit of `page` needs to be brought near.
    pub fn prefetch(&self, page: PageId) {
        self.accounts.prefetch(page);
        prefetch_index(&*self.own, page.index());
        prefetch_index(&*self.rows, page.index());
    }

    /// The same of a link to `page`.
    pub fn prefetch_target(&self, page: PageId) {
        self.accounts.prefetch(page);
    }

    /// Admits the next page. It has nothing; its part of the virtual page's is everybody's loss.
    pub fn admit(&mut self) -> Result<()> {
        let page = self.accounts.open(0)?;
        let pages = page.index() + 1;
        if pages.is_power_of_two() {
            self.own.in_use(pages);
            self.rows.in_use(pages);
        }
        Ok(())
    }

    /// A pass is repeated, from G = `clock` on.
    pub fn begin_pass(&mut self, clock: u128) {
        if !self.totals.again && self.totals.stale > 0 {
            self.gather(clock);
        }
        self.totals.again = true;
        self.correct(clock);
    }

    /// Begins to correct, if half of all cash was distributed since gathering began.
    fn correct(&mut self, clock: u128) {
        let enough = 2 * (clock - self.totals.began) >= self.supply();
        if self.totals.phase == Phase::Gathering && enough && self.totals.sum > 0 {
            self.totals.phase = Phase::Correcting;
            self.settle();
        }
    }

    /// Visits `page`, which has these links and distributes `paid` in the cash ledger.
    pub fn visit<'a>(&mut self, page: PageId, links: impl Into<Links<'a>>, paid: Paid) {
        let links = links.into();
        let row = row_hash(links);
        let old = self.rows[page.index()];
        let is_new = row != old;
        if self.totals.again && is_new && old != NEVER {
            return;
        }
        if self.totals.phase == Phase::Gathering && self.totals.stale > STALE_MAX {
            self.gather(paid.clock);
        }
        self.totals.visits += 1;
        self.totals.returned += u64::from(old != NEVER);
        let units = self.units(page, paid.cash);
        let before = self.own[page.index()] as i64;
        if is_new {
            self.totals.links += links.len() as u128;
            self.totals.rounding += links.len() as u128;
            self.rows[page.index()] = row;
            if !has_no_links(old) {
                self.totals.stale += self.misplaced(before);
            }
        }
        let handed_on = match is_new && has_no_links(old) {
            true => 0,
            false => before,
        };
        let after = before.wrapping_add(units);
        let [before, after] = [handed_on, after].map(|own| self.shares(own, links));
        self.add(page, units);
        let handed_on = self
            .accounts
            .hand_out(links, |weight| (after(weight) - before(weight)) as u64);
        self.totals.virtual_page += i128::from(units) - i128::from(handed_on as i64);
        self.keep_in_bounds(paid.clock);
    }

    /// Empties a page that has no links, as the cash ledger recycles it.
    pub fn recycle(&mut self, page: PageId, cash: u64) {
        if self.totals.phase == Phase::Gathering && has_no_links(self.rows[page.index()]) {
            let units = self.units(page, cash);
            self.add(page, units);
            self.totals.virtual_page += i128::from(units);
        }
    }

    /// Ends a round, at G = `clock`.
    pub fn end_round(&mut self, clock: u128) {
        let returns = 2 * self.totals.returned >= self.totals.visits;
        (self.totals.returned, self.totals.visits) = (0, 0);
        if self.totals.phase == Phase::Gathering {
            if returns {
                self.correct(clock);
            }
            return;
        }
        let waits = self.settle();
        let much = self.totals.sum.max(0) as u128 / 64;
        if self.totals.stale > much.max(4 * waits) || self.totals.sum <= 0 {
            self.gather(clock);
        }
    }

    fn supply(&self) -> u128 {
        self.accounts.all().len() as u128 * u128::from(ENDOWMENT)
    }

    /// Hands on what waits at pages without links; what then waits in all.
    fn settle(&mut self) -> u128 {
        let pages = self.accounts.all().len() as u64;
        let each = self.totals.each(pages);
        let mut sum = 0i128;
        for (page, (own, row)) in self
            .own
            .iter_mut()
            .zip(self.rows.iter())
            .enumerate()
            .take(pages as usize)
        {
            let page = PageId(page as u64);
            let units = (self.accounts.get(page) as i64).wrapping_add(each);
            if has_no_links(*row) && units != 0 {
                *own = own.wrapping_add(units as u64);
                self.accounts.set(page, each.wrapping_neg() as u64);
                sum += i128::from(units);
            }
        }
        self.totals.sum += sum;
        self.totals.virtual_page += sum;
        let each = self.totals.each(pages);
        let waits = |account: &u64| u128::from((*account as i64).wrapping_add(each).unsigned_abs());
        self.accounts.all().iter().map(waits).sum()
    }

    /// Begins anew, at G = `clock`.
    fn gather(&mut self, clock: u128) {
        let accounts = self.accounts.change_all();
        accounts.fill(0);
        self.own[..accounts.len()].fill(0);
        let bits = u128::BITS - self.supply().leading_zeros();
        self.totals = CorrectionTotals {
            began: clock,
            links: self.totals.links,
            rounding: self.totals.links,
            shift: TURNOVER_BITS.saturating_sub(bits).min(SHIFT_MAX),
            again: self.totals.again,
            ..CorrectionTotals::default()
        };
    }

    /// What a visit of `page` moves.
    fn units(&mut self, page: PageId, cash: u64) -> i64 {
        while self.totals.phase == Phase::Gathering {
            let units = i128::from(cash) << self.totals.shift;
            if self.totals.sum + units <= SUM_MAX {
                return units as i64;
            }
            match self.totals.shift {
                0 => self.totals.phase = Phase::Correcting,
                _ => self.halve(),
            }
        }
        let pages = self.accounts.all().len() as u64;
        (self.accounts.get(page) as i64).wrapping_add(self.totals.each(pages))
    }

    /// Moves units from a page's account to its own.
    fn add(&mut self, page: PageId, units: i64) {
        let own = &mut self.own[page.index()];
        *own = own.wrapping_add(units as u64);
        let account = self.accounts.get(page);
        self.accounts.set(page, account.wrapping_sub(units as u64));
        self.totals.sum += i128::from(units);
    }

    /// Part of `own` that went over each of some links.
    fn shares(&self, own: i64, links: Links<'_>) -> impl Fn(u64) -> i64 + use<> {
        let shares = Shares::of(own.unsigned_abs(), self.damping, links);
        move |weight| {
            let share = shares.at(weight) as i64;
            if own < 0 { -share } else { share }
        }
    }

    /// How far Y is off when other links are found: d |X_i| is where it should not be, and as much
    /// is missing elsewhere.
    fn misplaced(&self, own: i64) -> u128 {
        2 * (u128::from(damped(own.unsigned_abs(), self.damping)) + 1)
    }

    fn keep_in_bounds(&mut self, clock: u128) {
        if self.totals.phase == Phase::Gathering {
            return;
        }
        if self.totals.sum > SUM_MAX {
            self.halve();
        }
        // There is no bound below 1 then, and X may be below 0 here and far above 0 there.
        let undamped = (1 << 32) - u128::from(self.damping);
        if self.totals.stale > (self.totals.sum.max(0) as u128 * undamped) >> 32 {
            self.gather(clock);
        }
    }

    /// Makes units twice as large.
    fn halve(&mut self) {
        let accounts = self.accounts.change_all();
        let halve = |value: &mut u64| {
            *value = (*value as i64 >> 1) as u64;
            i128::from(*value as i64)
        };
        let own = self.own[..accounts.len()].iter_mut();
        self.totals.sum = own.map(halve).sum();
        self.totals.virtual_page = -accounts.iter_mut().map(halve).sum::<i128>();
        // A page's account and its own are off by a half each, and so is all that it has handed on; from
        // its next visit on each link, as when it is new, by less than one.
        let pages = accounts.len() as u128;
        self.totals.rounding = self.totals.rounding.div_ceil(2) + self.totals.links + 2 * pages;
        self.totals.stale = self.totals.stale.div_ceil(2);
        self.totals.shift = self.totals.shift.saturating_sub(1);
    }

    /// Checks the law; the error says by how much it fails.
    pub fn check_law(&self) -> std::result::Result<(), String> {
        let arrays = self.arrays();
        let sum = |values: &[u64]| values.iter().map(|&value| i128::from(value as i64)).sum();
        check_law(sum(arrays.accounts), sum(arrays.own), &self.totals)
    }
}

/// The law, given the sums of D and X.
pub(super) fn check_law(
    accounts: i128,
    own: i128,
    totals: &CorrectionTotals,
) -> std::result::Result<(), String> {
    if accounts == -totals.virtual_page && own == totals.sum {
        return Ok(());
    }
    Err(format!(
        "the books do not balance: all accounts are {accounts} units for {} of the virtual page, and all \
         pages own {own} units, not {}",
        totals.virtual_page, totals.sum
    ))
}
