//! Ledger of a settling: a [`LedgerBlock`] for each shard of this process, and the sums over all shards. See [`super`]
//! for their meaning.

use super::SettlingProgress;
use super::block::{self, GlobalSums, LedgerBlock, SUPPLY, plus};
use super::shards::ShardRows;
use super::worth::LevelHistogram;
use crate::engine::{Certificate, certify};
use crate::rank::Teleport;
use crate::rank::peers::Peers;
use crate::rows::Rows;
use crate::threads::par_map;
use crate::{Error, Result};

/// Sums over all pages of all shards.
#[derive(Debug, Clone, Copy)]
pub(super) struct LedgerTotals {
    /// Number of pages of all shards of all processes; a page that several shards know counts once.
    pub pages: u64,
    /// Damping in 1/2^32.
    pub damping: u64,
    /// W: sum of all weights; n for a uniform teleport.
    pub weights: u64,
    /// Sum of X.
    pub sum: i128,
    /// T: units received by the virtual page.
    pub virtual_page: i128,
    /// F: addition to the rounding error by larger units.
    pub strayed: u128,
    pub is_first_sweep: bool,
}

impl LedgerTotals {
    /// Returns the virtual page's payment per unit of weight.
    pub fn paid(&self) -> f64 {
        self.virtual_page as f64 / self.weights.max(1) as f64
    }

    /// Returns the initial value of a page, on average.
    pub fn at_first(&self) -> i64 {
        SUPPLY / self.pages.max(1) as i64
    }

    /// Returns the sums that visits depend on.
    fn global(&self) -> GlobalSums {
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
}

/// Settling in progress. All processes that settle together call the same methods in the same order.
pub(super) struct Settling<'r> {
    /// Blocks of one store, or of each shard of this process in their order.
    pub blocks: Vec<LedgerBlock>,
    pub totals: LedgerTotals,
    /// Shards of this process; a store without shards is one.
    pub shards: Vec<ShardRows<'r>>,
    pub peers: &'r mut dyn Peers,
    pub progress: SettlingProgress,
    /// Number of links of all rows.
    pub links: u64,
    /// True if it started from a state, which has the costs of all rows.
    pub is_resumed: bool,
    /// Certificate of the last state that was weighed.
    pub certificate: Certificate,
    /// True if it reached the bound or further sweeps are useless.
    pub by_itself: bool,
    /// Smallest residual so far, and number of sweeps since it improved by a thousandth.
    pub best: (f64, u32),
    /// Residual before this sweep, and the share of it that was to be visited.
    pub planned: Option<(f64, f64)>,
    /// Limit of over-relaxation for each shard in the next sweep.
    pub advance: Vec<u128>,
}

/// Result of [`Settling::weigh`]: what waits.
pub(super) struct Waiting {
    /// Distribution over all pages.
    pub all: LevelHistogram,
    /// ||K||_1 of each block of this process; the virtual page's rest counts for the first shard.
    pub norms: Vec<u128>,
}

impl<'r> Settling<'r> {
    /// Begins with pages that have nothing; all shards together have `pages`.
    pub fn new(
        shards: Vec<ShardRows<'r>>,
        pages: u64,
        damping: u64,
        teleport: &Teleport,
        peers: &'r mut dyn Peers,
    ) -> Result<Settling<'r>> {
        let mut blocks = Vec::with_capacity(shards.len());
        let mut links = [0];
        for shard in &shards {
            let mut block = LedgerBlock::new(shard.rows.pages(), damping, teleport.clone())?;
            for remote in shard.remote {
                block.set_remote(&remote.here)?;
            }
            blocks.push(block);
            links[0] += i128::from(shard.rows.links());
        }
        peers.sum(&mut links)?;
        let links = links[0] as u64;
        Ok(Settling {
            blocks,
            totals: LedgerTotals {
                pages,
                damping,
                weights: teleport.sum(pages),
                sum: 0,
                virtual_page: 0,
                strayed: 0,
                is_first_sweep: true,
            },
            advance: vec![0; shards.len()],
            shards,
            peers,
            progress: SettlingProgress {
                links,
                ..SettlingProgress::default()
            },
            links,
            is_resumed: false,
            certificate: certify(0.0, f64::INFINITY, 0.0),
            by_itself: false,
            best: (f64::INFINITY, 0),
            planned: None,
        })
    }

    /// Begins with the pages of a store without shards, which is the only shard.
    pub fn of_store(
        rows: &'r dyn Rows,
        damping: u64,
        teleport: &Teleport,
        peers: &'r mut dyn Peers,
    ) -> Result<Settling<'r>> {
        let shard = ShardRows { rows, remote: &[] };
        Settling::new(vec![shard], rows.pages(), damping, teleport, peers)
    }

    /// Calls `work` on each block, which may pass something on, and returns the results.
    pub fn hand_on<T: Send>(
        &mut self,
        work: impl Fn(usize, &mut LedgerBlock) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let global = self.totals.global();
        let done = par_map(&mut self.blocks, |at, block| {
            block.tell(global);
            Ok((work(at, block)?, block.take_moved()))
        })?;
        let (results, moved): (Vec<T>, Vec<_>) = done.into_iter().unzip();
        let mut moved = moved.into_iter().fold([0; 2], plus);
        self.peers.sum(&mut moved)?;
        self.totals.sum += moved[0];
        self.totals.virtual_page += moved[1];
        Ok(results)
    }

    /// Returns sums over all blocks of all processes.
    fn sum<const N: usize>(
        &mut self,
        of: impl Fn(&mut LedgerBlock) -> [i128; N],
    ) -> Result<[i128; N]> {
        let mut sums = self.blocks.iter_mut().map(of).fold([0; N], plus);
        self.peers.sum(&mut sums)?;
        Ok(sums)
    }

    /// Sends what waits at remote pages to their owners: all of it, or most while sweeps continue
    /// ([`LedgerBlock::take_remote`]).
    pub fn cross(&mut self, all: bool) -> Result<()> {
        if self.peers.shards() == 1 {
            return Ok(());
        }
        let shards = &self.shards;
        let outgoing = par_map(&mut self.blocks, |at, block| {
            Ok(block.take_remote(shards[at].remote, all))
        })?;
        let incoming = self.peers.exchange(outgoing)?;
        par_map(&mut self.blocks, |at, block| {
            let mut messages = incoming[at].iter();
            messages.try_for_each(|message| block.take_in(message))
        })?;
        Ok(())
    }

    /// Solves exactly for the pages without links, as if visited infinitely often: with c = T/W at the end, D is -c w
    /// at each of these pages, so c W = T + sum of their D + c times the sum of their weights w.
    pub fn visit_dangling(&mut self) -> Result<()> {
        let [weights, waiting] = self.sum(|block| block.dangling())?;
        let totals = &mut self.totals;
        let each = match totals.weights.saturating_sub(weights as u64) {
            // Every paid page has no links: each has its part of the supply.
            0 => SUPPLY / totals.weights.max(1) as i64,
            linked => block::each(totals.virtual_page + waiting, linked),
        };
        let moved = waiting + i128::from(each) * weights;
        totals.sum += moved;
        totals.virtual_page += moved;
        totals.is_first_sweep = false;
        for block in &mut self.blocks {
            block.visit_dangling(each);
        }
        Ok(())
    }

    /// Checks the law, and computes what waits at all pages. Given the number of links, first halves numbers that might
    /// get too large.
    pub fn weigh(&mut self, links: Option<u64>) -> Result<Waiting> {
        let is_large = self.check_law()?;
        if let Some(links) = links
            && is_large
        {
            self.halve(links)?;
            self.check_law()?;
        }
        let global = self.totals.global();
        let worths = par_map(&mut self.blocks, |_, block| {
            block.tell(global);
            Ok(block.weigh())
        })?;
        let weights = i128::from(self.totals.weights.max(1));
        let rest = self.totals.virtual_page.rem_euclid(weights) as u64;
        let mut norms: Vec<u128> = worths.iter().map(LevelHistogram::norm).collect();
        if self.peers.local().first() == Some(&0) {
            norms[0] += u128::from(rest);
        }
        let own = worths
            .into_iter()
            .fold(LevelHistogram::default(), LevelHistogram::and);
        let mut units = own.units();
        self.peers.sum(&mut units)?;
        Ok(Waiting {
            all: LevelHistogram::of(&units, rest),
            norms,
        })
    }

    /// Checks the law. Returns true if units should be doubled.
    pub fn check_law(&mut self) -> Result<bool> {
        let [own, accounts, large] = self.sum(|block| block.sums())?;
        let (sum, virtual_page) = (self.totals.sum, self.totals.virtual_page);
        if accounts == -virtual_page && own == sum {
            return Ok(large > 0);
        }
        Err(Error::internal(format!(
            "settling: the books do not balance: all accounts are {accounts} units for {virtual_page} of the virtual page, \
             and all pages own {own} units, not {sum}; please report it"
        )))
    }

    /// Doubles the units, for rows with this many links.
    pub fn halve(&mut self, links: u64) -> Result<()> {
        let [own, accounts] = self.sum(LedgerBlock::halve)?;
        let totals = &mut self.totals;
        totals.sum = own;
        totals.virtual_page = -accounts;
        totals.strayed =
            totals.strayed.div_ceil(2) + 3 * (u128::from(totals.pages) + u128::from(links));
        Ok(())
    }

    /// Returns the sums of the negative parts of Y and of X.
    pub fn below(&mut self) -> Result<[i128; 2]> {
        let global = self.totals.global();
        self.sum(|block| {
            block.tell(global);
            block.below()
        })
    }
}
