//! Merging of the history's runs into one stream of rows in page order.

use std::ops::Range;

use super::history::{AdmissionCursor, Admissions};
use super::row::{HistoryRow, RowPolicy};
use super::window::CashMark;
use crate::{Error, Result};

/// Stream of rows in page order.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<HistoryRow>> + 'a>;

/// Reader of a run's rows in page order: each call adds the next rows to the empty vector, or none at the end.
pub type Blocks<'a> = Box<dyn FnMut(&mut Vec<HistoryRow>) -> Result<()> + 'a>;

/// Merges runs, oldest first, into blocks of rows in page order, all rows of a page in one block; joins and drops rows
/// by the policy. `admissions` are all admissions, in page order, if the oldest run is included: each page's first
/// measure is then opened into a state. `start` is G at the start of the window. After an error nothing follows.
pub fn merge<'a>(
    policy: RowPolicy,
    runs: Vec<Blocks<'a>>,
    admissions: Option<Admissions<'a>>,
    start: u128,
) -> Blocks<'a> {
    let mut merge = RunMerge {
        policy,
        runs: runs.into_iter().map(RunReader::new).collect(),
        admissions: admissions.map(AdmissionCursor::new),
        start,
        pages: vec![Vec::new(); STRETCH],
        there: [0; STRETCH / 64],
    };
    let mut failed = false;
    Box::new(move |block| {
        let read = if failed { Ok(()) } else { merge.next(block) };
        failed |= read.is_err();
        read
    })
}

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

pub fn rows_of_run(run: Blocks<'_>) -> Rows<'_> {
    let mut source = RunReader::new(run);
    Box::new(std::iter::from_fn(move || source.next().transpose()))
}

/// Number of pages whose rows are merged at a time.
const STRETCH: usize = 128;
/// Number of consecutive rows of one run, with no row of another run in between, that are passed on without joining.
const ALONE: usize = 64;

/// Merge of runs, one stretch of [`STRETCH`] pages at a time.
struct RunMerge<'a> {
    policy: RowPolicy,
    runs: Vec<RunReader<'a>>,
    /// Admissions, if the runs include the oldest of all.
    admissions: Option<AdmissionCursor<'a>>,
    start: u128,
    /// Rows of each page of the current stretch, and a bitmap of the pages that have some.
    pages: Vec<Vec<HistoryRow>>,
    there: [u64; STRETCH / 64],
}

impl RunMerge<'_> {
    fn next(&mut self, block: &mut Vec<HistoryRow>) -> Result<()> {
        // The next page, the run that has it, and the next page of the other runs.
        let (mut first, mut others) = (None, u64::MAX);
        for (at, run) in self.runs.iter_mut().enumerate() {
            let Some(page) = run.ahead()?.first().map(|row| row.page) else {
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
        let run = &mut self.runs[at];
        let ahead = run.ahead()?;
        let alone = &ahead[..ahead.partition_point(|row| row.page < others)];
        if !self.policy.is_timed()
            && alone.len() >= ALONE
            && alone.is_sorted_by(|row, next| row.page < next.page)
        {
            let rows = alone.len();
            block.extend_from_slice(alone);
            run.taken += rows;
            return Ok(());
        }
        self.next_stretch(first)?;
        self.give_out(block)
    }

    /// Reads the stretch of pages from `first` on. Rows are joined as they come: memory does not grow with visits.
    fn next_stretch(&mut self, first: u64) -> Result<()> {
        let policy = self.policy;
        for run in &mut self.runs {
            loop {
                let ahead = run.ahead()?;
                let mut rows = 0;
                for row in ahead {
                    let at = row.page.checked_sub(first).ok_or_else(|| {
                        Error::internal(format!("the history goes back to page {}", row.page))
                    })?;
                    if at >= STRETCH as u64 {
                        break;
                    }
                    let page = &mut self.pages[at as usize];
                    if !page.last_mut().is_some_and(|last| policy.join(last, row)) {
                        page.push(*row);
                    }
                    self.there[at as usize / 64] |= 1 << (at % 64);
                    rows += 1;
                }
                let (all, any) = (rows == ahead.len(), rows > 0);
                run.taken += rows;
                if !(all && any) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Opens states, and appends the stretch's rows to the block, joined and dropped by the policy.
    fn give_out(&mut self, block: &mut Vec<HistoryRow>) -> Result<()> {
        let policy = self.policy;
        for (at, word) in self.there.iter_mut().enumerate() {
            while *word != 0 {
                let page = &mut self.pages[64 * at + word.trailing_zeros() as usize];
                if policy.is_timed() {
                    if let Some(admissions) = &mut self.admissions
                        && let Some(first) = page.first_mut()
                        && !first.folded
                    {
                        let at = admissions.at(first.page)?;
                        *first = policy.open(first, (at.clock, at.first));
                    }
                    page.dedup_by(|next, row| policy.join(row, next));
                    policy.forget(page, self.start);
                }
                block.append(page);
                *word &= *word - 1;
            }
        }
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
/// 1. all, if they have at least two rows per page and at least twice the rows of the oldest: where a page keeps one
///    row, at least half of them disappear; where it keeps measures, the kept rows are never more than doubled;
/// 2. of more than [`RUNS_MAX`], the [`RUNS_MERGED`] with the fewest rows: so a row is merged log(rows) /
///    log([`RUNS_MERGED`]) times.
///
/// A merge needs additional space of the size of its input until the commit frees the old runs. While the number of
/// pages grows, little is merged, and the history takes hardly more space than its rows.
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
