//! The ledger of a settling: what all pages have, a [`Block`] for each shard of this process, and the sums of it over all
//! shards. See [`super`] for what they mean.

use super::block::{self, Block, Dangling, OWN_MAX, SUPPLY, Sums, Whole};
use super::shards::ShardRows;
use super::worth::Worth;
use crate::engine::SettledTotals;
use crate::rank::Teleport;
use crate::rank::peers::{OneProcess, Peers};
#[cfg(test)]
use crate::rows::Rows;
use crate::threads::{dealt, processors};
use crate::{Error, Result};

pub(super) struct Ledger {
    /// Of one store, or of each shard of this process, in their order.
    blocks: Vec<Block>,
    /// Pages of all blocks of all processes; a page that several shards know is one.
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

/// What waits, as [`Ledger::weigh`] finds it.
pub(super) struct Waiting {
    /// At all pages.
    pub all: Worth,
    /// ||K||_1 of each block of this process; the virtual page's rest counts for the first shard.
    pub norms: Vec<u128>,
}

/// The processes of a store that has no shards.
pub(super) fn alone() -> OneProcess {
    OneProcess::new(1)
}

impl Ledger {
    pub fn new(pages: u64, damping: u64, teleport: &Teleport) -> Result<Ledger> {
        teleport.check(pages)?;
        let block = Block::new(pages, damping, teleport.clone())?;
        Ok(Ledger::of(vec![block], pages, damping, teleport.sum(pages)))
    }

    /// Of the shards of this process; all shards together have `pages`.
    pub fn of_shards(shards: &[ShardRows<'_>], pages: u64, damping: u64) -> Result<Ledger> {
        let block = |shard: &ShardRows<'_>| {
            let mut block = Block::new(shard.rows.pages(), damping, Teleport::default())?;
            for remote in shard.remote {
                block.set_remote(&remote.here)?;
            }
            Ok(block)
        };
        let blocks = shards.iter().map(block).collect::<Result<_>>()?;
        Ok(Ledger::of(blocks, pages, damping, pages))
    }

    fn of(blocks: Vec<Block>, pages: u64, damping: u64, weights: u64) -> Ledger {
        Ledger {
            blocks,
            pages,
            damping,
            weights,
            sum: 0,
            virtual_page: 0,
            is_first_sweep: true,
            strayed: 0,
        }
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

    /// What pages have, of the shards of this process.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What the pages of the only store have.
    pub fn block(&self) -> &Block {
        &self.blocks[0]
    }

    /// The same, to be filled in.
    pub fn block_mut(&mut self) -> &mut Block {
        &mut self.blocks[0]
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

    /// Does something with each block by which pages may hand something on, and returns what that gave.
    pub fn hand_on<T: Send>(
        &mut self,
        peers: &mut dyn Peers,
        work: impl Fn(usize, &mut Block) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let whole = self.whole();
        let done = dealt(processors(), &mut self.blocks, |at, block| {
            block.tell(whole);
            Ok((work(at, block)?, block.take_moved()))
        })?;
        let mut moved = [0; 2];
        let mut results = Vec::with_capacity(done.len());
        for (result, of_block) in done {
            moved[0] += of_block.sum;
            moved[1] += of_block.virtual_page;
            results.push(result);
        }
        peers.sum(&mut moved)?;
        self.sum += moved[0];
        self.virtual_page += moved[1];
        Ok(results)
    }

    /// Sends what waits at remote pages to their owners: all of it, or, while sweeps go on, most ([`Block::take_remote`]).
    pub fn cross(
        &mut self,
        peers: &mut dyn Peers,
        shards: &[ShardRows<'_>],
        all: bool,
    ) -> Result<()> {
        if peers.shards() == 1 {
            return Ok(());
        }
        let outgoing = dealt(processors(), &mut self.blocks, |at, block| {
            Ok(block.take_remote(shards[at].remote, all))
        })?;
        let incoming = peers.exchange(outgoing)?;
        dealt(processors(), &mut self.blocks, |at, block| {
            incoming[at]
                .iter()
                .try_for_each(|message| block.take_in(message))
        })?;
        Ok(())
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
    pub fn visit_dangling(&mut self, peers: &mut dyn Peers) -> Result<()> {
        let mut sums = [0; 2];
        for block in &self.blocks {
            let Dangling { weights, waiting } = block.dangling();
            sums[0] += i128::from(weights);
            sums[1] += waiting;
        }
        peers.sum(&mut sums)?;
        let [weights, waiting] = sums;
        let each = match self.weights.saturating_sub(weights as u64) {
            // Nobody who is paid has links: each has its part of the supply.
            0 => SUPPLY / self.weights.max(1) as i64,
            linked => block::each(self.virtual_page + waiting, linked),
        };
        let moved = waiting + i128::from(each) * weights;
        self.sum += moved;
        self.virtual_page += moved;
        self.is_first_sweep = false;
        for block in &mut self.blocks {
            block.visit_dangling(each);
        }
        Ok(())
    }

    /// Checks the law, and finds what waits at all pages. If rows have so many `links`, numbers that might get too large are
    /// made smaller first.
    pub fn weigh(&mut self, peers: &mut dyn Peers, links: Option<u64>) -> Result<Waiting> {
        let is_large = self.check_law(peers)?;
        if let Some(links) = links
            && is_large
        {
            self.halve(peers, links)?;
            self.check_law(peers)?;
        }
        let whole = self.whole();
        let worths = dealt(processors(), &mut self.blocks, |_, block| {
            block.tell(whole);
            Ok(block.weigh())
        })?;
        let weights = i128::from(self.weights.max(1));
        let rest = self.virtual_page.rem_euclid(weights) as u64;
        let mut norms: Vec<u128> = worths.iter().map(Worth::norm).collect();
        if peers.local().first() == Some(&0) {
            norms[0] += u128::from(rest);
        }
        let own = worths.into_iter().fold(Worth::default(), Worth::and);
        let mut units = own.units();
        peers.sum(&mut units)?;
        Ok(Waiting {
            all: Worth::of(&units).with_rest(rest),
            norms,
        })
    }

    /// Checks the law. Returns whether units should be made larger.
    pub fn check_law(&self, peers: &mut dyn Peers) -> Result<bool> {
        let mut all = [0; 3];
        for block in &self.blocks {
            let Sums {
                own,
                own_max,
                accounts,
            } = block.sums();
            all[0] += own;
            all[1] += accounts;
            all[2] += i128::from(own_max > OWN_MAX);
        }
        peers.sum(&mut all)?;
        let [own, accounts, large] = all;
        if accounts == -self.virtual_page && own == self.sum {
            return Ok(large > 0);
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
    pub fn halve(&mut self, peers: &mut dyn Peers, links: u64) -> Result<()> {
        let mut sums = [0; 2];
        for block in &mut self.blocks {
            let (own, accounts) = block.halve();
            sums[0] += own;
            sums[1] += accounts;
        }
        peers.sum(&mut sums)?;
        self.sum = sums[0];
        self.virtual_page = -sums[1];
        self.strayed = self.strayed.div_ceil(2) + 3 * (u128::from(self.pages) + u128::from(links));
        Ok(())
    }

    /// What pages below 0 are short of, of the sum of Y and of X.
    pub fn below(&mut self, peers: &mut dyn Peers) -> Result<(u128, u128)> {
        let whole = self.whole();
        let mut sums = [0; 2];
        for block in &mut self.blocks {
            block.tell(whole);
            let (received, distributed) = block.below();
            sums[0] += received as i128;
            sums[1] += distributed as i128;
        }
        peers.sum(&mut sums)?;
        Ok((sums[0] as u128, sums[1] as u128))
    }

    /// Whether D is what the module's head defines, from X alone, over these rows; where units were made larger, as nearly
    /// as it says.
    #[cfg(test)]
    pub fn is_function_of_own(&self, rows: &dyn Rows) -> Result<bool> {
        let mut other = Ledger::new(rows.pages(), self.damping, &Teleport::default())?;
        other.hand_on(&mut alone(), |_, block| {
            block.own_as(self.block());
            block.hand_on_all(self.block(), rows)
        })?;
        Ok(2 * other.block().differs(self.block()) <= self.strayed)
    }
}
