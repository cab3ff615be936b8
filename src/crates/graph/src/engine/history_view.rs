//! Data that estimates are computed from, read one chunk of pages at a time.

use super::config::Config;
use super::estimate::measure;
use super::history::{Admission, AdmissionCursor, Admissions};
use super::ledger::{CHUNK_PAGES, ENDOWMENT, Totals, age_at, is_recycled};
use super::row::HistoryRow;
use super::runs::{Blocks, RunReader};
use super::window::{CashMark, TimeTable};
use crate::model::Fetches;
use crate::{Error, Result};

/// Input of an estimate: an engine's memory, or a store's checkpoint.
pub trait HistoryView {
    fn totals(&self) -> &Totals;
    /// Returns the retained marks, oldest first.
    fn marks(&self) -> &[CashMark];
    /// Reads the cells and ages (two per byte) of the chunk that begins with page `first`; slices have its length.
    fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()>;
    /// Reads a mark's cells in the chunk that begins with page `first`.
    fn mark_cells(&self, mark: u64, first: u64, out: &mut [u64]) -> Result<()>;
    /// Returns all admissions, in page order.
    fn admissions(&self) -> Result<Admissions<'_>>;
    /// Returns rows in page order, all rows of a page in one block: one per page unless the window keeps measures.
    /// Leaves out cash distributed before mark `since`, and measures that a window since G = `start` does not need, but
    /// keeps visits and last fetches.
    fn rows(&self, since: u64, start: u128) -> Result<Blocks<'_>>;
    fn times(&self) -> &TimeTable;
    /// Returns G at the start of a window of measures, as of the last end of a round.
    fn window_start(&self) -> u128;
}

/// First page of a chunk, its cells, and its ages packed two per byte.
pub type LedgerChunk<'s> = (u64, &'s [u64], &'s [u8]);

/// Iterates over cells and ages, one chunk at a time.
pub struct CellSweep<'p> {
    view: &'p dyn HistoryView,
    at: u64,
    cells: Vec<u64>,
    ages: Vec<u8>,
}

impl<'p> CellSweep<'p> {
    pub fn new(view: &'p dyn HistoryView) -> CellSweep<'p> {
        CellSweep {
            view,
            at: 0,
            cells: Vec::new(),
            ages: Vec::new(),
        }
    }

    #[allow(clippy::should_implement_trait)] // Lends its buffers.
    pub fn next(&mut self) -> Result<Option<LedgerChunk<'_>>> {
        let first = self.at;
        let len = CHUNK_PAGES.min(self.view.totals().pages - first) as usize;
        if len == 0 {
            return Ok(None);
        }
        self.cells.resize(len, 0);
        self.ages.resize(len.div_ceil(2), 0);
        self.view.chunk(first, &mut self.cells, &mut self.ages)?;
        self.at += len as u64;
        Ok(Some((first, &self.cells, &self.ages)))
    }
}

/// Cash of a page at the start of the window, and A at that time.
#[derive(Clone, Copy, Default)]
pub(super) struct WindowBase {
    cash: u64,
    paid: u64,
    /// G at the page's admission, if that was after the mark and the window keeps measures; else 0.
    admitted: u128,
}

impl WindowBase {
    /// Returns D(now) - D(base), unwrapped: the change of cash less what the virtual page has paid since.
    pub(super) fn change(self, cash_now: u64, totals: &Totals) -> i128 {
        let paid_since = totals.paid.wrapping_sub(self.paid);
        i128::from(cash_now) - i128::from(self.cash) - i128::from(paid_since)
    }
}

/// Bases of the pages of a chunk, for windows that begin at given marks: a page's cell at the mark or, if it was
/// admitted later, its endowment.
pub(super) struct Bases<'p> {
    view: &'p dyn HistoryView,
    /// Marks, each with the cells of the leading pages of the chunk that existed at the mark.
    marks: Vec<(CashMark, Vec<u64>)>,
    admissions: AdmissionCursor<'p>,
    /// Number of pages of the chunk that existed at all marks.
    known: usize,
    /// Admissions of the remaining pages of the chunk.
    admitted: Vec<Admission>,
}

impl<'p> Bases<'p> {
    pub(super) fn new(view: &'p dyn HistoryView, marks: &[&CashMark]) -> Result<Bases<'p>> {
        Ok(Bases {
            view,
            marks: marks.iter().map(|&&mark| (mark, Vec::new())).collect(),
            admissions: AdmissionCursor::new(view.admissions()?),
            known: 0,
            admitted: Vec::new(),
        })
    }

    pub(super) fn read(&mut self, first: u64, len: usize) -> Result<()> {
        self.known = len;
        for (mark, cells) in &mut self.marks {
            let known = mark.totals.pages.saturating_sub(first).min(len as u64);
            cells.resize(known as usize, 0);
            if known > 0 {
                self.view.mark_cells(mark.number, first, cells)?;
            }
            self.known = self.known.min(cells.len());
        }
        self.admitted.clear();
        for page in first + self.known as u64..first + len as u64 {
            self.admitted.push(self.admissions.at(page)?);
        }
        Ok(())
    }

    /// Yields the bases of the chunk's pages for the window that begins at the mark with index `which`.
    pub(super) fn since(&self, which: usize) -> impl Iterator<Item = WindowBase> {
        let (mark, cells) = &self.marks[which];
        let paid = mark.totals.paid;
        let known = cells.iter().map(move |&cell| WindowBase {
            cash: cell.wrapping_add(paid),
            paid,
            admitted: 0,
        });
        let later = self.admitted.iter().skip(cells.len() - self.known);
        known.chain(later.map(|admission| WindowBase {
            cash: ENDOWMENT,
            paid: admission.paid,
            admitted: admission.clock,
        }))
    }
}

/// Page as seen by an estimate.
pub(super) struct EstimatePage<'r> {
    /// Rows of the page, oldest first.
    pub(super) rows: &'r [HistoryRow],
    pub(super) cash: u64,
    /// Part of its cash that the end of a round would recycle: all of it or 0.
    pub(super) waiting: u64,
    /// D(now) - D(base): units received over links less units distributed.
    pub(super) change: i128,
    /// G at its admission, if the window keeps measures.
    pub(super) admitted: u128,
}

impl EstimatePage<'_> {
    /// Returns the cash distributed in the window, if the page has one row.
    pub(super) fn distributed(&self) -> u128 {
        self.rows.first().map_or(0, |row| row.cash)
    }

    pub(super) fn fetches(&self) -> Fetches {
        let mut rows = self.rows.iter();
        let mut joined = rows.next().copied().unwrap_or_default();
        rows.for_each(|row| joined.take_visits(row));
        joined.known()
    }
}

/// Passes the result of `take` for each page to `each`, in blocks of at most [`CHUNK_PAGES`] with the first page of
/// each block. `since` is the mark from which changes are counted and before which distributed cash is left out, `start`
/// is G at the start of a window of measures. Returns the number of measures read.
pub(super) fn walk<T>(
    view: &dyn HistoryView,
    config: &Config,
    (since, start): (CashMark, u128),
    mut take: impl FnMut(&EstimatePage<'_>) -> T,
    mut each: impl FnMut(u64, &mut Vec<T>) -> Result<()>,
) -> Result<u64> {
    let (is_measure, totals) = (measure(config), view.totals());
    let mut rows = RunReader::new(view.rows(since.number, start)?);
    let mut bases = Bases::new(view, &[&since])?;
    let mut sweep = CellSweep::new(view);
    let (mut measures, mut taken) = (0, Vec::new());
    while let Some((first, cells, ages)) = sweep.next()? {
        bases.read(first, cells.len())?;
        taken.clear();
        for ((at, cell), base) in cells.iter().enumerate().zip(bases.since(0)) {
            let page = first + at as u64;
            let ahead = rows.ahead()?.iter();
            let of_page = ahead.take_while(|row| row.page == page).count();
            let rows = rows.take(of_page);
            measures += rows.iter().filter(|row| is_measure(row)).count() as u64;
            let cash = cell.wrapping_add(totals.paid);
            let waits = is_recycled(age_at(ages, at as u64), config.recycle_after);
            taken.push(take(&EstimatePage {
                rows,
                cash,
                waiting: if waits { cash } else { 0 },
                change: base.change(cash, totals),
                admitted: base.admitted,
            }));
        }
        each(first, &mut taken)?;
    }
    match rows.ahead()?.first() {
        None => Ok(measures),
        Some(row) => Err(Error::internal(format!(
            "the history has a row for page {}, which the ledger does not know",
            row.page
        ))),
    }
}
