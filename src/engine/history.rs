//! The history of visits.
//!
//! A visit reads nothing: it only appends a row to the log. The log is cut into *runs*, sorted by
//! page, each inside one *interval* (the time between two marks). Runs are merged by the window's
//! policy ([`super::runs`]), older rows first, so that a page's measures are always joined in stream
//! order, whatever the runs were. That is why results do not depend on where the log was cut.

use std::sync::Arc;

use super::fetches::RowFetches;
use super::row::Row;
use super::window::Policy;
use crate::Result;
use crate::model::{Digest, FetchTotals, PageId, Time};

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

/// Most memory of a log for each row: notes and, if the policy needs them, their times; those of the run
/// that is being packed too, and that run's places in page order.
pub(crate) fn log_bytes(is_timed: bool) -> u64 {
    let moment = if is_timed { size_of::<Moment>() } else { 0 };
    (2 * (size_of::<Note>() + moment) + size_of::<u64>()) as u64
}

/// Rows of a log that takes `bytes` at most; not so few that runs would be tiny.
pub(crate) fn log_rows(bytes: u64, is_timed: bool) -> usize {
    (bytes / log_bytes(is_timed)).clamp(1 << 14, LOG_ROWS as u64) as usize
}

/// A visit, as far as the log needs it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Visit {
    /// When the page was fetched.
    pub fetched: Option<Time>,
    /// It was fetched now, not by a pass that goes over records again, nor taken to be.
    pub reached: bool,
    /// Distinguishes it from other states of the page.
    pub digest: Digest,
    /// The page's fetches so far, which are told in place of one.
    pub totals: Option<FetchTotals>,
}

impl Visit {
    fn bits(self) -> u64 {
        VISITED | if self.reached { REACHED } else { 0 }
    }
}

/// Rows not yet in a run, in stream order.
pub(crate) struct Log {
    notes: Notes,
    /// Notes after which it is to be cut.
    full: usize,
}

/// The log's notes, to be made a run.
pub struct Notes {
    policy: Arc<dyn Policy>,
    notes: Vec<Note>,
    /// When each note was made, if the policy needs that.
    moments: Vec<Moment>,
    /// What notes of all fetches of a page hold.
    totals: Vec<(Option<Time>, FetchTotals)>,
    /// Pages and the places of their notes ([`AT_BITS`]), to be sorted.
    order: Vec<u64>,
}

/// A row as it is noted: a visit makes one, so it is short.
#[derive(Clone, Copy)]
struct Note {
    /// Page x 16, and the bits below.
    page: u64,
    cash: u64,
    /// 0 without [`FETCHED`]; with [`TOTALS`] which of the totals are the note's.
    fetched: Time,
    digest: Digest,
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
const _: () = assert!(
    LOG_ROWS.is_power_of_two()
        && PageId::LIMIT >> (64 - AT_BITS) == 0
        && PageId::LIMIT >> (64 - NOTE_BITS) == 0
);

/// The note has a fetch's time.
const FETCHED: u64 = 1;
/// The note is a visit.
const VISITED: u64 = 2;
/// The page was reached.
const REACHED: u64 = 4;
/// The note is a fetch that failed.
const FAILED: u64 = 8;
/// The note holds all fetches of its page so far.
const TOTALS: u64 = VISITED | FAILED;
const NOTE_BITS: u32 = 4;

impl Log {
    pub fn new(policy: Arc<dyn Policy>) -> Log {
        Log {
            notes: Notes::new(policy),
            full: LOG_ROWS,
        }
    }

    /// How rows are kept.
    pub fn policy(&self) -> &Arc<dyn Policy> {
        &self.notes.policy
    }

    /// Returns whether measures are kept with their clock.
    pub fn is_timed(&self) -> bool {
        self.notes.policy.is_timed()
    }

    /// Sets the rows after which it is to be cut. Results don't depend on it.
    pub fn set_full(&mut self, rows: usize) {
        self.full = rows;
    }

    /// Returns whether it is to be cut into a run now.
    pub fn is_full(&self) -> bool {
        // Totals are three times as large as a note.
        self.notes.len() + 2 * self.notes.totals.len() >= self.full
    }

    pub fn is_empty(&self) -> bool {
        self.notes.len() == 0
    }

    /// A page distributed cash: in a visit or a recycling.
    pub fn measure(&mut self, page: PageId, cash: u64, visit: Option<Visit>, moment: Moment) {
        self.note(
            page,
            cash,
            visit.map_or(0, Visit::bits),
            visit.unwrap_or_default(),
        );
        if self.is_timed() {
            self.notes.moments.push(moment);
        }
    }

    /// A page was found unchanged: only its last fetch moves.
    pub fn seen(&mut self, page: PageId, look: Visit) {
        self.note(page, 0, look.bits() & !VISITED, look);
        if self.is_timed() {
            self.notes.moments.push(Moment::default());
        }
    }

    /// A page's fetch failed: no visit, and no fetch of the page.
    pub fn failed(&mut self, page: PageId, at: Option<Time>) {
        let fetched = at;
        self.note(
            page,
            0,
            FAILED,
            Visit {
                fetched,
                ..Visit::default()
            },
        );
        if self.is_timed() {
            self.notes.moments.push(Moment::default());
        }
    }

    fn note(&mut self, page: PageId, cash: u64, bits: u64, visit: Visit) {
        let timed = if visit.fetched.is_some() { FETCHED } else { 0 };
        let (bits, fetched) = match visit.totals {
            None => (bits | timed, visit.fetched.unwrap_or(0)),
            Some(totals) => {
                self.notes.totals.push((visit.fetched, totals));
                let at = self.notes.totals.len() - 1;
                (TOTALS | bits & REACHED, at as Time)
            }
        };
        self.notes.notes.push(Note {
            page: page.0 << NOTE_BITS | bits,
            cash,
            fetched,
            digest: visit.digest,
        });
    }

    /// Cuts it: what was noted so far is `run`'s, which gives notes back to be used again, these or others.
    pub fn cut(&mut self, run: impl FnOnce(Notes) -> Result<Notes>) -> Result<()> {
        let empty = self.notes.another();
        self.notes = run(std::mem::replace(&mut self.notes, empty))?;
        self.notes.clear();
        Ok(())
    }
}

impl Notes {
    fn new(policy: Arc<dyn Policy>) -> Notes {
        Notes {
            policy,
            notes: Vec::new(),
            moments: Vec::new(),
            totals: Vec::new(),
            order: Vec::new(),
        }
    }

    /// New ones of the same policy; nothing is noted yet.
    pub(crate) fn another(&self) -> Notes {
        Notes::new(self.policy.clone())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.notes.len()
    }

    fn clear(&mut self) {
        self.notes.clear();
        self.moments.clear();
        self.totals.clear();
    }

    fn row(&self, at: usize) -> Row {
        let note = self.notes[at];
        let Moment { clock, pages, span } = self.moments.get(at).copied().unwrap_or_default();
        if note.page & TOTALS == TOTALS {
            let (fetched, totals) = self.totals[note.fetched as usize];
            let is_kept = note.page & REACHED != 0;
            return Row {
                page: note.page >> NOTE_BITS,
                cash: note.cash.into(),
                visits: totals.visits.into(),
                last_fetch: fetched,
                fetches: if is_kept {
                    RowFetches::of(&totals, note.digest, fetched)
                } else {
                    RowFetches::default()
                },
                clock,
                pages,
                span,
                folded: false,
                recycled: 0,
            };
        }
        let time = (note.page & FETCHED != 0).then_some(note.fetched);
        let failed = note.page & FAILED != 0;
        Row {
            page: note.page >> NOTE_BITS,
            cash: note.cash.into(),
            visits: u64::from(note.page & VISITED != 0),
            last_fetch: time.filter(|_| !failed),
            fetches: match note.page & REACHED {
                _ if failed => RowFetches::failure(time),
                0 => RowFetches::default(),
                _ => RowFetches::look(note.digest, time),
            },
            clock,
            pages,
            span,
            folded: false,
            recycled: if note.page & (VISITED | FAILED) == 0 {
                note.cash
            } else {
                0
            },
        }
    }

    /// The rows, sorted by page, joined where the policy allows.
    pub fn run(&mut self) -> impl Iterator<Item = Row> + '_ {
        // Their places are sorted with them, which keeps the order of a page's rows.
        let notes = self.notes.iter().zip(0u64..);
        self.order.clear();
        self.order
            .extend(notes.map(|(note, at)| (note.page >> NOTE_BITS) << AT_BITS | at));
        self.order.sort_unstable();
        Run {
            notes: self,
            taken: 0,
            ahead: Vec::with_capacity(ROWS_AHEAD),
            at: 0,
        }
    }
}

/// Rows put in page order at a time: they are anywhere in memory, and so are waited for together.
const ROWS_AHEAD: usize = 64;

/// The rows of [`Notes`], in page order.
struct Run<'n> {
    notes: &'n Notes,
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
            let end = self.notes.order.len().min(self.taken + ROWS_AHEAD);
            let next = &self.notes.order[self.taken..end];
            let places = next.iter().map(|next| next & ((1 << AT_BITS) - 1));
            self.ahead.clear();
            self.ahead
                .extend(places.map(|at| self.notes.row(at as usize)));
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
            if !self.notes.policy.join(&mut row, &later) {
                break;
            }
            self.at += 1;
        }
        Some(row)
    }
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
