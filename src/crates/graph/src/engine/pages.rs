//! Iteration over all pages for an estimate: each with its rows, its cash, and its change since the window began.

use super::history_view::{Bases, CellSweep, HistoryView, WindowBase};
use super::ledger::{Totals, age_at, is_recycled};
use super::mark::CashMark;
use super::row::HistoryRow;
use super::runs::RunReader;
use crate::Result;
use crate::model::Fetches;

/// Totals as of the end of a round.
#[derive(Clone, Copy)]
pub(super) struct RoundEndTotals {
    pub(super) totals: Totals,
    /// Clock, and units received by the virtual page, with the waiting cash counted.
    pub(super) clock: u128,
    pub(super) virtual_received: u128,
}

/// Source of an estimate's pages.
pub(super) struct Ground<'p> {
    pub(super) view: &'p dyn HistoryView,
    pub(super) recycle_after: u8,
    pub(super) totals: Totals,
    /// Mark from which changes are counted, if changes are needed.
    pub(super) base: Option<CashMark>,
    /// Number of the mark before which distributed cash is left out.
    pub(super) mark: u64,
    /// G at the start of a window of measures.
    pub(super) start: u128,
}

/// Page as seen by an estimate.
pub(super) struct EstimatePage<'r> {
    /// Rows of the page, oldest first.
    pub(super) rows: &'r [HistoryRow],
    pub(super) cash: u64,
    /// Part of its cash that the end of a round would recycle: all or nothing.
    pub(super) waiting: u64,
    /// D(now) - D(base): units received over links less units distributed.
    pub(super) change: i128,
    /// G at its admission, if the window keeps measures.
    pub(super) admitted: u128,
}

impl EstimatePage<'_> {
    pub(super) fn fetches(&self) -> Fetches {
        let mut rows = self.rows.iter();
        let mut joined = rows.next().copied().unwrap_or_default();
        rows.for_each(|row| joined.take_visits(row));
        joined.known()
    }
}

/// Iterates over all pages, one chunk at a time.
pub(super) struct EstimatePages<'p> {
    pub(super) ground: Ground<'p>,
    pub(super) rows: RunReader<'p>,
    /// Bases of changes; `None` if changes are not needed.
    pub(super) bases: Option<Bases<'p>>,
    pub(super) sweep: CellSweep<'p>,
    /// First page of the chunk; then cash and base of each of its pages.
    pub(super) first: u64,
    pub(super) cash: Vec<(u64, bool)>,
    pub(super) base: Vec<WindowBase>,
    pub(super) at: usize,
}

impl<'p> EstimatePages<'p> {
    pub(super) fn begin(ground: Ground<'p>) -> Result<EstimatePages<'p>> {
        let view = ground.view;
        let bases = ground.base.as_ref();
        let bases = bases.map(|mark| Bases::new(view, &[mark])).transpose()?;
        Ok(EstimatePages {
            rows: RunReader::new(view.rows(ground.mark, ground.start)?),
            bases,
            ground,
            sweep: CellSweep::new(view),
            first: 0,
            cash: Vec::new(),
            base: Vec::new(),
            at: 0,
        })
    }

    /// Reads the next chunk. Returns its first page.
    pub(super) fn next_block(&mut self) -> Result<Option<u64>> {
        let Some((first, cells, ages)) = self.sweep.next()? else {
            return Ok(None);
        };
        let (paid, after) = (self.ground.totals.paid, self.ground.recycle_after);
        self.base.clear();
        if let Some(bases) = &mut self.bases {
            bases.read(first, cells.len())?;
            self.base.extend(bases.since(0));
        }
        self.cash.clear();
        let pages = cells.iter().zip(0..);
        self.cash.extend(pages.map(|(cell, at)| {
            let recycled = is_recycled(age_at(ages, at), after);
            (cell.wrapping_add(paid), recycled)
        }));
        (self.first, self.at) = (first, 0);
        Ok(Some(first))
    }

    /// Returns the next page of the chunk.
    pub(super) fn next(&mut self) -> Result<Option<EstimatePage<'_>>> {
        let Some(&(cash, recycled)) = self.cash.get(self.at) else {
            return Ok(None);
        };
        let number = self.first + self.at as u64;
        let rows = self.rows.ahead()?;
        let of_page = rows.iter().take_while(|row| row.page == number).count();
        let rows = self.rows.take(of_page);
        let base = self.base.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        Ok(Some(EstimatePage {
            rows,
            cash,
            waiting: if recycled { cash } else { 0 },
            change: base.change(cash, &self.ground.totals),
            admitted: base.admitted,
        }))
    }

    /// Checks after the last page that no rows are left.
    pub(super) fn end(mut self) -> Result<()> {
        match self.rows.ahead()?.first() {
            None => Ok(()),
            Some(row) => Err(crate::Error::internal(format!(
                "the history has a row for page {}, which the ledger does not know",
                row.page
            ))),
        }
    }
}
