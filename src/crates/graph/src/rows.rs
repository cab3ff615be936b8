//! Links of pages as page numbers, wherever they are kept: one trait for all that reads them.
//!
//! A *row* holds the result of a page's latest visit: its distinct targets. A page that was visited and has no links
//! has an empty row; a page that is only known as a target has none.

use std::ops::{Deref, Range};

use prefetch_index::prefetch_index;

use crate::graph::Links;
use crate::{Error, Result};

/// Upper bound of page numbers in rows: they are kept in 32 bits.
pub const PAGES_MAX: u64 = u32::MAX as u64;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    pub page: u32,
    /// True if the page was found gone (404, 410): it has no links, and must not be crawled.
    pub gone: bool,
    /// Links to distinct targets, in no particular order, without weights if all weigh the same. A target of weight 0 is a
    /// page, but not linked.
    pub links: Links<'a>,
}

impl<'a> Deref for Row<'a> {
    type Target = Links<'a>;

    fn deref(&self) -> &Links<'a> {
        &self.links
    }
}

impl<'a> Row<'a> {
    /// Returns the row of a page that exists, with links of equal weight.
    pub fn new(page: u32, targets: &'a [u32]) -> Row<'a> {
        Links::from(targets).of(page)
    }

    pub fn links(self) -> impl Iterator<Item = u32> + 'a {
        self.links.linked().map(|(target, _)| target)
    }

    /// Yields the targets that are links, each with its part of what the page passes on.
    pub fn parts(self) -> impl Iterator<Item = (u32, f64)> + 'a {
        let all = self.total() as f64;
        self.links
            .linked()
            .map(move |(target, weight)| (target, weight as f64 / all))
    }
}

#[derive(Debug)]
pub enum Stop {
    Enough,
    Failed(Error),
}

impl Stop {
    pub fn is_whole(ended: Result<(), Stop>) -> Result<bool> {
        match ended {
            Ok(()) => Ok(true),
            Err(Stop::Enough) => Ok(false),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Callback for each row of a sweep. An error stops the sweep.
pub type RowVisitor<'v> = dyn FnMut(Row<'_>) -> Result<(), Stop> + 'v;

/// Callback for adjacent rows of a sweep. An error stops the sweep.
pub type RowsVisitor<'v> = dyn FnMut(&[Row<'_>]) -> Result<(), Stop> + 'v;

/// Rows that can be read repeatedly, from the first to the last.
pub trait Rows: Sync {
    /// Returns the number of known pages, the upper bound of all page numbers.
    fn pages(&self) -> u64;
    /// Returns the number of links in all rows that a sweep reads.
    fn links(&self) -> u64;
    /// Calls `visit` with the row of each page that has one, once per page, in storage order, which is the same in
    /// every sweep; with several adjacent rows at a time where possible, so that the visitor can prefetch its data for
    /// the later ones. [`Rows::sweep`] visits them one by one.
    fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop>;

    /// Calls `visit` with each row, like [`Rows::walk`]. Returns whether it reached the last row: `visit` may end it
    /// with [`Stop::Enough`].
    fn sweep(&self, visit: &mut RowVisitor<'_>) -> Result<bool> {
        Stop::is_whole(self.walk(&mut |rows| rows.iter().try_for_each(|row| visit(*row))))
    }

    /// Calls `visit` with the rows of the marked pages, several at a time, in sweep order. The default is a full sweep.
    fn walk_some(&self, marked: &Bits, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
        self.walk(&mut |rows| {
            let mut rows = rows.iter().filter(|row| marked.get(row.page.into()));
            rows.try_for_each(|row| visit(&[*row]))
        })
    }
}

#[derive(Debug, Clone, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    pub fn new(len: u64) -> Bits {
        Bits(vec![0; len.div_ceil(64) as usize])
    }

    /// Builds a bitmap over `all`; its start must be a multiple of 64.
    pub fn of(all: Range<u64>, is_set: impl Fn(u64) -> bool) -> Bits {
        let word = |first: u64| {
            let bits = first..all.end.min(first + 64);
            bits.fold(0, |word, at| word | u64::from(is_set(at)) << (at % 64))
        };
        Bits(all.clone().step_by(64).map(word).collect())
    }

    /// Appends the bits of `other`; the length of `self` must be a multiple of 64.
    pub fn and(mut self, other: Bits) -> Bits {
        self.0.extend(other.0);
        self
    }

    pub fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub fn grow(&mut self, len: u64) {
        let words = len.div_ceil(64) as usize;
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
    }

    /// Sets a bit, which must be within the length. Returns whether it was clear before.
    #[inline]
    pub fn set(&mut self, at: u64) -> bool {
        let (word, bit) = (&mut self.0[at as usize / 64], 1 << (at % 64));
        let new = *word & bit == 0;
        // Writing a bit that is set already would serialise a loop over links.
        if new {
            *word |= bit;
        }
        new
    }

    pub fn next(&self, from: u64) -> Option<u64> {
        let first = from as usize / 64;
        let rest = self.0.get(first)? & u64::MAX << (from % 64);
        let later = self.0[first + 1..].iter().copied();
        let (at, word) = std::iter::once(rest)
            .chain(later)
            .enumerate()
            .find(|(_, word)| *word != 0)?;
        Some((first + at) as u64 * 64 + u64::from(word.trailing_zeros()))
    }

    pub fn get(&self, at: u64) -> bool {
        self.0
            .get(at as usize / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Returns the number of set bits before each word, for [`Bits::number`].
    pub fn numbering(&self) -> Vec<u32> {
        let count = |before: &mut u32, word: &u64| {
            let later = *before + word.count_ones();
            Some(std::mem::replace(before, later))
        };
        self.0.iter().scan(0, count).collect()
    }

    /// Returns the number of set bits before a bit, given the [`Bits::numbering`].
    pub fn number(&self, at: u64, numbering: &[u32]) -> usize {
        let word = at as usize / 64;
        let before = self.0[word] & ((1 << (at % 64)) - 1);
        (numbering[word] + before.count_ones()) as usize
    }

    /// Loads the word of a bit into the processor's cache.
    #[inline]
    pub fn prefetch(&self, at: u64) {
        prefetch_index(&self.0, at as usize / 64);
    }

    pub fn all(&self) -> impl Iterator<Item = u64> + '_ {
        let next = |at: &u64| self.next(at + 1);
        std::iter::successors(self.next(0), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_that_are_set_are_found(set in proptest::collection::btree_set(0u64..1_000, 0..100)) {
            let mut bits = Bits::default();
            for &at in &set {
                bits.grow(at + 1);
                prop_assert!(bits.set(at));
            }
            prop_assert_eq!(bits.all().collect::<Vec<u64>>(), set.iter().copied().collect::<Vec<_>>());
            let numbering = bits.numbering();
            for (number, &at) in set.iter().enumerate() {
                prop_assert_eq!(bits.number(at, &numbering), number);
            }
        }
    }
}
