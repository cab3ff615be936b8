//! Ranks over all shards: 1 + the number of own pages of all shards with strictly greater importance (sample sort).
//!
//! 1. *Splits.* Each shard sorts the importances of its own pages and sends every [`SAMPLED`]th to all others. From these
//!    all choose the same splits, which divide the values into as many ranges as there are shards.
//! 2. *Merge.* Each shard sends the values of a range, sorted, to the shard of that number, which merges the messages and
//!    answers how many values of all shards precede each value. The numbers of values in each range are gathered, so
//!    every shard knows the first rank of each range.
//! 3. *Remote pages.* Each shard asks the owners of its remote pages for their importance and rank.
//!
//! Equal values are in one range and have one rank, wherever they are. Ranks do not depend on the samples, and nothing
//! depends on which process has which shard.
//!
//! ```text
//! units     0 | 1                   1: importances of the message are whole numbers of the units that all shards share
//! values    units (delta repeats?)* varints: from the value before, at least 1; repeats: 0, and how often beyond once
//! before    delta*                  of each distinct value: number of values of all shards from the distinct value before, with it, to this one
//! asked     delta*                  pages by their numbers in their owner's store, at least 1
//! answer    units shift value* delta*   importances in 2^shift units, zigzag; ranks by importance, each less the one before, zigzag
//! ```
//!
//! The importance of a remote page is rounded down, so that its message is short, and so that importances of different
//! pages never sum to more than 1: all of a shard together by less than a 64th of the certified bound. Its rank is
//! exact. Its distributed value is not sent: in this shard it is 0, unless importance is that value. If one importance
//! of a message is not a whole multiple of a unit, all are sent as `f64`.
//!
//! **Memory**: 16 bytes per page for importance and rank, and for each own page 16 to be sorted, and at most 24 for the
//! values of a range while they are merged; messages take about 5 bytes for each own page, and 8 for each remote one, on
//! either side.

mod messages;

use super::{Peers, RemotePages, gather_values};
use crate::engine::{CHUNK_PAGES, Certificate, Effort, Estimator, ScoreUnits, Scores};
use crate::rows::Bits;
use crate::snapshot::{descending_key, sorted_positions, splits};
use crate::threads::par_map;
use crate::{Error, Result};
use messages::{answer, answered, asked, pages_asked, put, put_values, take, values_of};

/// Number of a shard's values of which one is a sample.
const SAMPLED: usize = 1 << 10;
/// Part of the certified bound by which importances of remote pages may be rounded down, all together.
const ROUNDED_TO: f64 = 1.0 / 64.0;

#[derive(Clone, Copy)]
pub struct ShardScores<'s> {
    /// Scores of all pages of the shard; those of remote pages are ignored.
    pub scores: &'s dyn Scores,
    pub pages: u64,
    /// Remote pages by shard; the other pages are the shard's own.
    pub remote: &'s [RemotePages],
}

/// Ranking of all pages that a shard knows, among all pages of all shards.
pub struct ShardRanking<'s> {
    shard: ShardScores<'s>,
    estimator: Estimator,
    is_remote: Bits,
    /// Importance and rank of all pages, as far as they are known.
    importances: Vec<f64>,
    pub ranks: Vec<u64>,
    /// Keys of the shard's own pages, sorted; empty once they have ranks.
    sorted: Vec<Keyed>,
    pub all_pages: u64,
}

/// Sort key of an importance, and its page.
type Keyed = (u64, u32);

impl<'s> ShardRanking<'s> {
    fn of(
        shard: ShardScores<'s>,
        estimator: Estimator,
        all_shards: usize,
    ) -> Result<ShardRanking<'s>> {
        let ShardScores { pages, remote, .. } = shard;
        if remote.len() != all_shards || pages > 1 << u32::BITS {
            return Err(Error::internal("the remote pages are not of these shards"));
        }
        let mut is_remote = Bits::new(pages);
        for &page in remote.iter().flat_map(|of| &of.here) {
            if u64::from(page) >= pages || !is_remote.set(page.into()) {
                return Err(Error::internal(format!(
                    "remote page {page} is no page, or is there twice"
                )));
            }
        }
        let mut importances = Vec::with_capacity(pages as usize);
        let mut block = Vec::new();
        for first in (0..pages).step_by(CHUNK_PAGES as usize) {
            let len = CHUNK_PAGES.min(pages - first) as usize;
            shard.scores.read(first, len, &mut block)?;
            importances.extend(block.iter().map(|&scores| estimator.read(scores).0));
        }
        let own = (0..pages).filter(|&page| !is_remote.get(page));
        let own: Vec<u32> = own.map(|page| page as u32).collect();
        let keys = own.iter().map(|&page| importances[page as usize]);
        let keys: Vec<u64> = keys.map(descending_key).collect();
        let sorted = sorted_positions(&keys).map(|at| (keys[at], own[at]));
        Ok(ShardRanking {
            sorted: sorted.collect(),
            shard,
            estimator,
            is_remote,
            importances,
            ranks: vec![0; pages as usize],
            all_pages: 0,
        })
    }

    /// Returns the shard's own pages with values from the `range`th split on, up to the next one.
    fn in_range(&self, splits: &[u64], range: usize) -> &[Keyed] {
        let before = |split: Option<&u64>| match split {
            Some(split) => self.sorted.partition_point(|of| of.0 < *split),
            None => self.sorted.len(),
        };
        let first = range.checked_sub(1).map_or(0, |at| before(splits.get(at)));
        &self.sorted[first..before(splits.get(range))]
    }

    fn answers(&self, asked: &[Vec<u8>], units: Option<ScoreUnits>) -> Result<Vec<Vec<u8>>> {
        let certificate = self.certificate();
        let bound = certificate.and_then(|certificate| certificate.bound_l1(self.estimator));
        let shift = units.map_or(0, |units| rounding(units, bound, self.all_pages));
        let answer_one = |asked: &Vec<u8>| {
            let pages = pages_asked(asked)?;
            let is_other = |page: &u64| *page >= self.shard.pages || self.is_remote.get(*page);
            if let Some(page) = pages.iter().copied().map(u64::from).find(is_other) {
                return Err(Error::internal(format!(
                    "another shard asks for page {page}, which is none of this shard"
                )));
            }
            let importances = pages.iter().map(|&page| self.importances[page as usize]);
            let ranks = pages.iter().map(|&page| self.ranks[page as usize]);
            Ok(answer(
                importances.collect(),
                ranks.collect(),
                (units, shift),
            ))
        };
        asked.iter().map(answer_one).collect()
    }
}

impl Scores for ShardRanking<'_> {
    fn certificate(&self) -> Option<Certificate> {
        self.shard.scores.certificate()
    }

    fn effort(&self) -> Effort {
        self.shard.scores.effort()
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
        self.shard.scores.read(first, len, out)?;
        let pages = (first..).zip(&self.importances[first as usize..]);
        for (scores, (page, &importance)) in out.iter_mut().zip(pages) {
            if self.is_remote.get(page) {
                *scores = match self.estimator {
                    Estimator::Received => (importance, 0.0),
                    Estimator::Distributed => (importance, importance),
                };
            }
        }
        Ok(())
    }
}

/// Ranks the pages of all shards together, by importance as the estimator reads it. `units` is the unit of which
/// importances usually are multiples. Returns the ranking of each local shard, in order.
pub fn rank_together<'s>(
    shards: &[ShardScores<'s>],
    (estimator, units): (Estimator, Option<ScoreUnits>),
    peers: &mut dyn Peers,
) -> Result<Vec<ShardRanking<'s>>> {
    let all_shards = peers.shards();
    let mut local = par_map(&mut shards.to_vec(), |_, of| {
        ShardRanking::of(*of, estimator, all_shards)
    })?;
    let splits = choose_splits(&local, peers)?;
    rank_own(&mut local, &splits, units, peers)?;
    ask_owners(&mut local, units, peers)?;
    Ok(local)
}

/// Chooses the first value of each range except the first, ascending; ranges hold about equally many values.
fn choose_splits(local: &[ShardRanking<'_>], peers: &mut dyn Peers) -> Result<Vec<u64>> {
    let sample = |of: &ShardRanking<'_>| {
        let sampled = of.sorted.iter().skip(SAMPLED / 2).step_by(SAMPLED);
        sampled.map(|of| of.0).collect()
    };
    let samples: Vec<Vec<u64>> = local.iter().map(sample).collect();
    let samples = gather_values(&samples, peers)?.concat();
    Ok(splits(samples, peers.shards()))
}

/// Merges the values of a range. Returns for each shard, by its distinct values, how many values of all shards there are
/// from its distinct value before, with that, up to this one; and the number of values.
fn merge(messages: &[Vec<u8>], units: Option<ScoreUnits>) -> Result<(Vec<Vec<u8>>, u64)> {
    let mut all = Vec::new();
    for of in messages {
        all.extend(values_of(of, units)?);
    }
    // A stable sort merges what is in order already.
    all.sort();
    let lower = messages.iter().map(|of| {
        let (mut lower, mut all) = (Vec::new(), all.iter().peekable());
        for (value, _) in values_of(of, units)? {
            let mut since = 0;
            while let Some((_, count)) = all.next_if(|of| of.0 < value) {
                since += count;
            }
            put(&mut lower, since);
        }
        Ok(lower)
    });
    let lower = lower.collect::<Result<_>>()?;
    Ok((lower, all.iter().map(|of| of.1).sum()))
}

fn rank_own(
    local: &mut [ShardRanking<'_>],
    splits: &[u64],
    units: Option<ScoreUnits>,
    peers: &mut dyn Peers,
) -> Result<()> {
    let ranges = peers.shards();
    let messages = par_map(local, |_, of| {
        let message = |range| put_values(of.in_range(splits, range), units);
        Ok((0..ranges).map(message).collect::<Vec<_>>())
    })?;
    let mut incoming = peers.exchange(messages)?;
    let merged = par_map(&mut incoming, |_, messages| {
        merge(&std::mem::take(messages), units)
    })?;
    let (answers, local_counts): (Vec<_>, Vec<u64>) = merged.into_iter().unzip();
    let counts = gather_values(&local_counts, peers)?;
    let answers = peers.exchange(answers)?;
    par_map(local, |at, of| {
        let mut ranks = std::mem::take(&mut of.ranks);
        let mut begins = 0;
        for ((range, answer), count) in answers[at].iter().enumerate().zip(&counts) {
            let (mut rest, mut before) = (&answer[..], begins);
            for group in groups(of.in_range(splits, range)) {
                before += take(&mut rest)?;
                for &(_, page) in group {
                    ranks[page as usize] = before + 1;
                }
            }
            begins += count;
        }
        (of.ranks, of.sorted, of.all_pages) = (ranks, Vec::new(), begins);
        Ok(())
    })?;
    Ok(())
}

/// Iterates over distinct values, each with its pages.
fn groups(sorted: &[Keyed]) -> impl Iterator<Item = &[Keyed]> {
    sorted.chunk_by(|one, other| one.0 == other.0)
}

fn ask_owners(
    local: &mut [ShardRanking<'_>],
    units: Option<ScoreUnits>,
    peers: &mut dyn Peers,
) -> Result<()> {
    let asks = par_map(local, |_, of| {
        let asked = of.shard.remote.iter().map(|pages| asked(&pages.there));
        asked.collect::<Result<Vec<_>>>()
    })?;
    let asked = peers.exchange(asks)?;
    let answers = par_map(local, |at, of| of.answers(&asked[at], units))?;
    let answers = peers.exchange(answers)?;
    par_map(local, |at, of| {
        for (pages, message) in of.shard.remote.iter().zip(&answers[at]) {
            let (importances, ranks) = answered(message, pages.here.len(), units)?;
            for ((&page, importance), rank) in pages.here.iter().zip(importances).zip(ranks) {
                of.importances[page as usize] = importance;
                of.ranks[page as usize] = rank;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Returns the logarithm of the units to which importances of remote pages are rounded; 0 without a bound.
fn rounding(units: ScoreUnits, bound: Option<f64>, pages: u64) -> u32 {
    let whole = bound.unwrap_or(0.0) * ROUNDED_TO * units.sum / pages as f64;
    (whole as u64).checked_ilog2().unwrap_or(0)
}

#[cfg(test)]
mod tests;
