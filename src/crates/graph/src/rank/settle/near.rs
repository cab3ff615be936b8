//! Settling from an estimate of importance, such as a published ranking; fast if the estimate is accurate.
//!
//! X is the estimate in whole units, and one sweep computes D as the function of X and the rows. The estimate may be
//! wrong, or belong to other rows or another damping: the result is certified independently of it.

use super::resume::is_useful;
use super::{Settling, SettlingResult, Watch, one_store};
use crate::Result;
use crate::rank::peers::OneProcess;
use crate::rank::{RankOptions, Teleport};
use crate::rows::Rows;

/// Approximate sum over all pages, in units.
const SUPPLY: f64 = (1u64 << 58) as f64;

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

/// Converts a share to whole units.
fn units(share: f64) -> i64 {
    (share.clamp(0.0, 1.0) * SUPPLY) as i64
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
    let (shards, uniform) = (one_store(rows), Teleport::default());
    let mut settling = Settling::new(shards, rows.pages(), options.damping, &uniform, &mut peers)?;
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
    // A page whose row was not passed on over yet passes everything to the virtual page.
    settling.totals.virtual_page = sum;
    settling.totals.is_first_sweep = false;
    settling.make_room(0)?;
    let touched = settling.hand_on(|_, block| {
        let mut touched = 0;
        rows.sweep(&mut |row| {
            touched += block.hand_out(&row)?;
            Ok(())
        })?;
        Ok(touched)
    })?;
    settling.progress.links_touched = touched.iter().sum();
    settling.check_law()?;
    let waiting = settling.end_sweep()?;
    let Some(waiting) = waiting.filter(|waiting| settling.is_near(waiting)) else {
        return Ok(None);
    };
    let next = settling.look(options, &waiting, true, watch)?;
    settling.run(options, next, watch)
}

#[cfg(test)]
mod tests {
    use super::super::settle;
    use super::super::tests::distance;
    use super::*;
    use crate::engine::Scores;
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
            assert!(settled.reached);
            assert_eq!(settled.effort().links_touched, rows.links());
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
            assert!(settled.reached && bound <= 1e-6, "{bound}");
            let off = distance(&settled.importance(), &exact);
            assert!(off <= bound + 1e-12, "{off} is not within {bound}");
            settled.effort().links_touched
        };
        assert!(effort(&rough) < whole.effort().links_touched);
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
