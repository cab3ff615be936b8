//! Sweeps of a settling, one after the other, until the goal is reached. See [`super`] for what they do.

use std::sync::{Mutex, PoisonError};

use super::block::{LedgerBlock, plus};
use super::ledger::{Settling, Waiting};
use super::worth::VisitLevel;
use super::{SettlingResult, Watch};
use crate::engine::{Certificate, certify, ratio_up};
use crate::rank::{FINEST, RankOptions};
use crate::rows::{Bits, Row, Rows, Stop};
use crate::{Error, Result};

/// Gain of a sweep, per unit that it was to visit, below which the next sweep does not over-relax.
const GAIN_MIN: f64 = 0.1;
/// Number of sweeps without a gain of a thousandth after which settling ends: 64-bit numbers resolve no more.
const PATIENCE: u32 = 64;
/// Multiple of 1/(1 - d) that replaces [`PATIENCE`] if more waits than rounding explains: near d = 1 a sweep may gain
/// no more than 1 - d.
const PATIENCE_UNDAMPED: f64 = 4.0;

fn is_within(bound: f64, certificate: &Certificate) -> bool {
    certificate.received_l1.unwrap_or(2.0) <= bound
}

struct VisitSweep {
    level: VisitLevel,
    /// Initial value of a page, on average.
    at_first: i64,
    /// True if the rows are not known yet and all pages are considered; later sweeps consider those that reached the
    /// level at the start.
    is_first: bool,
}

/// Result of a sweep over all rows.
#[derive(Default)]
struct SweepResult {
    /// Number of rows considered, and of their links.
    rows: u64,
    links: u64,
    /// Number of rows with links that count, and of their links.
    linked: (u64, u64),
    /// Number of links of the visited rows.
    links_touched: u64,
    /// True if it was not stopped.
    whole: bool,
}

/// Distance in rows at which a page's numbers are prefetched: rows come in the order of a crawl, so their pages are
/// scattered in memory.
const NEAR: usize = 16;
/// Distance in rows at which a row's targets are prefetched.
const NEAR_TARGETS: usize = 10;
/// Distance in rows at which the accounts of a row's targets are prefetched.
const NEAR_ACCOUNTS: usize = 4;
/// Number of rows between two checks whether to stop.
const ASK_EVERY: u64 = 1 << 16;

impl VisitSweep {
    /// Visits the pages that reach the level.
    fn over(
        &self,
        block: &mut LedgerBlock,
        rows: &dyn Rows,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<SweepResult> {
        let marked: Option<Bits> = match self.level {
            VisitLevel::From(level) if !self.is_first => Some(block.all_worth(level)),
            _ => None,
        };
        let mut swept = SweepResult::default();
        let mut visit = |block: &mut LedgerBlock, row: Row<'_>| {
            if swept.rows.is_multiple_of(ASK_EVERY) && is_over() {
                return Err(Stop::Enough);
            }
            let links = row.targets.len() as u64;
            swept.rows += 1;
            swept.links += links;
            if self.is_first {
                block.know(&row)?;
            } else {
                block.check_known(&row)?;
            }
            if block.has_links(row.page) {
                swept.linked.0 += 1;
                swept.linked.1 += links;
                let (rows, links_so_far) = swept.linked;
                let level = self.level.of(rows, links_so_far, self.at_first);
                if block.is_worth(row.page, level) {
                    block.visit(&row)?;
                    swept.links_touched += links;
                }
            }
            Ok(())
        };
        let mut visit_all = |block: &mut LedgerBlock, rows: &[Row<'_>]| {
            for (at, row) in rows.iter().enumerate() {
                if let Some(later) = rows.get(at + NEAR) {
                    block.touch(later.page);
                }
                if let Some(later) = rows.get(at + NEAR_TARGETS) {
                    LedgerBlock::touch_targets(later);
                }
                if let Some(later) = rows.get(at + NEAR_ACCOUNTS) {
                    block.touch_accounts(later);
                }
                visit(block, *row)?;
            }
            Ok(())
        };
        let ended = match &marked {
            None => rows.walk_many(&mut |rows| visit_all(block, rows)),
            Some(marked) => rows.walk_some(marked, &mut |rows| visit_all(block, rows)),
        };
        swept.whole = Stop::is_whole(ended)?;
        let expected = marked.map_or(swept.rows, |marked| marked.count());
        if swept.whole && swept.rows != expected {
            return Err(Error::internal(format!(
                "the rows are not the same in every sweep: {} of {expected} pages with links had one",
                swept.rows
            )));
        }
        Ok(swept)
    }
}

impl Settling<'_> {
    /// Sweeps until the end, first over pages of the level `next`. Returns `None` if it was stopped before anything was
    /// known, or an earlier state was useless.
    pub fn run(
        mut self,
        options: &RankOptions,
        mut next: Option<VisitLevel>,
        watch: &mut dyn Watch,
    ) -> Result<Option<SettlingResult>> {
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
        let settled = self.end(options)?;
        // Numbers may resolve more when settling from nothing.
        let is_useless = settled.resumed && settled.by_itself && !settled.reached;
        Ok((!is_useless).then_some(settled))
    }

    /// Certifies this state; `whole` is false if the last sweep was stopped. Returns the level of the next sweep; `None` at
    /// the end: the goal is reached, no sweep would help, or it was stopped.
    pub fn look(
        &mut self,
        options: &RankOptions,
        waiting: &Waiting,
        whole: bool,
        watch: &mut dyn Watch,
    ) -> Result<Option<VisitLevel>> {
        let certificate = self.certificate(options, waiting);
        self.certificate = certificate;
        self.progress.bound = certificate.received_l1;
        watch.swept(&self.progress);
        self.by_itself = whole
            && (self.is_enough(options, &certificate)
                || self.is_stuck(options, waiting, &certificate));
        // Stops all processes if it stops one.
        let mut over = [i128::from(watch.is_over())];
        self.peers.sum(&mut over)?;
        let is_over = self.by_itself || !whole || over[0] > 0;
        Ok((!is_over).then(|| self.level(options, waiting, &certificate)))
    }

    fn end(mut self, options: &RankOptions) -> Result<SettlingResult> {
        // In the certificate what waits at remote pages counts as not passed on, and it can only be less at its owner.
        self.cross(true)?;
        let [received, distributed] = self.below()?;
        let sum = self.totals.sum as f64;
        Ok(SettlingResult {
            sums: (sum + received as f64, sum + distributed as f64),
            blocks: self.blocks,
            totals: self.totals,
            progress: self.progress,
            reached: is_within(options.until, &self.certificate),
            certificate: self.certificate,
            until: options.until,
            resumed: self.is_resumed,
            by_itself: self.by_itself,
        })
    }

    /// Returns true if all rows are known: a sweep read them, or the starting state was made of them.
    fn has_rows(&self) -> bool {
        self.is_resumed || self.progress.sweeps > 0
    }

    /// Visits the pages that reach the level. Returns false if it was stopped.
    fn sweep(&mut self, level: VisitLevel, watch: &mut dyn Watch) -> Result<bool> {
        let is_first = !self.has_rows();
        let sweep = VisitSweep {
            level,
            at_first: self.totals.at_first(),
            is_first,
        };
        let (shards, advance) = (self.shards.clone(), self.advance.clone());
        let watch = Mutex::new(watch);
        let is_over = || {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            watch.is_over()
        };
        let swept = self.hand_on(|at, block| {
            block.begin_sweep(advance[at]);
            sweep.over(block, shards[at].rows, &is_over)
        })?;
        let of = |of: &SweepResult| {
            let links = [of.links_touched, of.links].map(i128::from);
            [links[0], links[1], (!of.whole).into()]
        };
        let mut all = swept.iter().map(of).fold([0; 3], plus);
        self.peers.sum(&mut all)?;
        let [touched, links, stopped] = all;
        let whole = stopped == 0;
        self.progress.links_touched += touched as u64;
        if is_first && whole {
            self.links = links as u64;
        }
        self.cross(false)?;
        Ok(whole)
    }

    /// Visits pages without links, checks the law, keeps numbers small, and computes what waits. Returns `None` if an
    /// earlier state led to a state without importance, as it may if most of what it had is taken back.
    pub fn end_sweep(&mut self) -> Result<Option<Waiting>> {
        self.visit_dangling()?;
        let waiting = self.weigh(Some(self.links))?;
        if self.totals.sum > 0 {
            Ok(Some(waiting))
        } else if self.is_resumed {
            Ok(None)
        } else {
            Err(Error::internal("settling: no importance is left"))
        }
    }

    fn certificate(&self, options: &RankOptions, waiting: &Waiting) -> Certificate {
        let of_all = |units: u128| ratio_up(units, self.totals.sum.unsigned_abs());
        // Bounds the rounding of Y against one step from X.
        let rounding = self.totals.strayed + 2 * u128::from(self.links);
        certify(
            options.damping(),
            of_all(waiting.all.norm()),
            of_all(rounding),
        )
    }

    /// Returns true if it is as accurate as requested, and more would not be cheap.
    fn is_enough(&self, options: &RankOptions, certificate: &Certificate) -> bool {
        let is_fine = || certificate.received_l1.is_some_and(|bound| bound <= FINEST);
        let next = self.progress.links_touched + self.links;
        is_within(options.on_to, certificate) && (next >= options.spare || is_fine())
    }

    /// Returns true if further sweeps would be useless.
    fn is_stuck(
        &mut self,
        options: &RankOptions,
        waiting: &Waiting,
        certificate: &Certificate,
    ) -> bool {
        let residual = certificate.residual_l1;
        self.best = match self.best {
            (best, _) if residual < 0.999 * best => (residual, 0),
            (best, since) => (best, since + 1),
        };
        let patience = if residual > certificate.rounding_l1 {
            PATIENCE.max((PATIENCE_UNDAMPED / (1.0 - options.damping())) as u32)
        } else {
            PATIENCE
        };
        self.best.1 > patience || waiting.all.is_none()
    }

    /// Chooses the level of the next sweep, assuming that it gains as much per visit as the last one.
    fn level(
        &mut self,
        options: &RankOptions,
        waiting: &Waiting,
        certificate: &Certificate,
    ) -> VisitLevel {
        let residual = certificate.residual_l1;
        let gain = self
            .planned
            .map(|(before, share)| (before - residual) / (before * share));
        // If over-relaxation does harm, a sweep without it never increases the norm.
        let helps = gain.is_none_or(|gain| gain >= GAIN_MIN) && residual <= 2.0 * self.best.0;
        let advance = |norm: &u128| if helps { norm / 2 } else { 0 };
        self.advance = waiting.norms.iter().map(advance).collect();
        let damping = options.damping();
        let until = if is_within(options.on_to, certificate) {
            FINEST
        } else if is_within(options.until, certificate) {
            options.on_to
        } else {
            options.until
        };
        let enough = (until * (1.0 - damping) - certificate.rounding_l1) / damping;
        let (level, share) = waiting.all.level(enough / residual, gain);
        self.planned = Some((residual, share));
        level
    }
}
