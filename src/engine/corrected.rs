//! What the correction ledger says of importance. See [`super::correction`] for its certificate.
//!
//! As at a round's end: what waits at pages without links is counted as settled. The ledger itself is
//! left alone.

use super::accounts::CHUNK_PAGES;
use super::correction::{Arrays, CorrectionTotals, check_law, has_no_links};
use super::estimate::{Past, ratio_up};
use crate::Result;

/// The totals as at a round's end, and how far Y is from X.
#[derive(Clone, Copy)]
pub(super) struct Corrected {
    /// s and, of each estimate, what is missing for it where a page's would be below 0.
    sum: i128,
    received_below: u128,
    distributed_below: u128,
    /// T / pages, rounded down: now, and as at a round's end.
    each: i64,
    virtual_each: f64,
    /// r.
    pub residual: f64,
    /// e.
    pub error: f64,
}

impl Corrected {
    /// Goes through all pages. `None`: the ledger has nothing yet.
    pub fn find(past: &dyn Past) -> Result<Option<Corrected>> {
        let totals: &CorrectionTotals = match past.correction() {
            Some(totals) if totals.sum > 0 => totals,
            _ => return Ok(None),
        };
        let pages = past.totals().pages.max(1);
        let each = totals.each(pages);
        let mut settled = 0i128;
        sweep(past, |cells| {
            let waiting = |(account, row): (&u64, &u64)| match has_no_links(*row) {
                true => i128::from(*account as i64) + i128::from(each),
                false => 0,
            };
            let pages = cells.accounts.iter().zip(&cells.rows);
            settled += pages.map(waiting).sum::<i128>();
        })?;
        let (sum, virtual_page) = (totals.sum + settled, totals.virtual_page + settled);
        if sum <= 0 {
            return Ok(None);
        }
        // |D + T/pages|, with T/pages = whole + rest/pages: the rest adds at most `rest` units in all.
        let whole = virtual_page.div_euclid(i128::from(pages));
        let mut waits = virtual_page.rem_euclid(i128::from(pages)).unsigned_abs();
        let (mut received_below, mut distributed_below) = (0, 0);
        let below = |units: i128| units.min(0).unsigned_abs();
        sweep(past, |cells| {
            let pages = cells.accounts.iter().zip(&cells.own).zip(&cells.rows);
            for ((account, own), row) in pages {
                let mut account = i128::from(*account as i64);
                let mut own = i128::from(*own as i64);
                if has_no_links(*row) {
                    let units = account + i128::from(each);
                    (account, own) = (account - units, own + units);
                }
                waits += (account + whole).unsigned_abs();
                received_below += below(own + account + whole);
                distributed_below += below(own);
            }
        })?;
        let all = sum.unsigned_abs();
        Ok(Some(Corrected {
            sum,
            received_below,
            distributed_below,
            each,
            virtual_each: virtual_page as f64 / pages as f64,
            residual: ratio_up(waits, all),
            error: ratio_up(2 * totals.rounding + totals.stale, all),
        }))
    }

    /// (received, distributed) of each page of a chunk. Where links are stale a page may owe more than
    /// it owns: then it has none, and the others a little less. That takes no estimate further from
    /// PageRank, which is nowhere below 0.
    pub fn estimates(&self, cells: &Arrays<Vec<u64>>, out: &mut Vec<(f64, f64)>) {
        let received_sum = self.sum as f64 + self.received_below as f64;
        let distributed_sum = self.sum as f64 + self.distributed_below as f64;
        out.clear();
        let pages = cells.accounts.iter().zip(&cells.own).zip(&cells.rows);
        out.extend(pages.map(|((account, own), row)| {
            let account = i128::from(*account as i64);
            let own = i128::from(*own as i64);
            let settled = match has_no_links(*row) {
                true => own + account + i128::from(self.each),
                false => own,
            };
            let received = (own + account) as f64 + self.virtual_each;
            (
                received.max(0.0) / received_sum,
                settled.max(0) as f64 / distributed_sum,
            )
        }));
    }
}

/// Reads the chunk that begins with page `first`, of so many pages.
pub(super) fn read(
    past: &dyn Past,
    first: u64,
    len: usize,
    cells: &mut Arrays<Vec<u64>>,
) -> Result<()> {
    for array in [&mut cells.accounts, &mut cells.own, &mut cells.rows] {
        array.resize(len, 0);
    }
    past.correction_chunk(
        first,
        Arrays {
            accounts: &mut cells.accounts[..],
            own: &mut cells.own[..],
            rows: &mut cells.rows[..],
        },
    )
}

/// Checks the correction ledger's law over all pages: the inner error says by how much it fails.
pub(crate) fn corrections_law(
    past: &dyn Past,
    totals: &CorrectionTotals,
) -> Result<std::result::Result<(), String>> {
    let (mut accounts, mut own) = (0, 0);
    let sum =
        |values: &[u64]| -> i128 { values.iter().map(|&value| i128::from(value as i64)).sum() };
    sweep(past, |cells| {
        accounts += sum(&cells.accounts);
        own += sum(&cells.own);
    })?;
    Ok(check_law(accounts, own, totals))
}

/// Walks over all pages, a chunk at a time.
fn sweep(past: &dyn Past, mut each: impl FnMut(&Arrays<Vec<u64>>)) -> Result<()> {
    let pages = past.totals().pages;
    let mut cells = Arrays::default();
    for first in (0..pages).step_by(CHUNK_PAGES as usize) {
        let len = CHUNK_PAGES.min(pages - first) as usize;
        read(past, first, len, &mut cells)?;
        each(&cells);
    }
    Ok(())
}
