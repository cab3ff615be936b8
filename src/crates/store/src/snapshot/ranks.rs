//! Ranks of all pages in bounded memory: 1 + the number of pages of strictly greater importance.
//!
//! Few pages are sorted in memory. For many, the range of importances is divided at *splits*, taken from a sample of
//! the pages, into gaps between the splits and the splits themselves:
//!
//! 1. A second pass over all importances writes those inside a gap to a temporary file, each gap in page order, and
//!    counts those equal to a split. So a value shared by half of all pages costs nothing: it is among the splits.
//! 2. Each gap is sorted, and its values are replaced by their ranks.
//! 3. A third pass over all importances gives each page the rank of its split, or the next one of its gap.
//!
//! ```text
//! temporary file   piece*        piece: values of one gap, less the split before it; later, ranks:
//!                                5 to 8 bytes each, as the gap is wide
//! ```
//! The last piece of a gap is shorter. Pieces are appended as they become full. For the importances of a billion pages
//! 6 bytes each suffice. Step 3 reads the pieces in about the order of writing.
//!
//! The sample is one page of each of equal intervals, so gaps are of similar size. Which page it is depends on the
//! store's secret key, so that no crawl can be made to have an oversized gap. Ranks do not depend on the sample.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::codec::varint::number;
use crate::disk::DiskFile;
use crate::engine::PageId;
use crate::store::TempFile;
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
    let mut keys: Vec<u64> = values.iter().zip(0..).map(key).collect();
    sort_by_key(&mut keys, |key| *key);
    if rest > 0 {
        for alike in keys.chunk_by_mut(|one, other| one >> 32 == other >> 32) {
            alike.sort_unstable_by_key(|&key| (values[key as u32 as usize], key));
        }
    }
    keys.into_iter().map(|key| key as u32 as usize)
}

/// Replaces values by their ranks among themselves and `before` smaller ones.
fn rank(values: &mut [u64], before: u64) {
    let (mut last, mut rank) = (None, 0);
    for (number, at) in (before + 1..).zip(sorted_positions(values)) {
        let value = &mut values[at];
        if last != Some(*value) {
            (last, rank) = (Some(*value), number);
        }
        *value = rank;
    }
}

/// Returns true if this many values can be sorted in `bytes` of memory; one value always can.
fn fits(values: u64, bytes: u64) -> bool {
    values <= 1 || values <= SORT_MAX && values * SORT_BYTES <= bytes
}

pub(super) struct RankSample {
    count: u64,
    /// Number of pages per sampled page; 0 if all values are kept.
    stretch: u64,
    kept: Vec<u64>,
    gaps: u64,
    /// Number of values in a piece.
    piece: u64,
    seed: u64,
}

impl RankSample {
    /// Prepares for `pages` values, with about `bytes` of memory for ranking. `seed` is secret.
    pub fn new(pages: u64, bytes: u64, seed: u64) -> RankSample {
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
            gaps,
            piece: (bytes / 2 / 8 / gaps).clamp(1, PIECE_MAX),
            seed,
        }
    }

    pub fn add(&mut self, values: &[u64]) {
        let first = self.count;
        self.count += values.len() as u64;
        if self.stretch == 0 {
            self.kept.extend_from_slice(values);
            return;
        }
        for stretch in first / self.stretch..self.count.div_ceil(self.stretch) {
            let chance = xxh3_64_with_seed(&stretch.to_le_bytes(), self.seed);
            let page = stretch * self.stretch + chance % self.stretch;
            if (first..self.count).contains(&page) {
                self.kept.push(values[(page - first) as usize]);
            }
        }
    }

    /// Takes the values and returns the ranks of all pages, if all values were kept.
    pub fn ranks(&mut self) -> Option<Vec<u64>> {
        if self.stretch > 0 {
            return None;
        }
        let mut ranks = std::mem::take(&mut self.kept);
        rank(&mut ranks, 0);
        Some(ranks)
    }

    /// Continues with a temporary file. All values have to be passed to [`Gaps::add`] again.
    pub fn divide(mut self, temporary: TempFile<'_>) -> Result<Gaps<'_>> {
        self.kept.sort_unstable();
        let every = |gap: u64| {
            self.kept
                .get((gap * self.kept.len() as u64 / self.gaps) as usize)
        };
        let mut splits: Vec<u64> = (1..self.gaps).filter_map(every).copied().collect();
        splits.dedup();
        let ends = splits.iter().copied().chain([u64::MAX]);
        let begins = std::iter::once(0).chain(splits.iter().copied());
        Ok(Gaps {
            gaps: begins.zip(ends).map(Gap::between).collect(),
            at_splits: vec![0; splits.len()],
            splits,
            file: PieceFile {
                file: temporary.create()?,
                temporary,
                end: 0,
                piece: self.piece as usize,
            },
        })
    }
}

/// Temporary file of pieces of numbers, one after the other. Removed on drop.
struct PieceFile<'d> {
    file: Box<dyn DiskFile>,
    temporary: TempFile<'d>,
    /// Offset of the next piece.
    end: u64,
    piece: usize,
}

impl PieceFile<'_> {
    /// Appends a piece: the lowest `width` bytes of each value less `base`. Returns its offset.
    fn add(&mut self, values: &[u64], width: usize, base: u64) -> Result<u64> {
        let offset = self.end;
        self.write(offset, values, width, base)?;
        self.end += (values.len() * width) as u64;
        Ok(offset)
    }

    /// Overwrites a piece by one of the same length.
    fn write(&self, offset: u64, values: &[u64], width: usize, base: u64) -> Result<()> {
        let mut bytes = Vec::with_capacity(values.len() * width);
        for value in values {
            bytes.extend_from_slice(&(value - base).to_le_bytes()[..width]);
        }
        let written = self.file.write_at(&bytes, offset);
        written.map_err(Error::io(&self.temporary.path, "write"))
    }

    fn read(&self, offset: u64, values: &mut [u64], width: usize, base: u64) -> Result<()> {
        let mut bytes = vec![0; values.len() * width];
        let read = self.file.read_at(&mut bytes, offset);
        read.map_err(Error::io(&self.temporary.path, "read"))?;
        for (value, bytes) in values.iter_mut().zip(bytes.chunks(width)) {
            *value = base + number(bytes);
        }
        Ok(())
    }
}

struct Gap {
    /// Lower bound of the values; 0 once the values were replaced by ranks.
    base: u64,
    /// Width of a value in the file, in bytes; enough for any rank, too.
    width: usize,
    count: u64,
    pieces: Vec<u64>,
    /// Values of the open piece while values are added.
    held: Vec<u64>,
    /// Number of ranks read, and those that were not returned yet.
    read: u64,
    ranks: std::vec::IntoIter<u64>,
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
            read: 0,
            ranks: Vec::new().into_iter(),
        }
    }

    fn close(&mut self, file: &mut PieceFile<'_>) -> Result<()> {
        if !self.held.is_empty() {
            self.pieces
                .push(file.add(&self.held, self.width, self.base)?);
            self.held.clear();
        }
        Ok(())
    }

    /// Replaces the gap's values by ranks.
    fn sort(&mut self, file: &PieceFile<'_>, before: u64) -> Result<()> {
        if self.count > SORT_MAX {
            return Err(Error::internal("a sample of importances is not of all"));
        }
        let mut values = vec![0; self.count as usize];
        for (values, &piece) in values.chunks_mut(file.piece).zip(&self.pieces) {
            file.read(piece, values, self.width, self.base)?;
        }
        rank(&mut values, before);
        for (values, &piece) in values.chunks(file.piece).zip(&self.pieces) {
            file.write(piece, values, self.width, 0)?;
        }
        self.base = 0;
        Ok(())
    }

    /// Returns the rank of the next page in the gap.
    fn next(&mut self, file: &PieceFile<'_>) -> Result<u64> {
        if let Some(rank) = self.ranks.next() {
            return Ok(rank);
        }
        let changed = || Error::internal("an importance changed while ranks were made");
        let piece = self.read / file.piece as u64;
        let offset = *self.pieces.get(piece as usize).ok_or_else(changed)?;
        let len = (self.count - self.read).min(file.piece as u64);
        let mut ranks = vec![0; len as usize];
        file.read(offset, &mut ranks, self.width, self.base)?;
        self.read += len;
        self.ranks = ranks.into_iter();
        self.ranks.next().ok_or_else(changed)
    }
}

pub(super) struct Gaps<'d> {
    splits: Vec<u64>,
    /// Number of values at each split; later, their rank.
    at_splits: Vec<u64>,
    /// Gaps: gap 0 is before split 0, and so on; one more than splits.
    gaps: Vec<Gap>,
    file: PieceFile<'d>,
}

impl Gaps<'_> {
    pub fn add(&mut self, values: &[u64]) -> Result<()> {
        for value in values {
            match self.splits.binary_search(value) {
                Ok(split) => self.at_splits[split] += 1,
                Err(gap) => {
                    let gap = &mut self.gaps[gap];
                    gap.held.push(*value);
                    gap.count += 1;
                    if gap.held.len() == self.file.piece {
                        gap.close(&mut self.file)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sorts after all values were added. Afterwards [`Gaps::ranks`] returns the ranks.
    pub fn sort(&mut self) -> Result<()> {
        let mut before = 0;
        for gap in &mut self.gaps {
            gap.close(&mut self.file)?;
            // The memory is needed for sorting.
            gap.held = Vec::new();
        }
        for (at, gap) in self.gaps.iter_mut().enumerate() {
            gap.sort(&self.file, before)?;
            before += gap.count;
            if let Some(split) = self.at_splits.get_mut(at) {
                let count = std::mem::replace(split, before + 1);
                before += count;
            }
        }
        Ok(())
    }

    /// Replaces values by their ranks. All values have to be passed once more, in the same order.
    pub fn ranks(&mut self, values: &mut [u64]) -> Result<()> {
        for value in values {
            *value = match self.splits.binary_search(value) {
                Ok(split) => self.at_splits[split],
                Err(gap) => self.gaps[gap].next(&self.file)?,
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
        let mut seen = RankSample::new(values.len() as u64, bytes, 7);
        for block in values.chunks(block) {
            seen.add(block);
        }
        if let Some(ranks) = seen.ranks() {
            return (ranks, 0, 0);
        }
        let mut gaps = seen.divide(TempFile::of(&disk, "1.ranks".into())).unwrap();
        for block in values.chunks(block) {
            gaps.add(block).unwrap();
        }
        gaps.sort().unwrap();
        let len = gaps.file.end;
        let largest = gaps.gaps.iter().map(|gap| gap.count).max().unwrap();
        let mut ranks = values.to_vec();
        for block in ranks.chunks_mut(block) {
            gaps.ranks(block).unwrap();
        }
        drop(gaps);
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

    /// The pages that another key samples are all the smallest; this key's gaps are of similar size.
    #[test]
    fn a_crawl_made_for_another_key_is_divided_evenly() {
        let (pages, bytes) = (5_000u64, 20_000);
        let stretch = RankSample::new(pages, bytes, 0).stretch;
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
        assert!(largest * SORT_BYTES <= bytes, "{largest}");
        assert_eq!(found, naive(&values));
    }
}
