//! Ledger of a settling: a [`LedgerBlock`] for each shard of this process, and the sums over all shards. See [`super`]
//! for their meaning.

use super::block::{self, BlockSums, Dangling, GlobalSums, LedgerBlock, OWN_MAX, SUPPLY};
use super::shards::ShardRows;
use super::worth::LevelHistogram;
use crate::engine::SettledTotals;
use crate::rank::Teleport;
use crate::rank::peers::{OneProcess, Peers};
#[cfg(test)]
use crate::rows::Rows;
use crate::threads::par_map;
use crate::{Error, Result};

pub(super) struct SettlingLedger {
    /// Blocks of one store, or of each shard of this process in their order.
    blocks: Vec<LedgerBlock>,
    /// Number of pages of all blocks of all processes; a page that several shards know counts once.
    pages: u64,
    damping: u64,
    /// W: sum of all weights; n for a uniform teleport.
    weights: u64,
    /// Sum of X.
    sum: i128,
    /// T: units received by the virtual page.
    virtual_page: i128,
    is_first_sweep: bool,
    /// F: addition to [`SettlingLedger::rounding`] by larger units.
    strayed: u128,
}

/// Result of [`SettlingLedger::weigh`]: what waits.
pub(super) struct Waiting {
    /// Distribution over all pages.
    pub all: LevelHistogram,
    /// ||K||_1 of each block of this process; the virtual page's rest counts for the first shard.
    pub norms: Vec<u128>,
}

/// Returns the peers of a store that has no shards.
pub(super) fn alone() -> OneProcess {
    OneProcess::new(1)
}

impl SettlingLedger {
    pub fn new(pages: u64, damping: u64, teleport: &Teleport) -> Result<SettlingLedger> {
        teleport.check(pages)?;
        let block = LedgerBlock::new(pages, damping, teleport.clone())?;
        Ok(SettlingLedger::of(
            vec![block],
            pages,
            damping,
            teleport.sum(pages),
        ))
    }

    /// Creates a ledger of the shards of this process; all shards together have `pages`.
    pub fn of_shards(shards: &[ShardRows<'_>], pages: u64, damping: u64) -> Result<SettlingLedger> {
        let block = |shard: &ShardRows<'_>| {
            let mut block = LedgerBlock::new(shard.rows.pages(), damping, Teleport::default())?;
            for remote in shard.remote {
                block.set_remote(&remote.here)?;
            }
            Ok(block)
        };
        let blocks = shards.iter().map(block).collect::<Result<_>>()?;
        Ok(SettlingLedger::of(blocks, pages, damping, pages))
    }

    fn of(blocks: Vec<LedgerBlock>, pages: u64, damping: u64, weights: u64) -> SettlingLedger {
        SettlingLedger {
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

    /// Creates a ledger with these totals and `pages` pages, with uniform teleport; the caller fills in the numbers of
    /// old pages ([`LedgerBlock::first_pages`]). New pages have nothing.
    pub fn resume(totals: &SettledTotals, pages: u64) -> Result<SettlingLedger> {
        let mut ledger = SettlingLedger::new(pages, totals.damping, &Teleport::default())?;
        ledger.sum = totals.sum;
        ledger.virtual_page = totals.virtual_page;
        ledger.strayed = totals.strayed;
        ledger.is_first_sweep = false;
        Ok(ledger)
    }

    /// Returns the blocks of the shards of this process.
    pub fn blocks(&self) -> &[LedgerBlock] {
        &self.blocks
    }

    /// Returns the block of the only store.
    pub fn block(&self) -> &LedgerBlock {
        &self.blocks[0]
    }

    /// Returns the block of the only store, for filling.
    pub fn block_mut(&mut self) -> &mut LedgerBlock {
        &mut self.blocks[0]
    }

    /// Returns F, see the module documentation of [`super`].
    pub fn strayed(&self) -> u128 {
        self.strayed
    }

    /// Returns T.
    pub fn virtual_page(&self) -> i128 {
        self.virtual_page
    }

    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the damping in 1/2^32.
    pub fn damping(&self) -> u64 {
        self.damping
    }

    pub fn sum(&self) -> i128 {
        self.sum
    }

    /// Returns the virtual page's payment per unit of weight.
    pub fn paid(&self) -> f64 {
        self.virtual_page as f64 / self.weights.max(1) as f64
    }

    /// Returns the initial value of a page, on average.
    pub fn at_first(&self) -> i64 {
        SUPPLY / self.pages.max(1) as i64
    }

    /// Calls `work` on each block, which may pass something on, and returns the results.
    pub fn hand_on<T: Send>(
        &mut self,
        peers: &mut dyn Peers,
        work: impl Fn(usize, &mut LedgerBlock) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let whole = self.whole();
        let done = par_map(&mut self.blocks, |at, block| {
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

    /// Sends what waits at remote pages to their owners: all of it, or most while sweeps continue
    /// ([`LedgerBlock::take_remote`]).
    pub fn cross(
        &mut self,
        peers: &mut dyn Peers,
        shards: &[ShardRows<'_>],
        all: bool,
    ) -> Result<()> {
        if peers.shards() == 1 {
            return Ok(());
        }
        let outgoing = par_map(&mut self.blocks, |at, block| {
            Ok(block.take_remote(shards[at].remote, all))
        })?;
        let incoming = peers.exchange(outgoing)?;
        par_map(&mut self.blocks, |at, block| {
            incoming[at]
                .iter()
                .try_for_each(|message| block.take_in(message))
        })?;
        Ok(())
    }

    /// Returns the sums that visits depend on.
    fn whole(&self) -> GlobalSums {
        GlobalSums {
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

    /// Solves exactly for the pages without links, as if visited infinitely often: with c = T/W at the end, D is -c w
    /// at each of these pages, so c W = T + sum of their D + c times the sum of their weights w.
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
            // Every paid page has no links: each has its part of the supply.
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

    /// Checks the law, and computes what waits at all pages. Given the number of links, first halves numbers that might
    /// get too large.
    pub fn weigh(&mut self, peers: &mut dyn Peers, links: Option<u64>) -> Result<Waiting> {
        let is_large = self.check_law(peers)?;
        if let Some(links) = links
            && is_large
        {
            self.halve(peers, links)?;
            self.check_law(peers)?;
        }
        let whole = self.whole();
        let worths = par_map(&mut self.blocks, |_, block| {
            block.tell(whole);
            Ok(block.weigh())
        })?;
        let weights = i128::from(self.weights.max(1));
        let rest = self.virtual_page.rem_euclid(weights) as u64;
        let mut norms: Vec<u128> = worths.iter().map(LevelHistogram::norm).collect();
        if peers.local().first() == Some(&0) {
            norms[0] += u128::from(rest);
        }
        let own = worths
            .into_iter()
            .fold(LevelHistogram::default(), LevelHistogram::and);
        let mut units = own.units();
        peers.sum(&mut units)?;
        Ok(Waiting {
            all: LevelHistogram::of(&units).with_rest(rest),
            norms,
        })
    }

    /// Checks the law. Returns true if units should be doubled.
    pub fn check_law(&self, peers: &mut dyn Peers) -> Result<bool> {
        let mut all = [0; 3];
        for block in &self.blocks {
            let BlockSums {
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

    /// Bounds the rounding of Y against one step from X in units, for rows with this many links.
    pub fn rounding(&self, links: u64) -> u128 {
        self.strayed + 2 * u128::from(links)
    }

    /// Doubles the units, for rows with this many links.
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

    /// Returns the sums of the negative parts of Y and of X.
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

    /// Checks that D is the function of X defined in the module documentation over these rows, within the stated bound
    /// if units were doubled.
    #[cfg(test)]
    pub fn is_function_of_own(&self, rows: &dyn Rows) -> Result<bool> {
        let mut other = SettlingLedger::new(rows.pages(), self.damping, &Teleport::default())?;
        other.hand_on(&mut alone(), |_, block| {
            block.own_as(self.block());
            block.hand_on_all(self.block(), rows)
        })?;
        Ok(2 * other.block().differs(self.block()) <= self.strayed)
    }
}
