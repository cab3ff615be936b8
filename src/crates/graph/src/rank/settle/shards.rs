//! Settling several shards of one crawl together: one graph whose pages lie in several stores.
//!
//! Every page has its X and D with its owner. A shard that knows it as a remote page collects in an account of its own what
//! its pages pass on to it: D is the sum of all accounts of a page. At the end of a sweep the accounts of remote pages are
//! sent to the owners, and sums are all-reduced over the shards. So a sweep goes in order inside a shard, and is
//! synchronous between shards; any choice of visits keeps the certificate, in which what still waits at remote pages
//! counts as not passed on. The virtual page pays the owners' pages only.
//!
//! ```text
//! message of a sweep   0 | (number there, less the one before and 1: varint | units: 2 bytes, little endian)*
//! units                sign, 1 bit | e, 6 bits | m, 9 bits:  m if e = 0, else (512 + m) 2^(e - 1)
//! message at the end   1 | (number there, likewise | units: zigzag varint)*
//! ```
//!
//! While sweeps continue, only the largest accounts are sent, which hold [`SENT`] sixteenths of all that waits, rounded to
//! ten bits; the rest stays and is sent later. At the end all is sent.
//!
//! The result depends on the shards, but not on which process or thread has which.

use super::ledger::SettlingLedger;
use super::sweeps::{NextSweep, Settling};
use super::worth::VisitLevel;
use super::{SettlingResult, Watch};
use crate::codec::varint;
use crate::rank::RankOptions;
use crate::rank::peers::{Peers, RemotePages};
use crate::rows::Rows;
use crate::{Error, Result};

/// Sixteenths of what waits at remote pages that are sent after a sweep.
const SENT: u128 = 15;

const ROUNDED: u8 = 0;
const EXACT: u8 = 1;
/// Number of bits of a rounded number that are sent, without the leading one.
const MANTISSA: u32 = 9;

/// Shard that is settled together with others.
#[derive(Clone, Copy)]
pub struct ShardRows<'r> {
    /// Links of its pages, by its page numbers.
    pub rows: &'r dyn Rows,
    /// Pages that it knows of each shard, in their order; none of its own.
    pub remote: &'r [RemotePages],
}

impl ShardRows<'_> {
    /// Returns the number of the shard's own pages.
    pub fn own_pages(&self) -> u64 {
        let remote = self.remote.iter().map(|remote| remote.here.len() as u64);
        self.rows.pages().saturating_sub(remote.sum())
    }
}

/// Settles shards together; `shards` are those of this process, in the order of [`Peers::local`]. All processes call it
/// with the same options and get the same certificate. Returns `None` if there are no pages, or if it was stopped
/// before the first sweep was complete.
pub fn settle_shards(
    shards: &[ShardRows<'_>],
    peers: &mut dyn Peers,
    options: &RankOptions,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    let mut pages = [shards
        .iter()
        .map(|shard| i128::from(shard.own_pages()))
        .sum()];
    peers.sum(&mut pages)?;
    let [pages] = pages;
    if pages == 0 {
        return Ok(None);
    }
    let ledger = SettlingLedger::of_shards(shards, pages as u64, options.damping)?;
    let settling = Settling::new(ledger, shards.to_vec(), peers)?;
    settling.run(options, NextSweep::Sweep(VisitLevel::Beginning), watch)
}

/// Returns the smallest of these numbers that is sent, if any is.
pub(super) fn least_sent(units: impl Iterator<Item = u64>) -> u64 {
    let mut octaves = [0u128; 64];
    for units in units.filter(|&units| units > 0) {
        octaves[units.ilog2() as usize] += u128::from(units);
    }
    let all: u128 = octaves.iter().sum();
    let mut sent = 0;
    for (octave, units) in octaves.iter().enumerate().rev() {
        sent += units;
        if sent * 16 >= all * SENT {
            return 1 << octave;
        }
    }
    1
}

/// Accounts to be sent to another shard.
pub(super) struct Message {
    kind: u8,
    bytes: Vec<u8>,
    next: u64,
}

impl Message {
    pub fn new(all: bool) -> Message {
        Message {
            kind: if all { EXACT } else { ROUNDED },
            bytes: Vec::new(),
            next: 0,
        }
    }

    /// Adds units for a page with a higher number than the one before. Returns how many of them the message carries.
    pub fn put(&mut self, there: u32, units: i64) -> i64 {
        if self.bytes.is_empty() {
            self.bytes.push(self.kind);
        }
        let there = u64::from(there);
        varint::put(&mut self.bytes, (there - self.next).into());
        self.next = there + 1;
        if self.kind == EXACT {
            varint::put(&mut self.bytes, varint::zigzag(units).into());
            return units;
        }
        let code = rounded(units);
        self.bytes.extend(code.to_le_bytes());
        from_code(code)
    }

    pub fn bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Encodes units as a number of ten bits, rounded towards 0.
fn rounded(units: i64) -> u16 {
    let size = units.unsigned_abs();
    let shift = (u64::BITS - size.leading_zeros()).saturating_sub(MANTISSA + 1);
    let first = size >> shift;
    let exponent = if first >> MANTISSA == 0 { 0 } else { shift + 1 };
    let sign = u16::from(units < 0);
    sign << 15 | (exponent as u16) << MANTISSA | (first as u16 & ((1 << MANTISSA) - 1))
}

fn from_code(code: u16) -> i64 {
    let exponent = u32::from(code >> MANTISSA & 0x3f);
    let mantissa = i64::from(code & ((1 << MANTISSA) - 1));
    let size = match exponent {
        0 => mantissa,
        _ => (mantissa | 1 << MANTISSA).wrapping_shl(exponent - 1),
    };
    if code >> 15 == 1 {
        size.wrapping_neg()
    } else {
        size
    }
}

/// Calls `put` with each page and its units of a message.
pub(super) fn each_of(message: &[u8], put: &mut dyn FnMut(u32, i64) -> Result<()>) -> Result<()> {
    let Some((&kind, mut rest)) = message.split_first() else {
        return Ok(());
    };
    let mut next = 0u128;
    while !rest.is_empty() {
        let pair = varint::take(&mut rest).zip(match kind {
            EXACT => varint::take(&mut rest).map(|units| varint::unzigzag(units as u64)),
            _ => rest.split_first_chunk().map(|(code, left)| {
                rest = left;
                from_code(u16::from_le_bytes(*code))
            }),
        });
        let (skipped, units) =
            pair.ok_or_else(|| Error::internal("a message of a shard is cut"))?;
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::settle;
    use super::super::tests::distance;
    use super::*;
    use crate::engine::Scores;
    use crate::rank::elimination::{Kept, dense, numbers};
    use crate::rank::peers::OneProcess;
    use crate::rank::peers::threads::with_processes;

    /// Graph distributed over shards.
    struct Dealt {
        rows: Vec<Kept>,
        remote: Vec<Vec<RemotePages>>,
        /// Pages of each shard by its numbers.
        pages: Vec<Vec<u32>>,
        of: Vec<usize>,
    }

    impl Dealt {
        /// Distributes a graph: page i is of shard `of[i]`. A shard knows its own pages and those that they link to, in
        /// its own order.
        fn new(kept: &Kept, of: Vec<usize>, shards: usize) -> Dealt {
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
            let mut rows: Vec<Kept> = pages
                .iter()
                .map(|pages| Kept {
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
            Dealt {
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
        fn scores(&self, settled: &SettlingResult, local: &[usize], out: &mut [(f64, f64)]) {
            for (at, &shard) in local.iter().enumerate() {
                let mut scores = Vec::new();
                let shard_scores = settled.shard(at);
                shard_scores
                    .read(0, self.pages[shard].len(), &mut scores)
                    .unwrap();
                for (&page, score) in self.pages[shard].iter().zip(scores) {
                    if self.of[page as usize] == shard {
                        out[page as usize] = score;
                    }
                }
            }
        }

        fn settle(&self, options: &RankOptions) -> (Vec<(f64, f64)>, SettlingResult) {
            let mut peers = OneProcess::new(self.rows.len());
            let local = peers.local().to_vec();
            let settled = settle_shards(&self.shards(&local), &mut peers, options, &mut ());
            let settled = settled.unwrap().unwrap();
            let mut all = vec![(f64::NAN, f64::NAN); self.of.len()];
            self.scores(&settled, &local, &mut all);
            (all, settled)
        }
    }

    /// Returns pages with up to nine links, some weighted, a fifth of them without, a tenth without a row.
    fn graph(seed: u64, pages: u32) -> Kept {
        let mut pick = numbers(seed);
        let mut kept = Kept {
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
            let dealt = Dealt::new(&kept, of.collect(), shards);
            let options = options([0.5, 0.85, 0.99][pick(3) as usize], 1e-7);
            let (scores, settled) = dealt.settle(&options);
            let importance: Vec<f64> = scores.iter().map(|(importance, _)| *importance).collect();
            let sum: f64 = importance.iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{seed}: {sum}");
            let bound = settled.certificate.received_l1.unwrap();
            assert!(settled.reached && bound <= 1e-7, "{seed}: {bound}");
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
        let dealt = Dealt::new(&kept, vec![0; 200], 1);
        let options = options(0.85, 1e-6);
        let (scores, _) = dealt.settle(&options);
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
        let dealt = Dealt::new(&kept, of, 6);
        let options = options(0.85, 1e-6);
        let (expected, one) = dealt.settle(&options);
        for processes in [2, 3, 6] {
            let all = std::sync::Mutex::new(vec![(f64::NAN, f64::NAN); 300]);
            with_processes(6, processes, |peers| {
                let local = peers.local().to_vec();
                let settled = settle_shards(&dealt.shards(&local), peers, &options, &mut ());
                let settled = settled.unwrap().unwrap();
                assert_eq!(settled.certificate, one.certificate);
                assert_eq!(settled.progress, one.progress);
                dealt.scores(&settled, &local, &mut all.lock().unwrap());
            });
            assert_eq!(all.into_inner().unwrap(), expected, "{processes}");
        }
    }

    #[test]
    fn nobody_has_a_page() {
        let kept = Kept::default();
        let dealt = Dealt::new(&kept, Vec::new(), 3);
        let mut peers = OneProcess::new(3);
        let none = settle_shards(
            &dealt.shards(&[0, 1, 2]),
            &mut peers,
            &options(0.85, 0.1),
            &mut (),
        );
        assert!(none.unwrap().is_none());
    }

    #[test]
    fn rounded_units_are_near() {
        let mut pick = numbers(9);
        for _ in 0..100_000 {
            let units = (pick(u64::MAX) >> pick(64)) as i64;
            for units in [units, units.wrapping_neg()] {
                let near = from_code(rounded(units));
                assert!(
                    near.unsigned_abs() <= units.unsigned_abs(),
                    "{units}: {near}"
                );
                assert!(
                    (units - near).unsigned_abs() <= units.unsigned_abs() >> MANTISSA,
                    "{units}: {near}"
                );
                assert!(near == 0 || near.signum() == units.signum());
            }
        }
        assert_eq!(from_code(rounded(i64::MIN)), i64::MIN);
    }

    #[test]
    fn messages_are_read_as_written() {
        let pairs = [
            (0, 5),
            (1, -1_000_000),
            (7, i64::MAX),
            (u32::MAX - 1, i64::MIN),
            (u32::MAX, 1),
        ];
        for all in [false, true] {
            let mut message = Message::new(all);
            let put: Vec<(u32, i64)> = pairs
                .iter()
                .map(|&(page, units)| (page, message.put(page, units)))
                .collect();
            let bytes = message.bytes();
            let mut got = Vec::new();
            each_of(&bytes, &mut |page, units| {
                got.push((page, units));
                Ok(())
            })
            .unwrap();
            assert_eq!(got, put);
            for end in 0..bytes.len() {
                // Cut anywhere, it has the first pairs, or is refused.
                let mut first = Vec::new();
                let _ = each_of(&bytes[..end], &mut |page, units| {
                    first.push((page, units));
                    Ok(())
                });
                assert!(got.starts_with(&first));
            }
        }
        assert!(
            each_of(
                &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1],
                &mut |_, _| Ok(())
            )
            .is_err()
        );
    }
}
