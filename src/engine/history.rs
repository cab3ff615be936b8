//! What visits leave behind, and how it is put together again.
//!
//! A visit reads nothing: it only appends a row to the log. The log is cut into *runs*, sorted by
//! page, each inside one *interval* (the time between two marks). Runs are merged by the window's
//! policy, older rows first, so that a page's measures are always joined in stream order, whatever
//! the runs were. That is why results do not depend on where the log was cut.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use std::sync::Arc;

use super::mark::Mark;
use super::page::PageId;
use super::window::Policy;
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
    /// Pages known at the measure; 0 where the policy does not need it.
    pub pages: u64,
    /// The window's length then, in units of G, or that of a group's stretch; 0 where the policy does not
    /// need it.
    pub span: u128,
    /// The row is what older measures left: an interpolation's state, or the base of those that were
    /// forgotten.
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

/// Most memory of a log of so many rows: notes, their times, and their places in page order.
pub(crate) fn log_bytes(rows: usize) -> u64 {
    rows as u64 * ROW_BYTES
}

/// Rows of a log that takes `bytes` at most; not so few that runs would be tiny.
pub(crate) fn log_rows(bytes: u64) -> usize {
    (bytes / ROW_BYTES).clamp(1 << 14, LOG_ROWS as u64) as usize
}

const ROW_BYTES: u64 = (size_of::<Note>() + size_of::<Moment>() + size_of::<u64>()) as u64;

/// Rows not yet in a run, in stream order.
pub(crate) struct Log {
    policy: Arc<dyn Policy>,
    notes: Vec<Note>,
    /// When each note was made, if the policy needs that.
    moments: Vec<Moment>,
    /// Pages and the places of their notes ([`AT_BITS`]), to be sorted.
    order: Vec<u64>,
    /// Notes after which it is to be cut.
    full: usize,
}

/// A row as it is noted: a visit makes one, so it is short.
#[derive(Clone, Copy)]
struct Note {
    /// Page x 4, and the bits below.
    page: u64,
    cash: u64,
    /// 0 without [`FETCHED`].
    fetched: Time,
}

/// When a measure was made, as far as the policy needs it.
#[derive(Clone, Copy, Default)]
pub(super) struct Moment {
    pub clock: u128,
    pub pages: u64,
    pub span: u128,
}

/// A page and the place of a note in one number: the place takes so many bits, the page the others.
const AT_BITS: u32 = LOG_ROWS.ilog2();
const _: () = assert!(LOG_ROWS.is_power_of_two() && PageId::LIMIT >> (64 - AT_BITS) == 0);

/// The note has a fetch's time.
const FETCHED: u64 = 1;
/// The note is a visit.
const VISITED: u64 = 2;

impl Log {
    pub fn new(policy: Arc<dyn Policy>) -> Log {
        Log {
            policy,
            notes: Vec::new(),
            moments: Vec::new(),
            order: Vec::new(),
            full: LOG_ROWS,
        }
    }

    /// How rows are kept.
    pub fn policy(&self) -> &Arc<dyn Policy> {
        &self.policy
    }

    /// Whether measures are kept with their clock.
    pub fn is_timed(&self) -> bool {
        self.policy.is_timed()
    }

    /// Sets the rows after which it is to be cut. Results don't depend on it.
    pub fn set_full(&mut self, rows: usize) {
        self.full = rows;
    }

    /// Whether it is to be cut into a run now.
    pub fn is_full(&self) -> bool {
        self.notes.len() >= self.full
    }

    pub fn len(&self) -> usize {
        self.notes.len()
    }

    /// A page distributed cash: in a visit or a recycling.
    pub fn measure(
        &mut self,
        page: PageId,
        cash: u64,
        visited: bool,
        fetched: Option<Time>,
        moment: Moment,
    ) {
        self.note(page, cash, visited, fetched);
        if self.policy.is_timed() {
            self.moments.push(moment);
        }
    }

    /// A page was found unchanged: only its last fetch moves.
    pub fn seen(&mut self, page: PageId, fetched: Option<Time>) {
        self.note(page, 0, false, fetched);
        if self.policy.is_timed() {
            self.moments.push(Moment::default());
        }
    }

    fn note(&mut self, page: PageId, cash: u64, visited: bool, fetched: Option<Time>) {
        let visited = if visited { VISITED } else { 0 };
        let timed = if fetched.is_some() { FETCHED } else { 0 };
        self.notes.push(Note {
            page: page.0 << 2 | visited | timed,
            cash,
            fetched: fetched.unwrap_or(0),
        });
    }

    fn row(&self, at: usize) -> Row {
        let note = self.notes[at];
        let Moment { clock, pages, span } = self.moments.get(at).copied().unwrap_or_default();
        Row {
            page: note.page >> 2,
            cash: note.cash.into(),
            visits: u64::from(note.page & VISITED != 0),
            last_fetch: (note.page & FETCHED != 0).then_some(note.fetched),
            clock,
            pages,
            span,
            folded: false,
        }
    }

    /// Takes the rows as a run: sorted by page, joined where the policy allows. What is not taken is
    /// lost.
    pub fn take_run(&mut self) -> Run<'_> {
        // Their places are sorted with them, which keeps the order of a page's rows.
        let notes = self.notes.iter().zip(0u64..);
        self.order.clear();
        self.order
            .extend(notes.map(|(note, at)| (note.page >> 2) << AT_BITS | at));
        self.order.sort_unstable();
        Run {
            log: self,
            taken: 0,
            ahead: Vec::with_capacity(ROWS_AHEAD),
            at: 0,
        }
    }
}

/// Rows put in page order at a time: they are anywhere in memory, and so are waited for together.
const ROWS_AHEAD: usize = 64;

/// The rows of a [`Log`], in page order.
pub(crate) struct Run<'l> {
    log: &'l mut Log,
    /// Rows that were put in `ahead` so far.
    taken: usize,
    ahead: Vec<Row>,
    /// Of those ahead.
    at: usize,
}

impl Run<'_> {
    /// The next row, which stays the next.
    fn peek(&mut self) -> Option<&Row> {
        if self.at == self.ahead.len() {
            let end = self.log.order.len().min(self.taken + ROWS_AHEAD);
            let next = &self.log.order[self.taken..end];
            let places = next.iter().map(|next| next & ((1 << AT_BITS) - 1));
            self.ahead.clear();
            self.ahead
                .extend(places.map(|at| self.log.row(at as usize)));
            (self.taken, self.at) = (end, 0);
        }
        self.ahead.get(self.at)
    }
}

impl Iterator for Run<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let mut row = *self.peek()?;
        self.at += 1;
        while let Some(&later) = self.peek().filter(|later| later.page == row.page) {
            if !self.log.policy.join(&mut row, &later) {
                break;
            }
            self.at += 1;
        }
        Some(row)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.log.notes.clear();
        self.log.moments.clear();
    }
}

/// Rows in page order, from anywhere.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<Row>> + 'a>;

/// Merges runs, oldest first, into one stream of rows in page order; joins what the policy joins and
/// forgets what it forgets. `start`: G where the window begins.
pub(crate) fn merge<'a>(policy: &Arc<dyn Policy>, runs: Vec<Rows<'a>>, start: u128) -> Rows<'a> {
    joined(policy, Box::new(Merge::start(runs)), start)
}

/// As [`merge`], but the oldest run of all is among `runs`, so each page's first measure is opened into
/// a state. `admissions` are all admissions, in page order.
pub(crate) fn fold<'a>(
    policy: &Arc<dyn Policy>,
    runs: Vec<Rows<'a>>,
    admissions: Admissions<'a>,
    start: u128,
) -> Rows<'a> {
    if !policy.is_timed() {
        return merge(policy, runs, start);
    }
    let mut admissions = AdmissionCursor::new(admissions);
    let mut last = None;
    let opens = policy.clone();
    let opened = Merge::start(runs).map(move |row| {
        let row = row?;
        let first = last != Some(row.page);
        last = Some(row.page);
        if !first || row.folded {
            return Ok(row);
        }
        let at = admissions.at(row.page)?;
        Ok(opens.open(&row, (at.clock, at.first)))
    });
    joined(policy, Box::new(opened), start)
}

fn joined<'a>(policy: &Arc<dyn Policy>, rows: Rows<'a>, start: u128) -> Rows<'a> {
    let joined = Join {
        rows,
        pending: None,
        policy: policy.clone(),
    };
    match policy.is_timed() {
        false => Box::new(joined),
        true => Box::new(Forget {
            rows: joined,
            next: None,
            page: Vec::new(),
            policy: policy.clone(),
            start,
        }),
    }
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
        if let Some(page) = self.advance(run) {
            self.heads.push(Reverse((page, run)));
        }
    }

    /// Takes the next row of a run; its page.
    fn advance(&mut self, run: usize) -> Option<u64> {
        match self.runs[run].next()? {
            Ok(row) => {
                self.next[run] = Some(row);
                Some(row.page)
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
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
        let &Reverse((_, run)) = self.heads.peek()?;
        let row = self.next[run].take()?;
        let page = self.advance(run);
        // One place in the heap is changed, rather than one given up and another made.
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
    pending: Option<Row>,
    policy: Arc<dyn Policy>,
}

impl Iterator for Join<'_> {
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
                    if held.page != row.page || !self.policy.join(held, &row) {
                        return Some(Ok(std::mem::replace(held, row)));
                    }
                }
            }
        }
    }
}

/// Forgets, page by page, what the policy forgets.
struct Forget<'a> {
    rows: Join<'a>,
    /// The next page's first row.
    next: Option<Row>,
    /// A page's rows still to be given out, newest first.
    page: Vec<Row>,
    policy: Arc<dyn Policy>,
    start: u128,
}

impl Iterator for Forget<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
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

/// Runs between two retained marks, at most: as many are read side by side.
const RUNS_MAX: usize = 512;
/// How many are merged then.
const RUNS_MERGED: usize = 65;

/// Which neighbouring runs to merge next into one, given each run's mark interval and number of rows,
/// oldest first, and how many pages there are. Of the runs that no retained mark separates:
///
/// 1. all, if they have two rows a page or more, and twice the rows of the oldest or more: where a page
///    keeps one row, half of them or more go; where it keeps measures, what is kept is never more than
///    doubled;
/// 2. of more than [`RUNS_MAX`], those [`RUNS_MERGED`] of them that have the fewest rows: so a row is merged
///    log(rows) / log([`RUNS_MERGED`]) times.
///
/// A merge leaves as much room as it took, which is free only after the commit. So while there are ever more
/// pages little is merged, and the history takes hardly more room than its rows.
pub(crate) fn mergeable(runs: &[(u64, u64)], marks: &[Mark], pages: u64) -> Option<Range<usize>> {
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

/// As [`mergeable`], where no mark separates any.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(numbers: &[u64]) -> Vec<Mark> {
        let mark = |&number: &u64| Mark {
            number,
            ..Mark::default()
        };
        numbers.iter().map(mark).collect()
    }

    /// Merges as long as there is something to merge, where no two rows join; rows merged.
    fn settle(runs: &mut Vec<(u64, u64)>) -> u64 {
        let mut merged = 0;
        while let Some(range) = mergeable(runs, &[], u64::MAX / 2) {
            let rows = runs[range.clone()].iter().map(|run| run.1).sum();
            let interval = runs[range.start].0;
            runs.splice(range, [(interval, rows)]);
            merged += rows;
        }
        merged
    }

    /// With ever more pages each row is merged once or twice in some thousand runs, whether runs come one
    /// by one or hundreds at a time, and are alike or not; and they stay few.
    #[test]
    fn rows_are_merged_a_few_times() {
        for (at_a_time, sizes) in [(1, [100; 3]), (300, [100; 3]), (7, [1, 30, 100])] {
            let (mut runs, mut merged, mut rows) = (Vec::new(), 0, 0);
            for run in 0..3_000 {
                runs.push((0, sizes[run % 3]));
                rows += sizes[run % 3];
                if run % at_a_time == 0 {
                    merged += settle(&mut runs);
                    assert!(runs.len() <= RUNS_MAX);
                }
            }
            assert!(merged <= 2 * rows, "{merged} for {rows}");
            assert!(merged >= rows / 2, "{merged} for {rows}");
        }
    }

    /// Sizes that never let a run grow by much: they are few all the same.
    #[test]
    fn runs_stay_few_whatever_their_sizes() {
        let mut runs = Vec::new();
        for run in 0u64..5_000 {
            runs.push((0, 3u64.pow((run + 1).trailing_zeros())));
            settle(&mut runs);
            assert!(runs.len() <= RUNS_MAX);
        }
    }

    #[test]
    fn a_retained_mark_separates_runs() {
        let runs = [(0, 5), (1, 5), (2, 5), (3, 5)];
        assert_eq!(mergeable(&runs, &marks(&[2]), 5), Some(2..4));
        assert_eq!(mergeable(&runs[..3], &marks(&[2]), 5), Some(0..2));
        assert_eq!(mergeable(&runs, &marks(&[1, 2, 3]), 5), None);
        assert_eq!(mergeable(&runs, &[], 10), Some(0..4));
        assert_eq!(mergeable(&runs, &[], 11), None);
    }
}
