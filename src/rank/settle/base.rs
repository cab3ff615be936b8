//! Settling from a base: a state that was settled before, and rows of which some changed since.
//!
//! What it takes to bring the state up to the latest rows is the links of the rows that changed, old and new, of pages
//! that own something. Whether that is worth it is decided by numbers of pages, links and units alone, so that the same
//! stream gives the same bytes. In particular a base is left aside if less than half of the pages are its own, if more
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
/// Where it is more than this, units are made larger before anything changes: from one base to the next the sum mostly
/// grows.
const SUM_MAX: i128 = 1 << 60;
/// More units than these never wait at first: see "No number overflows".
const UNITS_MAX: u128 = 1 << 59;
/// ||K||_1 / s from which on a base is left aside.
const WAITING_MAX: f64 = 0.5;

/// What a settled state of earlier rows says of pages, and how their rows changed since.
pub(crate) trait Base: Sync {
    /// Its totals.
    fn totals(&self) -> &SettledTotals;

    /// What it took, if it is a state of all that was read until now: settling that has nothing to do then says the same.
    fn own_effort(&self) -> Option<Effort>;

    /// How many rows are new since, and links of those and of the rows that they supersede, of the base's pages.
    fn changed(&self) -> Changed;

    /// Fills in what its pages have.
    fn load(&self, pages: SettledPagesMut<'_>) -> Result<()>;

    /// Calls `visit` with each row that counted then and was superseded since.
    fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;

    /// Calls `visit` with each row that counts now and did not then.
    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;
}

/// See [`Base::changed`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub rows: u64,
    pub links: u64,
}

/// What became of a base.
#[derive(Debug)]
pub(crate) enum BaseUse {
    /// There was none.
    None,
    /// It was the start.
    Used,
    /// Too much changed since.
    LeftAside,
    /// Something is wrong with it.
    Unusable(Error),
}

impl Settled {
    /// What pages have, if they are paid alike.
    pub(crate) fn settled_pages(&self) -> Option<SettledPages<'_>> {
        self.ledger.block().settled_pages()
    }

    /// The totals of the state to start from another time, if it ended by itself and can be one.
    pub(crate) fn base_totals(&self) -> Option<SettledTotals> {
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

/// Settles, beginning with a base if there is one and it is worth it. Also returns what became of it.
///
/// # Errors
///
/// Those of [`super::settle`]. A base that is of no use, or damaged, is no error: all begins with nothing then.
pub(crate) fn settle_from(
    rows: &dyn Rows,
    options: &Options,
    base: Option<&dyn Base>,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, BaseUse)> {
    let from = match base {
        None => BaseUse::None,
        Some(base) => match resume(rows, options, base, watch) {
            Ok(Some(settled)) => return Ok((Some(settled), BaseUse::Used)),
            Ok(None) => BaseUse::LeftAside,
            Err(error) => BaseUse::Unusable(error),
        },
    };
    Ok((super::settle(rows, options, watch)?, from))
}

/// Bytes of memory a page that [`verify`] takes.
pub(crate) const CHECKING: u64 = super::BYTES + 8;

/// Checks that a base can be read and that its books balance; if `deep`, that its D is the function of X that it is for the
/// rows that it was settled over.
pub(crate) fn verify(rows: &dyn Rows, base: &dyn Base, deep: bool) -> Result<()> {
    let ledger = load(rows, base)?;
    ledger.check_law(&mut alone())?;
    if deep && !ledger.is_function_of_own(rows)? {
        return Err(Error::internal(
            "it is not of the rows that it was settled over",
        ));
    }
    Ok(())
}

/// The state of a base, of rows of which there may be more pages now.
fn load(rows: &dyn Rows, base: &dyn Base) -> Result<Ledger> {
    let totals = base.totals();
    let mut ledger = Ledger::resume(totals, rows.pages())?;
    if totals.pages > rows.pages() {
        return Err(Error::internal("a base has pages that there are not"));
    }
    base.load(ledger.block_mut().first_pages(totals.pages as usize))?;
    Ok(ledger)
}

/// Gives back what pages handed on over rows that were superseded since the base, and hands it on over the new ones. Links
/// that were gone over.
fn change(ledger: &mut Ledger, base: &dyn Base) -> Result<u64> {
    let touched = ledger.hand_on(&mut alone(), |_, block| {
        let mut touched = 0;
        Stop::is_whole(base.old_rows(&mut |row| {
            touched += block.take_back(&row)?;
            Ok(())
        }))?;
        Stop::is_whole(base.new_rows(&mut |row| {
            touched += block.hand_out(&row)?;
            Ok(())
        }))?;
        Ok(touched)
    })?;
    Ok(touched.into_iter().sum())
}

/// Returns whether a base is too far from what there is now, or from what is asked for.
fn is_too_far(rows: &dyn Rows, options: &Options, base: &dyn Base) -> bool {
    let (totals, pages) = (base.totals(), rows.pages());
    totals.damping != options.damping
        || totals.pages == 0
        || totals.pages > pages
        || totals.pages < pages.div_ceil(2)
        || base.changed().links > rows.links()
        || totals.sum < SUM_MIN
}

/// Settles from a base. `None`: it is of no use.
///
/// # Errors
/// Something is wrong with it.
fn resume(
    rows: &dyn Rows,
    options: &Options,
    base: &dyn Base,
    watch: &mut dyn Watch,
) -> Result<Option<Settled>> {
    if is_too_far(rows, options, base) {
        return Ok(None);
    }
    let (totals, own, changed) = (base.totals(), base.own_effort(), base.changed());
    let mut ledger = load(rows, base)?;
    let is_same = changed.rows == 0 && rows.pages() == totals.pages;
    while !is_same && ledger.sum() > SUM_MAX {
        ledger.halve(&mut alone(), totals.effort.links)?;
    }
    let touched = change(&mut ledger, base)?;
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
