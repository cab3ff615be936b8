//! Settling from an earlier state (a warm start), or from an estimate of importance.
//!
//! **Warm start.** Updating the state to the latest rows costs the old and new links of the changed rows of pages with
//! X other than 0. Whether a state is used depends on numbers of pages, links and units alone, so that the same stream
//! gives the same bytes. A state is not used if it has less than half of the pages, if more links changed than there
//! are, or if more than [`WAITING_MAX`] of all importance waits after the update: settling from nothing is then as
//! quick.
//!
//! **Estimate**, such as a published ranking. X is the estimate in whole units, and one sweep computes D as the
//! function of X and the rows. The estimate may be wrong, or belong to other rows or another damping: the certificate
//! does not depend on it.

use super::block::{LedgerBlock, SUPPLY};
use super::settling::LedgerTotals;
use super::worth::LevelHistogram;
use super::{Settling, SettlingResult, Watch};
use crate::Result;
use crate::engine::{Effort, SettledPages, SettledPagesMut, SettledTotals, ratio_up};
use crate::rank::peers::OneProcess;
use crate::rank::{RankOptions, Teleport};
use crate::rows::{RowVisitor, Rows, Stop};

/// Smallest sum of X for which there are enough units to distinguish bounds.
const SUM_MIN: i128 = 1 << 50;
/// Sum of X above which units are doubled before rows change, as the sum mostly grows from one state to the next.
const SUM_MAX: i128 = 1 << 60;
/// Maximum ||K||_1 at the start: see "No number overflows".
const UNITS_MAX: u128 = 1 << 59;
/// Value of ||K||_1 / s above which a state is not used.
const WAITING_MAX: f64 = 0.5;

/// Settled state of earlier rows, and the changes of rows since.
pub trait StartState: Sync {
    fn totals(&self) -> &SettledTotals;
    /// Returns the effort of the state if it covers everything read, which a settling with nothing to do reports.
    fn own_effort(&self) -> Option<Effort>;
    /// Returns the numbers of new rows and of links in new and superseded rows, for the state's pages.
    fn changed(&self) -> (u64, u64);
    /// Fills in the numbers of the state's pages.
    fn load(&self, pages: SettledPagesMut<'_>) -> Result<()>;
    /// Calls `visit` with each row superseded since the state was made.
    fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;
    /// Calls `visit` with each row added since the state was made.
    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;
}

impl SettlingResult {
    /// Returns the numbers of all pages; `None` if the teleport is not uniform.
    pub fn settled_pages(&self) -> Option<SettledPages<'_>> {
        self.block.settled_pages()
    }

    /// Returns the totals of a state to start from, if this settling was not stopped and is usable.
    pub fn state_totals(&self) -> Option<SettledTotals> {
        let totals = SettledTotals {
            pages: self.totals.pages,
            damping: self.totals.damping,
            sum: self.totals.sum,
            virtual_page: self.totals.virtual_page,
            strayed: self.totals.strayed,
            effort: self.effort,
        };
        (self.by_itself && totals.sum >= SUM_MIN).then_some(totals)
    }
}

impl Settling<'_> {
    /// Halves numbers until the sum of X may grow. `links` is the number of links of the state's rows.
    fn make_room(&mut self, links: u64) -> Result<()> {
        while self.totals.sum > SUM_MAX {
            self.halve(links)?;
        }
        Ok(())
    }

    /// Calls `update` with the block, which may pass something on, and counts the links that it returns.
    fn update(&mut self, update: impl Fn(&mut LedgerBlock) -> Result<u64> + Sync) -> Result<()> {
        let touched = self.hand_on(|_, block| update(block))?;
        self.progress.links_touched = touched.iter().sum();
        Ok(())
    }

    /// Settles from the current state; returns `None` if settling from nothing is as quick.
    fn resume(
        mut self,
        waiting: Option<LevelHistogram>,
        options: &RankOptions,
        watch: &mut dyn Watch,
    ) -> Result<Option<SettlingResult>> {
        let is_near = |waiting: &LevelHistogram| {
            let norm = waiting.norm();
            let share = ratio_up(norm, self.totals.sum.unsigned_abs());
            share <= WAITING_MAX && norm <= UNITS_MAX
        };
        let Some(waiting) = waiting.filter(is_near) else {
            return Ok(None);
        };
        let next = self.look(options, &waiting, true, watch)?;
        self.run_one(options, next, watch)
    }
}

/// Returns true if a state of the first `known` pages, whose X sum to `sum`, is worth settling from.
fn is_useful(rows: &dyn Rows, known: u64, sum: i128) -> bool {
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
    let (totals, pages) = (start.totals(), rows.pages());
    let (changed_rows, changed_links) = start.changed();
    if totals.damping != options.damping
        || !is_useful(rows, totals.pages, totals.sum)
        || changed_links > rows.links()
    {
        return Ok(None);
    }
    let mut peers = OneProcess::new(1);
    let uniform = Teleport::default();
    let mut settling = Settling::of_store(rows, totals.damping, &uniform, &mut peers)?;
    settling.is_resumed = true;
    settling.totals = LedgerTotals {
        sum: totals.sum,
        virtual_page: totals.virtual_page,
        strayed: totals.strayed,
        is_first_sweep: false,
        ..settling.totals
    };
    start.load(settling.blocks[0].first_pages(totals.pages as usize))?;
    let is_same = changed_rows == 0 && pages == totals.pages;
    if !is_same {
        settling.make_room(totals.effort.links)?;
    }
    settling.update(|block| {
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
    let waiting = if is_same {
        Some(settling.weigh(None)?.0)
    } else {
        settling.end_sweep()?
    };
    // If nothing changed, nothing is improved, however cheap that is.
    let spare = if is_same { 0 } else { options.spare };
    let options = &RankOptions { spare, ..*options };
    let Some(mut settled) = settling.resume(waiting, options, watch)? else {
        return Ok(None);
    };
    let is_unmoved = changed_rows == 0 && settled.effort.sweeps == 0;
    let own = start.own_effort().filter(|own| own.until == options.until);
    if let Some(own) = own.filter(|_| is_unmoved) {
        settled.effort.sweeps = own.sweeps;
        settled.effort.links_touched = own.links_touched;
        settled.effort.resumed = own.resumed;
    }
    Ok(Some(settled))
}

/// Source of importances to settle from.
pub trait Importances: Sync {
    /// Returns the number of importances; they belong to the first pages.
    fn pages(&self) -> u64;
    /// Calls `visit` with each importance, in page order; they sum to about 1.
    fn each(&self, visit: &mut dyn FnMut(f64)) -> Result<()>;
}

impl Importances for Vec<f64> {
    fn pages(&self) -> u64 {
        self.len() as u64
    }

    fn each(&self, visit: &mut dyn FnMut(f64)) -> Result<()> {
        self.iter().for_each(|share| visit(*share));
        Ok(())
    }
}

fn units(share: f64) -> i64 {
    (share.clamp(0.0, 1.0) * SUPPLY as f64) as i64
}

/// Settles from an estimate. Returns `None` if it is useless, or if it was stopped before anything was known.
pub fn settle_near(
    rows: &dyn Rows,
    near: &dyn Importances,
    options: &RankOptions,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    let known = near.pages().min(rows.pages());
    let mut peers = OneProcess::new(1);
    let uniform = Teleport::default();
    let mut settling = Settling::of_store(rows, options.damping, &uniform, &mut peers)?;
    settling.is_resumed = true;
    let cells = settling.blocks[0].first_pages(known as usize);
    let mut cells = cells.own.iter_mut().zip(cells.accounts);
    let mut sum = 0;
    near.each(&mut |share| {
        if let Some((own, account)) = cells.next() {
            *own = units(share);
            *account = -*own;
            sum += i128::from(*own);
        }
    })?;
    if !is_useful(rows, known, sum) {
        return Ok(None);
    }
    settling.totals.sum = sum;
    // A page whose row was not passed on over passes everything to the virtual page.
    settling.totals.virtual_page = sum;
    settling.totals.is_first_sweep = false;
    settling.make_room(0)?;
    settling.update(|block| {
        let mut touched = 0;
        rows.sweep(&mut |row| {
            touched += block.hand_out(&row)?;
            Ok(())
        })?;
        Ok(touched)
    })?;
    let waiting = settling.end_sweep()?;
    settling.resume(waiting, options, watch)
}

#[cfg(test)]
mod tests {
    use super::super::settle;
    use super::super::tests::distance;
    use super::*;
    use crate::rank::elimination::{Kept, dense, numbers};

    const PAGES: u64 = 120;

    /// Returns pages with up to nine links, a fifth of them without.
    fn rows(seed: u64) -> Kept {
        let mut pick = numbers(seed);
        let mut kept = Kept {
            pages: PAGES,
            rows: Vec::new(),
        };
        for page in 0..PAGES as u32 {
            let mut targets: Vec<u32> = (0..pick(5) * pick(3) + pick(2))
                .map(|_| pick(PAGES) as u32)
                .collect();
            targets.sort_unstable();
            targets.dedup();
            kept.visit(page, &targets, &[]);
        }
        kept
    }

    fn options(damping: f64, until: f64) -> RankOptions {
        RankOptions::until((damping * 2f64.powi(32)) as u64, until)
    }

    /// From PageRank itself one sweep suffices, over the links of pages that have any.
    #[test]
    fn what_is_settled_takes_a_sweep() {
        for (seed, damping) in (0..).zip([0.5, 0.85, 0.99]) {
            let rows = rows(seed);
            let options = options(damping, 1e-9);
            let exact = dense(&rows, options.damping());
            let settled = settle_near(&rows, &exact, &options, &mut ());
            let settled = settled.unwrap().unwrap();
            assert!(settled.effort.reached);
            assert_eq!(settled.effort.links_touched, rows.links());
            let off = distance(&settled.importance(), &exact);
            assert!(off <= 1e-9, "{damping}: {off}");
        }
    }

    /// Whatever the start, the bound holds; a rough ranking takes less work than starting from nothing.
    #[test]
    fn any_estimate_leads_to_pagerank() {
        let rows = rows(7);
        let options = options(0.85, 1e-6);
        let exact = dense(&rows, options.damping());
        let until = |until| RankOptions { until, ..options };
        let rough = settle(&rows, &until(0.01), &mut ()).unwrap().unwrap();
        let rough = rough.importance();
        let whole = settle(&rows, &options, &mut ()).unwrap().unwrap();
        let effort = |near: &[f64]| {
            // A useless start is not used.
            let settled = match settle_near(&rows, &near.to_vec(), &options, &mut ()).unwrap() {
                Some(settled) => settled,
                None => settle(&rows, &options, &mut ()).unwrap().unwrap(),
            };
            let bound = settled.certificate.received_l1.unwrap();
            assert!(settled.effort.reached && bound <= 1e-6, "{bound}");
            let off = distance(&settled.importance(), &exact);
            assert!(off <= bound + 1e-12, "{off} is not within {bound}");
            settled.effort.links_touched
        };
        assert!(effort(&rough) < whole.effort.links_touched);
        let mut one = vec![0.0; PAGES as usize];
        one[3] = 1.0;
        let longer = [&rough[..], &rough[..]].concat();
        let others: [&[f64]; 9] = [
            &rough[..100],
            &rough[..10],
            &longer,
            &one,
            &[],
            &[0.0; PAGES as usize],
            &[f64::NAN; PAGES as usize],
            &[f64::INFINITY; PAGES as usize],
            &[-1.0; PAGES as usize],
        ];
        for near in others {
            effort(near);
        }
    }
}
