//! Lists of the best, as long as they may be, in bounded memory: of long ones a slice of rows is read at a time, in the order
//! in which they are stored, and they are sorted by rank as exports are.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use super::export::{Order, ordered};
use super::levels::flat;
use super::{LevelRanking, Selection};
use crate::Result;
use crate::engine::{Page, PageId};

/// Rows of a list that are in memory at a time, and of one that is not sorted.
pub const LISTED: usize = 1 << 14;

/// A list of rows.
pub struct Listed<'r> {
    /// The rows, best first.
    pub rows: Box<dyn Iterator<Item = Result<Page<'static>>> + 'r>,
    /// No row has a greater rank,
    pub last_rank: u64,
    /// nor a name of more bytes.
    pub longest_name: usize,
}

impl LevelRanking {
    /// As [`LevelRanking::top`], row by row: those of a long list are sorted in `memory` bytes, and what does not fit goes to a
    /// file without a name in `folder`.
    ///
    /// # Errors
    /// As there; the file cannot be written.
    pub fn listed(
        &self,
        n: usize,
        selection: &Selection,
        memory: u64,
        folder: &Path,
    ) -> Result<Listed<'_>> {
        if n <= LISTED {
            return Ok(Listed::of(self.top(n, selection)?));
        }
        let within = self.within(selection)?;
        // Of all pages, those up to this rank are enough.
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
        Ok(Listed {
            rows: Box::new(sorted.take(n)),
            last_rank,
            longest_name,
        })
    }

    /// The rows that are wanted by rank and number, read slice by slice.
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

impl Listed<'_> {
    /// Of rows that are in memory, best first.
    pub fn of(rows: Vec<Page<'static>>) -> Listed<'static> {
        Listed {
            last_rank: rows.last().map_or(0, |row| row.rank),
            longest_name: rows.iter().map(|row| row.url.len()).max().unwrap_or(0),
            rows: Box::new(rows.into_iter().map(Ok)),
        }
    }
}
