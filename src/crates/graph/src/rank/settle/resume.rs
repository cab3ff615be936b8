//! Settling from an earlier state whose rows changed since: a warm start, or an estimate (`near`).
//!
//! Updating the state to the latest rows costs the links of the changed rows, old and new, of pages that own something.
//! The decision to use a state depends on numbers of pages, links and units alone, so that the same stream gives the
//! same bytes. A state is not used if it has less than half of the pages, if more links changed than there are, or if
//! more than [`WAITING_MAX`] of all importance waits after the update: settling from nothing is then as quick.

use super::{NextSweep, Settling, SettlingResult, Watch};
use crate::engine::{Effort, Scores, SettledPages, SettledPagesMut, SettledTotals, ratio_up};
use crate::rank::RankOptions;
use crate::rank::settle::ledger::{SettlingLedger, alone};
use crate::rank::settle::one_store;
use crate::rows::{RowVisitor, Rows, Stop};
use crate::{Error, Result};

/// Smallest sum of X for which there are enough units to distinguish bounds.
const SUM_MIN: i128 = 1 << 50;
/// Sum of X above which units are doubled before anything changes, as the sum mostly grows from one state to the next.
const SUM_MAX: i128 = 1 << 60;
/// Maximum ||K||_1 at the start: see "No number overflows".
const UNITS_MAX: u128 = 1 << 59;
/// Value of ||K||_1 / s above which a state is not used.
const WAITING_MAX: f64 = 0.5;

/// Settled state of earlier rows, and the changes of rows since.
pub trait StartState: Sync {
    fn totals(&self) -> &SettledTotals;

    /// Returns the effort of the state if it covers everything read so far: a settling with nothing to do reports the
    /// same.
    fn own_effort(&self) -> Option<Effort>;

    /// Returns the number of new rows, and of links in these and in the rows that they supersede, for the state's
    /// pages.
    fn changed(&self) -> Changed;

    /// Fills in the numbers of its pages.
    fn load(&self, pages: SettledPagesMut<'_>) -> Result<()>;

    /// Calls `visit` with each row that was superseded since.
    fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;

    /// Calls `visit` with each row that is new since.
    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;
}

/// Changes of rows; see [`StartState::changed`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changed {
    pub rows: u64,
    pub links: u64,
}

impl SettlingResult {
    /// Returns the numbers of all pages; `None` if the teleport is not uniform.
    pub fn settled_pages(&self) -> Option<SettledPages<'_>> {
        self.ledger.block().settled_pages()
    }

    /// Returns the totals of a state to start from, if this settling was not stopped and is usable.
    pub fn state_totals(&self) -> Option<SettledTotals> {
        let totals = SettledTotals {
            pages: self.ledger.pages(),
            damping: self.ledger.damping(),
            sum: self.ledger.sum(),
            virtual_page: self.ledger.virtual_page(),
            strayed: self.ledger.strayed(),
            effort: self.effort(),
        };
        (self.by_itself && totals.sum >= SUM_MIN).then_some(totals)
    }
}

/// Loads the ledger of an earlier state; the rows may have more pages by now.
fn load(rows: &dyn Rows, start: &dyn StartState) -> Result<SettlingLedger> {
    let totals = start.totals();
    let mut ledger = SettlingLedger::resume(totals, rows.pages())?;
    if totals.pages > rows.pages() {
        return Err(Error::internal(
            "an earlier state has pages that there are not",
        ));
    }
    start.load(ledger.block_mut().first_pages(totals.pages as usize))?;
    Ok(ledger)
}

/// Takes back what pages passed on over superseded rows, and passes it on over the new ones. Returns the number of
/// links visited.
fn change(ledger: &mut SettlingLedger, start: &dyn StartState) -> Result<u64> {
    let touched = ledger.hand_on(&mut alone(), |_, block| {
        let mut touched = 0;
        Stop::is_whole(start.old_rows(&mut |row| {
            touched += block.take_back(&row)?;
            Ok(())
        }))?;
        Stop::is_whole(start.new_rows(&mut |row| {
            touched += block.hand_out(&row)?;
            Ok(())
        }))?;
        Ok(touched)
    })?;
    Ok(touched.into_iter().sum())
}

/// Returns true if a state is too far from the present rows, or from what is requested.
fn is_too_far(rows: &dyn Rows, options: &RankOptions, start: &dyn StartState) -> bool {
    let (totals, pages) = (start.totals(), rows.pages());
    totals.damping != options.damping
        || totals.pages == 0
        || totals.pages > pages
        || totals.pages < pages.div_ceil(2)
        || start.changed().links > rows.links()
        || totals.sum < SUM_MIN
}

/// Settles from an earlier state. Returns `None` if it is useless, or if it was stopped before anything was known.
pub fn settle_from(
    rows: &dyn Rows,
    options: &RankOptions,
    start: &dyn StartState,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    if is_too_far(rows, options, start) {
        return Ok(None);
    }
    let (totals, own, changed) = (start.totals(), start.own_effort(), start.changed());
    let mut ledger = load(rows, start)?;
    let is_same = changed.rows == 0 && rows.pages() == totals.pages;
    while !is_same && ledger.sum() > SUM_MAX {
        ledger.halve(&mut alone(), totals.effort.links)?;
    }
    let touched = change(&mut ledger, start)?;
    let mut peers = alone();
    ledger.check_law(&mut peers)?;
    let mut settling = Settling::new(ledger, one_store(rows), &mut peers)?;
    settling.is_resumed = true;
    settling.progress.links_touched = touched;
    let waiting = if is_same {
        Some(settling.weigh_unmoved(None)?)
    } else {
        settling.weigh()?
    };
    let Some(waiting) = waiting else {
        return Ok(None);
    };
    let norm = waiting.all.norm();
    let share = ratio_up(norm, settling.ledger.sum().unsigned_abs());
    if share > WAITING_MAX || norm > UNITS_MAX {
        return Ok(None);
    }
    // If nothing changed, nothing moves, however cheap it is.
    let spare = if is_same { 0 } else { options.spare };
    let options = &RankOptions { spare, ..*options };
    let next = settling.look(options, &waiting, true, watch)?;
    let is_unmoved = changed.rows == 0 && matches!(next, NextSweep::End { .. });
    let Some(mut settled) = settling.run(options, next, watch)? else {
        return Ok(None);
    };
    // Numbers may resolve more when settling from nothing.
    if settled.by_itself && !settled.reached {
        return Ok(None);
    }
    if let Some(effort) = own.filter(|effort| is_unmoved && effort.until == options.until) {
        settled.progress.sweeps = effort.sweeps;
        settled.progress.links_touched = effort.links_touched;
        settled.resumed = effort.resumed;
    }
    Ok(Some(settled))
}
