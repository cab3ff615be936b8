//! What visits leave behind, and how it is put together again.
//!
//! A visit reads nothing: it only appends a row to the log. The log is cut into *runs*, sorted by
//! page, each inside one *interval* (the time between two marks). Runs are merged by the window's
//! policy, older rows first, so that a page's measures are always joined in stream order, whatever
//! the runs were. That is why results do not depend on where the log was cut.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ledger::Paid;
use super::mark::Mark;
use super::page::PageId;
use super::window::WindowPolicy;
use crate::Result;
use crate::decode::Time;

/// One page's measures, joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    /// The page's number.
    pub page: u64,
    /// Sum of the cash distributed (C); for an interpolation's state the history H.
    pub cash: u128,
    /// Visits, recyclings not counted.
    pub visits: u64,
    /// Time of the last fetch, if times are known.
    pub last_fetch: Option<Time>,
    /// G at the measure; 0: no measure, or the policy does not need it.
    pub clock: u128,
    /// Pages known at the measure; 0 where `clock` is.
    pub pages: u64,
    /// The row is an interpolation's state, not a raw measure.
    pub folded: bool,
}

impl Row {
    /// Adds `next`'s visits and takes its later fetch.
    pub(crate) fn take_visits(&mut self, next: &Row) {
        self.visits += next.visits;
        self.last_fetch = self.last_fetch.max(next.last_fetch);
    }

    /// The row as seen by a window: with its cash only if that was distributed inside it.
    pub(crate) fn counted(&self, inside: bool) -> Row {
        Row {
            cash: if inside { self.cash } else { 0 },
            ..*self
        }
    }
}

/// When a stretch of pages was admitted: `first` up to the next admission's `first`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Admission {
    /// The first page admitted.
    pub first: u64,
    /// A at the time.
    pub paid: u64,
    /// G at the time; 0 where the policy does not need it.
    pub clock: u128,
}

/// Rows the log holds before it is cut into a run.
pub(crate) const LOG_ROWS: usize = 1 << 21;

/// Most memory of a log of so many rows: the rows, their copy in page order, and their places.
pub(crate) fn log_bytes(rows: usize) -> u64 {
    rows as u64 * ROW_BYTES
}

/// Rows of a log that takes `bytes` at most; not so few that runs would be tiny.
pub(crate) fn log_rows(bytes: u64) -> usize {
    (bytes / ROW_BYTES).clamp(1 << 14, LOG_ROWS as u64) as usize
}

const ROW_BYTES: u64 = 2 * size_of::<Row>() as u64 + size_of::<(u64, u32)>() as u64;

/// Rows not yet in a run, in stream order.
pub(crate) struct Log {
    policy: WindowPolicy,
    rows: Vec<Row>,
    /// Rows after which it is to be cut.
    full: usize,
}

impl Log {
    pub fn new(policy: WindowPolicy) -> Log {
        Log {
            policy,
            rows: Vec::new(),
            full: LOG_ROWS,
        }
    }

    /// Sets the rows after which it is to be cut. Results don't depend on it.
    pub fn set_full(&mut self, rows: usize) {
        self.full = rows;
    }

    /// Whether it is to be cut into a run now.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= self.full
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// A page distributed cash: in a visit (`visits` 1) or a recycling (0).
    pub fn measure(
        &mut self,
        page: PageId,
        paid: Paid,
        visits: u64,
        fetched: Option<Time>,
        pages: u64,
    ) {
        let timed = self.policy.is_timed();
        self.rows.push(Row {
            page: page.0,
            cash: u128::from(paid.cash),
            visits,
            last_fetch: fetched,
            clock: if timed { paid.clock } else { 0 },
            pages: if timed { pages } else { 0 },
            folded: false,
        });
    }

    /// A page was found unchanged: only its last fetch moves.
    pub fn seen(&mut self, page: PageId, fetched: Option<Time>) {
        self.rows.push(Row {
            page: page.0,
            last_fetch: fetched,
            ..Row::default()
        });
    }

    /// Takes the rows as a run: sorted by page, joined where the policy allows.
    pub fn take_run(&mut self) -> Vec<Row> {
        // Rows are long: their places are sorted, which keeps the order of a page's rows.
        let log = std::mem::take(&mut self.rows);
        let pages = log.iter().zip(0u32..);
        let mut order: Vec<(u64, u32)> = pages.map(|(row, at)| (row.page, at)).collect();
        order.sort_unstable();
        let mut rows: Vec<Row> = order.iter().map(|&(_, at)| log[at as usize]).collect();
        drop(log);
        let policy = self.policy;
        rows.dedup_by(|next, row| row.page == next.page && policy.join(row, next));
        rows
    }
}

/// Rows in page order, from anywhere.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<Row>> + 'a>;

/// Merges runs, oldest first, into one stream of rows in page order; joins what the policy joins.
pub(crate) fn merge<'a>(policy: WindowPolicy, runs: Vec<Rows<'a>>) -> Rows<'a> {
    let merged = Merge::start(runs);
    Box::new(Join {
        rows: merged,
        pending: None,
        join: move |row: &mut Row, next: &Row| policy.join(row, next),
    })
}

/// As [`merge`], but the oldest run of all is among `runs`, so each page ends as one row: its
/// first raw measure is opened into a state. `admissions` are all admissions, in page order.
pub(crate) fn fold<'a>(
    policy: WindowPolicy,
    runs: Vec<Rows<'a>>,
    admissions: Admissions<'a>,
) -> Rows<'a> {
    if !policy.is_timed() {
        return merge(policy, runs);
    }
    let mut admissions = AdmissionCursor::new(admissions);
    let mut last = None;
    let opened = Merge::start(runs).map(move |row| {
        let row = row?;
        let first = last != Some(row.page);
        last = Some(row.page);
        if !first || row.folded {
            return Ok(row);
        }
        let at = admissions.at(row.page)?;
        Ok(policy.open(&row, (at.clock, at.first)))
    });
    Box::new(Join {
        rows: opened,
        pending: None,
        join: move |row: &mut Row, next: &Row| policy.join(row, next),
    })
}

/// A k-way merge by page; rows of one page come in the order of their runs.
struct Merge<'a> {
    runs: Vec<Rows<'a>>,
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    next: Vec<Option<Row>>,
    failed: Option<crate::Error>,
}

impl<'a> Merge<'a> {
    fn start(runs: Vec<Rows<'a>>) -> Merge<'a> {
        let mut merge = Merge {
            next: vec![None; runs.len()],
            heads: BinaryHeap::with_capacity(runs.len()),
            runs,
            failed: None,
        };
        for run in 0..merge.runs.len() {
            merge.pull(run);
        }
        merge
    }

    fn pull(&mut self, run: usize) {
        match self.runs[run].next() {
            Some(Ok(row)) => {
                self.heads.push(Reverse((row.page, run)));
                self.next[run] = Some(row);
            }
            Some(Err(error)) => self.failed = Some(error),
            None => {}
        }
    }
}

impl Iterator for Merge<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if let Some(error) = self.failed.take() {
            self.heads.clear();
            return Some(Err(error));
        }
        let Reverse((_, run)) = self.heads.pop()?;
        let row = self.next[run].take()?;
        self.pull(run);
        Some(Ok(row))
    }
}

/// Joins neighbouring rows of one page where `join` does so.
struct Join<I, J> {
    rows: I,
    pending: Option<Row>,
    join: J,
}

impl<I, J> Iterator for Join<I, J>
where
    I: Iterator<Item = Result<Row>>,
    J: Fn(&mut Row, &Row) -> bool,
{
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
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
                    if held.page != row.page || !(self.join)(held, &row) {
                        return Some(Ok(std::mem::replace(held, row)));
                    }
                }
            }
        }
    }
}

/// Which neighbouring runs to merge next, given each run's mark interval and number of rows, oldest
/// first: two that no retained mark separates, the newer at least half as large as the older. So
/// sizes fall geometrically, and a row is merged about log2(rows) times.
pub(crate) fn mergeable(runs: &[(u64, usize)], marks: &[Mark]) -> Option<usize> {
    let window = |interval: u64| marks.iter().rposition(|mark| mark.number <= interval);
    (1..runs.len())
        .rev()
        .find(|&at| {
            let ((older, older_rows), (newer, newer_rows)) = (runs[at - 1], runs[at]);
            newer_rows * 2 >= older_rows && window(older) == window(newer)
        })
        .map(|at| at - 1)
}

/// Admissions in page order.
pub type Admissions<'a> = Box<dyn Iterator<Item = Result<Admission>> + 'a>;

/// Answers "when was this page admitted?" for pages asked in ascending order.
pub(crate) struct AdmissionCursor<'a> {
    from: Admissions<'a>,
    current: Admission,
    next: Option<Admission>,
}

impl<'a> AdmissionCursor<'a> {
    pub fn new(from: Admissions<'a>) -> AdmissionCursor<'a> {
        AdmissionCursor {
            from,
            current: Admission::default(),
            next: None,
        }
    }

    pub fn at(&mut self, page: u64) -> Result<Admission> {
        loop {
            if self.next.is_none() {
                self.next = self.from.next().transpose()?;
            }
            match self.next {
                Some(next) if next.first <= page => {
                    self.current = next;
                    self.next = None;
                }
                _ => return Ok(self.current),
            }
        }
    }
}
