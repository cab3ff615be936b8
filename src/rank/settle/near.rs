//! Settling from an estimate of importance, such as a ranking that was published: where that is near, it takes little.
//!
//! X is the estimate in whole units, and D the function of X and the rows that it is: one sweep finds it. So the estimate is a
//! base ([`super::base`]) of pages that had no rows, since when all rows came. It need not be right, nor of these rows or
//! this damping: what is certain of the result is proven of it alone, and from a bad one settling begins with nothing.

use super::{Base, Changed, Settled, Watch, settle_from};
use crate::Result;
use crate::engine::{Effort, SettledPagesMut, SettledTotals};
use crate::rank::Options;
use crate::rank::settle::worth::NO_ROW;
use crate::rows::{RowVisitor, Rows, Stop};

/// What all pages have together, about.
const SUPPLY: f64 = (1u64 << 58) as f64;

struct Estimate<'r> {
    rows: &'r dyn Rows,
    own: Vec<i64>,
    totals: SettledTotals,
}

/// Settles as [`super::settle`] does, from `near`: the importance of the first pages, as far as it is known.
///
/// # Errors
///
/// Those of [`super::settle`].
pub(crate) fn settle_near(
    rows: &dyn Rows,
    near: &[f64],
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Option<Settled>> {
    let sum: f64 = near.iter().map(|share| share.max(0.0)).sum();
    let scale = SUPPLY / sum;
    let own = near.iter().take(rows.pages() as usize);
    let own: Vec<i64> = own.map(|share| (share.max(0.0) * scale) as i64).collect();
    let sum = own.iter().map(|&units| i128::from(units)).sum();
    let estimate = Estimate {
        totals: SettledTotals {
            pages: own.len() as u64,
            damping: options.damping,
            sum,
            // A page without a row hands on all that it has to the virtual page.
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
        own,
    };
    let (settled, _) = settle_from(rows, options, Some(&estimate), watch)?;
    Ok(settled)
}

impl Base for Estimate<'_> {
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
        pages.own.copy_from_slice(&self.own);
        for (account, own) in pages.accounts.iter_mut().zip(&self.own) {
            *account = -own;
        }
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
    use super::super::tests::{Kept, dense, distance, numbers};
    use super::*;
    use crate::engine::Scores;

    const PAGES: u64 = 120;

    /// Pages with up to nine links, a fifth of them without.
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

    fn options(damping: f64, until: f64) -> Options {
        Options::until((damping * 2f64.powi(32)) as u64, until)
    }

    /// From PageRank itself one sweep finds that it is that, of the links of pages that have any.
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

    /// Whatever it begins with, the bound holds; and from a rough ranking it takes less than from nothing.
    #[test]
    fn any_estimate_leads_to_pagerank() {
        let rows = rows(7);
        let options = options(0.85, 1e-6);
        let exact = dense(&rows, options.damping());
        let until = |until| Options { until, ..options };
        let rough = settle(&rows, &until(0.01), &mut ()).unwrap().unwrap();
        let rough = rough.importance();
        let whole = settle(&rows, &options, &mut ()).unwrap().unwrap();
        let effort = |near: &[f64]| {
            let settled = settle_near(&rows, near, &options, &mut ());
            let settled = settled.unwrap().unwrap();
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
