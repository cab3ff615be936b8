//! Lists of the best rows of a ranking, and of the best pages of some sites.
//!
//! Lists may have any length in bounded memory: long ones are read slice by slice in stored order, and sorted by rank like
//! exports.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use super::blocks::flat;
use super::export::{Order, ordered};
use super::{LevelRanking, Selection, SnapshotColumn};
use crate::engine::{Page, PageId};
use crate::metrics::BestItems;
use crate::model::SitePage;
use crate::{Error, Result};

/// Ranks and numbers of pages; of equal rank the one of the lower number is better.
pub(super) type RankedPages = BestItems<(u64, PageId)>;

/// Returns the pages, best first.
pub(super) fn pages_of_best(best: RankedPages) -> Vec<PageId> {
    let best = best.finish(Ord::cmp).into_iter();
    best.map(|(_, page)| page).collect()
}

/// Returns the `n` pages of best rank among those for which `may_be` is true.
pub(super) fn best_of(
    n: usize,
    ranks: impl Iterator<Item = Result<Vec<u64>>>,
    may_be: impl Fn(u64) -> bool,
) -> Result<Vec<PageId>> {
    let mut best = RankedPages::new(n);
    for (rank, number) in flat(ranks).zip(0..) {
        let rank = rank?;
        if may_be(number) {
            best.add((rank, PageId(number)), Ord::cmp);
        }
    }
    Ok(pages_of_best(best))
}

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

    /// Returns the `n` most important pages of each of these sites, best first. Determines the sites of pages, if they
    /// are not known yet, within `memory` bytes.
    ///
    /// # Errors
    /// [`Error::Usage`] if pages are ranked.
    pub fn best_pages(
        &self,
        sites: &[PageId],
        n: usize,
        memory: Option<u64>,
    ) -> Result<Vec<Vec<SitePage>>> {
        if self.level().is_page() {
            return Err(Error::Usage(
                "`best` lists pages of sites: give a `level` of sites".into(),
            ));
        }
        let found;
        let column = match self.sites() {
            Some(sites) => sites,
            None => {
                found = self.snapshot().sites(self.level(), memory)?;
                &found
            }
        };
        let places = sites.iter().zip(0..);
        let places: HashMap<usize, usize> =
            places.map(|(site, at)| (site.0 as usize, at)).collect();
        let mut best = vec![RankedPages::new(n); sites.len()];
        let ranks = self.snapshot().columns.column_blocks(SnapshotColumn::Rank);
        for (page, rank) in flat(ranks).enumerate() {
            let rank = rank?;
            let site = column.site(page);
            if let Some(&at) = site.and_then(|site| places.get(&site)) {
                best[at].add((rank, PageId(page as u64)), Ord::cmp);
            }
        }
        let best: Vec<_> = best.into_iter().map(pages_of_best).collect();
        // All sites at once: each block of columns and of names is read once.
        let numbers = best.concat();
        let pages = self.snapshot().named_pages(&numbers)?.into_iter();
        let mut pages = pages.map(|page| SitePage {
            rank: page.rank,
            importance: page.importance,
            url: page.url.into_owned(),
            state: page.state,
        });
        let of_site = |best: &Vec<_>| pages.by_ref().take(best.len()).collect();
        Ok(best.iter().map(of_site).collect())
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
