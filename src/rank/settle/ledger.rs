//! The ledger of a settling: X, D and T, and what a visit does to them. See [`super`] for what they mean.

use super::worth::{Cost, NO_LINKS, NO_ROW, Worth, cost, level};
use crate::engine::{Cells, SettledPages, SettledPagesMut, SettledTotals, Shares};
use crate::rank::Teleport;
use crate::rows::{Bits, Row, Rows};
use crate::{Error, Result};

/// What all pages have together at first.
const SUPPLY: i64 = 1 << 58;
/// Units are made twice as large where a page's X has passed this: the next sweep may double it.
const OWN_MAX: u64 = 1 << 61;
/// A page is in advance by at most so many tenths.
const STREAK_MAX: i8 = 4;
/// Visits between two looks at what the virtual page has for each page.
const LOOK_EVERY: u32 = 256;

pub(super) struct Ledger {
    /// X.
    own: Cells<i64>,
    /// D.
    accounts: Cells<i64>,
    costs: Cells<Cost>,
    /// How many visits in a row found something of the same sign, with that sign.
    streaks: Cells<i8>,
    pages: u64,
    damping: u64,
    teleport: Teleport,
    /// W: n where the virtual page pays all pages the same.
    weights: u64,
    /// The sum of X.
    sum: i128,
    /// T.
    virtual_page: i128,
    /// What a page has besides its account, for each unit of its weight: in the first sweep of the supply, then T/W of late.
    each: i64,
    is_first_sweep: bool,
    visits: u32,
    /// How much more than they have pages may yet hand on in this sweep.
    advance: u64,
    /// What larger units have added to [`Ledger::rounding`].
    strayed: u128,
}

impl Ledger {
    pub fn new(pages: u64, damping: u64, teleport: Teleport) -> Result<Ledger> {
        teleport.check(pages)?;
        let weights = teleport.sum(pages);
        let len = pages as usize;
        let ledger = Ledger {
            own: Cells::reserve(len)?,
            accounts: Cells::reserve(len)?,
            costs: Cells::reserve(len)?,
            streaks: Cells::reserve(len)?,
            pages,
            damping,
            teleport,
            weights,
            sum: 0,
            virtual_page: 0,
            each: SUPPLY / weights.max(1) as i64,
            is_first_sweep: true,
            visits: 0,
            advance: 0,
            strayed: 0,
        };
        ledger.own.advise_huge();
        ledger.accounts.advise_huge();
        Ok(ledger)
    }

    /// The state with these totals, of the first of so many pages; what pages have is to be filled in
    /// ([`Ledger::first_pages`]). The others have nothing.
    pub fn resume(totals: &SettledTotals, pages: u64) -> Result<Ledger> {
        let mut ledger = Ledger::new(pages, totals.damping, Teleport::default())?;
        ledger.sum = totals.sum;
        ledger.virtual_page = totals.virtual_page;
        ledger.strayed = totals.strayed;
        ledger.is_first_sweep = false;
        ledger.look();
        Ok(ledger)
    }

    /// What the first `len` pages have.
    pub fn first_pages(&mut self, len: usize) -> SettledPagesMut<'_> {
        SettledPagesMut {
            own: &mut self.own[..len],
            accounts: &mut self.accounts[..len],
            costs: &mut self.costs[..len],
        }
    }

    /// What all pages have, if the virtual page pays all the same.
    pub fn settled_pages(&self) -> Option<SettledPages<'_>> {
        self.teleport.is_uniform().then_some(SettledPages {
            own: &self.own,
            accounts: &self.accounts,
            costs: &self.costs,
        })
    }

    /// F: see the module's head.
    pub fn strayed(&self) -> u128 {
        self.strayed
    }

    /// T.
    pub fn virtual_page(&self) -> i128 {
        self.virtual_page
    }

    /// A page's row counts no more: what was handed on over it is given back. How many links that were.
    pub fn take_back(&mut self, row: &Row<'_>) -> Result<u64> {
        match self.costs.get(row.page as usize) {
            Some(&known) if known == cost_of(row) => {}
            _ => return Err(not_of_these(row.page)),
        }
        let links = self.change(row, false)?;
        self.costs[row.page as usize] = NO_ROW;
        Ok(links)
    }

    /// A page has this row now, and hands what it owns on over it. Over how many links.
    pub fn hand_out(&mut self, row: &Row<'_>) -> Result<u64> {
        match self.costs.get_mut(row.page as usize) {
            Some(known) if *known == NO_ROW => *known = cost_of(row),
            _ => return Err(not_of_these(row.page)),
        }
        self.change(row, true)
    }

    /// Hands out what the row's page owns, or takes it back. X stays as it is, and D the function of X that it is.
    fn change(&mut self, row: &Row<'_>, out: bool) -> Result<u64> {
        let own = self.own[row.page as usize];
        if own == 0 || cost_of(row) <= NO_LINKS {
            return Ok(0);
        }
        let (before, after) = if out { (0, own) } else { (own, 0) };
        self.virtual_page -= self.hand_on(row, before, after)?;
        self.look();
        Ok(row.targets.len() as u64)
    }

    /// Checks that a row is the one that the state was made with.
    pub fn check_known(&self, row: &Row<'_>) -> Result<()> {
        match self.costs.get(row.page as usize) {
            Some(&known) if known == cost_of(row) => Ok(()),
            _ => Err(not_of_these(row.page)),
        }
    }

    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// In 1/2^32.
    pub fn damping(&self) -> u64 {
        self.damping
    }

    pub fn sum(&self) -> i128 {
        self.sum
    }

    /// What the virtual page has for `len` pages from `first` on.
    pub fn paid(&self, first: usize, len: usize) -> impl Iterator<Item = f64> + '_ {
        let each = self.virtual_page as f64 / self.weights.max(1) as f64;
        (first..first + len).map(move |page| each * f64::from(self.teleport.weight(page)))
    }

    /// What every page had at first, on average.
    pub fn at_first(&self) -> i64 {
        SUPPLY / self.pages.max(1) as i64
    }

    /// (X, D) of `len` pages from `first` on.
    pub fn cells(&self, first: usize, len: usize) -> impl Iterator<Item = (i64, i64)> + '_ {
        let pages = self.own[first..][..len]
            .iter()
            .zip(&self.accounts[first..][..len]);
        pages.map(|(own, account)| (*own, *account))
    }

    /// Takes note of a row, in the first sweep.
    pub fn know(&mut self, row: &Row<'_>) -> Result<()> {
        let cost = cost_of(row);
        match self.costs.get_mut(row.page as usize) {
            Some(known) if *known == NO_ROW => *known = cost,
            Some(_) => return Err(Error::internal(format!("page {} has two rows", row.page))),
            None => return Err(unknown(row.page, self.pages)),
        }
        Ok(())
    }

    /// What a page has to hand on, as far as known.
    fn units(&self, page: usize) -> i64 {
        self.accounts[page].wrapping_add(self.paid_of_late(page))
    }

    /// What a page has besides its account.
    fn paid_of_late(&self, page: usize) -> i64 {
        paid(self.each, self.teleport.weight(page))
    }

    /// Returns whether a page that is known hands anything on over links.
    pub fn has_links(&self, page: u32) -> bool {
        let cost = self.costs.get(page as usize);
        cost.is_some_and(|cost| *cost > NO_LINKS)
    }

    /// Returns whether a visit of a page that has links is worth it.
    pub fn is_worth(&self, page: u32, from: i32) -> bool {
        let page = page as usize;
        level(self.units(page).unsigned_abs(), self.costs[page]) >= from
    }

    /// The pages with links of which a visit is worth it.
    pub fn all_worth(&self, from: i32) -> Bits {
        let mut worth = Bits::new(self.pages);
        for page in 0..self.pages as u32 {
            if self.has_links(page) && self.is_worth(page, from) {
                worth.set(page.into());
            }
        }
        worth
    }

    /// In the sweep that begins pages hand on so much in advance, at most, all together.
    pub fn begin_sweep(&mut self, advance: u128) {
        self.advance = advance.try_into().unwrap_or(u64::MAX);
    }

    /// Takes note of the sign of what a page has to hand on. What is to be added to it.
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

    /// Visits the page of a row with links.
    pub fn visit(&mut self, row: &Row<'_>) -> Result<()> {
        let page = row.page as usize;
        let units = self.units(page);
        let units = units + self.advance(page, units);
        let before = self.own[page];
        let after = before.wrapping_add(units);
        self.own[page] = after;
        self.accounts[page] = self.accounts[page].wrapping_sub(units);
        let handed_on = self.hand_on(row, before, after)?;
        self.sum += i128::from(units);
        self.virtual_page += i128::from(units) - handed_on;
        self.visits += 1;
        if self.visits >= LOOK_EVERY && !self.is_first_sweep {
            self.look();
        }
        Ok(())
    }

    /// Hands on the difference between the shares of X after a visit and before it. All of it.
    fn hand_on(&mut self, row: &Row<'_>, before: i64, after: i64) -> Result<i128> {
        let all = match row.weights {
            [] => row.targets.len() as u64,
            weights => weights.iter().sum(),
        };
        let [before, after] = [before, after].map(|own| {
            let shares = Shares::over(own.unsigned_abs(), self.damping, all);
            move |weight| {
                let share = shares.at(weight) as i64;
                if own < 0 { -share } else { share }
            }
        });
        let accounts: &mut [i64] = &mut self.accounts;
        if row.weights.is_empty() {
            let share = after(1).wrapping_sub(before(1));
            for &target in row.targets {
                let account = accounts.get_mut(target as usize);
                let account = account.ok_or_else(|| unknown(target, self.pages))?;
                *account = account.wrapping_add(share);
            }
            return Ok(i128::from(share) * row.targets.len() as i128);
        }
        let mut handed_on = 0;
        for (&target, &weight) in row.targets.iter().zip(row.weights) {
            let share = after(weight).wrapping_sub(before(weight));
            let account = accounts.get_mut(target as usize);
            let account = account.ok_or_else(|| unknown(target, self.pages))?;
            *account = account.wrapping_add(share);
            handed_on += i128::from(share);
        }
        Ok(handed_on)
    }

    /// What the virtual page has for each unit of weight, rounded down.
    fn look(&mut self) {
        self.visits = 0;
        self.each = self
            .virtual_page
            .div_euclid(i128::from(self.weights.max(1))) as i64;
    }

    /// Visits all pages without links again and again, until nothing waits at any: with c = T/W at the end, D
    /// is -c w at each of these pages, so that c W = T + sum of their D + c times the sum of their weights w.
    pub fn visit_dangling(&mut self) {
        let costs = self.costs.iter();
        let dangling = |cost: &Cost| *cost <= NO_LINKS;
        let (mut weights, mut waiting) = (0u64, 0i128);
        for (page, (account, cost)) in self.accounts.iter().zip(costs).enumerate() {
            if dangling(cost) {
                weights += u64::from(self.teleport.weight(page));
                waiting += i128::from(*account);
            }
        }
        let each = match self.weights - weights {
            // Nobody who is paid has links: each has its part of the supply.
            0 => SUPPLY / self.weights.max(1) as i64,
            linked => (self.virtual_page + waiting).div_euclid(i128::from(linked)) as i64,
        };
        let mut moved = 0i128;
        let pages = self.accounts.iter_mut().zip(self.own.iter_mut());
        for (page, ((account, own), cost)) in pages.zip(self.costs.iter()).enumerate() {
            if dangling(cost) {
                let paid = paid(each, self.teleport.weight(page));
                let units = account.wrapping_add(paid);
                *own = own.wrapping_add(units);
                *account = paid.wrapping_neg();
                moved += i128::from(units);
            }
        }
        self.sum += moved;
        self.virtual_page += moved;
        self.is_first_sweep = false;
        self.look();
    }

    /// What waits at all pages.
    pub fn weigh(&self) -> Worth {
        let rest = self
            .virtual_page
            .rem_euclid(i128::from(self.weights.max(1)));
        let mut worth = Worth::new(rest as u64);
        for (page, cost) in self.costs.iter().enumerate() {
            worth.add(self.units(page).unsigned_abs(), *cost);
        }
        worth
    }

    /// By how many units Y may be off from one step from X, where rows have so many links.
    pub fn rounding(&self, links: u64) -> u128 {
        self.strayed + 2 * u128::from(links)
    }

    /// Makes units twice as large where numbers might get too large: see the module's head.
    pub fn keep_in_bounds(&mut self, links: u64) {
        if self.own.iter().any(|own| own.unsigned_abs() > OWN_MAX) {
            self.halve(links);
        }
    }

    /// Makes units twice as large, where rows have so many links.
    pub fn halve(&mut self, links: u64) {
        let halve = |units: &mut i64| {
            *units >>= 1;
            i128::from(*units)
        };
        self.sum = self.own.iter_mut().map(halve).sum();
        self.virtual_page = -self.accounts.iter_mut().map(halve).sum::<i128>();
        self.strayed = self.strayed.div_ceil(2) + 3 * (u128::from(self.pages) + u128::from(links));
        self.look();
    }

    /// What pages below 0 are short of, of the sum of Y and of X.
    pub fn below(&self) -> (u128, u128) {
        let below = |units: i128| units.min(0).unsigned_abs();
        let (mut received, mut distributed) = (0, 0);
        for (page, (own, account)) in self.own.iter().zip(self.accounts.iter()).enumerate() {
            let own = i128::from(*own);
            received += below(own + i128::from(*account) + i128::from(self.paid_of_late(page)));
            distributed += below(own);
        }
        (received, distributed)
    }

    /// Checks the law; the error says by how much it fails.
    pub fn check_law(&self) -> std::result::Result<(), String> {
        let sum = |cells: &[i64]| cells.iter().map(|&units| i128::from(units)).sum::<i128>();
        let (accounts, own) = (sum(&self.accounts), sum(&self.own));
        if accounts == -self.virtual_page && own == self.sum {
            return Ok(());
        }
        Err(format!(
            "settling: the books do not balance: all accounts are {accounts} units for {} of the virtual page, and all \
             pages own {own} units, not {}; please report it",
            self.virtual_page, self.sum
        ))
    }
}

/// What a page of this weight is paid, where a unit of weight is paid `each`.
fn paid(each: i64, weight: u32) -> i64 {
    each.wrapping_mul(i64::from(weight))
}

fn cost_of(row: &Row<'_>) -> Cost {
    match row.weights {
        [] => cost(row.targets.len() as u64),
        weights => cost(weights.iter().filter(|&&weight| weight > 0).count() as u64),
    }
}

/// A settled state and rows do not belong together.
fn not_of_these(page: u32) -> Error {
    Error::internal(format!(
        "the settled base was made with another row of page {page}"
    ))
}

fn unknown(page: u32, pages: u64) -> Error {
    Error::internal(format!(
        "a row names page {page}, but only {pages} are known"
    ))
}

impl Ledger {
    /// Whether D is what the module's head defines, from X alone, over these rows; where units were made larger, as
    /// nearly as it says.
    pub fn is_function_of_own(&self, rows: &dyn Rows) -> Result<bool> {
        let mut other = Ledger::new(self.pages, self.damping, self.teleport.clone())?;
        for (account, own) in other.accounts.iter_mut().zip(self.own.iter()) {
            *account = own.wrapping_neg();
        }
        rows.sweep(&mut |row| {
            let own = self.own.get(row.page as usize);
            let own = *own.ok_or_else(|| unknown(row.page, self.pages))?;
            self.check_known(&row)?;
            if cost_of(&row) > NO_LINKS {
                other.hand_on(&row, 0, own)?;
            }
            Ok(())
        })?;
        let off = |(one, other): (&i64, &i64)| u128::from(one.abs_diff(*other));
        let accounts = self.accounts.iter().zip(other.accounts.iter());
        Ok(2 * accounts.map(off).sum::<u128>() <= self.strayed)
    }
}
