//! Settling from a base: a state that was settled before, and rows of which some changed since.
//!
//! What it takes to bring the state up to the latest rows is the links of the rows that changed, old and new, of pages
//! that own something. Whether that is worth it is decided by numbers of pages, links and units alone, so that the same
//! stream gives the same bytes. In particular a base is left aside if less than half of the pages are its own, if more
//! links changed than there are, or if afterwards more than [`WAITING_MAX`] of all importance waits: from nothing it
//! takes as little then.

use super::{Next, Part, Peers, Settled, Settling, Watch, Workers};
use crate::engine::{Effort, Scores, SettledPages, SettledPagesMut, SettledTotals, ratio_up};
use crate::rank::Options;
use crate::rank::settle::ledger::{HandedOn, Ledger};
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
    /// Calls `write` with what pages of each block have, on so many threads.
    pub(crate) fn as_bases<T: Send>(
        &self,
        threads: usize,
        write: impl Fn(usize, SettledPages<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        self.ledger.places().read(threads, |at, block| {
            let pages = block.settled_pages();
            let unlike = || Error::internal("a base is of pages that are paid alike");
            write(at, pages.ok_or_else(unlike)?)
        })
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

/// Settles, beginning with a base if there is one and it is worth it: one for each block. Also returns what became of it. Of
/// several processes each has the bases of its own blocks, or none has any.
///
/// # Errors
///
/// Those of [`super::settle_parts`]. A base that is of no use, or damaged, is no error: all begins with nothing then.
pub(crate) fn settle_from(
    parts: &[Part<'_>],
    options: &Options,
    bases: Option<&[&dyn Base]>,
    workers: &Workers,
    watch: &mut dyn Watch,
) -> Result<(Option<Settled>, BaseUse)> {
    let from = match bases {
        None => BaseUse::None,
        Some(bases) => match resume(parts, options, bases, workers, watch) {
            Ok(Resumed::Settled(settled)) => return Ok((Some(*settled), BaseUse::Used)),
            Ok(Resumed::LeftAside) => BaseUse::LeftAside,
            Ok(Resumed::Unusable(error)) => BaseUse::Unusable(error),
            Err(error) if workers.peers.processes() == 1 => BaseUse::Unusable(error),
            // The others may be elsewhere by now.
            Err(error) => return Err(error),
        },
    };
    Ok((super::settle_parts(parts, options, workers, watch)?, from))
}

/// How settling from a base ended.
enum Resumed {
    Settled(Box<Settled>),
    /// It is of no use.
    LeftAside,
    /// Something is wrong with it, as all processes know.
    Unusable(Error),
}

/// Bytes of memory a page that [`verify`] takes.
pub(crate) const CHECKING: u64 = super::BYTES + 8;

/// Checks that a base can be read and that its books balance; if `deep`, that its D is the function of X that it is for the
/// rows that it was settled over.
pub(crate) fn verify(parts: &[Part<'_>], bases: &[&dyn Base], deep: bool) -> Result<()> {
    let mut ledger = load(parts, bases, &Workers::threads(1))?;
    ledger.unbalanced()?.map_or(Ok(()), Err)?;
    if deep && !ledger.is_function_of_own(parts)? {
        return Err(Error::internal(
            "it is not of the rows that it was settled over",
        ));
    }
    Ok(())
}

/// Checks that there is a base for each block, of one state.
fn check_fit(parts: &[Part<'_>], bases: &[&dyn Base]) -> Result<SettledTotals> {
    let first = bases.first().filter(|_| bases.len() == parts.len());
    let first = first.ok_or_else(|| Error::internal("there is not a base for each partition"))?;
    for (part, base) in parts.iter().zip(bases) {
        if base.totals() != first.totals() || base.pages() > part.rows.pages() {
            return Err(unfit());
        }
    }
    Ok(*first.totals())
}

fn unfit() -> Error {
    Error::internal("the bases of partitions do not fit together")
}

/// Fills in what the bases say of pages.
fn fill(ledger: &mut Ledger, parts: &[Part<'_>], bases: &[&dyn Base]) -> Result<()> {
    let filled = ledger.each_block(parts, |at, block| {
        let pages = bases[at].pages() as usize;
        bases[at].load(block.first_pages(pages))
    });
    filled.map(drop)
}

/// The state of the bases, for blocks that may have more pages now.
fn load(parts: &[Part<'_>], bases: &[&dyn Base], workers: &Workers) -> Result<Ledger> {
    let totals = check_fit(parts, bases)?;
    let mut ledger = Ledger::resume(&totals, parts, workers)?;
    fill(&mut ledger, parts, bases)?;
    Ok(ledger)
}

/// Gives back what pages handed on over rows that were superseded since the bases, and hands it on over the new ones. Links
/// that were gone over.
fn change(ledger: &mut Ledger, parts: &[Part<'_>], bases: &[&dyn Base]) -> Result<(u64, HandedOn)> {
    let (touched, handed) = ledger.begin_handing_on(parts, |at, block| {
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
    })?;
    Ok((touched.iter().sum(), handed))
}

/// What changed since the bases, and what there is now, in all blocks.
struct Since {
    changed: Changed,
    pages: u64,
    links: u64,
}

impl Since {
    fn of(parts: &[Part<'_>], bases: &[&dyn Base], peers: &Peers) -> Result<Since> {
        let mut sums = [0i128; 4];
        for (part, base) in parts.iter().zip(bases) {
            let changed = base.changed();
            let of_block = [changed.rows, changed.links, part.pages(), part.rows.links()];
            let all = sums.iter_mut().zip(of_block);
            all.for_each(|(sum, value)| *sum += i128::from(value));
        }
        peers.sum(&mut sums)?;
        let [rows, links, pages, all] = sums.map(|sum| u64::try_from(sum).unwrap_or(u64::MAX));
        Ok(Since {
            changed: Changed { rows, links },
            pages,
            links: all,
        })
    }

    /// Returns whether a base of these totals is too far from what there is now, or from what is asked for.
    fn is_too_far(&self, totals: &SettledTotals, options: &Options) -> bool {
        totals.damping != options.damping
            || totals.pages == 0
            || totals.pages > self.pages
            || totals.pages < self.pages.div_ceil(2)
            || self.changed.links > self.links
            || totals.sum < SUM_MIN
    }
}

/// Settles from a base. What each process finds wrong with its own, all know before they go on.
fn resume(
    parts: &[Part<'_>],
    options: &Options,
    bases: &[&dyn Base],
    workers: &Workers,
    watch: &mut dyn Watch,
) -> Result<Resumed> {
    let peers = &workers.peers;
    let first = bases
        .first()
        .map(|base| (*base.totals(), base.own_effort()));
    // As words: one program has written them.
    if !peers.is_same(format!("{first:?}").into_bytes())? {
        return Ok(Resumed::Unusable(unfit()));
    }
    let Some((totals, own)) = first else {
        return Ok(Resumed::LeftAside);
    };
    let since = Since::of(parts, bases, peers)?;
    if since.is_too_far(&totals, options) {
        return Ok(Resumed::LeftAside);
    }
    if let Err(error) = peers.agree(check_fit(parts, bases))? {
        return Ok(Resumed::Unusable(error));
    }
    let mut ledger = Ledger::resume(&totals, parts, workers)?;
    let filled = fill(&mut ledger, parts, bases);
    if let Err(error) = peers.agree(filled)? {
        return Ok(Resumed::Unusable(error));
    }
    let is_same = since.changed.rows == 0 && since.pages == totals.pages;
    while !is_same && ledger.sum() > SUM_MAX {
        ledger.halve(totals.effort.links)?;
    }
    let changed = change(&mut ledger, parts, bases);
    let (touched, handed) = match peers.agree(changed)? {
        Ok(changed) => changed,
        Err(error) => return Ok(Resumed::Unusable(error)),
    };
    let mut touched = [i128::from(touched)];
    peers.sum(&mut touched)?;
    ledger.deliver(handed)?;
    if let Some(error) = ledger.unbalanced()? {
        return Ok(Resumed::Unusable(error));
    }
    let mut settling = Settling::new(ledger, parts)?;
    settling.is_resumed = true;
    settling.progress.links_touched = touched[0] as u64;
    let worth = if is_same {
        Some(settling.weigh_all(None)?)
    } else {
        settling.weigh()?
    };
    let Some(worth) = worth else {
        return Ok(Resumed::LeftAside);
    };
    let waiting = ratio_up(worth.norm(), settling.ledger.sum().unsigned_abs());
    if waiting > WAITING_MAX || worth.norm() > UNITS_MAX {
        return Ok(Resumed::LeftAside);
    }
    // Where nothing changed, nothing moves, however cheap it is.
    let spare = if is_same { 0 } else { options.spare };
    let options = &Options { spare, ..*options };
    let next = settling.look(options, &worth, true, watch)?;
    let is_unmoved = since.changed.rows == 0 && matches!(next, Next::End { .. });
    let settled = settling.run(options, next, watch)?;
    let Some(mut settled) = settled else {
        return Ok(Resumed::LeftAside);
    };
    // From nothing numbers may resolve more.
    if settled.by_itself && !settled.reached {
        return Ok(Resumed::LeftAside);
    }
    if let Some(effort) = own.filter(|effort| is_unmoved && effort.until == options.until) {
        settled.progress.sweeps = effort.sweeps;
        settled.progress.links_touched = effort.links_touched;
    }
    Ok(Resumed::Settled(Box::new(settled)))
}
