//! Settling from an estimate of importance, such as a published ranking; fast if the estimate is accurate.
//!
//! X is the estimate in whole units, and one sweep computes D as the function of X and the rows. So the estimate counts
//! as an earlier state ([`super::resume`]) of pages without rows, to which all rows were added since. It may be wrong,
//! or belong to other rows or another damping: the result is certified independently of it.

use super::{Changed, SettlingResult, StartState, Watch, settle_from};
use crate::Result;
use crate::engine::{Effort, SettledPagesMut, SettledTotals};
use crate::rank::RankOptions;
use crate::rank::settle::worth::NO_ROW;
use crate::rows::{RowVisitor, Rows, Stop};

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

/// Estimate, as a state without rows to which all rows are new.
struct EstimateStart<'r> {
    rows: &'r dyn Rows,
    near: &'r dyn Importances,
    totals: SettledTotals,
}

/// Converts a share to whole units.
fn units(share: f64) -> i64 {
    (share.clamp(0.0, 1.0) * SUPPLY) as i64
}

/// Settles from an estimate, like [`settle_from`].
pub fn settle_near(
    rows: &dyn Rows,
    near: &dyn Importances,
    options: &RankOptions,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    let pages = near.pages().min(rows.pages());
    let (mut sum, mut left) = (0, pages);
    near.each(&mut |share| {
        if left > 0 {
            left -= 1;
            sum += i128::from(units(share));
        }
    })?;
    let estimate = EstimateStart {
        totals: SettledTotals {
            pages,
            damping: options.damping,
            sum,
            // A page without a row passes everything to the virtual page.
            virtual_page: sum,
            strayed: 0,
            effort: Effort {
                until: options.until,
                reached: false,
                sweeps: 0,
                links_touched: 0,
                links: 0,
                resumed: true,
            },
        },
        rows,
        near,
    };
    settle_from(rows, options, &estimate, watch)
}

impl StartState for EstimateStart<'_> {
    fn totals(&self) -> &SettledTotals {
        &self.totals
    }

    fn own_effort(&self) -> Option<Effort> {
        None
    }

    fn changed(&self) -> Changed {
        Changed {
            rows: self.rows.pages(),
            links: self.rows.links(),
        }
    }

    fn load(&self, pages: SettledPagesMut<'_>) -> Result<()> {
        let mut cells = pages.own.iter_mut().zip(pages.accounts);
        self.near.each(&mut |share| {
            if let Some((own, account)) = cells.next() {
                *own = units(share);
                *account = -*own;
            }
        })?;
        pages.costs.fill(NO_ROW);
        Ok(())
    }

    fn old_rows(&self, _: &mut RowVisitor<'_>) -> Result<(), Stop> {
        Ok(())
    }

    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        self.rows.walk(visit)
    }
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
