//! Ranks of all pages: 1 + the number of pages of strictly greater importance.
//!
//! Pages are sorted in memory if they fit in the memory of a ranking. Otherwise splits, from a sample of the
//! importances, divide these into ranges that fit ([`RANGES_MAX`] at most), each in a file, and one range is sorted at
//! a time. All pages with the importance of a split have the same rank, which needs no sorting.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::unnamed;
use crate::memory::RANKING;
use crate::{Error, Result};

/// Maximum number of values sorted in memory: their positions take half of 64 bits.
const SORT_MAX: u64 = 1 << 32;
/// Number of pages of which one is in the sample.
const SAMPLED: u64 = 1024;
/// Maximum number of ranges, each of which has a file open.
const RANGES_MAX: u64 = 256;
const BUFFER: usize = 1 << 16;

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

/// Returns the positions of values, 2^32 at most, from the smallest to the largest, equal ones in order.
pub fn sorted_positions(values: &[u64]) -> impl Iterator<Item = usize> + use<> {
    debug_assert!(values.len() as u64 <= SORT_MAX);
    let (least, most) = values.iter().fold((u64::MAX, 0), |(least, most), &value| {
        (value.min(least), value.max(most))
    });
    let width = u64::BITS - most.saturating_sub(least).leading_zeros();
    let rest = width.saturating_sub(u32::BITS);
    let key = |(value, at): (&u64, u64)| (value - least) >> rest << 32 | at;
    let mut keys: Vec<u64> = values.iter().zip(0..).map(key).collect();
    keys.sort_unstable();
    if rest > 0 {
        for alike in keys.chunk_by_mut(|one, other| one >> 32 == other >> 32) {
            if alike.len() > 1 {
                alike.sort_unstable_by_key(|&key| (values[key as u32 as usize], key));
            }
        }
    }
    keys.into_iter().map(|key| key as u32 as usize)
}

/// Returns the first value of each of `ranges` equal parts of a sample but the first, ascending.
pub fn splits(mut sample: Vec<u64>, ranges: usize) -> Vec<u64> {
    sample.sort_unstable();
    let split = |range: usize| sample.get(range * sample.len() / ranges).copied();
    (1..ranges).filter_map(split).collect()
}

/// Replaces values by their ranks; `before` smaller values are in other ranges.
fn rank(values: &mut [u64], before: u64) {
    let (mut rank, mut last) = (0, None);
    for (number, at) in (before + 1..).zip(sorted_positions(values)) {
        let value = values[at];
        if last.replace(value) != Some(value) {
            rank = number;
        }
        values[at] = rank;
    }
}

/// Collects the importances of all pages, in page order, and ranks them.
pub(super) enum RankCollector {
    InMemory(Vec<u64>),
    OnDisk(RangeRanker),
}

impl RankCollector {
    /// Returns a collector for `pages` pages; it has files in `folder` if they do not fit in `memory` bytes.
    pub fn new(pages: u64, memory: u64, folder: &Path) -> Result<RankCollector> {
        let need = pages.saturating_mul(RANKING);
        if pages <= SORT_MAX && need <= memory {
            return Ok(RankCollector::InMemory(Vec::with_capacity(pages as usize)));
        }
        // A range may have twice the mean number of pages, as splits are those of a sample.
        let ranges = need.saturating_mul(2).div_ceil(memory.max(1));
        let ranges = ranges.max(pages.saturating_mul(2).div_ceil(SORT_MAX));
        Ok(RankCollector::OnDisk(RangeRanker {
            keys: NumberFile::new(folder)?,
            pages: 0,
            sample: Vec::new(),
            ranges: ranges.min(RANGES_MAX) as usize,
            folder: folder.to_owned(),
        }))
    }

    pub fn add(&mut self, importances: impl Iterator<Item = f64>) -> Result<()> {
        let mut keys = importances.map(descending_key);
        match self {
            RankCollector::InMemory(all) => {
                all.extend(keys);
                Ok(())
            }
            RankCollector::OnDisk(ranker) => keys.try_for_each(|key| ranker.push(key)),
        }
    }

    pub fn ranks(self) -> Result<Box<dyn Iterator<Item = Result<u64>>>> {
        match self {
            RankCollector::InMemory(mut values) => {
                rank(&mut values, 0);
                Ok(Box::new(values.into_iter().map(Ok)))
            }
            RankCollector::OnDisk(ranker) => Ok(Box::new(ranker.ranks()?)),
        }
    }
}

/// Ranks more pages than fit in memory, by ranges of importances.
pub(super) struct RangeRanker {
    keys: NumberFile,
    pages: u64,
    /// Sort keys of a sample: one of [`SAMPLED`] pages, chosen by page number.
    sample: Vec<u64>,
    ranges: usize,
    folder: PathBuf,
}

impl RangeRanker {
    fn push(&mut self, key: u64) -> Result<()> {
        // Multiples of the golden ratio are spread evenly, and follow no pattern of the pages.
        if self.pages.wrapping_mul(0x9e37_79b9_7f4a_7c15) < u64::MAX / SAMPLED {
            self.sample.push(key);
        }
        self.pages += 1;
        self.keys.push(key)
    }

    fn ranks(mut self) -> Result<impl Iterator<Item = Result<u64>>> {
        let mut splits = splits(self.sample, self.ranges);
        splits.dedup();
        // Groups of keys in ascending order: a range of them, those that equal a split, a range, and so on.
        let group = move |key: u64| match splits.binary_search(&key) {
            Ok(split) => 2 * split + 1,
            Err(range) => 2 * range,
        };
        let mut files = Vec::new();
        let mut sizes: Vec<u64> = Vec::new();
        for key in self.keys.numbers()? {
            let key = key?;
            let group = group(key);
            while sizes.len() <= group {
                if sizes.len().is_multiple_of(2) {
                    files.push(NumberFile::new(&self.folder)?);
                }
                sizes.push(0);
            }
            sizes[group] += 1;
            if group.is_multiple_of(2) {
                files[group / 2].push(key)?;
            }
        }
        // Numbers of keys before each group.
        let before: Vec<u64> = sizes
            .iter()
            .scan(0, |sum, size| Some(std::mem::replace(sum, *sum + size)))
            .collect();
        let mut ranked = Vec::new();
        for (range, mut file) in files.into_iter().enumerate() {
            let mut values = Vec::with_capacity(sizes[2 * range] as usize);
            for key in file.numbers()? {
                values.push(key?);
            }
            rank(&mut values, before[2 * range]);
            let mut ranks = NumberFile::new(&self.folder)?;
            values.into_iter().try_for_each(|rank| ranks.push(rank))?;
            ranked.push(ranks.numbers()?);
        }
        Ok(self.keys.numbers()?.map(move |key| {
            let group = group(key?);
            if group.is_multiple_of(2) {
                let rank = ranked[group / 2].next();
                return rank.unwrap_or_else(|| Err(Error::internal("a page without a rank")));
            }
            Ok(before[group] + 1)
        }))
    }
}

/// Numbers in an unnamed file, which vanishes with the process: written in order, then read.
struct NumberFile {
    path: PathBuf,
    file: BufWriter<Arc<File>>,
}

impl NumberFile {
    fn new(folder: &Path) -> Result<NumberFile> {
        let (path, file) = unnamed(&folder.join("cashrank-sort"))?;
        let file = BufWriter::with_capacity(BUFFER, Arc::new(file));
        Ok(NumberFile { path, file })
    }

    fn push(&mut self, number: u64) -> Result<()> {
        let written = self.file.write_all(&number.to_le_bytes());
        written.map_err(|error| Error::io(&self.path, "write")(error))
    }

    fn numbers(&mut self) -> Result<impl Iterator<Item = Result<u64>> + use<>> {
        let rewound = self.file.rewind();
        rewound.map_err(Error::io(&self.path, "write"))?;
        let mut file = BufReader::with_capacity(BUFFER, self.file.get_ref().clone());
        let path = self.path.clone();
        let mut read = move || {
            let mut bytes = [0; 8];
            if file.fill_buf()?.is_empty() {
                return Ok(None);
            }
            file.read_exact(&mut bytes)?;
            Ok(Some(u64::from_le_bytes(bytes)))
        };
        Ok(std::iter::from_fn(move || {
            let number = read().map_err(|error| Error::io(&path, "read")(error));
            number.transpose()
        }))
    }
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
        let mut collector = RankCollector::new(values.len() as u64, memory, home.path()).unwrap();
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
            let too_little = (values.len() as u64 * RANKING).saturating_sub(1);
            prop_assert_eq!(&ranks(&values, too_little), &expected);
        }
    }

    /// Ranges of few and of many pages, below, between and above importances that many pages share.
    #[test]
    fn ranks_of_many_ranges_are_those_in_memory() {
        let value = |at: u64| match at % 7 {
            0..3 => 0.5,
            3 => 0.125,
            _ => (at.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f64 / (1 << 24) as f64,
        };
        let values: Vec<f64> = (0..200_000).map(value).collect();
        let expected = ranks(&values, u64::MAX);
        for memory in [1, 10_000, 1_000_000, 4_000_000] {
            assert!(ranks(&values, memory) == expected, "{memory}");
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

    /// Values in ranges of few and of many bits.
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
