//! Ranks of all pages: 1 + the number of pages of strictly greater importance.
//!
//! Pages are sorted in memory if they fit in the memory of a ranking. Others are sorted on disk twice: by importance,
//! which gives their ranks, then by page number.

use std::ops::Range;
use std::path::Path;

use crate::Result;
use crate::disk::ExternalSorter;

/// Memory for sorting a value in bytes: itself, and twice its first bits with its position.
const SORT_BYTES: u64 = 24;
/// Maximum number of values sorted in memory: their positions take half of 64 bits.
const SORT_MAX: u64 = 1 << 32;
/// Number of bits by which keys are sorted at a time; fewer than 2^`DIGIT` keys are sorted by comparison.
const DIGIT: u32 = 11;

/// Returns a sort key: larger importances get smaller keys; both zeros get the same.
pub fn descending_key(importance: f64) -> u64 {
    // The addition turns -0.0 into 0.0.
    let bits = (importance + 0.0).to_bits();
    let ascending = bits ^ (((bits as i64) >> 63) as u64 | 1 << 63);
    !ascending
}

pub fn importance_of(descending_key: u64) -> f64 {
    let ascending = !descending_key;
    let is_positive = ascending >> 63 == 1;
    f64::from_bits(if is_positive {
        ascending ^ 1 << 63
    } else {
        !ascending
    })
}

/// Returns the positions of values, 2^32 at most, from the smallest to the largest, equal ones in order. Sorts 64-bit keys
/// made of 32 bits, from the first in which values differ, and the position; then those with equal bits.
pub fn sorted_positions(values: &[u64]) -> impl Iterator<Item = usize> + use<> {
    debug_assert!(values.len() as u64 <= SORT_MAX);
    let (least, most) = values.iter().fold((u64::MAX, 0), |(least, most), &value| {
        (value.min(least), value.max(most))
    });
    let width = u64::BITS - most.saturating_sub(least).leading_zeros();
    let rest = width.saturating_sub(u32::BITS);
    let key = |(value, at): (&u64, u64)| (value - least) >> rest << 32 | at;
    let keys = values.iter().zip(0..).map(key).collect();
    let mut keys = sorted_from(keys, u32::BITS..u32::BITS + width - rest);
    if rest > 0 {
        for alike in keys.chunk_by_mut(|one, other| one >> 32 == other >> 32) {
            if alike.len() > 1 {
                alike.sort_unstable_by_key(|&key| (values[key as u32 as usize], key));
            }
        }
    }
    keys.into_iter().map(|key| key as u32 as usize)
}

/// Sorts keys that are in the order of the bits below `bits`, and have none above (radix sort, lowest digit first).
fn sorted_from(mut keys: Vec<u64>, bits: Range<u32>) -> Vec<u64> {
    if keys.len() < 1 << DIGIT {
        keys.sort_unstable();
        return keys;
    }
    let mut sorted = vec![0; keys.len()];
    for shift in bits.step_by(DIGIT as usize) {
        let digit = |key: u64| (key >> shift) as usize % (1 << DIGIT);
        // Numbers of keys with each digit; then where the next of them goes.
        let mut places = [0; 1 << DIGIT];
        keys.iter().for_each(|&key| places[digit(key)] += 1);
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for &key in &keys {
            let place = &mut places[digit(key)];
            sorted[*place] = key;
            *place += 1;
        }
        std::mem::swap(&mut keys, &mut sorted);
    }
    keys
}

/// Returns a function that takes values in ascending order, and returns the rank of each.
fn ranking() -> impl FnMut(u64) -> u64 {
    let (mut number, mut rank, mut last) = (0, 0, None);
    move |value| {
        number += 1;
        if last.replace(value) != Some(value) {
            rank = number;
        }
        rank
    }
}

/// Collects the importances of all pages, in page order, and ranks them.
pub(super) enum RankCollector {
    /// Importances as sort keys.
    InMemory(Vec<u64>),
    /// Number of pages so far, and sorters: of pages by importance, and of ranks by page number.
    OnDisk {
        pages: u64,
        by_importance: Box<ExternalSorter>,
        by_page: Box<ExternalSorter>,
    },
}

impl RankCollector {
    /// Returns a collector for `pages` pages; it sorts all of them in `folder` if they do not fit in `memory` bytes.
    pub fn new(pages: u64, memory: u64, folder: &Path) -> RankCollector {
        if pages <= SORT_MAX && pages * SORT_BYTES <= memory {
            return RankCollector::InMemory(Vec::with_capacity(pages as usize));
        }
        let sorter = || Box::new(ExternalSorter::new((memory / 2) as usize, folder));
        RankCollector::OnDisk {
            pages: 0,
            by_importance: sorter(),
            by_page: sorter(),
        }
    }

    pub fn add(&mut self, importances: impl Iterator<Item = f64>) -> Result<()> {
        let mut keys = importances.map(descending_key);
        match self {
            RankCollector::InMemory(all) => {
                all.extend(keys);
                Ok(())
            }
            RankCollector::OnDisk {
                pages,
                by_importance,
                ..
            } => keys.try_for_each(|key| {
                by_importance.push(&key.to_be_bytes(), &pages.to_be_bytes())?;
                *pages += 1;
                Ok(())
            }),
        }
    }

    /// Returns the ranks of all pages, in page order.
    pub fn ranks(self) -> Result<Box<dyn Iterator<Item = Result<u64>>>> {
        let mut rank_of = ranking();
        match self {
            RankCollector::InMemory(mut values) => {
                for at in sorted_positions(&values) {
                    values[at] = rank_of(values[at]);
                }
                Ok(Box::new(values.into_iter().map(Ok)))
            }
            RankCollector::OnDisk {
                by_importance,
                mut by_page,
                ..
            } => {
                for record in by_importance.sorted()? {
                    let (key, page) = record?;
                    by_page.push(&page, &rank_of(number(&key)).to_be_bytes())?;
                }
                Ok(Box::new(
                    by_page.sorted()?.map(|record| Ok(number(&record?.1))),
                ))
            }
        }
    }
}

/// Decodes a big-endian number; encoded like this, numbers sort as bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ranks by definition: 1 + the number of strictly greater importances.
    fn naive(values: &[f64]) -> Vec<u64> {
        let more = |value: &f64| values.iter().filter(|other| *other > value).count() as u64;
        values.iter().map(|value| 1 + more(value)).collect()
    }

    fn ranks(values: &[f64], memory: u64) -> Vec<u64> {
        let home = cashrank_base::folder::in_memory();
        let mut collector = RankCollector::new(values.len() as u64, memory, home.path());
        for block in values.chunks(33) {
            collector.add(block.iter().copied()).unwrap();
        }
        let ranks = collector.ranks().unwrap().collect::<Result<_>>().unwrap();
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
        ranks
    }

    /// Generates importances with ties, some of them frequent, and some that differ in their last bits only.
    fn values() -> impl Strategy<Value = Vec<f64>> {
        let value = prop_oneof![
            Just(0.0),
            Just(-0.0),
            (0u64..20).prop_map(|value| value as f64 / 32.0),
            0.0..1.0,
            (1u64 << 60..(1 << 60) + 9).prop_map(f64::from_bits),
        ];
        proptest::collection::vec(value, 0..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn ranks_are_by_definition_whatever_the_memory(values in values()) {
            let expected = naive(&values);
            prop_assert_eq!(&ranks(&values, u64::MAX), &expected);
            let too_little = (values.len() as u64 * SORT_BYTES).saturating_sub(1);
            prop_assert_eq!(&ranks(&values, too_little), &expected);
        }
    }

    proptest! {
        #[test]
        fn order_is_that_of_importances(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(descending_key(a) < descending_key(b), a > b);
            prop_assert_eq!(descending_key(a) == descending_key(b), a == b);
            prop_assert_eq!(importance_of(descending_key(a)), a);
        }
    }

    #[test]
    fn zeros_are_equal() {
        assert_eq!(descending_key(0.0), descending_key(-0.0));
        assert!(descending_key(f64::MIN_POSITIVE) < descending_key(0.0));
    }

    /// Enough values for sorting by digits, in ranges of few and of many bits.
    #[test]
    fn many_values_are_sorted_as_by_comparison() {
        for width in [0, 1, 11, 12, 22, 31, 32, 33, 43, 64] {
            let value = |at: u64| {
                let mixed = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed.checked_shr(64 - width).unwrap_or(0) + if width < 60 { 1 << 60 } else { 0 }
            };
            let values: Vec<u64> = (0..9_000).map(value).collect();
            let mut expected: Vec<usize> = (0..values.len()).collect();
            expected.sort_by_key(|&at| values[at]);
            assert!(sorted_positions(&values).eq(expected), "{width} bits");
        }
    }
}
