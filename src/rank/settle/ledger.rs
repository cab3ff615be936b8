//! The ledger of a settling: what all pages have ([`Block`]), and the sums of it. See [`super`] for what they mean.

use super::block::{self, Block, OWN_MAX, SUPPLY, Sums, Whole};
use super::worth::Worth;
use crate::engine::SettledTotals;
use crate::rank::Teleport;
use crate::rows::Rows;
use crate::{Error, Result};

pub(super) struct Ledger {
    block: Block,
    pages: u64,
    damping: u64,
    /// W: n where the virtual page pays all pages the same.
    weights: u64,
    /// The sum of X.
    sum: i128,
    /// T.
    virtual_page: i128,
    is_first_sweep: bool,
    /// What larger units have added to [`Ledger::rounding`].
    strayed: u128,
}

impl Ledger {
    pub fn new(pages: u64, damping: u64, teleport: &Teleport) -> Result<Ledger> {
        teleport.check(pages)?;
        Ok(Ledger {
            block: Block::new(pages, damping, teleport.clone())?,
            pages,
            damping,
            weights: teleport.sum(pages),
            sum: 0,
            virtual_page: 0,
            is_first_sweep: true,
            strayed: 0,
        })
    }

    /// The state with these totals, of so many pages, which are paid alike; what they have is to be filled in
    /// ([`Block::first_pages`]). Those that are not have nothing.
    pub fn resume(totals: &SettledTotals, pages: u64) -> Result<Ledger> {
        let mut ledger = Ledger::new(pages, totals.damping, &Teleport::default())?;
        ledger.sum = totals.sum;
        ledger.virtual_page = totals.virtual_page;
        ledger.strayed = totals.strayed;
        ledger.is_first_sweep = false;
        Ok(ledger)
    }

    /// What pages have.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The same, to be filled in.
    pub fn block_mut(&mut self) -> &mut Block {
        &mut self.block
    }

    /// F: see the module's head.
    pub fn strayed(&self) -> u128 {
        self.strayed
    }

    /// T.
    pub fn virtual_page(&self) -> i128 {
        self.virtual_page
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

    /// What the virtual page has for a unit of weight.
    pub fn paid(&self) -> f64 {
        self.virtual_page as f64 / self.weights.max(1) as f64
    }

    /// What every page had at first, on average.
    pub fn at_first(&self) -> i64 {
        SUPPLY / self.pages.max(1) as i64
    }

    /// Does something by which pages may hand something on.
    pub fn hand_on<T>(&mut self, work: impl FnOnce(&mut Block) -> Result<T>) -> Result<T> {
        self.block.tell(self.whole());
        let done = work(&mut self.block)?;
        let moved = self.block.take_moved();
        self.sum += moved.sum;
        self.virtual_page += moved.virtual_page;
        Ok(done)
    }

    /// The sums that visits depend on.
    fn whole(&self) -> Whole {
        Whole {
            virtual_page: self.virtual_page,
            weights: self.weights,
            each: if self.is_first_sweep {
                SUPPLY / self.weights.max(1) as i64
            } else {
                block::each(self.virtual_page, self.weights)
            },
            is_first_sweep: self.is_first_sweep,
        }
    }

    /// Visits all pages without links again and again, until nothing waits at any: with c = T/W at the end, D
    /// is -c w at each of these pages, so that c W = T + sum of their D + c times the sum of their weights w.
    pub fn visit_dangling(&mut self) {
        let dangling = self.block.dangling();
        let each = match self.weights.saturating_sub(dangling.weights) {
            // Nobody who is paid has links: each has its part of the supply.
            0 => SUPPLY / self.weights.max(1) as i64,
            linked => block::each(self.virtual_page + dangling.waiting, linked),
        };
        let moved = dangling.waiting + i128::from(each) * i128::from(dangling.weights);
        self.sum += moved;
        self.virtual_page += moved;
        self.is_first_sweep = false;
        self.block.visit_dangling(each);
    }

    /// Checks the law, and finds what waits at all pages. If rows have so many `links`, numbers that might get too large are
    /// made smaller first.
    pub fn weigh(&mut self, links: Option<u64>) -> Result<Worth> {
        let sums = self.check_law()?;
        if let Some(links) = links
            && sums.own_max > OWN_MAX
        {
            self.halve(links);
            self.check_law()?;
        }
        self.block.tell(self.whole());
        let weights = i128::from(self.weights.max(1));
        let rest = self.virtual_page.rem_euclid(weights);
        Ok(self.block.weigh().with_rest(rest as u64))
    }

    /// Checks the law. The sums.
    pub fn check_law(&self) -> Result<Sums> {
        let sums = self.block.sums();
        let Sums { own, accounts, .. } = sums;
        if accounts == -self.virtual_page && own == self.sum {
            return Ok(sums);
        }
        Err(Error::internal(format!(
            "settling: the books do not balance: all accounts are {accounts} units for {} of the virtual page, and all \
             pages own {own} units, not {}; please report it",
            self.virtual_page, self.sum
        )))
    }

    /// By how many units Y may be off from one step from X, where rows have so many links.
    pub fn rounding(&self, links: u64) -> u128 {
        self.strayed + 2 * u128::from(links)
    }

    /// Makes units twice as large, where rows have so many links.
    pub fn halve(&mut self, links: u64) {
        let (own, accounts) = self.block.halve();
        self.sum = own;
        self.virtual_page = -accounts;
        self.strayed = self.strayed.div_ceil(2) + 3 * (u128::from(self.pages) + u128::from(links));
    }

    /// What pages below 0 are short of, of the sum of Y and of X.
    pub fn below(&mut self) -> (u128, u128) {
        self.block.tell(self.whole());
        self.block.below()
    }

    /// Whether D is what the module's head defines, from X alone, over these rows; where units were made larger, as nearly
    /// as it says.
    pub fn is_function_of_own(&self, rows: &dyn Rows) -> Result<bool> {
        let mut other = Ledger::new(rows.pages(), self.damping, &Teleport::default())?;
        other.hand_on(|block| {
            block.own_as(&self.block);
            block.hand_on_all(&self.block, rows)
        })?;
        Ok(2 * other.block.differs(&self.block) <= self.strayed)
    }
}
