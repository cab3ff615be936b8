//! The history of visits.
//!
//! A visit only appends a row to the log. The log is cut into *runs*, sorted by page, each inside one *interval* (the
//! time between two marks). Runs are merged by the window's policy ([`merge`]), older rows first, so a page's measures
//! are joined in stream order, and results do not depend on where the log was cut.

use std::iter::Peekable;
use std::ops::Range;

use prefetch_index::prefetch_index;

use super::row::{HistoryRow, RowFetches, RowPolicy};
use super::window::CashMark;
use crate::model::{Digest, FetchTotals, PageId, Time};
use crate::{Error, Result};

/// Admission time of a range of pages: from `first` up to the `first` of the next admission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Admission {
    pub first: u64,
    pub paid: u64,
    /// Value of G at the admission; 0 if the policy does not need it.
    pub clock: u128,
}

/// Maximum number of rows in the log before it is cut into a run.
pub const LOG_ROWS: usize = 1 << 21;

/// Returns the maximum memory of a log per row, in bytes: its notes and, if the policy needs them, their times, in vectors
/// that may have twice the size in use, and the sort keys of a run.
pub fn log_bytes(is_timed: bool) -> u64 {
    let moment = usize::from(is_timed) * size_of::<(u128, u64, u128)>();
    (2 * (size_of::<HistoryNote>() + moment) + size_of::<u64>()) as u64
}

/// Returns the number of rows of a log that takes at most `bytes`, bounded below so that runs are not tiny.
pub fn log_rows(bytes: u64, is_timed: bool) -> usize {
    (bytes / log_bytes(is_timed)).clamp(1 << 14, LOG_ROWS as u64) as usize
}

/// Rows that are not yet in a run, in stream order. All of them become one run.
pub struct Notes {
    policy: RowPolicy,
    /// Number of notes at which the log is cut; results do not depend on it.
    pub(super) full: usize,
    notes: Vec<HistoryNote>,
    /// Time of each note, if the policy needs it: G, pages, and the length of the window.
    moments: Vec<(u128, u64, u128)>,
    /// Totals that notes of the kind `TOTALS` refer to.
    totals: Vec<(Option<Time>, FetchTotals)>,
    /// Sort keys: page and position of its note ([`AT_BITS`]).
    order: Vec<u64>,
}

/// Compact form of a row, as a visit or fetch appends it; the default is a recycling.
#[derive(Clone, Copy, Default)]
pub(super) struct HistoryNote {
    /// Page x 16, which [`Notes::add`] sets, plus the flag bits below.
    pub page: u64,
    pub cash: u64,
    /// Time of the fetch, 0 without [`FETCHED`]; with [`TOTALS`], an index into the totals.
    pub fetched: Time,
    pub digest: Digest,
}

impl HistoryNote {
    fn time(&self) -> Option<Time> {
        (self.page & FETCHED != 0).then_some(self.fetched)
    }
}

/// Number of low bits of a sort key that hold a note's position; the page takes the high bits.
const AT_BITS: u32 = LOG_ROWS.ilog2();
const _: () = assert!(
    LOG_ROWS.is_power_of_two()
        && PageId::LIMIT >> (64 - AT_BITS) == 0
        && PageId::LIMIT >> (64 - NOTE_BITS) == 0
);

/// Flag: the note has the time of a fetch.
pub(super) const FETCHED: u64 = 1;
pub(super) const VISITED: u64 = 2;
/// Flag: the record is a fetch of the page, not a replayed record.
pub(super) const REACHED: u64 = 4;
pub(super) const FAILED: u64 = 8;
/// Flags of a note that holds the totals of all fetches of its page so far.
const TOTALS: u64 = VISITED | FAILED;
const NOTE_BITS: u32 = 4;

impl Notes {
    pub(super) fn new(policy: RowPolicy) -> Notes {
        Notes {
            policy,
            full: LOG_ROWS,
            notes: Vec::new(),
            moments: Vec::new(),
            totals: Vec::new(),
            order: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    pub(super) fn is_timed(&self) -> bool {
        self.policy.is_timed()
    }

    pub(super) fn is_full(&self) -> bool {
        // Totals are three times as large as a note.
        self.notes.len() + 2 * self.totals.len() >= self.full
    }

    /// Logs what a page distributed in a visit or a recycling, or a fetch that distributed nothing. `totals` are those of
    /// the page's fetches so far, if the record gave these instead of one fetch.
    pub(super) fn add(
        &mut self,
        page: PageId,
        cash: u64,
        mut note: HistoryNote,
        totals: Option<FetchTotals>,
        moment: (u128, u64, u128),
    ) {
        if let Some(totals) = totals {
            let at = self.totals.len();
            self.totals.push((note.time(), totals));
            (note.page, note.fetched) = (TOTALS | note.page & REACHED, at as Time);
        }
        note.page |= page.0 << NOTE_BITS;
        self.notes.push(HistoryNote { cash, ..note });
        if self.is_timed() {
            self.moments.push(moment);
        }
    }

    pub(super) fn cut(&mut self, run: impl FnOnce(&mut Notes) -> Result<()>) -> Result<()> {
        run(self)?;
        self.notes.clear();
        self.moments.clear();
        self.totals.clear();
        Ok(())
    }

    fn row(&self, at: usize) -> HistoryRow {
        let note = self.notes[at];
        let (clock, pages, span) = self.moments.get(at).copied().unwrap_or_default();
        let time = note.time();
        let (visits, last_fetch, fetches) = match note.page & TOTALS {
            TOTALS => {
                let (fetched, totals) = self.totals[note.fetched as usize];
                let fetches = RowFetches::of(&totals, note.digest, fetched);
                (totals.visits.into(), fetched, fetches)
            }
            FAILED => (0, None, RowFetches::failure(time)),
            visited => {
                let fetches = RowFetches::look(note.digest, time);
                (u64::from(visited != 0), time, fetches)
            }
        };
        let is_visit = note.page & VISITED != 0;
        let is_fetch = note.page & REACHED != 0 || note.page & TOTALS == FAILED;
        HistoryRow {
            page: note.page >> NOTE_BITS,
            cash: note.cash.into(),
            clock,
            pages,
            span,
            visits,
            last_fetch,
            fetches: if is_fetch {
                fetches
            } else {
                RowFetches::default()
            },
            // A fetch that was not a visit distributed nothing.
            recycled: if is_visit { 0 } else { note.cash },
            folded: false,
        }
    }

    /// Returns the rows sorted by page, joined where the policy allows.
    pub fn run(&mut self) -> impl Iterator<Item = HistoryRow> + '_ {
        // Positions are part of the sort key, which keeps the order of a page's rows.
        let notes = self.notes.iter().zip(0u64..);
        self.order.clear();
        self.order
            .extend(notes.map(|(note, at)| (note.page >> NOTE_BITS) << AT_BITS | at));
        self.order.sort_unstable();
        let notes = &*self;
        let place = |key: &u64| (key & ((1 << AT_BITS) - 1)) as usize;
        let in_order = notes.order.iter().enumerate().map(move |(at, key)| {
            if let Some(later) = notes.order.get(at + ROWS_AHEAD) {
                prefetch_index(&*notes.notes, place(later));
                prefetch_index(&*notes.moments, place(later));
            }
            notes.row(place(key))
        });
        let mut rows = in_order.peekable();
        std::iter::from_fn(move || {
            let mut row = rows.next()?;
            while let Some(later) = rows.peek()
                && later.page == row.page
                && notes.policy.join(&mut row, later)
            {
                rows.next();
            }
            Some(row)
        })
    }
}

/// Distance in page order at which a note is prefetched.
const ROWS_AHEAD: usize = 16;

pub type Admissions<'a> = Box<dyn Iterator<Item = Result<Admission>> + 'a>;

pub struct AdmissionCursor<'a> {
    later: Peekable<Admissions<'a>>,
    current: Admission,
}

impl<'a> AdmissionCursor<'a> {
    pub fn new(from: Admissions<'a>) -> AdmissionCursor<'a> {
        AdmissionCursor {
            later: from.peekable(),
            current: Admission::default(),
        }
    }

    pub fn at(&mut self, page: u64) -> Result<Admission> {
        let is_due = |next: &Result<Admission>| next.as_ref().map_or(true, |it| it.first <= page);
        while let Some(next) = self.later.next_if(is_due) {
            self.current = next?;
        }
        Ok(self.current)
    }
}

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

pub struct RunReader<'a> {
    blocks: Blocks<'a>,
    block: Vec<HistoryRow>,
    taken: usize,
}

impl RunReader<'_> {
    pub fn new(blocks: Blocks<'_>) -> RunReader<'_> {
        RunReader {
            blocks,
            block: Vec::new(),
            taken: 0,
        }
    }

    /// Returns the buffered next rows; none at the end.
    fn ahead(&mut self) -> Result<&[HistoryRow]> {
        if self.taken == self.block.len() {
            self.block.clear();
            self.taken = 0;
            (self.blocks)(&mut self.block)?;
        }
        Ok(&self.block[self.taken..])
    }

    pub fn take_while(&mut self, fits: impl Fn(u64) -> bool) -> Result<&[HistoryRow]> {
        let rows = self.ahead()?.iter().take_while(|row| fits(row.page));
        let rows = rows.count();
        self.taken += rows;
        Ok(&self.block[self.taken - rows..self.taken])
    }

    pub fn check_end(&mut self) -> Result<()> {
        self.ahead()?.first().map_or(Ok(()), |row| {
            Err(Error::internal(format!(
                "the history has a row for page {}, which the ledger does not know",
                row.page
            )))
        })
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
        let mut first = None;
        for run in &mut self.runs {
            let page = run.ahead()?.first().map(|row| row.page);
            first = first.into_iter().chain(page).min();
        }
        let Some(first) = first else {
            return Ok(());
        };
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
                    let at = row.place(first)?;
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
pub fn mergeable(runs: &[(u64, u64)], marks: &[CashMark], pages: u64) -> Option<Range<usize>> {
    let window = |interval: u64| marks.iter().rposition(|mark| mark.number <= interval);
    let mut end = runs.len();
    while end > 0 {
        let last = window(runs[end - 1].0);
        let apart = runs[..end].iter().rposition(|run| window(run.0) != last);
        let start = apart.map_or(0, |before| before + 1);
        let rows: Vec<u64> = runs[start..end].iter().map(|run| run.1).collect();
        if let Some(within) = mergeable_between_marks(&rows, pages) {
            return Some(start + within.start..start + within.end);
        }
        end = start;
    }
    None
}

/// Selects runs like [`mergeable`], where no mark separates them.
fn mergeable_between_marks(runs: &[u64], pages: u64) -> Option<Range<usize>> {
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
