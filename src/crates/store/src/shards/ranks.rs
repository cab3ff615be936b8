//! Ranks over all shards: 1 + the number of own pages of all shards with strictly greater importance (sample sort).
//!
//! 1. *Splits.* Each shard sorts the importances of its own pages and sends [`SAMPLES`] of them to all others. From these
//!    all choose the same splits, which divide the values into as many ranges as there are shards.
//! 2. *Merge.* Each shard sends the values of a range, sorted, to the shard of that number, which merges the messages and
//!    answers how many values of other shards precede each value. The numbers of values in each range are all-reduced, so
//!    every shard knows the first rank of each range.
//! 3. *Remote pages.* Each shard asks the owners of its remote pages for their importance and rank.
//!
//! Equal values are in one range and have one rank, wherever they are. Ranks do not depend on the samples, and nothing
//! depends on which process has which shard.
//!
//! ```text
//! units     0 | 1, offset and sum   what the importances of a message are whole numbers of (ScoreUnits); f64, little-endian
//! values    units (delta repeats?)* varints: from the value before, at least 1; repeats: 0, and how often beyond once
//! others    delta*                  of each distinct value: values of other shards since the one before
//! asked     delta*                  pages by their numbers in their owner's store, at least 1
//! answer    units shift value* delta*   importances in 2^shift units, zigzag; ranks by importance, each less the one before, zigzag
//! ```
//!
//! The importance of a remote page is rounded down, so that its message is short, and so that importances of different
//! pages never sum to more than 1: all of a shard together by less than a 64th of the certified bound. Its rank is
//! exact.
//!
//! The distributed value of a remote page is not sent; its importance, one step of the walk further, replaces it. Only
//! `rank` of that page in this shard shows it.
//!
//! Importances of a settled ranking take 35 bits as units for the mean of 10 M pages, compared with 64 bits. If one
//! importance of a message is not a whole multiple of a unit, all are sent as `f64`.
//!
//! **Memory**: 16 bytes per page for sorting, and 8 for ranks; messages take about 5 bytes for each own page, and 8 for each
//! remote one, on either side.

mod messages;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Peers, RemotePages};
use crate::engine::{CHUNK_PAGES, Certificate, Effort, Estimator, ScoreUnits, Scores};
use crate::rows::Bits;
use crate::snapshot::descending_key;
use crate::threads::{par_map, sort_by_key};
use crate::{Error, Result};
use messages::{ValueReader, answer, answered, asked, pages_asked, put, take, unreadable};

/// Number of samples of a shard's values.
const SAMPLES: u64 = 1 << 10;
/// Part of the certified bound by which importances of remote pages may be rounded down, all together.
const ROUNDED_TO: f64 = 1.0 / 64.0;

/// Scores of the pages that a shard knows.
pub struct ShardScores<'s> {
    /// Scores of all pages of the shard; those of remote pages are ignored.
    pub scores: &'s dyn Scores,
    pub pages: u64,
    /// Remote pages by shard; the other pages are the shard's own.
    pub remote: &'s [RemotePages],
}

/// Ranking of all pages that a shard knows, among all pages of all shards.
pub struct ShardRanking<'s> {
    scores: &'s dyn Scores,
    /// Remote pages with their importance, ascending.
    remote: Vec<(u32, f64)>,
    ranks: Vec<u64>,
    all_pages: u64,
}

impl ShardRanking<'_> {
    pub fn ranks(&self) -> &[u64] {
        &self.ranks
    }

    /// Returns the number of own pages in all shards.
    pub fn all_pages(&self) -> u64 {
        self.all_pages
    }
}

impl Scores for ShardRanking<'_> {
    fn certificate(&self) -> Option<Certificate> {
        self.scores.certificate()
    }

    fn effort(&self) -> Effort {
        self.scores.effort()
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
        self.scores.read(first, len, out)?;
        let at = |page: u64| self.remote.partition_point(|of| u64::from(of.0) < page);
        for &(page, importance) in &self.remote[at(first)..at(first + len as u64)] {
            out[(u64::from(page) - first) as usize] = (importance, importance);
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
    let mut local = par_map(&mut shards.iter().collect::<Vec<_>>(), |_, of| {
        LocalRanking::of(of, estimator, all_shards)
    })?;
    let splits = choose_splits(&local, peers)?;
    let all_pages = rank_own(&mut local, &splits, units, peers)?;
    let remote = ask_owners(&mut local, (estimator, units), all_pages, peers)?;
    let rankings = local
        .into_iter()
        .zip(remote)
        .map(|(of, remote)| ShardRanking {
            scores: of.shard.scores,
            remote,
            ranks: of.ranks,
            all_pages,
        });
    Ok(rankings.collect())
}

/// Sort key of an importance, and its page.
type Keyed = (u64, u32);

struct LocalRanking<'a, 's> {
    shard: &'a ShardScores<'s>,
    is_remote: Bits,
    /// Keys of the shard's own pages, sorted; empty once they have ranks.
    sorted: Vec<Keyed>,
    /// Ranks of all pages, as far as they are known.
    ranks: Vec<u64>,
}

impl<'a, 's> LocalRanking<'a, 's> {
    fn of(
        shard: &'a ShardScores<'s>,
        estimator: Estimator,
        all_shards: usize,
    ) -> Result<LocalRanking<'a, 's>> {
        let ShardScores { pages, remote, .. } = *shard;
        if remote.len() != all_shards || pages > 1 << u32::BITS {
            return Err(Error::internal("the remote pages are not of these shards"));
        }
        let mut is_remote = Bits::new(pages);
        let mut own = pages;
        for &page in remote.iter().flat_map(|of| &of.here) {
            if u64::from(page) >= pages || !is_remote.set(page.into()) {
                return Err(Error::internal(format!(
                    "remote page {page} is no page, or is there twice"
                )));
            }
            own -= 1;
        }
        let mut sorted = Vec::with_capacity(own as usize);
        each_block(shard, |first, block| {
            for (page, &scores) in (first..).zip(block) {
                if !is_remote.get(page) {
                    sorted.push((descending_key(estimator.read(scores).0), page as u32));
                }
            }
            Ok(())
        })?;
        sort_by_key(&mut sorted, |of| *of);
        Ok(LocalRanking {
            shard,
            is_remote,
            sorted,
            ranks: vec![0; pages as usize],
        })
    }
}

fn each_block(
    shard: &ShardScores<'_>,
    mut each: impl FnMut(u64, &[(f64, f64)]) -> Result<()>,
) -> Result<()> {
    let mut block = Vec::new();
    for first in (0..shard.pages).step_by(CHUNK_PAGES as usize) {
        let len = CHUNK_PAGES.min(shard.pages - first) as usize;
        shard.scores.read(first, len, &mut block)?;
        each(first, &block)?;
    }
    Ok(())
}

/// Iterates over distinct values, each with its pages.
fn groups(sorted: &[Keyed]) -> impl Iterator<Item = &[Keyed]> {
    sorted.chunk_by(|one, other| one.0 == other.0)
}

/// Chooses the first value of each range except the first, ascending; ranges hold about equally many values.
fn choose_splits(local: &[LocalRanking<'_, '_>], peers: &mut dyn Peers) -> Result<Vec<u64>> {
    let sample = |of: &LocalRanking<'_, '_>| {
        let len = of.sorted.len() as u64;
        let count = len.min(SAMPLES);
        let mut says = Vec::new();
        put(&mut says, len);
        for at in 0..count {
            let middle = (2 * u128::from(at) + 1) * u128::from(len) / (2 * u128::from(count));
            put(&mut says, of.sorted[middle as usize].0);
        }
        says
    };
    let says = local.iter().map(sample).collect();
    let mut samples = Vec::new();
    for said in peers.gather_by_shard(says)? {
        let mut rest = &said[..];
        let len = take(&mut rest)?;
        let count = len.min(SAMPLES);
        for _ in 0..count {
            // Number of values that a sample represents, in 1/SAMPLES.
            let weight = u128::from(len) * u128::from(SAMPLES) / u128::from(count);
            samples.push((take(&mut rest)?, weight));
        }
    }
    samples.sort_unstable();
    let total: u128 = samples.iter().map(|sample| sample.1).sum();
    let ranges = peers.shards() as u128;
    let (mut splits, mut before) = (Vec::new(), 0);
    for (value, weight) in samples {
        before += weight;
        while (splits.len() as u128 + 1) * total < before * ranges
            && splits.len() as u128 + 1 < ranges
        {
            splits.push(value);
        }
    }
    Ok(splits)
}

/// Merges the values of a range. Returns for each shard, by its distinct values, how many values of others come between
/// it and the one before; and the number of values.
fn merge(messages: &[Vec<u8>]) -> Result<(Vec<Vec<u8>>, u64)> {
    let values = messages.iter().map(|of| ValueReader::of(of));
    let mut values = values.collect::<Result<Vec<_>>>()?;
    let mut heads = BinaryHeap::new();
    for (shard, values) in values.iter_mut().enumerate() {
        heads.extend(
            values
                .next()?
                .map(|(value, count)| Reverse((value, shard, count))),
        );
    }
    let mut others = vec![Vec::new(); messages.len()];
    // Number of values up to the last one of each shard.
    let mut behind = vec![0u64; messages.len()];
    let (mut before, mut seen, mut last) = (0, 0, None);
    while let Some(Reverse((value, shard, count))) = heads.pop() {
        if last != Some(value) {
            (before, last) = (seen, Some(value));
        }
        put(&mut others[shard], before - behind[shard]);
        behind[shard] = before + count;
        seen += count;
        let next = values[shard].next()?;
        heads.extend(next.map(|(value, count)| Reverse((value, shard, count))));
    }
    Ok((others, seen))
}

/// Assigns ranks to all own pages. Returns their number in all shards.
fn rank_own(
    local: &mut [LocalRanking<'_, '_>],
    splits: &[u64],
    units: Option<ScoreUnits>,
    peers: &mut dyn Peers,
) -> Result<u64> {
    let ranges = peers.shards();
    let range_of = |value: u64| splits.partition_point(|split| *split <= value);
    let in_range = |of: &'_ LocalRanking<'_, '_>, range: usize| {
        let from = of.sorted.partition_point(|of| range_of(of.0) < range);
        let to = of.sorted.partition_point(|of| range_of(of.0) <= range);
        from..to
    };
    let sends = |of: &LocalRanking<'_, '_>| {
        let message = |range| ValueReader::message(&of.sorted[in_range(of, range)], units);
        (0..ranges).map(message).collect::<Vec<_>>()
    };
    let messages = par_map(local, |_, of| Ok(sends(of)))?;
    let mut incoming = peers.exchange(messages)?;
    let merged = par_map(&mut incoming, |_, messages| {
        merge(&std::mem::take(messages))
    })?;
    let (answers, local_counts): (Vec<_>, Vec<u64>) = merged.into_iter().unzip();
    let mut counts = vec![0i128; ranges];
    for (&range, count) in peers.local().iter().zip(local_counts) {
        counts[range] = count.into();
    }
    peers.sum(&mut counts)?;
    let answers = peers.exchange(answers)?;
    par_map(local, |at, of| {
        let mut begins = 0;
        for ((range, answer), count) in answers[at].iter().enumerate().zip(&counts) {
            let sorted = &of.sorted[in_range(of, range)];
            let (mut rest, mut before) = (&answer[..], begins);
            for group in groups(sorted) {
                before += take(&mut rest)?;
                for &(_, page) in group {
                    of.ranks[page as usize] = before + 1;
                }
                before += group.len() as u64;
            }
            begins += u64::try_from(*count).map_err(|_| unreadable())?;
        }
        of.sorted = Vec::new();
        Ok(())
    })?;
    u64::try_from(counts.iter().sum::<i128>()).map_err(|_| unreadable())
}

/// Gets importance and rank of each remote page from its owner. Returns each local shard's remote pages with their
/// importance, ascending.
fn ask_owners(
    local: &mut [LocalRanking<'_, '_>],
    by: (Estimator, Option<ScoreUnits>),
    all_pages: u64,
    peers: &mut dyn Peers,
) -> Result<Vec<Vec<(u32, f64)>>> {
    let asks = par_map(local, |_, of| {
        let asked = of.shard.remote.iter().map(|pages| asked(&pages.there));
        asked.collect::<Result<Vec<_>>>()
    })?;
    let asked = peers.exchange(asks)?;
    let answers = par_map(local, |at, of| answer_all(of, &asked[at], by, all_pages))?;
    let answers = peers.exchange(answers)?;
    let mut answered_shards: Vec<_> = local.iter_mut().zip(answers).collect();
    par_map(&mut answered_shards, |_, (of, answers)| {
        let mut found = Vec::new();
        for (pages, answer) in of.shard.remote.iter().zip(std::mem::take(answers)) {
            let (importances, ranks) = answered(&answer, pages.here.len())?;
            for ((&page, importance), rank) in pages.here.iter().zip(importances).zip(ranks) {
                of.ranks[page as usize] = rank;
                found.push((page, importance));
            }
        }
        found.sort_unstable_by_key(|of| of.0);
        Ok(found)
    })
}

fn answer_all(
    of: &LocalRanking<'_, '_>,
    asked: &[Vec<u8>],
    (estimator, units): (Estimator, Option<ScoreUnits>),
    all_pages: u64,
) -> Result<Vec<Vec<u8>>> {
    let certificate = of.shard.scores.certificate();
    let bound = certificate.and_then(|certificate| certificate.bound_l1(estimator));
    let shift = units.map_or(0, |units| rounding(units, bound, all_pages));
    let mut asking = Vec::new();
    for asked in asked {
        let pages = pages_asked(asked)?;
        let is_other = |page: &&u32| {
            let page = u64::from(**page);
            page >= of.shard.pages || of.is_remote.get(page)
        };
        if let Some(page) = pages.iter().find(is_other) {
            return Err(Error::internal(format!(
                "another shard asks for page {page}, which is none of this shard"
            )));
        }
        asking.push((pages, Vec::new()));
    }
    each_block(of.shard, |first, block| {
        for (pages, importances) in &mut asking {
            let left = pages[importances.len()..].iter();
            let within = left.take_while(|page| u64::from(**page) < first + block.len() as u64);
            let scores = within.map(|page| block[(u64::from(*page) - first) as usize]);
            let found: Vec<f64> = scores.map(|of| estimator.read(of).0).collect();
            importances.extend(found);
        }
        Ok(())
    })?;
    let answers = asking.into_iter().map(|(pages, importances)| {
        let ranks = pages.iter().map(|page| of.ranks[*page as usize]);
        answer(importances, &ranks.collect::<Vec<_>>(), (units, shift))
    });
    Ok(answers.collect())
}

/// Returns the logarithm of the units to which importances of remote pages are rounded; 0 without a bound.
fn rounding(units: ScoreUnits, bound: Option<f64>, pages: u64) -> u32 {
    let whole = bound.unwrap_or(0.0) * ROUNDED_TO * units.sum / pages as f64;
    (whole as u64).checked_ilog2().unwrap_or(0)
}

#[cfg(test)]
mod tests;
