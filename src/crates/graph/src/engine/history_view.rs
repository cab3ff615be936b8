//! Data that estimates are computed from, read one chunk of pages at a time.

use super::EngineState;
use super::history::{Admission, AdmissionCursor, Admissions};
use super::ledger::{CHUNK_PAGES, ENDOWMENT, Totals};
use super::runs::Blocks;
use super::window::CashMark;
use crate::Result;

/// Input of an estimate: an engine's memory, or a store's checkpoint.
pub trait HistoryView {
    fn totals(&self) -> &Totals;
    /// Returns the state besides the totals: marks, times, and G at the start of a window of measures.
    fn state(&self) -> &EngineState;
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
}

/// Calls `each` with the first page of each chunk, its cells, and its ages packed two per byte.
pub fn each_chunk(
    view: &dyn HistoryView,
    mut each: impl FnMut(u64, &[u64], &[u8]) -> Result<()>,
) -> Result<()> {
    let pages = view.totals().pages;
    let (mut cells, mut ages) = (Vec::new(), Vec::new());
    for first in (0..pages).step_by(CHUNK_PAGES as usize) {
        let len = CHUNK_PAGES.min(pages - first) as usize;
        cells.resize(len, 0);
        ages.resize(len.div_ceil(2), 0);
        view.chunk(first, &mut cells, &mut ages)?;
        each(first, &cells, &ages)?;
    }
    Ok(())
}

/// Cash of a page at the start of the window, and A at that time.
#[derive(Clone, Copy, Default)]
pub(super) struct WindowBase {
    cash: u64,
    paid: u64,
    /// G at the page's admission, if that was after the mark and the window keeps measures; else 0.
    pub(super) admitted: u128,
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
