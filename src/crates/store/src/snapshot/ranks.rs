//! Ranks of all pages in bounded memory: 1 + the number of pages of strictly greater importance.
//!
//! Few pages are sorted in memory. For many, the range of importances is divided at *splits*, taken from a sample of
//! the pages, into gaps between the splits and the splits themselves:
//!
//! 1. A second pass over all importances writes those inside a gap to temporary files, each gap in page order, and
//!    counts those equal to a split. So a value shared by half of all pages costs nothing: it is among the splits.
//! 2. Each gap is sorted, and its values are replaced by their ranks.
//! 3. A third pass over all importances gives each page the rank of its split, or the next one of its gap.
//!
//! ```text
//! temporary file   piece*        piece: values of one gap, less the split before it; later, ranks:
//!                                5 to 8 bytes each, as the gap is wide
//! ```
//! The last piece of a gap is shorter. Pieces are appended as they become full. For the importances of a billion pages
//! 6 bytes each suffice. Step 3 reads the pieces in about the order of writing, and a file is removed when all its pieces
//! were read: the space that ranks take is freed by the files.
//!
//! The sample is one page of each of equal intervals, so gaps are of similar size. An oversized gap (a crawl can be made
//! to have one) is divided again by another sample. Ranks do not depend on the samples.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::pieces::{PiecePosition, PieceStore};
use crate::engine::PageId;
use crate::store::Disk;
use crate::threads::sort_by_key;
use crate::{Error, Result};

/// Memory for sorting a value in bytes: itself, and its first bits with its position.
const SORT_BYTES: u64 = 16;
/// Maximum number of values sorted at a time: their positions take half of 64 bits.
const SORT_MAX: u64 = 1 << 32;
/// Number of samples from which a split is chosen.
const SAMPLES: u64 = 1024;
/// Width of an encoded rank, in bytes.
const RANK_WIDTH: usize = 5;
const _: () = assert!(PageId::LIMIT >> (8 * RANK_WIDTH) == 0);
/// Maximum number of values in a piece: 256 KiB in memory.
const PIECE_MAX: u64 = 1 << 15;

/// Returns a sort key: larger importances get smaller keys; both zeros get the same.
pub fn descending_key(importance: f64) -> u64 {
    // Both zeros are the same importance.
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

/// Replaces values by their ranks among themselves and `before` smaller ones. Sorts 64-bit keys made of 32 bits, from
/// the first in which values differ, and the position; then those with equal bits.
fn rank(values: &mut [u64], before: u64) {
    let (least, most) = values.iter().fold((u64::MAX, 0), |(least, most), &value| {
        (value.min(least), value.max(most))
    });
    let width = u64::BITS - most.saturating_sub(least).leading_zeros();
    let rest = width.saturating_sub(u32::BITS);
    let key = |(value, at): (&u64, u64)| (value - least) >> rest << 32 | at;
    let mut keys: Vec<u64> = values.iter().zip(0..).map(key).collect();
    let first = |key: &u64| key >> 32;
    sort_by_key(&mut keys, first);
    let mut number = before;
    for alike in keys.chunk_by_mut(|one, other| first(one) == first(other)) {
        if let [key] = alike {
            number += 1;
            values[*key as u32 as usize] = number;
            continue;
        }
        if rest > 0 {
            alike.sort_unstable_by_key(|&key| values[key as u32 as usize]);
        }
        let (mut last, mut rank) = (None, 0);
        for &mut key in alike {
            number += 1;
            let value = &mut values[key as u32 as usize];
            if last != Some(*value) {
                (last, rank) = (Some(*value), number);
            }
            *value = rank;
        }
    }
}

/// Returns true if this many values can be sorted in `bytes` of memory; one value always can.
fn fits(values: u64, bytes: u64) -> bool {
    values <= 1 || values <= SORT_MAX && values * SORT_BYTES <= bytes
}

/// Values that the first pass keeps.
pub(super) struct RankSample {
    /// Number of values seen.
    count: u64,
    /// Number of pages per sampled page; 0 if all values are kept.
    stretch: u64,
    kept: Vec<u64>,
    plan: RankingPlan,
}

/// Distribution of the memory.
#[derive(Debug, Clone, Copy)]
struct RankingPlan {
    bytes: u64,
    gaps: u64,
    /// Number of values in a piece.
    piece: u64,
    /// Number of earlier divisions.
    depth: u64,
}

impl RankSample {
    /// Prepares for `pages` values, with about `bytes` of memory for ranking.
    pub fn new(pages: u64, bytes: u64) -> RankSample {
        RankSample::at_depth(0, pages, bytes)
    }

    fn at_depth(depth: u64, pages: u64, bytes: u64) -> RankSample {
        // A quarter for the gap being sorted, so that one four times as large fits too; half for the pieces.
        let gaps = (pages * SORT_BYTES).div_ceil((bytes / 4).max(1)).max(2);
        let samples = (gaps * SAMPLES).min(bytes / 4 / 8).max(gaps);
        let (stretch, kept) = if fits(pages, bytes) {
            (0, pages)
        } else {
            (pages.div_ceil(samples), samples)
        };
        RankSample {
            count: 0,
            stretch,
            kept: Vec::with_capacity(kept as usize),
            plan: RankingPlan {
                bytes,
                gaps,
                piece: (bytes / 2 / 8 / gaps).clamp(1, PIECE_MAX),
                depth,
            },
        }
    }

    /// Adds the values of the next pages.
    pub fn add(&mut self, values: &[u64]) {
        let first = self.count;
        self.count += values.len() as u64;
        if self.stretch == 0 {
            self.kept.extend_from_slice(values);
            return;
        }
        for stretch in first / self.stretch..self.count.div_ceil(self.stretch) {
            let chance = xxh3_64_with_seed(&stretch.to_le_bytes(), self.plan.depth);
            let page = stretch * self.stretch + chance % self.stretch;
            if (first..self.count).contains(&page) {
                self.kept.push(values[(page - first) as usize]);
            }
        }
    }

    /// Returns true if all values are kept, and as much memory is left for packed columns.
    pub fn has_room(&self, pages: u64) -> bool {
        self.stretch == 0 && fits(2 * pages, self.plan.bytes)
    }

    /// Returns the ranks of all pages, if all values were kept.
    pub fn ranks(self) -> std::result::Result<Vec<u64>, RankSample> {
        if self.stretch > 0 {
            return Err(self);
        }
        let mut ranks = self.kept;
        rank(&mut ranks, 0);
        Ok(ranks)
    }

    /// Continues with temporary files, whose names begin with `path`. All values have to be passed to [`Gaps::add`]
    /// again.
    pub fn divide<'d>(mut self, disk: &'d dyn Disk, path: &Path) -> Gaps<'d> {
        self.kept.sort_unstable();
        let every = |gap: u64| {
            self.kept
                .get((gap * self.kept.len() as u64 / self.plan.gaps) as usize)
        };
        let mut splits: Vec<u64> = (1..self.plan.gaps).filter_map(every).copied().collect();
        splits.dedup();
        let ends = splits.iter().copied().chain([u64::MAX]);
        let begins = std::iter::once(0).chain(splits.iter().copied());
        Gaps {
            gaps: begins.zip(ends).map(Gap::between).collect(),
            at_splits: vec![0; splits.len()],
            splits,
            files: PieceStore::new(disk, path, self.plan.piece as usize, self.plan.bytes),
            plan: self.plan,
        }
    }
}

/// Values between two splits.
struct Gap {
    /// Lower bound of the values; 0 once the values were replaced by ranks.
    base: u64,
    /// Width of a value in the file, in bytes; enough for any rank, too.
    width: usize,
    count: u64,
    pieces: Vec<PiecePosition>,
    /// Values of the open piece while values are added; later, the ranks of a piece.
    held: Vec<u64>,
    /// Number of ranks returned: in total, and of those held.
    given: u64,
    given_held: usize,
}

impl Gap {
    fn between((base, end): (u64, u64)) -> Gap {
        let bits = u64::BITS - (end - base).leading_zeros();
        Gap {
            base,
            width: (bits.div_ceil(8) as usize).max(RANK_WIDTH),
            count: 0,
            pieces: Vec::new(),
            held: Vec::new(),
            given: 0,
            given_held: 0,
        }
    }

    fn close(&mut self, files: &mut PieceStore<'_>) -> Result<()> {
        if !self.held.is_empty() {
            let place = files.add(&self.held, self.width, self.base)?;
            self.pieces.push(place);
            self.held.clear();
        }
        Ok(())
    }

    /// Replaces its values by ranks.
    fn sort(&mut self, files: &PieceStore<'_>, plan: RankingPlan, before: u64) -> Result<()> {
        if !fits(self.count, plan.bytes) {
            self.divide(files, plan, before)?;
        } else {
            let mut values = vec![0; self.count as usize];
            for (values, &piece) in values.chunks_mut(files.piece).zip(&self.pieces) {
                files.read(piece, values, self.width, self.base)?;
            }
            rank(&mut values, before);
            for (values, &piece) in values.chunks(files.piece).zip(&self.pieces) {
                files.write(piece, values, self.width, 0)?;
            }
        }
        self.base = 0;
        Ok(())
    }

    /// Replaces its values by ranks where they do not fit in memory. At least one of them is a split, so fewer are left
    /// at each depth.
    fn divide(&mut self, files: &PieceStore<'_>, plan: RankingPlan, before: u64) -> Result<()> {
        let mut seen = RankSample::at_depth(plan.depth + 1, self.count, plan.bytes);
        self.each(files, |values| {
            seen.add(values);
            Ok(false)
        })?;
        let mut gaps = seen.divide(files.disk, &files.deeper());
        self.each(files, |values| gaps.add(values).map(|()| false))?;
        gaps.sort(before)?;
        self.each(files, |values| gaps.ranks(values).map(|()| true))
    }

    /// Calls `work` on each piece of values; if it returns true, they were replaced by ranks and are written back.
    fn each(
        &self,
        files: &PieceStore<'_>,
        mut work: impl FnMut(&mut [u64]) -> Result<bool>,
    ) -> Result<()> {
        let mut values = vec![0; files.piece];
        let mut left = self.count;
        for &piece in &self.pieces {
            values.truncate(left as usize);
            files.read(piece, &mut values, self.width, self.base)?;
            if work(&mut values)? {
                files.write(piece, &values, self.width, 0)?;
            }
            left -= values.len() as u64;
        }
        Ok(())
    }

    /// Returns the rank of its next page. Releases a piece after reading it.
    fn next(&mut self, files: &mut PieceStore<'_>) -> Result<u64> {
        if self.given_held == self.held.len() {
            let len = (self.count - self.given).min(files.piece as u64);
            let piece = self.given / files.piece as u64;
            let next = self.pieces.get(piece as usize).filter(|_| len > 0);
            let place = *next
                .ok_or_else(|| Error::internal("an importance changed while ranks were made"))?;
            self.held.resize(len as usize, 0);
            files.read(place, &mut self.held, self.width, self.base)?;
            files.give_up(place)?;
            self.given_held = 0;
        }
        let rank = self.held[self.given_held];
        self.given += 1;
        self.given_held += 1;
        Ok(rank)
    }
}

/// Values divided at splits.
pub(super) struct Gaps<'d> {
    splits: Vec<u64>,
    /// Number of values at each split; later, their rank.
    at_splits: Vec<u64>,
    /// Gaps: gap 0 is before split 0, and so on; one more than splits.
    gaps: Vec<Gap>,
    files: PieceStore<'d>,
    plan: RankingPlan,
}

impl Gaps<'_> {
    /// Adds the values of the next pages.
    pub fn add(&mut self, values: &[u64]) -> Result<()> {
        for value in values {
            match self.splits.binary_search(value) {
                Ok(split) => self.at_splits[split] += 1,
                Err(gap) => {
                    let gap = &mut self.gaps[gap];
                    gap.held.push(*value);
                    gap.count += 1;
                    if gap.held.len() == self.files.piece {
                        gap.close(&mut self.files)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sorts after all values were added; `before` other values are smaller. Afterwards [`Gaps::ranks`] returns the
    /// ranks.
    pub fn sort(&mut self, mut before: u64) -> Result<()> {
        for gap in &mut self.gaps {
            gap.close(&mut self.files)?;
            // The memory is needed for sorting.
            gap.held = Vec::new();
        }
        for (at, gap) in self.gaps.iter_mut().enumerate() {
            gap.sort(&self.files, self.plan, before)?;
            before += gap.count;
            if let Some(split) = self.at_splits.get_mut(at) {
                let count = std::mem::replace(split, before + 1);
                before += count;
            }
        }
        Ok(())
    }

    /// Replaces values by their ranks. All values have to be passed once more, in the same order; then no file is left.
    pub fn ranks(&mut self, values: &mut [u64]) -> Result<()> {
        for value in values {
            *value = match self.splits.binary_search(value) {
                Ok(split) => self.at_splits[split],
                Err(gap) => self.gaps[gap].next(&mut self.files)?,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::memory::Memory;
    use proptest::prelude::*;

    /// Ranks by definition: 1 + the number of strictly smaller values.
    fn naive(values: &[u64]) -> Vec<u64> {
        let less = |value: &u64| values.iter().filter(|other| *other < value).count() as u64;
        values.iter().map(|value| 1 + less(value)).collect()
    }

    /// Returns the ranks, the length of the temporary files, and the largest gap.
    fn ranks(values: &[u64], bytes: u64, block: usize) -> (Vec<u64>, u64, u64) {
        let disk = Memory::default();
        let path = Path::new("1.ranks");
        let mut seen = RankSample::new(values.len() as u64, bytes);
        for block in values.chunks(block) {
            seen.add(block);
        }
        let seen = match seen.ranks() {
            Ok(ranks) => return (ranks, 0, 0),
            Err(seen) => seen,
        };
        let mut gaps = seen.divide(&disk, path);
        for block in values.chunks(block) {
            gaps.add(block).unwrap();
        }
        gaps.sort(0).unwrap();
        let (len, _) = gaps.files.size();
        let largest = gaps.gaps.iter().map(|gap| gap.count).max().unwrap();
        let mut ranks = values.to_vec();
        for block in ranks.chunks_mut(block) {
            gaps.ranks(block).unwrap();
        }
        assert!(disk.paths().is_empty(), "a file is left");
        (ranks, len, largest)
    }

    /// Generates values with ties, some of them frequent, and some that differ in their last bits only.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = prop_oneof![
            Just(7u64),
            0u64..20,
            any::<u64>(),
            (1u64 << 40..(1 << 40) + 9),
            (u64::MAX - 5..=u64::MAX),
        ];
        proptest::collection::vec(value, 0..400)
    }

    proptest! {
        #[test]
        fn ranks_are_by_definition_whatever_the_memory(values in values(), bytes in 0u64..12_000, block in 1usize..90) {
            let (found, _, _) = ranks(&values, bytes, block);
            prop_assert_eq!(found, naive(&values));
        }

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

    /// Nine in ten of 100,000 values are equal: those take no space in the file, and with the rest spread evenly no gap
    /// is much larger than another.
    #[test]
    fn a_frequent_value_costs_nothing() {
        let value = |page: u64| match page % 10 {
            0 => xxh3_64_with_seed(&page.to_le_bytes(), 99),
            _ => 1 << 63,
        };
        let values: Vec<u64> = (0..100_000).map(value).collect();
        let bytes = 200_000;
        let (found, len, largest) = ranks(&values, bytes, 1 << 10);
        assert!((10_000 * 5..=11_000 * 8).contains(&len), "{len}");
        assert!(largest * SORT_BYTES <= bytes, "{largest}");
        let mut sorted = values.clone();
        sorted.sort_unstable();
        for (value, rank) in values.iter().zip(found) {
            assert_eq!(sorted[rank as usize - 1], *value);
            assert!(rank == 1 || sorted[rank as usize - 2] < *value);
        }
    }

    /// Files are removed as ranks are returned: with half of the pages ranked, half of them is left, except for the one
    /// or two being read.
    #[test]
    fn files_go_as_ranks_come() {
        let (pages, bytes) = (100_000u64, 100_000);
        let value = |page: u64| xxh3_64_with_seed(&page.to_le_bytes(), 99);
        let values: Vec<u64> = (0..pages).map(value).collect();
        let disk = Memory::default();
        let mut seen = RankSample::new(pages, bytes);
        seen.add(&values);
        let mut gaps = seen.divide(&disk, Path::new("1.ranks"));
        gaps.add(&values).unwrap();
        gaps.sort(0).unwrap();
        let (all, files) = gaps.files.size();
        assert!(all >= 5 * pages && files >= 6, "{all} bytes, {files} files");
        let mut ranks = values.clone();
        let (first, second) = ranks.split_at_mut(pages as usize / 2);
        gaps.ranks(first).unwrap();
        let (left, _) = gaps.files.size();
        assert!(left <= all / 2 + 2 * bytes, "{left} of {all}");
        gaps.ranks(second).unwrap();
        assert_eq!(gaps.files.size(), (0, 0));
        assert!(disk.paths().is_empty());
    }

    /// The sampled pages are all the smallest: every other value falls into the last gap, which is divided again.
    #[test]
    fn a_crawl_made_to_mislead_the_sample_is_ranked_too() {
        let (pages, bytes) = (5_000u64, 20_000);
        let stretch = RankSample::new(pages, bytes).stretch;
        assert!(stretch > 2, "all are sampled");
        let sampled = |page: u64| {
            let chance = xxh3_64_with_seed(&(page / stretch).to_le_bytes(), 0);
            page % stretch == chance % stretch
        };
        let value = |page: u64| {
            if sampled(page) {
                page
            } else {
                1_000_000 + xxh3_64_with_seed(&page.to_le_bytes(), 1) % 1_000_000
            }
        };
        let values: Vec<u64> = (0..pages).map(value).collect();
        let (found, _, largest) = ranks(&values, bytes, 64);
        assert!(
            largest * SORT_BYTES > bytes,
            "{largest}: nothing was divided again"
        );
        assert_eq!(found, naive(&values));
    }
}
