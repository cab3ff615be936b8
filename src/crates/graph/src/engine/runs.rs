//! Merging of the history's runs into one stream of rows in page order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use std::sync::Arc;

use super::history::{AdmissionCursor, Admissions};
use super::mark::CashMark;
use super::row::HistoryRow;
use super::window::Policy;
use crate::{Error, Result};

/// Stream of rows in page order.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<HistoryRow>> + 'a>;

/// Reader of a run's rows in page order: each call adds the next rows to the empty vector, or none at the end.
pub type Blocks<'a> = Box<dyn FnMut(&mut Vec<HistoryRow>) -> Result<()> + 'a>;

/// Merges runs, oldest first, into one stream of rows in page order; joins and drops rows by the policy. `start` is G
/// at the start of the window.
pub fn merge<'a>(policy: &Arc<dyn Policy>, runs: Vec<Blocks<'a>>, start: u128) -> Rows<'a> {
    if !policy.is_timed() {
        rows_of_run(sum(policy, runs))
    } else {
        kept(policy, Box::new(RunMerge::start(runs)), start)
    }
}

/// Merges runs like [`merge`], including the oldest run of all, so each page's first measure is opened into a state.
/// `admissions` are all admissions, in page order.
pub fn fold<'a>(
    policy: &Arc<dyn Policy>,
    runs: Vec<Blocks<'a>>,
    admissions: Admissions<'a>,
    start: u128,
) -> Rows<'a> {
    if !policy.is_timed() {
        return merge(policy, runs, start);
    }
    let mut admissions = AdmissionCursor::new(admissions);
    let mut last = None;
    let opens = policy.clone();
    let opened = RunMerge::start(runs).map(move |row| {
        let row = row?;
        let first = last != Some(row.page);
        last = Some(row.page);
        if !first || row.folded {
            return Ok(row);
        }
        let at = admissions.at(row.page)?;
        Ok(opens.open(&row, (at.clock, at.first)))
    });
    kept(policy, Box::new(opened), start)
}

/// Merges runs like [`fold`], yielding blocks; all rows of a page are in one block.
pub fn fold_pages<'a>(
    policy: &Arc<dyn Policy>,
    runs: Vec<Blocks<'a>>,
    admissions: Admissions<'a>,
    start: u128,
) -> Blocks<'a> {
    if !policy.is_timed() {
        return sum(policy, runs);
    }
    let mut rows = fold(policy, runs, admissions, start).peekable();
    Box::new(move |block| {
        loop {
            let last = block.last().map(|row| row.page);
            let goes_in = |row: &Result<HistoryRow>| match row {
                Ok(row) => block.len() < STRETCH || Some(row.page) == last,
                Err(_) => true,
            };
            match rows.next_if(goes_in) {
                Some(row) => block.push(row?),
                None => return Ok(()),
            }
        }
    })
}

fn kept<'a>(policy: &Arc<dyn Policy>, rows: Rows<'a>, start: u128) -> Rows<'a> {
    Box::new(Forget {
        rows: Join {
            rows,
            pending: None,
            policy: policy.clone(),
        },
        next: None,
        page: Vec::new(),
        policy: policy.clone(),
        start,
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

    fn next(&mut self) -> Result<Option<HistoryRow>> {
        let row = self.ahead()?.first().copied();
        self.taken += usize::from(row.is_some());
        Ok(row)
    }
}

/// Returns the rows of one run unchanged.
pub fn rows_of_run(run: Blocks<'_>) -> Rows<'_> {
    let mut source = RunReader::new(run);
    Box::new(std::iter::from_fn(move || source.next().transpose()))
}

/// Number of pages whose rows are added up at a time.
const STRETCH: usize = 128;
/// Number of consecutive rows of one run, with no row of another run in between, that are passed on without adding.
const ALONE: usize = 64;

/// Merges runs of a policy that joins any two rows of a page: adds up the rows of all runs in place, for one stretch of
/// [`STRETCH`] pages at a time.
fn sum<'a>(policy: &Arc<dyn Policy>, runs: Vec<Blocks<'a>>) -> Blocks<'a> {
    let mut sum = SumMerge {
        sources: runs.into_iter().map(RunReader::new).collect(),
        policy: policy.clone(),
        rows: vec![HistoryRow::default(); STRETCH],
        there: [0; STRETCH / 64],
    };
    Box::new(move |block| {
        let added = sum.next(block);
        if added.is_err() {
            sum.sources.clear();
            sum.there = [0; STRETCH / 64];
        }
        added
    })
}

struct SumMerge<'a> {
    sources: Vec<RunReader<'a>>,
    policy: Arc<dyn Policy>,
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
            let Some(page) = source.ahead()?.first().map(|row| row.page) else {
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

/// K-way merge by page; rows of one page come in the order of their runs.
struct RunMerge<'a> {
    runs: Vec<RunReader<'a>>,
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    next: Vec<Option<HistoryRow>>,
    failed: Option<Error>,
}

impl<'a> RunMerge<'a> {
    fn start(runs: Vec<Blocks<'a>>) -> RunMerge<'a> {
        let mut merge = RunMerge {
            next: vec![None; runs.len()],
            heads: BinaryHeap::with_capacity(runs.len()),
            runs: runs.into_iter().map(RunReader::new).collect(),
            failed: None,
        };
        for run in 0..merge.runs.len() {
            merge.pull(run);
        }
        merge
    }

    fn pull(&mut self, run: usize) {
        if let Some(page) = self.advance(run) {
            self.heads.push(Reverse((page, run)));
        }
    }

    /// Takes the next row of a run. Returns its page.
    fn advance(&mut self, run: usize) -> Option<u64> {
        match self.runs[run].next() {
            Ok(row) => {
                self.next[run] = row;
                row.map(|row| row.page)
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }
}

impl Iterator for RunMerge<'_> {
    type Item = Result<HistoryRow>;

    fn next(&mut self) -> Option<Result<HistoryRow>> {
        if let Some(error) = self.failed.take() {
            self.heads.clear();
            return Some(Err(error));
        }
        let &Reverse((_, run)) = self.heads.peek()?;
        let row = self.next[run].take()?;
        let page = self.advance(run);
        // Replaces the head of the heap instead of popping and pushing.
        let mut head = self.heads.peek_mut()?;
        match page {
            Some(page) => *head = Reverse((page, run)),
            None => {
                PeekMut::pop(head);
            }
        }
        Some(Ok(row))
    }
}

/// Joins neighbouring rows of one page where the policy does so.
struct Join<'a> {
    rows: Rows<'a>,
    pending: Option<HistoryRow>,
    policy: Arc<dyn Policy>,
}

impl Iterator for Join<'_> {
    type Item = Result<HistoryRow>;

    fn next(&mut self) -> Option<Result<HistoryRow>> {
        loop {
            let row = match self.rows.next() {
                None => return self.pending.take().map(Ok),
                Some(Err(error)) => {
                    self.pending = None;
                    return Some(Err(error));
                }
                Some(Ok(row)) => row,
            };
            match &mut self.pending {
                None => self.pending = Some(row),
                Some(held) => {
                    if held.page != row.page || !self.policy.join(held, &row) {
                        return Some(Ok(std::mem::replace(held, row)));
                    }
                }
            }
        }
    }
}

/// Drops, page by page, the rows that the policy no longer needs.
struct Forget<'a> {
    rows: Join<'a>,
    /// First row of the next page.
    next: Option<HistoryRow>,
    /// Remaining rows of the current page, newest first.
    page: Vec<HistoryRow>,
    policy: Arc<dyn Policy>,
    start: u128,
}

impl Iterator for Forget<'_> {
    type Item = Result<HistoryRow>;

    fn next(&mut self) -> Option<Result<HistoryRow>> {
        if self.page.is_empty() {
            self.page.extend(self.next.take());
            loop {
                match self.rows.next() {
                    None => break,
                    Some(Err(error)) => {
                        self.page.clear();
                        return Some(Err(error));
                    }
                    Some(Ok(row)) => match self.page.first().filter(|first| first.page != row.page)
                    {
                        None => self.page.push(row),
                        Some(_) => {
                            self.next = Some(row);
                            break;
                        }
                    },
                }
            }
            self.policy.forget(&mut self.page, self.start);
            self.page.reverse();
        }
        self.page.pop().map(Ok)
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
