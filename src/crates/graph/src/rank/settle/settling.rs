//! Settling in progress: a [`LedgerBlock`] for each shard of this process, the sums over all shards, and sweeps until
//! the goal is reached. See [`super`] for their meaning.

use std::sync::Mutex;

use super::block::{self, LedgerBlock, SUPPLY, plus};
use super::shards::ShardRows;
use super::worth::{LevelHistogram, VisitLevel, share};
use super::{SettlingProgress, SettlingResult, Watch};
use crate::engine::{Certificate, Effort, certify, ratio_up};
use crate::rank::peers::Peers;
use crate::rank::{FINEST, RankOptions, Teleport};
use crate::rows::{Bits, Row, Rows, Stop};
use crate::threads::{lock, par_map};
use crate::{Error, Result};

/// Sums over all pages of all shards; `sum` is that of X.
#[derive(Debug, Clone, Copy)]
pub(super) struct LedgerTotals {
    /// Number of pages of all shards of all processes; a page that several shards know counts once.
    pub pages: u64,
    pub damping: u64,
    /// W: sum of all weights; n for a uniform teleport.
    pub weights: u64,
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

    /// Returns the mean initial value of a page.
    pub fn at_first(&self) -> i64 {
        SUPPLY / self.pages.max(1) as i64
    }

    /// Returns the payment to a page on top of its account, per unit of its weight: its part of the supply in the first
    /// sweep, then T/W.
    pub fn each(&self) -> i64 {
        if self.is_first_sweep {
            SUPPLY / self.weights.max(1) as i64
        } else {
            block::each(self.virtual_page, self.weights)
        }
    }
}

/// Settling in progress. All processes that settle together call the same methods in the same order.
pub(super) struct Settling<'r> {
    pub blocks: Vec<LedgerBlock>,
    pub totals: LedgerTotals,
    /// Shards of this process; a store without shards is one.
    pub shards: Vec<ShardRows<'r>>,
    pub peers: &'r mut dyn Peers,
    pub progress: SettlingProgress,
    /// True if it started from a state, which has the costs of all rows.
    pub is_resumed: bool,
    pub certificate: Certificate,
    /// True if it reached the bound or further sweeps are useless.
    pub by_itself: bool,
    /// Smallest residual so far, and number of sweeps since it improved by a thousandth.
    pub best: (f64, u32),
    /// Residual before this sweep, and the share of it that was to be visited.
    pub planned: Option<(f64, f64)>,
    pub over_relaxes: bool,
}

impl<'r> Settling<'r> {
    pub fn new(
        shards: Vec<ShardRows<'r>>,
        damping: u64,
        teleport: &Teleport,
        peers: &'r mut dyn Peers,
    ) -> Result<Settling<'r>> {
        let mut sums = shards.iter().fold([0; 2], |sums, shard| {
            plus(
                sums,
                [shard.own_pages(), shard.rows.links()].map(i128::from),
            )
        });
        peers.sum(&mut sums)?;
        let [pages, links] = sums.map(|sum| sum as u64);
        let totals = LedgerTotals {
            pages,
            damping,
            weights: teleport.sum(pages),
            sum: 0,
            virtual_page: 0,
            strayed: 0,
            is_first_sweep: true,
        };
        let mut blocks = Vec::with_capacity(shards.len());
        for shard in &shards {
            let mut block = LedgerBlock::new(shard.rows.pages(), totals, teleport.clone())?;
            for remote in shard.remote {
                block.set_remote(&remote.here)?;
            }
            blocks.push(block);
        }
        Ok(Settling {
            blocks,
            totals,
            over_relaxes: false,
            shards,
            peers,
            progress: SettlingProgress {
                links,
                ..SettlingProgress::default()
            },
            is_resumed: false,
            certificate: certify(0.0, f64::INFINITY, 0.0),
            by_itself: false,
            best: (f64::INFINITY, 0),
            planned: None,
        })
    }

    pub fn of_store(
        rows: &'r dyn Rows,
        damping: u64,
        teleport: &Teleport,
        peers: &'r mut dyn Peers,
    ) -> Result<Settling<'r>> {
        let shard = ShardRows { rows, remote: &[] };
        Settling::new(vec![shard], damping, teleport, peers)
    }

    /// Calls `work` on each block, which may pass something on, and returns the results.
    pub fn hand_on<T: Send>(
        &mut self,
        work: impl Fn(usize, &mut LedgerBlock) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let totals = self.totals;
        let done = par_map(&mut self.blocks, |at, block| {
            block.tell(totals);
            Ok((work(at, block)?, std::mem::take(&mut block.moved)))
        })?;
        let (results, moved): (Vec<T>, Vec<_>) = done.into_iter().unzip();
        let mut moved = moved.into_iter().fold([0; 3], plus);
        self.peers.sum(&mut moved)?;
        let [own, virtual_page, links] = moved;
        self.totals.sum += own;
        self.totals.virtual_page += virtual_page;
        self.progress.links_touched += links as u64;
        Ok(results)
    }

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
    /// at each of them, so c W = T + sum of their D + c times the sum of their weights w. Returns c, and adds what their
    /// visits move to the totals.
    fn pay_dangling(&mut self) -> Result<i64> {
        let [weights, waiting] = self.sum(|block| block.dangling())?;
        let totals = &mut self.totals;
        let each = match totals.weights.saturating_sub(weights as u64) {
            // Every paid page is without links, and has its part of the supply.
            0 => SUPPLY / totals.weights.max(1) as i64,
            linked => block::each(totals.virtual_page + waiting, linked),
        };
        let moved = waiting + i128::from(each) * weights;
        totals.sum += moved;
        totals.virtual_page += moved;
        totals.is_first_sweep = false;
        Ok(each)
    }

    /// Computes what waits, and checks the law; first visits the pages without links if it gets the payment to them.
    /// The result is with true if units should be doubled.
    pub fn weigh(&mut self, dangling: Option<i64>) -> Result<(LevelHistogram, bool)> {
        let totals = self.totals;
        let weights = i128::from(totals.weights.max(1));
        let rest = totals.virtual_page.rem_euclid(weights) as u64;
        let has_first = self.peers.local().first() == Some(&0);
        let weighed = par_map(&mut self.blocks, |at, block| {
            block.tell(totals);
            // The rest counts for the first shard.
            Ok(block.weigh(dangling, if at == 0 && has_first { rest } else { 0 }))
        })?;
        let (mut all, mut sums) = (LevelHistogram::default(), [0; 3]);
        for (worth, of_block) in weighed {
            (all, sums) = (all.and(worth), plus(sums, of_block));
        }
        self.peers.sum(&mut all.units)?;
        self.peers.sum(&mut sums)?;
        all.rest = rest;
        let [own, accounts, large] = sums;
        let (sum, virtual_page) = (totals.sum, totals.virtual_page);
        if accounts == -virtual_page && own == sum {
            return Ok((all, large > 0));
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
        let totals = self.totals;
        self.sum(|block| {
            block.tell(totals);
            block.below()
        })
    }
}

/// Gain of a sweep, per unit that it was to visit, below which the next sweep does not over-relax.
const GAIN_MIN: f64 = 0.1;
/// Number of sweeps without a gain of a thousandth after which settling ends: 64-bit numbers resolve no more.
const PATIENCE: u32 = 64;
/// Part of that number of sweeps after which a sweep visits all pages: those that have most may pass it on among
/// themselves, while all importance decreases as fast as what they have.
const STALLED_PART: u32 = 16;
/// Multiple of 1/(1 - d) that replaces [`PATIENCE`] if more waits than rounding explains: near d = 1 a sweep may gain
/// no more than 1 - d.
const PATIENCE_UNDAMPED: f64 = 4.0;

/// Number of rows between two checks whether to stop.
const ASK_EVERY: u64 = 1 << 16;

/// Visits the pages of a block that reach the level. In the first sweep the rows are not known yet, and all pages are
/// considered; later sweeps consider those that reached the level at the start. Returns false if it was stopped.
fn sweep_block(
    block: &mut LedgerBlock,
    rows: &dyn Rows,
    (level, is_first): (VisitLevel, bool),
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<bool> {
    let marked: Option<Bits> = match level {
        VisitLevel::From(from) if !is_first => Some(block.all_worth(from)),
        _ => None,
    };
    let mut considered = 0u64;
    // Rows with links so far, and their links.
    let mut linked = (0, 0);
    let mut visit = |rows: &[Row<'_>]| {
        for (at, row) in rows.iter().enumerate() {
            block.prefetch(rows, at);
            if considered.is_multiple_of(ASK_EVERY) && is_over() {
                return Err(Stop::Enough);
            }
            considered += 1;
            if is_first {
                block.know(row)?;
            } else {
                block.check_known(row)?;
            }
            if block.has_links(row.page) {
                linked.0 += 1;
                linked.1 += row.targets.len() as u64;
                if block.is_worth(row.page, level.of(linked.0, linked.1)) {
                    block.visit(row)?;
                }
            }
        }
        Ok(())
    };
    let ended = match &marked {
        None => rows.walk(&mut visit),
        Some(marked) => rows.walk_some(marked, &mut visit),
    };
    let whole = Stop::is_whole(ended)?;
    let expected = marked.map_or(considered, |marked| marked.count());
    if whole && considered != expected {
        return Err(Error::internal(format!(
            "the rows are not the same in every sweep: {considered} of {expected} pages with links had one"
        )));
    }
    Ok(whole)
}

impl Settling<'_> {
    pub fn run_one(
        self,
        options: &RankOptions,
        next: Option<VisitLevel>,
        watch: &mut dyn Watch,
    ) -> Result<Option<SettlingResult>> {
        let settled = self.run(options, next, watch)?;
        Ok(settled.and_then(|mut shards| shards.pop()))
    }

    /// Sweeps until the end, first over pages of the level `next`. Returns the result of each shard of this process;
    /// `None` if it was stopped before anything was known, or if an earlier state is useless.
    pub fn run(
        mut self,
        options: &RankOptions,
        mut next: Option<VisitLevel>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Vec<SettlingResult>>> {
        while let Some(level) = next {
            let whole = self.sweep(level, watch)?;
            if !whole && !self.has_rows() {
                return Ok(None);
            }
            let Some(waiting) = self.end_sweep()? else {
                return Ok(None);
            };
            self.progress.sweeps += 1;
            next = self.look(options, &waiting, whole, watch)?;
        }
        // Settling from nothing may resolve more.
        let is_useless = self.is_resumed && self.by_itself && !self.is_within(options.until);
        if is_useless {
            return Ok(None);
        }
        self.end(options).map(Some)
    }

    /// Certifies the current state; `whole` is false if the last sweep was stopped. Returns the level of the next
    /// sweep; `None` if the goal is reached, no sweep would help, or it was stopped.
    pub fn look(
        &mut self,
        options: &RankOptions,
        waiting: &LevelHistogram,
        whole: bool,
        watch: &mut dyn Watch,
    ) -> Result<Option<VisitLevel>> {
        let of_all = |units: u128| ratio_up(units, self.totals.sum.unsigned_abs());
        // Bounds the rounding of Y against one step from X.
        let rounding = self.totals.strayed + 2 * u128::from(self.progress.links);
        self.certificate = certify(options.damping(), of_all(waiting.norm()), of_all(rounding));
        self.progress.bound = self.certificate.received_l1;
        watch.swept(&self.progress);
        self.by_itself = whole && (self.is_enough(options) || self.is_stuck(options, waiting));
        // Stops all processes if it stops one.
        let mut over = [i128::from(watch.is_over())];
        self.peers.sum(&mut over)?;
        let is_over = self.by_itself || !whole || over[0] > 0;
        Ok((!is_over).then(|| self.level(options, waiting)))
    }

    fn is_within(&self, bound: f64) -> bool {
        self.certificate.received_l1.unwrap_or(2.0) <= bound
    }

    fn end(mut self, options: &RankOptions) -> Result<Vec<SettlingResult>> {
        // The certificate counts what waits at remote pages as not passed on; at the owners it can only be less.
        self.cross(true)?;
        let [received, distributed] = self.below()?;
        let sum = self.totals.sum as f64;
        let sums = (sum + received as f64, sum + distributed as f64);
        let effort = Effort {
            until: options.until,
            reached: self.is_within(options.until),
            sweeps: self.progress.sweeps,
            links_touched: self.progress.links_touched,
            links: self.progress.links,
            resumed: self.is_resumed,
        };
        let of_shard = |block| SettlingResult {
            block,
            totals: self.totals,
            sums,
            effort,
            certificate: self.certificate,
            by_itself: self.by_itself,
        };
        Ok(self.blocks.into_iter().map(of_shard).collect())
    }

    /// Returns true if all rows are known, from a sweep or from the starting state.
    fn has_rows(&self) -> bool {
        self.is_resumed || self.progress.sweeps > 0
    }

    /// Visits the pages that reach the level. Returns false if it was stopped.
    fn sweep(&mut self, level: VisitLevel, watch: &mut dyn Watch) -> Result<bool> {
        let is_first = !self.has_rows();
        let (shards, over_relaxes) = (self.shards.clone(), self.over_relaxes);
        let watch = Mutex::new(watch);
        let is_over = || lock(&watch).is_over();
        let swept = self.hand_on(|at, block| {
            block.begin_sweep(over_relaxes);
            sweep_block(block, shards[at].rows, (level, is_first), &is_over)
        })?;
        let mut stopped = [swept.iter().map(|&whole| i128::from(!whole)).sum()];
        self.peers.sum(&mut stopped)?;
        self.cross(false)?;
        Ok(stopped == [0])
    }

    /// Visits pages without links, checks the law, keeps numbers small, and computes what waits. Returns `None` if an
    /// earlier state is left without importance, as it may be if most of what it had is taken back.
    pub fn end_sweep(&mut self) -> Result<Option<LevelHistogram>> {
        let each = self.pay_dangling()?;
        let (mut waiting, is_large) = self.weigh(Some(each))?;
        if is_large {
            self.halve(self.progress.links)?;
            (waiting, _) = self.weigh(None)?;
        }
        if self.totals.sum > 0 {
            Ok(Some(waiting))
        } else if self.is_resumed {
            Ok(None)
        } else {
            Err(Error::internal("settling: no importance is left"))
        }
    }

    /// Returns true if the accuracy is as requested, and more would not be cheap.
    fn is_enough(&self, options: &RankOptions) -> bool {
        let next = self.progress.links_touched + self.progress.links;
        self.is_within(options.on_to) && (next >= options.spare || self.is_within(FINEST))
    }

    fn is_stuck(&mut self, options: &RankOptions, waiting: &LevelHistogram) -> bool {
        let residual = self.certificate.residual_l1;
        self.best = match self.best {
            (best, _) if residual < 0.999 * best => (residual, 0),
            (best, since) => (best, since + 1),
        };
        self.best.1 > self.patience(options) || waiting.is_none()
    }

    fn patience(&self, options: &RankOptions) -> u32 {
        if self.certificate.residual_l1 > self.certificate.rounding_l1 {
            PATIENCE.max((PATIENCE_UNDAMPED / (1.0 - options.damping())) as u32)
        } else {
            PATIENCE
        }
    }

    /// Chooses the level of the next sweep, assuming that it gains as much per visit as the last one.
    fn level(&mut self, options: &RankOptions, waiting: &LevelHistogram) -> VisitLevel {
        let residual = self.certificate.residual_l1;
        let gain = self
            .planned
            .map(|(before, share)| (before - residual) / (before * share));
        // A sweep without over-relaxation never increases the norm.
        self.over_relaxes =
            gain.is_none_or(|gain| gain >= GAIN_MIN) && residual <= 2.0 * self.best.0;
        let damping = options.damping();
        let until = if self.is_within(options.on_to) {
            FINEST
        } else if self.is_within(options.until) {
            options.on_to
        } else {
            options.until
        };
        let enough = (until * (1.0 - damping) - self.certificate.rounding_l1) / damping;
        let is_stalled = residual > self.certificate.rounding_l1
            && self.best.1 >= self.patience(options) / STALLED_PART;
        let share = if is_stalled {
            1.0
        } else {
            share(enough / residual, gain)
        };
        let (level, share) = waiting.level(share);
        self.planned = Some((residual, share));
        level
    }
}
