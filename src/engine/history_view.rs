//! The data that estimates are made from, read a chunk of pages at a time.

use super::accounts::CHUNK_PAGES;
use super::history::{Admission, AdmissionCursor, Admissions};
use super::ledger::{ENDOWMENT, Totals};
use super::mark::Mark;
use super::runs::Blocks;
use super::window::TimeTable;
use crate::Result;

/// The data of an estimate: an engine's memory, or a store's checkpoint.
pub trait HistoryView {
    /// The ledger's totals now.
    fn totals(&self) -> &Totals;
    /// The retained marks, oldest first.
    fn marks(&self) -> &[Mark];
    /// Reads chunk `first / CHUNK_PAGES`: cells, and ages two a byte. `first` begins a chunk, and
    /// the slices are as long as the chunk is.
    fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()>;
    /// Reads a mark's cells of the chunk that begins with page `first`.
    fn mark_cells(&self, mark: u64, first: u64, out: &mut [u64]) -> Result<()>;
    /// All admissions, in page order.
    fn admissions(&self) -> Result<Admissions<'_>>;
    /// Rows in page order, one a page unless the window keeps measures; all of a page in one block. Cash distributed before mark
    /// `since` is left out, and measures that a window since G = `start` does not want; visits and last
    /// fetches are not.
    fn rows(&self, since: u64, start: u128) -> Result<Blocks<'_>>;
    /// Which time was at which G.
    fn times(&self) -> &TimeTable;
    /// G where a window of measures began at the last round's end.
    fn window_start(&self) -> u128;
}

/// A chunk's first page, its cells, and its ages two a byte.
pub(crate) type LedgerChunk<'s> = (u64, &'s [u64], &'s [u8]);

/// Walks over cells and ages, a chunk at a time.
pub(crate) struct Sweep<'p> {
    pub(super) view: &'p dyn HistoryView,
    pub(super) at: u64,
    pub(super) cells: Vec<u64>,
    pub(super) ages: Vec<u8>,
}

impl<'p> Sweep<'p> {
    pub fn new(view: &'p dyn HistoryView) -> Sweep<'p> {
        Sweep {
            view,
            at: 0,
            cells: Vec::new(),
            ages: Vec::new(),
        }
    }

    /// The next chunk.
    #[allow(clippy::should_implement_trait)] // It lends.
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

/// A page's cash at the window's beginning, and A then.
#[derive(Clone, Copy, Default)]
pub(super) struct Base {
    pub(super) cash: u64,
    pub(super) paid: u64,
    /// G at its admission, if that was after the mark and the window keeps measures; else 0.
    pub(super) admitted: u128,
}

impl Base {
    /// D(now) - D(base), unwrapped: the change of cash less what the virtual page paid since.
    pub(super) fn change(self, cash_now: u64, totals: &Totals) -> i128 {
        let paid_since = totals.paid.wrapping_sub(self.paid);
        i128::from(cash_now) - i128::from(self.cash) - i128::from(paid_since)
    }
}

/// The bases of a chunk's pages, for windows that begin at some marks: a page's cell at the mark or, if it
/// was admitted later, its endowment.
pub(super) struct Bases<'p> {
    pub(super) view: &'p dyn HistoryView,
    /// The marks, each with the cells of those pages of the chunk that it knows: the first ones.
    pub(super) marks: Vec<(Mark, Vec<u64>)>,
    pub(super) admissions: AdmissionCursor<'p>,
    /// Pages of the chunk that all marks know.
    pub(super) known: usize,
    /// The admissions of the others.
    pub(super) admitted: Vec<Admission>,
}

impl<'p> Bases<'p> {
    pub(super) fn new(view: &'p dyn HistoryView, marks: &[&Mark]) -> Result<Bases<'p>> {
        Ok(Bases {
            view,
            marks: marks.iter().map(|&&mark| (mark, Vec::new())).collect(),
            admissions: AdmissionCursor::new(view.admissions()?),
            known: 0,
            admitted: Vec::new(),
        })
    }

    /// Goes on to the chunk of `len` pages that begins with page `first`.
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

    /// Those of the chunk's pages, for the window that begins at one of the marks.
    pub(super) fn since(&self, which: usize) -> impl Iterator<Item = Base> {
        let (mark, cells) = &self.marks[which];
        let paid = mark.totals.paid;
        let known = cells.iter().map(move |&cell| Base {
            cash: cell.wrapping_add(paid),
            paid,
            admitted: 0,
        });
        let later = self.admitted.iter().skip(cells.len() - self.known);
        known.chain(later.map(|admission| Base {
            cash: ENDOWMENT,
            paid: admission.paid,
            admitted: admission.clock,
        }))
    }
}
