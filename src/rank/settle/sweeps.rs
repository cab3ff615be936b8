//! The sweeps of a settling, one after the other, until it is near enough. See [`super`] for what they do.

use std::sync::{Mutex, PoisonError};

use super::block::Block;
use super::ledger::{Ledger, Waiting};
use super::shards::ShardRows;
use super::worth::Level;
use super::{Progress, Scale, Settled, Watch};
use crate::engine::{Certificate, certify, ratio_up};
use crate::rank::peers::Peers;
use crate::rank::{FINEST, Options};
use crate::rows::{Bits, Row, Rows, Stop};
use crate::{Error, Result};

/// A sweep that takes less than this off the norm, for each unit that it was to visit, is followed by one without
/// advances.
const GAIN_MIN: f64 = 0.1;
/// So many sweeps without a thousandth gained are the end: numbers of 64 bits resolve no more,
const PATIENCE: u32 = 64;
/// unless more waits than rounding explains: near d = 1 a sweep may gain no more than 1 - d. Then it is this over 1 - d.
const PATIENCE_UNDAMPED: f64 = 4.0;

fn is_reached(options: &Options, certificate: &Certificate) -> bool {
    certificate.received_l1.unwrap_or(2.0) <= options.until
}

/// What comes next.
pub(super) enum Next {
    /// A sweep over pages of this level.
    Sweep(Level),
    /// Nothing: it is near enough, or no sweep would be of use (`by_itself`), or it is over.
    End {
        certificate: Certificate,
        by_itself: bool,
    },
}

pub(super) struct Settling<'r> {
    pub ledger: Ledger,
    /// The shards of this process; a store without shards is one.
    shards: Vec<ShardRows<'r>>,
    peers: &'r mut dyn Peers,
    pub progress: Progress,
    /// The state that it began with, if it did not begin with nothing, has the rows' costs.
    pub is_resumed: bool,
    /// The least residual so far, and sweeps since it was last bettered by a thousandth.
    best: (f64, u32),
    /// Links of all rows.
    links: u64,
    /// The residual before this sweep, and what share of it was to be visited.
    planned: Option<(f64, f64)>,
    /// What pages of each shard may hand on in advance in the next sweep.
    advance: Vec<u128>,
}

/// What a sweep does.
struct Sweep {
    level: Level,
    /// What every page had at first, on average.
    at_first: i64,
    /// The rows are not known yet: all are looked at. In later sweeps, those of the pages that were worth it when the sweep began.
    is_first: bool,
}

/// What a sweep over all rows found.
#[derive(Default)]
struct Swept {
    /// Rows that were looked at, and their links;
    rows: u64,
    links: u64,
    /// those with links that count, and their links;
    linked: (u64, u64),
    /// and the links of those that were visited.
    links_touched: u64,
    /// Nobody stopped it.
    whole: bool,
}

/// What is kept of a page is brought near so many rows before its own: rows come in the order of a crawl, and each page would be
/// waited for.
const NEAR: usize = 16;
/// Its targets are brought near so many rows before,
const NEAR_TARGETS: usize = 10;
/// and their accounts.
const NEAR_ACCOUNTS: usize = 4;
/// Rows between two questions whether it is over.
const ASK_EVERY: u64 = 1 << 16;

impl Sweep {
    /// Visits the pages that are worth it.
    fn over(
        &self,
        block: &mut Block,
        rows: &dyn Rows,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Swept> {
        let marked: Option<Bits> = match self.level {
            Level::From(level) if !self.is_first => Some(block.all_worth(level)),
            _ => None,
        };
        let mut swept = Swept::default();
        let mut visit = |block: &mut Block, row: Row<'_>| {
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
        let mut visit_all = |block: &mut Block, rows: &[Row<'_>]| {
            for (at, row) in rows.iter().enumerate() {
                if let Some(later) = rows.get(at + NEAR) {
                    block.touch(later.page);
                }
                if let Some(later) = rows.get(at + NEAR_TARGETS) {
                    Block::touch_targets(later);
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

impl<'r> Settling<'r> {
    /// With a ledger of these rows. All processes call it.
    ///
    /// # Errors
    /// A process is lost.
    pub fn new(
        ledger: Ledger,
        shards: Vec<ShardRows<'r>>,
        peers: &'r mut dyn Peers,
    ) -> Result<Settling<'r>> {
        let links = shards.iter().map(|shard| i128::from(shard.rows.links()));
        let mut links = [links.sum()];
        peers.sum(&mut links)?;
        let links = links[0] as u64;
        Ok(Settling {
            ledger,
            progress: Progress {
                links,
                ..Progress::default()
            },
            links,
            advance: vec![0; shards.len()],
            shards,
            peers,
            is_resumed: false,
            best: (f64::INFINITY, 0),
            planned: None,
        })
    }

    /// Sweeps until the end. `None`: it was over before anything was known, or an earlier state led nowhere.
    pub fn run(
        mut self,
        options: &Options,
        mut next: Next,
        watch: &mut dyn Watch,
    ) -> Result<Option<Settled>> {
        loop {
            let level = match next {
                Next::Sweep(level) => level,
                Next::End {
                    certificate,
                    by_itself,
                } => return self.end(options, certificate, by_itself).map(Some),
            };
            let whole = self.sweep(level, watch)?;
            if !whole && !self.has_rows() {
                return Ok(None);
            }
            let Some(waiting) = self.weigh()? else {
                return Ok(None);
            };
            self.progress.sweeps += 1;
            next = self.look(options, &waiting, whole, watch)?;
        }
    }

    /// What comes after this state was reached, after a sweep that was `whole`.
    pub fn look(
        &mut self,
        options: &Options,
        waiting: &Waiting,
        whole: bool,
        watch: &mut dyn Watch,
    ) -> Result<Next> {
        let certificate = self.certificate(options, waiting);
        self.progress.bound = certificate.received_l1;
        watch.swept(&self.progress);
        let by_itself = whole
            && (self.is_enough(options, &certificate)
                || self.is_stuck(options, waiting, &certificate));
        // It is over for all where it is for one.
        let mut over = [i128::from(watch.is_over())];
        self.peers.sum(&mut over)?;
        if by_itself || !whole || over[0] > 0 {
            return Ok(Next::End {
                certificate,
                by_itself,
            });
        }
        Ok(Next::Sweep(self.level(options, waiting, &certificate)))
    }

    fn end(
        mut self,
        options: &Options,
        certificate: Certificate,
        by_itself: bool,
    ) -> Result<Settled> {
        // What waits at remote pages counts as not handed on in the certificate, and can only be less where it is.
        self.ledger.cross(self.peers, &self.shards, true)?;
        Ok(Settled {
            scale: Scale::of(&mut self.ledger, self.peers)?,
            ledger: self.ledger,
            progress: self.progress,
            reached: is_reached(options, &certificate),
            certificate,
            until: options.until,
            resumed: self.is_resumed,
            by_itself,
        })
    }

    /// Returns whether all rows are known: they were read in a sweep, or the state that it began with was made of them.
    fn has_rows(&self) -> bool {
        self.is_resumed || self.progress.sweeps > 0
    }

    /// Visits the pages that are worth it. Whether nobody stopped it.
    fn sweep(&mut self, level: Level, watch: &mut dyn Watch) -> Result<bool> {
        let is_first = !self.has_rows();
        let sweep = Sweep {
            level,
            at_first: self.ledger.at_first(),
            is_first,
        };
        let (shards, advance) = (&self.shards, &self.advance);
        let watch = Mutex::new(watch);
        let is_over = || {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            watch.is_over()
        };
        let swept = self.ledger.hand_on(self.peers, |at, block| {
            block.begin_sweep(advance[at]);
            sweep.over(block, shards[at].rows, &is_over)
        })?;
        let mut all = [0; 3];
        for of_shard in swept {
            all[0] += i128::from(of_shard.links_touched);
            all[1] += i128::from(of_shard.links);
            all[2] += i128::from(!of_shard.whole);
        }
        self.peers.sum(&mut all)?;
        let [touched, links, stopped] = all;
        let whole = stopped == 0;
        self.progress.links_touched += touched as u64;
        if is_first && whole {
            self.links = links as u64;
        }
        self.ledger.cross(self.peers, &self.shards, false)?;
        Ok(whole)
    }

    /// Visits pages without links, checks the books, keeps numbers small, and weighs what is left. `None`: an earlier state led to a
    /// state without importance, as it may where most of what it had is taken back.
    pub fn weigh(&mut self) -> Result<Option<Waiting>> {
        self.ledger.visit_dangling(self.peers)?;
        let waiting = self.weigh_unmoved(Some(self.links))?;
        if self.ledger.sum() > 0 {
            Ok(Some(waiting))
        } else if self.is_resumed {
            Ok(None)
        } else {
            Err(Error::internal("settling: no importance is left"))
        }
    }

    /// The same, where pages without links are not visited.
    pub fn weigh_unmoved(&mut self, links: Option<u64>) -> Result<Waiting> {
        self.ledger.weigh(self.peers, links)
    }

    fn certificate(&self, options: &Options, waiting: &Waiting) -> Certificate {
        let of_all = |units: u128| ratio_up(units, self.ledger.sum().unsigned_abs());
        let rounding = self.ledger.rounding(self.links);
        certify(
            options.damping(),
            of_all(waiting.all.norm()),
            of_all(rounding),
        )
    }

    /// Returns whether it is as near as it should be, or as is cheap.
    fn is_enough(&self, options: &Options, certificate: &Certificate) -> bool {
        let is_fine = || certificate.received_l1.is_some_and(|bound| bound <= FINEST);
        let next = self.progress.links_touched + self.links;
        is_reached(options, certificate) && (next >= options.spare || is_fine())
    }

    /// Returns whether more sweeps would be of no use.
    fn is_stuck(
        &mut self,
        options: &Options,
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

    /// How the next sweep begins. What the last one gained for what it visited, this one will gain, too.
    fn level(&mut self, options: &Options, waiting: &Waiting, certificate: &Certificate) -> Level {
        let residual = certificate.residual_l1;
        let gain = self
            .planned
            .map(|(before, share)| (before - residual) / (before * share));
        // Where advances do harm, a sweep without them is never worse than none.
        let helps = gain.is_none_or(|gain| gain >= GAIN_MIN) && residual <= 2.0 * self.best.0;
        let advance = |norm: &u128| if helps { norm / 2 } else { 0 };
        self.advance = waiting.norms.iter().map(advance).collect();
        let damping = options.damping();
        let until = if is_reached(options, certificate) {
            FINEST
        } else {
            options.until
        };
        let enough = (until * (1.0 - damping) - certificate.rounding_l1) / damping;
        let (level, share) = waiting.all.level(enough / residual, gain);
        self.planned = Some((residual, share));
        level
    }
}
