//! Settling from an earlier state, whose rows changed since: a warm start, or an estimate (`near`).
//!
//! What it takes to bring the state up to the latest rows is the links of the rows that changed, old and new, of pages
//! that own something. Whether that is worth it is decided by numbers of pages, links and units alone, so that the same
//! stream gives the same bytes. In particular a state is not used if less than half of the pages are its own, if more
//! links changed than there are, or if afterwards more than [`WAITING_MAX`] of all importance waits: from nothing it
//! takes as little then.

use super::{Next, Settled, Settling, Watch};
use crate::engine::{Effort, Scores, SettledPages, SettledPagesMut, SettledTotals, ratio_up};
use crate::rank::Options;
use crate::rank::settle::ledger::{Ledger, alone};
use crate::rank::settle::one_store;
use crate::rows::{RowVisitor, Rows, Stop};
use crate::{Error, Result};

/// X of all pages together is not less than this, so that there are enough units to tell bounds.
const SUM_MIN: i128 = 1 << 50;
/// Where it is more than this, units are made larger before anything changes: from one state to the next the sum mostly
/// grows.
const SUM_MAX: i128 = 1 << 60;
/// More units than these never wait at first: see "No number overflows".
const UNITS_MAX: u128 = 1 << 59;
/// ||K||_1 / s above which a state is not used.
const WAITING_MAX: f64 = 0.5;

/// What a settled state of earlier rows says of pages, and how their rows changed since.
pub(crate) trait StartState: Sync {
    /// Its totals.
    fn totals(&self) -> &SettledTotals;

    /// What it took, if it is a state of all that was read until now: settling that has nothing to do then says the same.
    fn own_effort(&self) -> Option<Effort>;

    /// How many rows are new since, and links of those and of the rows that they supersede, of the state's pages.
    fn changed(&self) -> Changed;

    /// Fills in what its pages have.
    fn load(&self, pages: SettledPagesMut<'_>) -> Result<()>;

    /// Calls `visit` with each row that counted then and was superseded since.
    fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;

    /// Calls `visit` with each row that counts now and did not then.
    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;
}

/// See [`StartState::changed`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub rows: u64,
    pub links: u64,
}

impl Settled {
    /// What pages have, if they are paid alike.
    pub(crate) fn settled_pages(&self) -> Option<SettledPages<'_>> {
        self.ledger.block().settled_pages()
    }

    /// The totals of the state to start from another time, if it ended by itself and can be one.
    pub(crate) fn state_totals(&self) -> Option<SettledTotals> {
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

/// The ledger of an earlier state, of rows of which there may be more pages now.
fn load(rows: &dyn Rows, start: &dyn StartState) -> Result<Ledger> {
    let totals = start.totals();
    let mut ledger = Ledger::resume(totals, rows.pages())?;
    if totals.pages > rows.pages() {
        return Err(Error::internal(
            "an earlier state has pages that there are not",
        ));
    }
    start.load(ledger.block_mut().first_pages(totals.pages as usize))?;
    Ok(ledger)
}

/// Gives back what pages handed on over rows that were superseded since, and hands it on over the new ones. Links
/// that were gone over.
fn change(ledger: &mut Ledger, start: &dyn StartState) -> Result<u64> {
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

/// Returns whether a state is too far from what there is now, or from what is asked for.
fn is_too_far(rows: &dyn Rows, options: &Options, start: &dyn StartState) -> bool {
    let (totals, pages) = (start.totals(), rows.pages());
    totals.damping != options.damping
        || totals.pages == 0
        || totals.pages > pages
        || totals.pages < pages.div_ceil(2)
        || start.changed().links > rows.links()
        || totals.sum < SUM_MIN
}

/// Settles from an earlier state. `None`: it is of no use, or it was over before anything was known.
///
/// # Errors
/// Something is wrong with it, or with the rows.
pub(crate) fn settle_from(
    rows: &dyn Rows,
    options: &Options,
    start: &dyn StartState,
    watch: &mut dyn Watch,
) -> Result<Option<Settled>> {
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
    // Where nothing changed, nothing moves, however cheap it is.
    let spare = if is_same { 0 } else { options.spare };
    let options = &Options { spare, ..*options };
    let next = settling.look(options, &waiting, true, watch)?;
    let is_unmoved = changed.rows == 0 && matches!(next, Next::End { .. });
    let Some(mut settled) = settling.run(options, next, watch)? else {
        return Ok(None);
    };
    // From nothing numbers may resolve more.
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
