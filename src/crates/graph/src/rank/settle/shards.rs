//! Settling several shards of one crawl together: one graph whose pages lie in several stores.
//!
//! The owner of a page has its X and D. A shard that knows it as a remote page collects in an account what its own
//! pages pass on to it: D is the sum of all accounts of a page. At the end of a sweep the accounts of remote pages are
//! sent to the owners, and sums are all-reduced over the shards. So a sweep goes in order inside a shard, and is
//! synchronous between shards. Any choice of visits keeps the certificate, which counts what waits at remote pages as
//! not passed on. The virtual page pays the owners' pages only.
//!
//! ```text
//! message of a sweep   0 | s | bytes of all numbers: varint | numbers | units of each: 1 or 9 bytes
//! number               page number at its owner, less the one before and 1: varint
//! units                sign, 1 bit | e, 4 bits | m, 3 bits:  (1 + m / 8) 2^(s + e), or if e = 15: in the next 8 bytes, little endian
//! message at the end   1 | bytes of all numbers: varint | numbers | units of each: zigzag varint
//! ```
//!
//! While sweeps continue, only the largest accounts are sent, of 2^s units or more, which hold [`SENT`] sixteenths of
//! all that waits, rounded to four bits; the rest is sent later. At the end all is sent. Numbers and units are
//! separate, so that a transport that compresses messages makes each of them shorter.
//!
//! The result depends on the shards, but not on their distribution over processes or threads.

use super::settling::Settling;
use super::worth::VisitLevel;
use super::{SettlingResult, Watch};
use crate::codec::varint;
use crate::rank::peers::{Peers, RemotePages};
use crate::rank::{RankOptions, Teleport};
use crate::rows::Rows;
use crate::{Error, Result};

/// Sixteenths of what waits at remote pages that are sent after a sweep.
const SENT: u128 = 14;
const ROUNDED: u8 = 0;
const EXACT: u8 = 1;
/// Number of bits of a rounded number that are sent, without the leading one.
const MANTISSA: u32 = 3;
/// Exponent that announces a number in 8 bytes.
const WHOLE: u32 = 15;

/// Shard that is settled together with others.
#[derive(Clone, Copy)]
pub struct ShardRows<'r> {
    /// Links of its pages, by its page numbers.
    pub rows: &'r dyn Rows,
    /// Pages that it knows of each shard, in their order; none of its own.
    pub remote: &'r [RemotePages],
}

impl ShardRows<'_> {
    pub fn own_pages(&self) -> u64 {
        let remote = self.remote.iter().map(|remote| remote.here.len() as u64);
        self.rows.pages().saturating_sub(remote.sum())
    }
}

/// Settles shards together; `shards` are those of this process, in the order of [`Peers::local`]. All processes must
/// call it with the same options, and get the same certificate. Returns the result of each shard of this process;
/// `None` if there are no pages, or if it was stopped before the first sweep was complete.
pub fn settle_shards(
    shards: &[ShardRows<'_>],
    peers: &mut dyn Peers,
    options: &RankOptions,
    watch: &mut dyn Watch,
) -> Result<Option<Vec<SettlingResult>>> {
    let uniform = Teleport::default();
    let settling = Settling::new(shards.to_vec(), options.damping, &uniform, peers)?;
    if settling.totals.pages == 0 {
        return Ok(None);
    }
    let level = VisitLevel::Beginning(settling.totals.at_first());
    settling.run(options, Some(level), watch)
}

/// Returns the binary logarithm, rounded down, of the smallest account that is sent.
pub(super) fn least_sent(units: impl Iterator<Item = u64>) -> u32 {
    let mut octaves = [0u128; 64];
    for units in units.filter(|&units| units > 0) {
        octaves[units.ilog2() as usize] += u128::from(units);
    }
    let all: u128 = octaves.iter().sum();
    let mut sent = 0;
    for octave in (0..u64::BITS).rev() {
        sent += octaves[octave as usize];
        if sent * 16 >= all * SENT {
            return octave;
        }
    }
    0
}

/// Accounts to be sent to another shard.
pub(super) struct Message {
    least: Option<u32>,
    numbers: Vec<u8>,
    units: Vec<u8>,
    next: u64,
}

impl Message {
    /// Creates a message of accounts of 2^`least` units or more, rounded; with `None`, of all.
    pub fn new(least: Option<u32>) -> Message {
        Message {
            least,
            numbers: Vec::new(),
            units: Vec::new(),
            next: 0,
        }
    }

    /// Adds the account of the next higher page if it is large enough. Returns how many units the message carries.
    pub fn put(&mut self, there: u32, units: i64) -> i64 {
        let size = units.unsigned_abs();
        if size >> self.least.unwrap_or(0) == 0 {
            return 0;
        }
        let there = u64::from(there);
        varint::put(&mut self.numbers, (there - self.next).into());
        self.next = there + 1;
        let Some(least) = self.least else {
            varint::put(&mut self.units, varint::zigzag(units).into());
            return units;
        };
        let sign = u8::from(units < 0) << 7;
        let octave = size.ilog2();
        if octave - least >= WHOLE {
            self.units.push(sign | (WHOLE << MANTISSA) as u8);
            self.units.extend(units.to_le_bytes());
            return units;
        }
        let code = sign | ((octave - least) << MANTISSA) as u8 | mantissa(size);
        self.units.push(code);
        from_code(code, least)
    }

    pub fn bytes(self) -> Vec<u8> {
        if self.numbers.is_empty() {
            return Vec::new();
        }
        let mut bytes = match self.least {
            Some(least) => vec![ROUNDED, least as u8],
            None => vec![EXACT],
        };
        varint::put(&mut bytes, self.numbers.len() as u128);
        bytes.extend(self.numbers);
        bytes.extend(self.units);
        bytes
    }
}

fn mantissa(size: u64) -> u8 {
    let first = size.wrapping_shl(size.leading_zeros()) >> (u64::BITS - 1 - MANTISSA);
    first as u8 & ((1 << MANTISSA) - 1)
}

/// Returns the number that a code stands for, rounded towards 0.
fn from_code(code: u8, least: u32) -> i64 {
    let first = u64::from(code | 1 << MANTISSA) << (u64::BITS - 1 - MANTISSA);
    let octave = least + u32::from(code >> MANTISSA & 0xf);
    let size = first.wrapping_shr((u64::BITS - 1).wrapping_sub(octave)) as i64;
    if code >> 7 == 1 {
        size.wrapping_neg()
    } else {
        size
    }
}

/// Calls `put` with each page and its units of a message.
pub(super) fn each_of(message: &[u8], put: &mut impl FnMut(u32, i64) -> Result<()>) -> Result<()> {
    let cut = || Error::internal("a message of a shard is cut");
    let (least, mut rest) = match message {
        [] => return Ok(()),
        [ROUNDED, least, rest @ ..] => (Some(u32::from(*least)), rest),
        [EXACT, rest @ ..] => (None, rest),
        _ => return Err(cut()),
    };
    let len = varint::take(&mut rest).and_then(|len| usize::try_from(len).ok());
    let (mut numbers, mut codes) = len
        .and_then(|len| rest.split_at_checked(len))
        .ok_or_else(cut)?;
    let mut next = 0u128;
    while !numbers.is_empty() {
        let skipped = varint::take(&mut numbers).ok_or_else(cut)?;
        let units = take_units(&mut codes, least).ok_or_else(cut)?;
        let page = next + skipped;
        next = page + 1;
        let page = u32::try_from(page);
        put(
            page.map_err(|_| {
                Error::internal("a message of a shard names a page that there cannot be")
            })?,
            units,
        )?;
    }
    match codes {
        [] => Ok(()),
        _ => Err(cut()),
    }
}

/// Takes the units of a page from a message whose smallest account is 2^`least`.
fn take_units(codes: &mut &[u8], least: Option<u32>) -> Option<i64> {
    let Some(least) = least else {
        return varint::take(codes).map(|units| varint::unzigzag(units as u64));
    };
    let code = *codes.split_off_first()?;
    if u32::from(code >> MANTISSA & 0xf) < WHOLE {
        return Some(from_code(code, least));
    }
    let (units, rest) = codes.split_first_chunk()?;
    *codes = rest;
    Some(i64::from_le_bytes(*units))
}

#[cfg(test)]
mod tests {
    use super::super::settle;
    use super::super::tests::distance;
    use super::*;
    use crate::engine::{Certificate, Effort, Scores};
    use crate::rank::elimination::{TestRows, dense, numbers};
    use crate::rank::peers::OneProcess;
    use crate::rank::peers::threads::with_processes;

    /// Graph distributed over shards.
    struct DistributedRows {
        rows: Vec<TestRows>,
        remote: Vec<Vec<RemotePages>>,
        /// Pages of each shard by its numbers.
        pages: Vec<Vec<u32>>,
        of: Vec<usize>,
    }

    impl DistributedRows {
        /// Distributes a graph: page i is of shard `of[i]`. A shard knows its own pages and those that they link to, in
        /// its own order.
        fn new(kept: &TestRows, of: Vec<usize>, shards: usize) -> DistributedRows {
            let mut known = vec![vec![false; of.len()]; shards];
            for (page, &shard) in of.iter().enumerate() {
                known[shard][page] = true;
            }
            for (page, targets, _) in &kept.rows {
                for &target in targets {
                    known[of[*page as usize]][target as usize] = true;
                }
            }
            let pages: Vec<Vec<u32>> = (known.iter().enumerate())
                .map(|(shard, known)| {
                    let all = (0..of.len() as u32).filter(|&page| known[page as usize]);
                    let mut all: Vec<u32> = all.collect();
                    all.sort_by_key(|page| page.wrapping_mul(2_654_435_761 + shard as u32));
                    all
                })
                .collect();
            let number = |shard: usize, page: u32| {
                let at = pages[shard].iter().position(|&known| known == page);
                at.unwrap() as u32
            };
            let mut rows: Vec<TestRows> = pages
                .iter()
                .map(|pages| TestRows {
                    pages: pages.len() as u64,
                    rows: Vec::new(),
                })
                .collect();
            for (page, targets, weights) in &kept.rows {
                let shard = of[*page as usize];
                let targets = targets
                    .iter()
                    .map(|&target| number(shard, target))
                    .collect();
                rows[shard]
                    .rows
                    .push((number(shard, *page), targets, weights.clone()));
            }
            let remote = (0..shards).map(|shard| {
                let of_owner = |owner: usize| {
                    let mut pairs: Vec<(u32, u32)> = (0..)
                        .zip(&pages[shard])
                        .filter(|&(_, &page)| owner != shard && of[page as usize] == owner)
                        .map(|(here, &page)| (number(owner, page), here))
                        .collect();
                    pairs.sort_unstable();
                    let (there, here) = pairs.into_iter().unzip();
                    RemotePages { here, there }
                };
                (0..shards).map(of_owner).collect()
            });
            DistributedRows {
                remote: remote.collect(),
                rows,
                pages,
                of,
            }
        }

        fn shards(&self, local: &[usize]) -> Vec<ShardRows<'_>> {
            let shard = |&shard: &usize| ShardRows {
                rows: &self.rows[shard],
                remote: &self.remote[shard],
            };
            local.iter().map(shard).collect()
        }

        /// Collects the scores of all pages of these shards.
        fn scores(&self, settled: &[SettlingResult], local: &[usize], out: &mut [(f64, f64)]) {
            for (settled, &shard) in settled.iter().zip(local) {
                let mut scores = Vec::new();
                settled
                    .read(0, self.pages[shard].len(), &mut scores)
                    .unwrap();
                for (&page, score) in self.pages[shard].iter().zip(scores) {
                    if self.of[page as usize] == shard {
                        out[page as usize] = score;
                    }
                }
            }
        }

        fn settle(&self, options: &RankOptions) -> (Vec<(f64, f64)>, Effort, Certificate) {
            let mut peers = OneProcess::new(self.rows.len());
            let local = peers.local().to_vec();
            let settled = settle_shards(&self.shards(&local), &mut peers, options, &mut ());
            let settled = settled.unwrap().unwrap();
            let mut all = vec![(f64::NAN, f64::NAN); self.of.len()];
            self.scores(&settled, &local, &mut all);
            (all, settled[0].effort, settled[0].certificate)
        }
    }

    /// Returns pages with up to nine links, some weighted, a fifth of them without, a tenth without a row.
    fn graph(seed: u64, pages: u32) -> TestRows {
        let mut pick = numbers(seed);
        let mut kept = TestRows {
            pages: pages.into(),
            rows: Vec::new(),
        };
        for page in 0..pages {
            if pick(10) == 0 {
                continue;
            }
            let mut targets: Vec<u32> = (0..pick(5) * pick(3) + pick(2))
                .map(|_| pick(pages.into()) as u32)
                .collect();
            targets.sort_unstable();
            targets.dedup();
            let weights: Vec<u64> = match pick(3) {
                0 => targets.iter().map(|_| pick(4)).collect(),
                _ => Vec::new(),
            };
            kept.visit(page, &targets, &weights);
        }
        kept
    }

    fn options(damping: f64, until: f64) -> RankOptions {
        RankOptions::until((damping * 2f64.powi(32)) as u64, until)
    }

    /// Any graph, distributed in any way, is settled to its PageRank within the bound, and all scores sum to 1.
    #[test]
    fn shards_are_one_graph() {
        for seed in 0..60 {
            let mut pick = numbers(1000 + seed);
            let pages = 1 + pick(80) as u32;
            let shards = 1 + pick(7) as usize;
            let kept = graph(seed, pages);
            // The last shard is often empty.
            let of = (0..pages).map(|_| pick(shards as u64) as usize * pick(5).min(1) as usize);
            let dealt = DistributedRows::new(&kept, of.collect(), shards);
            let options = options([0.5, 0.85, 0.99][pick(3) as usize], 1e-7);
            let (scores, effort, certificate) = dealt.settle(&options);
            let importance: Vec<f64> = scores.iter().map(|(importance, _)| *importance).collect();
            let sum: f64 = importance.iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{seed}: {sum}");
            let bound = certificate.received_l1.unwrap();
            assert!(effort.reached && bound <= 1e-7, "{seed}: {bound}");
            let off = distance(&importance, &dense(&kept, options.damping()));
            assert!(off <= bound + 1e-12, "{seed}: {off} is not within {bound}");
            let distributed: f64 = scores.iter().map(|(_, distributed)| *distributed).sum();
            assert!((distributed - 1.0).abs() < 1e-9, "{seed}: {distributed}");
        }
    }

    /// One shard is a store without shards, to the bit.
    #[test]
    fn one_shard_is_one_store() {
        let kept = graph(5, 200);
        let dealt = DistributedRows::new(&kept, vec![0; 200], 1);
        let options = options(0.85, 1e-6);
        let (scores, ..) = dealt.settle(&options);
        let one = settle(&dealt.rows[0], &options, &mut ()).unwrap().unwrap();
        for (at, importance) in one.importance().into_iter().enumerate() {
            assert_eq!(scores[dealt.pages[0][at] as usize].0, importance);
        }
    }

    /// The distribution of shards over processes makes no difference.
    #[test]
    fn processes_make_no_difference() {
        let kept = graph(11, 300);
        let mut pick = numbers(3);
        let of = (0..300).map(|_| pick(6) as usize).collect();
        let dealt = DistributedRows::new(&kept, of, 6);
        let options = options(0.85, 1e-6);
        let (expected, effort, certificate) = dealt.settle(&options);
        for processes in [2, 3, 6] {
            let all = std::sync::Mutex::new(vec![(f64::NAN, f64::NAN); 300]);
            with_processes(6, processes, |peers| {
                let local = peers.local().to_vec();
                let settled = settle_shards(&dealt.shards(&local), peers, &options, &mut ());
                let settled = settled.unwrap().unwrap();
                assert_eq!(settled[0].certificate, certificate);
                assert_eq!(settled[0].effort, effort);
                dealt.scores(&settled, &local, &mut all.lock().unwrap());
            });
            assert_eq!(all.into_inner().unwrap(), expected, "{processes}");
        }
    }

    #[test]
    fn nobody_has_a_page() {
        let kept = TestRows::default();
        let dealt = DistributedRows::new(&kept, Vec::new(), 3);
        let mut peers = OneProcess::new(3);
        let none = settle_shards(
            &dealt.shards(&[0, 1, 2]),
            &mut peers,
            &options(0.85, 0.1),
            &mut (),
        );
        assert!(none.unwrap().is_none());
    }

    /// A number is sent rounded towards 0, by less than an eighth; far larger ones whole, smaller ones not at all.
    #[test]
    fn rounded_units_are_near() {
        let mut pick = numbers(9);
        for _ in 0..100_000 {
            let units = (pick(u64::MAX) >> pick(64)) as i64;
            let least = pick(64) as u32;
            for units in [units, units.wrapping_neg(), i64::MIN] {
                let near = Message::new(Some(least)).put(7, units);
                let (size, sent) = (units.unsigned_abs(), near.unsigned_abs());
                assert!(sent <= size, "{units}: {near}");
                assert!(near == 0 || near.signum() == units.signum());
                if size < 1 << least {
                    assert_eq!(near, 0, "{units}");
                } else if size.ilog2() - least >= 15 {
                    assert_eq!(near, units);
                } else {
                    assert!(size - sent <= size / 8, "{units}: {near}");
                }
            }
        }
    }

    #[test]
    fn messages_are_read_as_written() {
        let pairs = [
            (0, 5),
            (1, -1_000_000),
            (2, 0),
            (7, i64::MAX),
            (u32::MAX - 1, i64::MIN),
            (u32::MAX, 1),
        ];
        for least in [None, Some(0), Some(2), Some(63)] {
            let mut message = Message::new(least);
            let put = pairs.map(|(page, units)| (page, message.put(page, units)));
            let put: Vec<(u32, i64)> = put.into_iter().filter(|&(_, sent)| sent != 0).collect();
            let bytes = message.bytes();
            let mut got = Vec::new();
            each_of(&bytes, &mut |page, units| {
                got.push((page, units));
                Ok(())
            })
            .unwrap();
            assert_eq!(got, put, "{least:?}");
            for end in 1..bytes.len() {
                // Cut anywhere, it is refused.
                assert!(each_of(&bytes[..end], &mut |_, _| Ok(())).is_err(), "{end}");
            }
        }
        let beyond = [1, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1];
        assert!(each_of(&beyond, &mut |_, _| Ok(())).is_err());
        assert!(each_of(&[2, 1, 0, 0], &mut |_, _| Ok(())).is_err());
    }
}
