//! Settling from an earlier state whose rows changed since: a warm start, or an estimate (`near`).
//!
//! Updating the state to the latest rows costs the links of the changed rows, old and new, of pages that own something.
//! The decision to use a state depends on numbers of pages, links and units alone, so that the same stream gives the
//! same bytes. A state is not used if it has less than half of the pages, if more links changed than there are, or if
//! more than [`WAITING_MAX`] of all importance waits after the update: settling from nothing is then as quick.

use super::ledger::{LedgerTotals, Waiting};
use super::{Settling, SettlingResult, Watch};
use crate::Result;
use crate::engine::{Effort, Scores, SettledPages, SettledPagesMut, SettledTotals, ratio_up};
use crate::rank::peers::OneProcess;
use crate::rank::settle::one_store;
use crate::rank::{RankOptions, Teleport};
use crate::rows::{RowVisitor, Rows, Stop};

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
        self.blocks[0].settled_pages()
    }

    /// Returns the totals of a state to start from, if this settling was not stopped and is usable.
    pub fn state_totals(&self) -> Option<SettledTotals> {
        let totals = SettledTotals {
            pages: self.totals.pages,
            damping: self.totals.damping,
            sum: self.totals.sum,
            virtual_page: self.totals.virtual_page,
            strayed: self.totals.strayed,
            effort: self.effort(),
        };
        (self.by_itself && totals.sum >= SUM_MIN).then_some(totals)
    }
}

impl Settling<'_> {
    /// Halves numbers until their sum leaves room for it to grow. `links` is the number of links of the state's rows.
    pub(super) fn make_room(&mut self, links: u64) -> Result<()> {
        while self.totals.sum > SUM_MAX {
            self.halve(links)?;
        }
        Ok(())
    }

    /// Returns true if so little waits that settling from the present state is quicker than from nothing.
    pub(super) fn is_near(&self, waiting: &Waiting) -> bool {
        let norm = waiting.all.norm();
        let share = ratio_up(norm, self.totals.sum.unsigned_abs());
        share <= WAITING_MAX && norm <= UNITS_MAX
    }
}

/// Returns true if a state of the first `known` pages, whose X sum to `sum`, is worth settling from.
pub(super) fn is_useful(rows: &dyn Rows, known: u64, sum: i128) -> bool {
    let pages = rows.pages();
    known > 0 && known <= pages && known >= pages.div_ceil(2) && sum >= SUM_MIN
}

/// Settles from an earlier state. Returns `None` if it is useless, or if it was stopped before anything was known.
pub fn settle_from(
    rows: &dyn Rows,
    options: &RankOptions,
    start: &dyn StartState,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    let (totals, changed, pages) = (start.totals(), start.changed(), rows.pages());
    if totals.damping != options.damping
        || !is_useful(rows, totals.pages, totals.sum)
        || changed.links > rows.links()
    {
        return Ok(None);
    }
    let mut peers = OneProcess::new(1);
    let (shards, uniform) = (one_store(rows), Teleport::default());
    let mut settling = Settling::new(shards, pages, totals.damping, &uniform, &mut peers)?;
    settling.is_resumed = true;
    settling.totals = LedgerTotals {
        sum: totals.sum,
        virtual_page: totals.virtual_page,
        strayed: totals.strayed,
        is_first_sweep: false,
        ..settling.totals
    };
    start.load(settling.blocks[0].first_pages(totals.pages as usize))?;
    let is_same = changed.rows == 0 && pages == totals.pages;
    if !is_same {
        settling.make_room(totals.effort.links)?;
    }
    let touched = settling.hand_on(|_, block| {
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
    settling.progress.links_touched = touched.iter().sum();
    settling.check_law()?;
    let waiting = if is_same {
        Some(settling.weigh(None)?)
    } else {
        settling.end_sweep()?
    };
    let Some(waiting) = waiting.filter(|waiting| settling.is_near(waiting)) else {
        return Ok(None);
    };
    // If nothing changed, nothing moves, however cheap it is.
    let spare = if is_same { 0 } else { options.spare };
    let options = &RankOptions { spare, ..*options };
    let next = settling.look(options, &waiting, true, watch)?;
    let is_unmoved = changed.rows == 0 && next.is_none();
    let Some(mut settled) = settling.run(options, next, watch)? else {
        return Ok(None);
    };
    let own = start.own_effort().filter(|own| own.until == options.until);
    if let Some(effort) = own.filter(|_| is_unmoved) {
        settled.progress.sweeps = effort.sweeps;
        settled.progress.links_touched = effort.links_touched;
        settled.resumed = effort.resumed;
    }
    Ok(Some(settled))
}
