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

use super::{Peers, RemotePages, gather_values};
use crate::codec::varint;
use crate::engine::{CHUNK_PAGES, Certificate, Effort, Estimator, ScoreUnits, Scores};
use crate::rows::Bits;
use crate::snapshot::{descending_key, importance_of, sorted_positions, splits};
use crate::threads::par_map;
use crate::{Error, Result};

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
    sorted: Vec<KeyedPage>,
    pub all_pages: u64,
}

/// Sort key of an importance, and its page.
type KeyedPage = (u64, u32);

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
    fn in_range(&self, splits: &[u64], range: usize) -> &[KeyedPage] {
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
            let pages = take_pages(asked)?;
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

/// Ranks the pages of all shards together. `units` is the unit of which importances usually are multiples.
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

/// Merges the values of a range. Returns for each shard, by its distinct values, how many values of all
/// shards there are from its distinct value before, with that, up to this one; and the number of values.
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
fn groups(sorted: &[KeyedPage]) -> impl Iterator<Item = &[KeyedPage]> {
    sorted.chunk_by(|one, other| one.0 == other.0)
}

fn ask_owners(
    local: &mut [ShardRanking<'_>],
    units: Option<ScoreUnits>,
    peers: &mut dyn Peers,
) -> Result<()> {
    let asks = par_map(local, |_, of| {
        let asked = of.shard.remote.iter().map(|pages| put_pages(&pages.there));
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

/// Error for an unreadable message, which a process of the same version never sends.
fn unreadable() -> Error {
    Error::internal("a message of another shard cannot be read")
}

fn take(from: &mut &[u8]) -> Result<u64> {
    let number = varint::take(from).and_then(|number| number.try_into().ok());
    number.ok_or_else(unreadable)
}

fn put(out: &mut Vec<u8>, number: u64) {
    varint::put(out, number.into());
}

/// Delta coding of strictly ascending numbers.
#[derive(Default)]
struct Ascending {
    /// Smallest possible next number.
    next: u128,
}

impl Ascending {
    fn put(&mut self, out: &mut Vec<u8>, number: u64) {
        let following = u128::from(number) + 1;
        varint::put(out, following - self.next);
        self.next = following;
    }

    fn take(&mut self, from: &mut &[u8]) -> Result<u64> {
        let distance = varint::take(from).filter(|distance| *distance > 0);
        let following = distance.and_then(|distance| self.next.checked_add(distance));
        self.next = following.ok_or_else(unreadable)?;
        u64::try_from(self.next - 1).map_err(|_| unreadable())
    }
}

/// Encoding of importances in a message as numbers that rise with importance. All shards have the same units.
#[derive(Clone, Copy)]
struct Notation(Option<ScoreUnits>);

impl Notation {
    /// Encodes importances: in units if all are whole multiples of them, else as the bits of `f64`.
    fn encode(units: Option<ScoreUnits>, importances: &[f64]) -> (Notation, Vec<i64>) {
        // Without importances the notation is not needed.
        let units = units.filter(|_| !importances.is_empty());
        let in_units = units.and_then(|units| {
            let numbers = importances.iter().map(|&of| units.of(of));
            numbers.collect::<Option<Vec<i64>>>()
        });
        match in_units {
            Some(numbers) => (Notation(units), numbers),
            None => {
                let bits = importances.iter().map(|of| of.to_bits() as i64);
                (Notation(None), bits.collect())
            }
        }
    }

    fn importance(self, number: i64) -> f64 {
        match self.0 {
            Some(units) => units.importance(number),
            None => f64::from_bits(number as u64),
        }
    }

    fn put(self, out: &mut Vec<u8>) {
        out.push(u8::from(self.0.is_some()));
    }

    fn take(from: &mut &[u8], units: Option<ScoreUnits>) -> Result<Notation> {
        match from.split_off_first() {
            Some(0) => Ok(Notation(None)),
            Some(1) if units.is_some() => Ok(Notation(units)),
            _ => Err(unreadable()),
        }
    }
}

/// Returns a key that falls as the number rises. It is its own inverse, except for the type.
fn falling(number: i64) -> u64 {
    !(number as u64 ^ 1 << 63)
}

fn put_values(sorted: &[KeyedPage], units: Option<ScoreUnits>) -> Vec<u8> {
    let importances = groups(sorted).map(|group| importance_of(group[0].0));
    let (notation, numbers) = Notation::encode(units, &importances.collect::<Vec<_>>());
    let (mut out, mut ascending) = (Vec::new(), Ascending::default());
    notation.put(&mut out);
    for (group, number) in groups(sorted).zip(numbers) {
        ascending.put(&mut out, falling(number));
        if let repeats @ 1.. = group.len() as u64 - 1 {
            put(&mut out, 0);
            put(&mut out, repeats);
        }
    }
    out
}

/// Decodes distinct values as sort keys, ascending, each with the number of its pages.
fn values_of(mut message: &[u8], units: Option<ScoreUnits>) -> Result<Vec<(u64, u64)>> {
    let notation = Notation::take(&mut message, units)?;
    let mut ascending = Ascending::default();
    let mut values: Vec<(u64, u64)> = Vec::new();
    while !message.is_empty() {
        let number = falling(ascending.take(&mut message)? as i64) as i64;
        let value = descending_key(notation.importance(number));
        if values.last().is_some_and(|last| last.0 >= value) {
            return Err(unreadable());
        }
        let mut count = 1;
        if let Some(rest) = message.strip_prefix(&[0]) {
            message = rest;
            count += u64::from(u32::try_from(take(&mut message)?).map_err(|_| unreadable())?);
        }
        values.push((value, count));
    }
    Ok(values)
}

fn put_pages(there: &[u32]) -> Result<Vec<u8>> {
    if !there.is_sorted_by(|one, other| one < other) {
        return Err(Error::internal(
            "remote pages are not in the order of their owner",
        ));
    }
    let (mut out, mut ascending) = (Vec::new(), Ascending::default());
    for &page in there {
        ascending.put(&mut out, page.into());
    }
    Ok(out)
}

fn take_pages(mut asked: &[u8]) -> Result<Vec<u32>> {
    let (mut ascending, mut found) = (Ascending::default(), Vec::new());
    while !asked.is_empty() {
        let page = ascending.take(&mut asked)?;
        found.push(page.try_into().map_err(|_| unreadable())?);
    }
    Ok(found)
}

/// Encodes importances and ranks of pages. Importances in units are rounded down to multiples of 2^`shift` units.
fn answer(
    importances: Vec<f64>,
    ranks: Vec<u64>,
    (units, shift): (Option<ScoreUnits>, u32),
) -> Vec<u8> {
    let (notation, mut numbers) = Notation::encode(units, &importances);
    let mut out = Vec::new();
    notation.put(&mut out);
    out.push(shift as u8);
    for number in &mut numbers {
        if notation.0.is_some() {
            *number >>= shift;
        }
        put(&mut out, varint::zigzag(*number));
    }
    let mut before = 0;
    for at in by_importance(&numbers) {
        let further = ranks[at].wrapping_sub(before) as i64;
        put(&mut out, varint::zigzag(further));
        before = ranks[at];
    }
    out
}

fn answered(
    mut answer: &[u8],
    pages: usize,
    units: Option<ScoreUnits>,
) -> Result<(Vec<f64>, Vec<u64>)> {
    let notation = Notation::take(&mut answer, units)?;
    let shift = u32::from(*answer.split_off_first().ok_or_else(unreadable)?);
    if shift >= u64::BITS {
        return Err(unreadable());
    }
    let numbers = (0..pages).map(|_| Ok(varint::unzigzag(take(&mut answer)?)));
    let numbers = numbers.collect::<Result<Vec<i64>>>()?;
    let (mut ranks, mut rank) = (vec![0; pages], 0u64);
    for at in by_importance(&numbers) {
        rank = rank.wrapping_add(varint::unzigzag(take(&mut answer)?) as u64);
        ranks[at] = rank;
    }
    let shift = notation.0.map_or(0, |_| shift);
    let importances = numbers
        .into_iter()
        .map(|number| notation.importance(number << shift));
    Ok((importances.collect(), ranks))
}

/// Returns the positions of importances that these numbers encode, from the highest to the lowest.
fn by_importance(numbers: &[i64]) -> impl Iterator<Item = usize> + use<> {
    let keys: Vec<u64> = numbers.iter().map(|&number| falling(number)).collect();
    sorted_positions(&keys)
}

#[cfg(test)]
mod tests;
