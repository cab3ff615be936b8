//! Pages of a settling: X and D of each, and the effect of a visit on them. See [`super`] for their meaning.

use std::ops::Range;

use prefetch_index::prefetch_index;

use super::settling::LedgerTotals;
use super::shards::{self, Message};
use super::worth::{Cost, LevelHistogram, NO_LINKS, NO_ROW, REMOTE, cost, level};
use crate::engine::{Cells, SettledPages, SettledPagesMut, Shares};
use crate::rank::Teleport;
use crate::rank::peers::RemotePages;
#[cfg(test)]
use crate::rows::Rows;
use crate::rows::{Bits, Row};
use crate::threads::join;
use crate::{Error, Result};

/// Initial sum over all pages.
pub(super) const SUPPLY: i64 = 1 << 58;
/// Bound on X beyond which units are doubled: the next sweep may double X.
const OWN_MAX: u64 = 1 << 61;
/// Maximum over-relaxation of a page, in tenths.
const STREAK_MAX: i8 = 4;
/// Number of visits between two updates of the virtual page's payment.
const LOOK_EVERY: u32 = 256;
/// Number of targets of a row that are prefetched before its visit; the others are during it.
const TOUCHED: usize = 64;
/// Distance in rows, or remote pages, at which a page's numbers are prefetched.
const NEAR: usize = 16;
/// Distance in rows at which a row's targets are prefetched, and their accounts.
const NEAR_TARGETS: usize = 10;
const NEAR_ACCOUNTS: usize = 4;
/// Number of targets per cache line.
const LINE: usize = 16;
/// Number of pages from which work on each page alone is split into two halves in parallel.
const HALVES_FROM: usize = 1 << 16;

/// Pages of a store, or of one shard.
pub(super) struct LedgerBlock {
    /// X of each page.
    own: Cells<i64>,
    /// D of each page.
    accounts: Cells<i64>,
    costs: Cells<Cost>,
    /// Number of consecutive visits with the same sign of K, with that sign.
    streaks: Cells<i8>,
    teleport: Teleport,
    /// Sums over all pages as of the last [`LedgerBlock::tell`].
    totals: LedgerTotals,
    /// Payment to a page on top of its account, per unit of its weight.
    each: i64,
    /// Changes of the sum of X and of T that are not part of the totals yet, and the number of links passed over.
    pub moved: [i128; 3],
    visits: u32,
    /// ||K||_1 as of the last [`LedgerBlock::weigh`].
    norm: u128,
    /// Units that pages may still pass on in excess of what they have, in this sweep.
    advance: u64,
}

impl LedgerBlock {
    pub fn new(pages: u64, totals: LedgerTotals, teleport: Teleport) -> Result<LedgerBlock> {
        let len = pages as usize;
        let mut block = LedgerBlock {
            own: Cells::reserve(len)?,
            accounts: Cells::reserve(len)?,
            costs: Cells::reserve(len)?,
            streaks: Cells::reserve(len)?,
            teleport,
            totals,
            each: totals.each(),
            moved: [0; 3],
            visits: 0,
            norm: 0,
            advance: 0,
        };
        // Reading the memory before writing would fault each page twice.
        block.streaks.fill(0);
        Ok(block)
    }

    fn len(&self) -> u64 {
        self.costs.len() as u64
    }

    /// Returns the numbers of the first `len` pages, for filling.
    pub fn first_pages(&mut self, len: usize) -> SettledPagesMut<'_> {
        SettledPagesMut {
            own: &mut self.own[..len],
            accounts: &mut self.accounts[..len],
            costs: &mut self.costs[..len],
        }
    }

    /// Returns the numbers of all pages; `None` if the teleport is not uniform.
    pub fn settled_pages(&self) -> Option<SettledPages<'_>> {
        self.teleport.is_uniform().then_some(SettledPages {
            own: &self.own,
            accounts: &self.accounts,
            costs: &self.costs,
        })
    }

    /// Marks pages as remote: the virtual page does not pay them, and what they receive waits for their owners.
    pub fn set_remote(&mut self, pages: &[u32]) -> Result<()> {
        let len = self.len();
        for &page in pages {
            let cost = self.costs.get_mut(page as usize);
            *cost.ok_or_else(|| unknown(page, len))? = REMOTE;
        }
        Ok(())
    }

    /// Takes the accounts of remote pages as one message ([`super::shards`]) per shard: exactly with `all`; otherwise
    /// most of the units, rounded, while the rest stays.
    pub fn take_remote(&mut self, remote: &[RemotePages], all: bool) -> Vec<Vec<u8>> {
        let accounts: &mut [i64] = &mut self.accounts;
        let least = (!all).then(|| {
            // In the order of memory.
            let pages = accounts.iter().zip(self.costs.iter());
            let remote = pages.filter(|(_, cost)| **cost == REMOTE);
            shards::least_sent(remote.map(|(account, _)| account.unsigned_abs()))
        });
        let message = |remote: &RemotePages| {
            let mut message = Message::new(least);
            for (at, (&here, &there)) in remote.here.iter().zip(&remote.there).enumerate() {
                if let Some(&later) = remote.here.get(at + NEAR) {
                    prefetch_index(&*accounts, later as usize);
                }
                let account = &mut accounts[here as usize];
                *account -= message.put(there, *account);
            }
            message.bytes()
        };
        remote.iter().map(message).collect()
    }

    /// Adds what another shard sent to the accounts of pages.
    pub fn take_in(&mut self, message: &[u8]) -> Result<()> {
        let (pages, accounts, costs) = (self.len(), &mut self.accounts, &self.costs);
        shards::each_of(message, &mut |page, units| {
            let is_own = costs.get(page as usize).is_some_and(|&cost| cost != REMOTE);
            if !is_own {
                return Err(unknown(page, pages));
            }
            let account = &mut accounts[page as usize];
            *account = account.wrapping_add(units);
            Ok(())
        })
    }

    /// Sets the sums over all pages, which visits depend on.
    pub fn tell(&mut self, totals: LedgerTotals) {
        self.totals = totals;
        self.each = totals.each();
        self.visits = 0;
    }

    /// Removes a superseded row: takes back what was passed on over it.
    pub fn take_back(&mut self, row: &Row<'_>) -> Result<()> {
        self.check_known(row)?;
        self.change(row, false)?;
        self.costs[row.page as usize] = NO_ROW;
        Ok(())
    }

    /// Adds the new row of a page, and passes X on over it.
    pub fn hand_out(&mut self, row: &Row<'_>) -> Result<()> {
        self.know(row)?;
        self.change(row, true)
    }

    /// Passes X of the row's page on over its links, or takes it back. X does not change, and D remains the function of
    /// X and the rows.
    fn change(&mut self, row: &Row<'_>, out: bool) -> Result<()> {
        let own = self.own[row.page as usize];
        if own != 0 && cost_of(row) > NO_LINKS {
            let (before, after) = if out { (0, own) } else { (own, 0) };
            self.moved[1] -= self.hand_on(row, before, after)?;
        }
        Ok(())
    }

    /// Checks that a row is the one with which the state was made.
    pub fn check_known(&self, row: &Row<'_>) -> Result<()> {
        match self.costs.get(row.page as usize) {
            Some(&known) if known == cost_of(row) => Ok(()),
            _ => Err(Error::internal(format!(
                "the row of page {} is another one than it was settled with",
                row.page
            ))),
        }
    }

    /// Iterates over X, D and the weight of `len` pages from `first` on.
    pub fn cells(&self, first: usize, len: usize) -> impl Iterator<Item = (i64, i64, u64)> + '_ {
        let pages = self.own[first..][..len].iter();
        let pages = pages.zip(&self.accounts[first..][..len]).zip(first..);
        pages.map(|((own, account), page)| (*own, *account, self.teleport.weight(page)))
    }

    /// Registers the row of a page that has none.
    pub fn know(&mut self, row: &Row<'_>) -> Result<()> {
        let cost = cost_of(row);
        let page = row.page;
        match self.costs.get_mut(page as usize) {
            Some(known) if *known == NO_ROW => *known = cost,
            Some(_) => return Err(Error::internal(format!("page {page} has two rows"))),
            None => return Err(unknown(page, self.len())),
        }
        Ok(())
    }

    /// Returns K of a page, as far as known.
    fn units(&self, page: usize) -> i64 {
        self.accounts[page].wrapping_add(self.paid_of_late(page))
    }

    /// Returns the virtual page's payment to a page, which its account does not contain.
    fn paid_of_late(&self, page: usize) -> i64 {
        paid(self.each, self.teleport.weight(page))
    }

    /// Returns true if a known page passes anything on over links.
    pub fn has_links(&self, page: u32) -> bool {
        let cost = self.costs.get(page as usize);
        cost.is_some_and(|cost| *cost > NO_LINKS)
    }

    /// Prefetches what the visits of rows after the one at `at` need: rows come in the order of a crawl, so their pages are
    /// scattered in memory.
    #[inline]
    pub fn prefetch(&self, rows: &[Row<'_>], at: usize) {
        if let Some(later) = rows.get(at + NEAR) {
            let page = later.page as usize;
            prefetch_index(&*self.costs, page);
            prefetch_index(&*self.accounts, page);
            prefetch_index(&*self.own, page);
            prefetch_index(&*self.streaks, page);
        }
        if let Some(later) = rows.get(at + NEAR_TARGETS) {
            for at in (0..later.targets.len().min(TOUCHED)).step_by(LINE) {
                prefetch_index(later.targets, at);
            }
        }
        if let Some(later) = rows.get(at + NEAR_ACCOUNTS) {
            for &target in later.targets.iter().take(TOUCHED) {
                prefetch_index(&*self.accounts, target as usize);
            }
        }
    }

    /// Returns true if a page with links reaches the level `from` for a visit.
    pub fn is_worth(&self, page: u32, from: i32) -> bool {
        let page = page as usize;
        level(self.units(page).unsigned_abs(), self.costs[page]) >= from
    }

    pub fn all_worth(&self, from: i32) -> Bits {
        let of = |pages: Range<usize>| {
            Bits::of(pages.start as u64..pages.end as u64, |page| {
                let cost = self.costs[page as usize];
                cost > NO_LINKS && cost != REMOTE && self.is_worth(page as u32, from)
            })
        };
        self.over_all(of, Bits::and)
    }

    /// Begins a sweep, in which over-relaxation passes on at most half of ||K||_1.
    pub fn begin_sweep(&mut self, over_relaxes: bool) {
        let advance = if over_relaxes { self.norm / 2 } else { 0 };
        self.advance = advance.try_into().unwrap_or(u64::MAX);
    }

    /// Updates the sign run of a page. Returns the units to add for over-relaxation.
    fn advance(&mut self, page: usize, units: i64) -> i64 {
        let sign = units.signum() as i8;
        let streak = &mut self.streaks[page];
        let before = if streak.signum() == sign {
            streak.abs()
        } else {
            0
        };
        *streak = sign * (before + 1).min(STREAK_MAX);
        let advance = units / 10 * i64::from(before);
        match self.advance.checked_sub(advance.unsigned_abs()) {
            Some(left) => {
                self.advance = left;
                advance
            }
            None => 0,
        }
    }

    pub fn visit(&mut self, row: &Row<'_>) -> Result<()> {
        let page = row.page as usize;
        let units = self.units(page);
        let units = units + self.advance(page, units);
        let before = self.own[page];
        let after = before.wrapping_add(units);
        self.own[page] = after;
        self.accounts[page] = self.accounts[page].wrapping_sub(units);
        let handed_on = self.hand_on(row, before, after)?;
        self.moved[0] += i128::from(units);
        self.moved[1] += i128::from(units) - handed_on;
        self.visits += 1;
        if self.visits >= LOOK_EVERY && !self.totals.is_first_sweep {
            self.look();
        }
        Ok(())
    }

    /// Passes on the difference between the shares of X after a visit and before it. Returns their sum.
    fn hand_on(&mut self, row: &Row<'_>, before: i64, after: i64) -> Result<i128> {
        self.moved[2] += row.targets.len() as i128;
        let all = row.total();
        let [before, after] = [before, after].map(|own| {
            let shares = Shares::over(own.unsigned_abs(), self.totals.damping, all);
            move |weight| {
                let share = shares.at(weight) as i64;
                if own < 0 { -share } else { share }
            }
        });
        let accounts: &mut [i64] = &mut self.accounts;
        let pages = accounts.len() as u64;
        if row.weights.is_empty() {
            let share = after(1).wrapping_sub(before(1));
            for (at, &target) in row.targets.iter().enumerate() {
                if let Some(&later) = row.targets.get(at + TOUCHED) {
                    prefetch_index(&*accounts, later as usize);
                }
                let account = accounts.get_mut(target as usize);
                let account = account.ok_or_else(|| unknown(target, pages))?;
                *account = account.wrapping_add(share);
            }
            return Ok(i128::from(share) * row.targets.len() as i128);
        }
        let mut handed_on = 0;
        for (&target, &weight) in row.targets.iter().zip(row.weights) {
            let share = after(weight).wrapping_sub(before(weight));
            let account = accounts.get_mut(target as usize);
            let account = account.ok_or_else(|| unknown(target, pages))?;
            *account = account.wrapping_add(share);
            handed_on += i128::from(share);
        }
        Ok(handed_on)
    }

    /// Updates the virtual page's payment per unit of weight, rounded down.
    fn look(&mut self) {
        self.visits = 0;
        self.each = each(
            self.totals.virtual_page + self.moved[1],
            self.totals.weights,
        );
    }

    /// Combines the results of `of` over all pages; over two halves in parallel if there are many.
    fn over_all<T: Send>(
        &self,
        of: impl Fn(Range<usize>) -> T + Sync,
        and: impl FnOnce(T, T) -> T,
    ) -> T {
        let pages = self.costs.len();
        let half = (pages / 2).next_multiple_of(64).min(pages);
        let (first, second) = join(pages >= HALVES_FROM, || of(0..half), || of(half..pages));
        and(first, second)
    }

    /// Returns the sums over pages without links: of their weights, and of what waits at them.
    pub fn dangling(&self) -> [i128; 2] {
        let of = |pages: Range<usize>| {
            let (mut weights, mut waiting) = (0u64, 0i128);
            let cells = self.accounts[pages.clone()].iter();
            for ((account, cost), page) in cells.zip(&self.costs[pages.clone()]).zip(pages) {
                if *cost <= NO_LINKS {
                    weights += self.teleport.weight(page);
                    waiting += i128::from(*account);
                }
            }
            [weights.into(), waiting]
        };
        self.over_all(of, plus)
    }

    /// Returns the distribution of what waits at all pages, besides `rest` units; the sums of X and of D; and a number
    /// above 0 if an X is so large that units should be doubled. First visits the pages without links if it gets the
    /// final payment to them per unit of weight.
    pub fn weigh(&mut self, dangling: Option<i64>, rest: u64) -> (LevelHistogram, [i128; 3]) {
        let pages = self.costs.len();
        let half = pages / 2;
        let (costs, teleport, each) = (&*self.costs, &self.teleport, self.each);
        let own = self.own.split_at_mut(half);
        let accounts = self.accounts.split_at_mut(half);
        let weigh = |first: usize, accounts: &mut [i64], own: &mut [i64]| {
            let (mut worth, mut unvisitable) = (LevelHistogram::default(), 0);
            let (mut sum, mut waiting, mut largest) = (0, 0, 0);
            let cells = accounts.iter_mut().zip(own);
            for (((account, own), &cost), page) in cells.zip(&costs[first..]).zip(first..) {
                let weight = teleport.weight(page);
                if let Some(each) = dangling
                    && cost <= NO_LINKS
                {
                    let paid = paid(each, weight);
                    *own = own.wrapping_add(account.wrapping_add(paid));
                    *account = paid.wrapping_neg();
                }
                sum += i128::from(*own);
                waiting += i128::from(*account);
                largest = largest.max(own.unsigned_abs());
                let paid = if cost == REMOTE {
                    0
                } else {
                    paid(each, weight)
                };
                let units = account.wrapping_add(paid).unsigned_abs();
                if cost <= NO_LINKS || cost == REMOTE {
                    unvisitable += i128::from(units);
                } else {
                    worth.add(units, cost);
                }
            }
            worth.units[0] = unvisitable;
            (worth, [sum, waiting, (largest > OWN_MAX).into()])
        };
        let ((worth, sums), (more_worth, more)) = join(
            pages >= HALVES_FROM,
            || weigh(0, accounts.0, own.0),
            || weigh(half, accounts.1, own.1),
        );
        let worth = worth.and(more_worth);
        self.norm = worth.norm() + u128::from(rest);
        (worth, plus(sums, more))
    }

    /// Doubles the units, which halves the numbers. Returns the sums of X and D.
    pub fn halve(&mut self) -> [i128; 2] {
        let halve = |units: &mut i64| {
            *units >>= 1;
            i128::from(*units)
        };
        let own = self.own.iter_mut().map(halve).sum();
        [own, self.accounts.iter_mut().map(halve).sum()]
    }

    pub fn below(&self) -> [i128; 2] {
        let below = |units: i128| -units.min(0);
        let (mut received, mut distributed) = (0, 0);
        let cells = self.own.iter().zip(self.accounts.iter());
        for (page, (own, account)) in cells.enumerate() {
            if self.costs[page] == REMOTE {
                continue;
            }
            let own = i128::from(*own);
            received += below(own + i128::from(*account) + i128::from(self.paid_of_late(page)));
            distributed += below(own);
        }
        [received, distributed]
    }

    /// Resets D to its value before anything is passed on, for the X of `other`.
    #[cfg(test)]
    pub fn own_as(&mut self, other: &LedgerBlock) {
        for (account, own) in self.accounts.iter_mut().zip(other.own.iter()) {
            *account = own.wrapping_neg();
        }
    }

    /// Passes on over these rows what the pages of `other` own.
    #[cfg(test)]
    pub fn hand_on_all(&mut self, other: &LedgerBlock, rows: &dyn Rows) -> Result<()> {
        let all = rows.sweep(&mut |row| {
            let own = other.own.get(row.page as usize);
            let own = *own.ok_or_else(|| unknown(row.page, other.len()))?;
            other.check_known(&row)?;
            if cost_of(&row) > NO_LINKS {
                self.hand_on(&row, 0, own)?;
            }
            Ok(())
        });
        all.map(drop)
    }

    /// Returns the L1 distance of all accounts from those of `other`.
    #[cfg(test)]
    pub fn differs(&self, other: &LedgerBlock) -> u128 {
        let accounts = self.accounts.iter().zip(other.accounts.iter());
        accounts
            .map(|(one, other)| u128::from(one.abs_diff(*other)))
            .sum()
    }
}

pub(super) fn plus<const N: usize>(one: [i128; N], other: [i128; N]) -> [i128; N] {
    std::array::from_fn(|at| one[at] + other[at])
}

/// Returns the payment per unit of weight out of `units`, rounded down.
pub(super) fn each(units: i128, weights: u64) -> i64 {
    units.div_euclid(i128::from(weights.max(1))) as i64
}

fn paid(each: i64, weight: u64) -> i64 {
    each.wrapping_mul(weight as i64)
}

fn cost_of(row: &Row<'_>) -> Cost {
    cost(row.degree() as u64)
}

fn unknown(page: u32, pages: u64) -> Error {
    Error::internal(format!(
        "a row names page {page}, but only {pages} are known"
    ))
}
