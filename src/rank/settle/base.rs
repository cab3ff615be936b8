//! Settling from a base: a state that was settled before, and rows of which some changed since.
//!
//! What it takes to bring the state up to the latest rows is the links of the rows that changed, old and new, of pages
//! that own something. Whether that is worth it is decided by numbers of pages, links and units alone, so that the same
//! stream gives the same bytes. In particular a base is left aside if less than half of the pages are its own, if more
//! links changed than there are, or if afterwards more than [`WAITING_MAX`] of all importance waits: from nothing it
//! takes as little then.

use super::{Next, Part, Settled, Settling, Watch, Workers};
use crate::engine::{Effort, Scores, SettledPages, SettledPagesMut, SettledTotals, ratio_up};
use crate::rank::Options;
use crate::rank::settle::ledger::Ledger;
use crate::rows::{RowVisitor, Stop};
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

/// What a settled state of earlier rows says of a block of pages, and how the rows of these changed since.
pub(crate) trait Base: Sync {
    /// The totals of all blocks: the same for each.
    fn totals(&self) -> &SettledTotals;

    /// Pages of the block then, ghosts among them.
    fn pages(&self) -> u64 {
        self.totals().pages
    }

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
    /// The state of a block to start from another time, if it ended by itself and can be one.
    pub(crate) fn as_base(&self, block: usize) -> Option<(SettledTotals, SettledPages<'_>)> {
        let pages = self
            .ledger
            .settled_pages(block)
            .filter(|_| self.by_itself)?;
        let totals = SettledTotals {
            pages: self.ledger.pages(),
            damping: self.ledger.damping(),
            sum: self.ledger.sum(),
            virtual_page: self.ledger.virtual_page(),
            strayed: self.ledger.strayed(),
            effort: self.effort(),
        };
        (totals.sum >= SUM_MIN).then_some((totals, pages))
    }
}

/// Settles, beginning with a base if there is one and it is worth it: one for each block. Also returns what became of it.
///
/// # Errors
///
/// Those of [`super::settle_parts`]. A base that is of no use, or damaged, is no error: all begins with nothing then.
pub(crate) fn settle_from(
    parts: &[Part<'_>],
    options: &Options,
    bases: Option<&[&dyn Base]>,
    threads: usize,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, BaseUse)> {
    let workers = &Workers::threads(threads);
    let from = match bases {
        None => BaseUse::None,
        Some(bases) => match resume(parts, options, bases, workers, watch) {
            Ok(Some(settled)) => return Ok((Some(settled), BaseUse::Used)),
            Ok(None) => BaseUse::LeftAside,
            Err(error) => BaseUse::Unusable(error),
        },
    };
    Ok((super::settle_parts(parts, options, workers, watch)?, from))
}

/// Bytes of memory a page that [`verify`] takes.
pub(crate) const CHECKING: u64 = super::BYTES + 8;

/// Checks that a base can be read and that its books balance; if `deep`, that its D is the function of X that it is for the
/// rows that it was settled over.
pub(crate) fn verify(parts: &[Part<'_>], bases: &[&dyn Base], deep: bool) -> Result<()> {
    let mut ledger = load(parts, bases, &Workers::threads(1))?;
    ledger.check_law()?;
    if deep && !ledger.is_function_of_own(parts)? {
        return Err(Error::internal(
            "it is not of the rows that it was settled over",
        ));
    }
    Ok(())
}

/// The state of the bases, for blocks that may have more pages now.
fn load(parts: &[Part<'_>], bases: &[&dyn Base], workers: &Workers) -> Result<Ledger> {
    let first = bases.first().filter(|_| bases.len() == parts.len());
    let first = first.ok_or_else(|| Error::internal("there is not a base for each partition"))?;
    let mut ledger = Ledger::resume(first.totals(), parts, workers)?;
    for (part, base) in parts.iter().zip(bases) {
        if base.totals() != first.totals() || base.pages() > part.rows.pages() {
            return Err(Error::internal(
                "the bases of partitions do not fit together",
            ));
        }
    }
    let loaded = ledger.each_block(|at, block| {
        let pages = bases[at].pages() as usize;
        bases[at].load(block.first_pages(pages))
    });
    loaded.into_iter().collect::<Result<()>>()?;
    Ok(ledger)
}

/// Settles from a base. `None`: it is of no use.
fn resume(
    parts: &[Part<'_>],
    options: &Options,
    bases: &[&dyn Base],
    workers: &Workers,
    watch: &mut dyn Watch,
) -> Result<Option<Settled>> {
    let Some(base) = bases.first() else {
        return Ok(None);
    };
    let totals = base.totals();
    let changed = bases.iter().map(|base| base.changed());
    let changed = changed.fold(Changed::default(), |all, block| Changed {
        rows: all.rows + block.rows,
        links: all.links + block.links,
    });
    let pages: u64 = parts.iter().map(Part::pages).sum();
    let links: u64 = parts.iter().map(|part| part.rows.links()).sum();
    if totals.damping != options.damping
        || totals.pages == 0
        || totals.pages > pages
        || totals.pages < pages.div_ceil(2)
        || changed.links > links
        || totals.sum < SUM_MIN
    {
        return Ok(None);
    }
    let mut ledger = load(parts, bases, workers)?;
    let is_same = changed.rows == 0 && pages == totals.pages;
    while !is_same && ledger.sum() > SUM_MAX {
        ledger.halve(totals.effort.links)?;
    }
    let touched = ledger.each_block(|at, block| {
        let mut touched = 0;
        Stop::is_whole(bases[at].old_rows(&mut |row| {
            touched += block.take_back(&row)?;
            Ok(())
        }))?;
        Stop::is_whole(bases[at].new_rows(&mut |row| {
            touched += block.hand_out(&row)?;
            Ok(())
        }))?;
        Ok(touched)
    });
    let touched = touched.into_iter().sum::<Result<u64>>()?;
    ledger.exchange()?;
    ledger.check_law()?;
    let mut settling = Settling::new(ledger, parts)?;
    settling.is_resumed = true;
    settling.progress.links_touched = touched;
    let worth = if is_same {
        Some(settling.weigh_all()?)
    } else {
        settling.weigh()?
    };
    let Some(worth) = worth else {
        return Ok(None);
    };
    let waiting = ratio_up(worth.norm(), settling.ledger.sum().unsigned_abs());
    if waiting > WAITING_MAX || worth.norm() > UNITS_MAX {
        return Ok(None);
    }
    // Where nothing changed, nothing moves, however cheap it is.
    let spare = if is_same { 0 } else { options.spare };
    let options = &Options { spare, ..*options };
    let next = settling.look(options, &worth, true, watch)?;
    let is_unmoved = changed.rows == 0 && matches!(next, Next::End { .. });
    let settled = settling.run(options, next, watch)?;
    let Some(mut settled) = settled else {
        return Ok(None);
    };
    // From nothing numbers may resolve more.
    if settled.by_itself && !settled.reached {
        return Ok(None);
    }
    let own = base.own_effort();
    if let Some(effort) = own.filter(|effort| is_unmoved && effort.until == options.until) {
        settled.progress.sweeps = effort.sweeps;
        settled.progress.links_touched = effort.links_touched;
    }
    Ok(Some(settled))
}
