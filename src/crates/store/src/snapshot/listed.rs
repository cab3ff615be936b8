//! Lists of the best rows of any length in bounded memory: long lists are read slice by slice in stored order, and
//! sorted by rank like exports.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use super::export::{Order, ordered};
use super::levels::flat;
use super::{LevelRanking, Selection};
use crate::Result;
use crate::engine::{Page, PageId};

/// Number of rows in memory at a time, and of the longest list that is not sorted.
pub const LISTED: usize = 1 << 14;

/// List of rows.
pub struct RankedList<'r> {
    /// Rows, best first.
    pub rows: Box<dyn Iterator<Item = Result<Page<'static>>> + 'r>,
    /// Upper bound on the ranks in the list.
    pub last_rank: u64,
    /// Upper bound on the length of a name, in bytes.
    pub longest_name: usize,
}

impl LevelRanking {
    /// Lists rows like [`LevelRanking::top`], but lazily: long lists are sorted in `memory` bytes, and the rest is
    /// spilled to an unnamed file in `folder`.
    pub fn listed(
        &self,
        n: usize,
        selection: &Selection,
        memory: u64,
        folder: &Path,
    ) -> Result<RankedList<'_>> {
        if n <= LISTED {
            return Ok(RankedList::of(self.top(n, selection)?));
        }
        let within = self.within(selection)?;
        // For all pages, those up to this rank suffice.
        let most = match within {
            None => n as u64,
            Some(_) => u64::MAX,
        };
        let is_wanted = move |rank: u64, number: u64| {
            rank <= most && within.as_ref().is_none_or(|within| within.get(number))
        };
        let seen = Rc::new(Cell::new((0, 0)));
        let note = seen.clone();
        let rows = self.slices(is_wanted)?.inspect(move |row| {
            if let Ok(row) = row {
                let (last, longest) = note.get();
                note.set((row.rank.max(last), row.url.len().max(longest)));
            }
        });
        let sorted = ordered(rows, Order::Rank, memory, folder)?;
        let (last_rank, longest_name) = seen.get();
        Ok(RankedList {
            rows: Box::new(sorted.take(n)),
            last_rank,
            longest_name,
        })
    }

    /// Iterates over the rows wanted by rank and number, read slice by slice.
    fn slices<'r>(
        &'r self,
        is_wanted: impl Fn(u64, u64) -> bool + 'r,
    ) -> Result<impl Iterator<Item = Result<Page<'static>>> + 'r> {
        let ranks = flat(self.rank_blocks()).zip(0..);
        let numbers = ranks.filter_map(move |(rank, number)| match rank {
            Ok(rank) => is_wanted(rank, number).then_some(Ok(PageId(number))),
            Err(error) => Some(Err(error)),
        });
        let mut numbers: Box<dyn Iterator<Item = Result<PageId>> + 'r> = Box::new(numbers);
        if !self.level().is_page() {
            let mut sites = numbers.collect::<Result<Vec<_>>>()?;
            self.by_name(&mut sites);
            numbers = Box::new(sites.into_iter().map(Ok));
        }
        Ok(flat(std::iter::from_fn(move || {
            let slice: Result<Vec<PageId>> = numbers.by_ref().take(LISTED).collect();
            match slice {
                Ok(slice) if slice.is_empty() => None,
                slice => Some(slice.and_then(|slice| self.at(&slice))),
            }
        })))
    }
}

impl RankedList<'_> {
    /// Creates a list of rows in memory, best first.
    pub fn of(rows: Vec<Page<'static>>) -> RankedList<'static> {
        RankedList {
            last_rank: rows.last().map_or(0, |row| row.rank),
            longest_name: rows.iter().map(|row| row.url.len()).max().unwrap_or(0),
            rows: Box::new(rows.into_iter().map(Ok)),
        }
    }
}
