//! Merging of the history's runs into one stream of rows in page order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use super::history::{AdmissionCursor, Admissions};
use super::mark::CashMark;
use super::row::HistoryRow;
use super::window::RowPolicy;
use crate::{Error, Result};

/// Stream of rows in page order.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<HistoryRow>> + 'a>;

/// Reader of a run's rows in page order: each call adds the next rows to the empty vector, or none at the end.
pub type Blocks<'a> = Box<dyn FnMut(&mut Vec<HistoryRow>) -> Result<()> + 'a>;

/// Merges runs, oldest first, into blocks of rows in page order; joins and drops rows by the policy. All rows of a page
/// are in one block. `admissions` are all admissions, in page order, if the runs include the oldest of all, so that each
/// page's first measure is opened into a state. `start` is G at the start of the window. After an error nothing follows.
pub fn merge<'a>(
    policy: RowPolicy,
    runs: Vec<Blocks<'a>>,
    admissions: Option<Admissions<'a>>,
    start: u128,
) -> Blocks<'a> {
    let runs = runs.into_iter().map(RunReader::new).collect();
    if policy.is_timed() {
        let mut pages = PageMerge {
            policy,
            runs,
            heads: None,
            admissions: admissions.map(AdmissionCursor::new),
            start,
            page: Vec::new(),
        };
        return until_failure(move |block| pages.next(block));
    }
    let mut sums = SumMerge {
        sources: runs,
        policy,
        rows: vec![HistoryRow::default(); STRETCH],
        there: [0; STRETCH / 64],
    };
    until_failure(move |block| sums.next(block))
}

/// Returns a reader that ends after the first error.
fn until_failure<'a>(mut next: impl FnMut(&mut Vec<HistoryRow>) -> Result<()> + 'a) -> Blocks<'a> {
    let mut failed = false;
    Box::new(move |block| {
        let read = if failed { Ok(()) } else { next(block) };
        failed |= read.is_err();
        read
    })
}

/// Buffered reader of a run.
pub(super) struct RunReader<'a> {
    blocks: Blocks<'a>,
    block: Vec<HistoryRow>,
    /// Number of rows of the block that were consumed.
    taken: usize,
}

impl RunReader<'_> {
    pub(super) fn new(blocks: Blocks<'_>) -> RunReader<'_> {
        RunReader {
            blocks,
            block: Vec::new(),
            taken: 0,
        }
    }

    /// Returns the buffered next rows; none at the end.
    pub(super) fn ahead(&mut self) -> Result<&[HistoryRow]> {
        if self.taken == self.block.len() {
            self.block.clear();
            self.taken = 0;
            (self.blocks)(&mut self.block)?;
        }
        Ok(&self.block[self.taken..])
    }

    /// Consumes this many of the buffered rows.
    pub(super) fn take(&mut self, rows: usize) -> &[HistoryRow] {
        self.taken += rows;
        &self.block[self.taken - rows..self.taken]
    }

    /// Returns the page of the next row.
    fn page(&mut self) -> Result<Option<u64>> {
        Ok(self.ahead()?.first().map(|row| row.page))
    }

    fn next(&mut self) -> Result<Option<HistoryRow>> {
        let row = self.ahead()?.first().copied();
        self.taken += usize::from(row.is_some());
        Ok(row)
    }
}

/// Returns the rows of blocks, one by one.
pub fn rows_of_run(run: Blocks<'_>) -> Rows<'_> {
    let mut source = RunReader::new(run);
    Box::new(std::iter::from_fn(move || source.next().transpose()))
}

/// Number of pages whose rows are added up at a time.
const STRETCH: usize = 128;
/// Number of consecutive rows of one run, with no row of another run in between, that are passed on without adding.
const ALONE: usize = 64;

/// Merge of runs by a policy that joins any two rows of a page: adds up the rows of all runs in place, for one stretch
/// of [`STRETCH`] pages at a time.
struct SumMerge<'a> {
    sources: Vec<RunReader<'a>>,
    policy: RowPolicy,
    /// Rows of the current stretch, one per page, and a bitmap of those present.
    rows: Vec<HistoryRow>,
    there: [u64; STRETCH / 64],
}

impl SumMerge<'_> {
    /// Appends the next rows to the block.
    fn next(&mut self, block: &mut Vec<HistoryRow>) -> Result<()> {
        // The next page, the run that has it, and the next page of the other runs.
        let (mut first, mut others) = (None, u64::MAX);
        for (at, source) in self.sources.iter_mut().enumerate() {
            let Some(page) = source.page()? else {
                continue;
            };
            match first {
                Some((least, _)) if least <= page => others = others.min(page),
                before => {
                    others = before.map_or(others, |(least, _)| least);
                    first = Some((page, at));
                }
            }
        }
        let Some((first, at)) = first else {
            return Ok(());
        };
        let source = &mut self.sources[at];
        let ahead = source.ahead()?;
        let alone = &ahead[..ahead.partition_point(|row| row.page < others)];
        if alone.len() >= ALONE && alone.is_sorted_by(|row, next| row.page < next.page) {
            let rows = alone.len();
            block.extend_from_slice(alone);
            source.taken += rows;
            return Ok(());
        }
        self.next_stretch(first)?;
        self.give_out(block);
        Ok(())
    }

    /// Adds up the stretch of pages from `first` on.
    fn next_stretch(&mut self, first: u64) -> Result<()> {
        for source in &mut self.sources {
            loop {
                let ahead = source.ahead()?;
                let mut rows = 0;
                for row in ahead {
                    let at = row.page.checked_sub(first).ok_or_else(|| {
                        Error::internal(format!("the history goes back to page {}", row.page))
                    })?;
                    if at >= STRETCH as u64 {
                        break;
                    }
                    let at = at as usize;
                    let (word, bit) = (&mut self.there[at / 64], 1 << (at % 64));
                    match *word & bit {
                        0 => self.rows[at] = *row,
                        _ => {
                            let joined = self.policy.join(&mut self.rows[at], row);
                            debug_assert!(joined, "a policy without times joins all");
                        }
                    }
                    *word |= bit;
                    rows += 1;
                }
                let (all, any) = (rows == ahead.len(), rows > 0);
                source.taken += rows;
                if !(all && any) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Appends the stretch's rows to the block.
    fn give_out(&mut self, block: &mut Vec<HistoryRow>) {
        for (at, word) in self.there.iter_mut().enumerate() {
            while *word != 0 {
                block.push(self.rows[64 * at + word.trailing_zeros() as usize]);
                *word &= *word - 1;
            }
        }
    }
}

/// K-way merge, page by page; rows of one page come in the order of their runs.
struct PageMerge<'a> {
    policy: RowPolicy,
    runs: Vec<RunReader<'a>>,
    /// Next page of each run that is not at its end; `None` before the first page.
    heads: Option<BinaryHeap<Reverse<(u64, usize)>>>,
    /// Admissions, if the runs include the oldest of all.
    admissions: Option<AdmissionCursor<'a>>,
    start: u128,
    /// Rows of the current page.
    page: Vec<HistoryRow>,
}

impl PageMerge<'_> {
    /// Appends the rows of the next pages to the block.
    fn next(&mut self, block: &mut Vec<HistoryRow>) -> Result<()> {
        let mut heads = match self.heads.take() {
            Some(heads) => heads,
            None => {
                let mut heads = BinaryHeap::with_capacity(self.runs.len());
                for (run, reader) in self.runs.iter_mut().enumerate() {
                    heads.extend(reader.page()?.map(|page| Reverse((page, run))));
                }
                heads
            }
        };
        while let Some(&Reverse((page, _))) = heads.peek()
            && block.len() < STRETCH
        {
            while let Some(mut head) = heads.peek_mut()
                && head.0.0 == page
            {
                let run = head.0.1;
                let row = self.runs[run].next()?;
                // Replaces the head of the heap instead of popping and pushing.
                match self.runs[run].page()? {
                    Some(page) => *head = Reverse((page, run)),
                    None => {
                        PeekMut::pop(head);
                    }
                }
                self.join(row)?;
            }
            self.policy.forget(&mut self.page, self.start);
            block.append(&mut self.page);
        }
        self.heads = Some(heads);
        Ok(())
    }

    /// Joins the next row of the current page to the one before, where the policy does so.
    fn join(&mut self, row: Option<HistoryRow>) -> Result<()> {
        let Some(mut row) = row else { return Ok(()) };
        if let Some(last) = self.page.last_mut() {
            if self.policy.join(last, &row) {
                return Ok(());
            }
        } else if let Some(admissions) = &mut self.admissions
            && !row.folded
        {
            let at = admissions.at(row.page)?;
            row = self.policy.open(&row, (at.clock, at.first));
        }
        self.page.push(row);
        Ok(())
    }
}

/// Maximum number of runs between two retained marks; as many are read at the same time.
const RUNS_MAX: usize = 512;
/// Number of runs that are merged when there are more than [`RUNS_MAX`].
const RUNS_MERGED: usize = 65;

/// Selects the neighbouring runs to merge next into one, given each run's mark interval and number of rows, oldest
/// first, and the number of pages. Of the runs that no retained mark separates:
///
/// 1. all, if they have at least two rows per page and at least twice the rows of the oldest: where a page keeps
///    one row, at least half of them disappear; where it keeps measures, what is kept is never more than doubled;
/// 2. of more than [`RUNS_MAX`], the [`RUNS_MERGED`] with the fewest rows: so a row is merged
///    log(rows) / log([`RUNS_MERGED`]) times.
///
/// A merge occupies as much additional space as its input until the commit frees the old runs. So while the number
/// of pages grows little is merged, and the history takes hardly more space than its rows.
pub fn mergeable(runs: &[(u64, u64)], marks: &[CashMark], pages: u64) -> Option<Range<usize>> {
    let window = |interval: u64| marks.iter().rposition(|mark| mark.number <= interval);
    let mut end = runs.len();
    while end > 0 {
        let last = window(runs[end - 1].0);
        let apart = runs[..end].iter().rposition(|run| window(run.0) != last);
        let start = apart.map_or(0, |before| before + 1);
        let rows: Vec<u64> = runs[start..end].iter().map(|run| run.1).collect();
        if let Some(within) = mergeable_alike(&rows, pages) {
            return Some(start + within.start..start + within.end);
        }
        end = start;
    }
    None
}

/// Selects runs like [`mergeable`], where no mark separates them.
fn mergeable_alike(runs: &[u64], pages: u64) -> Option<Range<usize>> {
    let oldest = runs.first().map_or(0, |&rows| rows);
    if runs.len() > 1 && runs.iter().sum::<u64>() >= 2 * pages.max(oldest) {
        return Some(0..runs.len());
    }
    if runs.len() <= RUNS_MAX {
        return None;
    }
    let least = |&at: &usize| runs[at..at + RUNS_MERGED].iter().sum::<u64>();
    let start = (0..=runs.len() - RUNS_MERGED).min_by_key(least)?;
    Some(start..start + RUNS_MERGED)
}

#[cfg(test)]
mod tests;
