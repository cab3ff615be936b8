//! PageRank of the known graph, settled by sweeps over the rows. Unread pages have no links.
//!
//! ```text
//! y_j = sum over rows i of d x_i w_ij + what the virtual page pays j
//! ```
//!
//! The virtual page receives what is not passed on, so that the sum is 1, and pays all known pages equally, after
//! paying each rule of a focus its share. Each settling starts from the same state and takes the same number of sweeps:
//! its result depends on the rows alone.

use super::CrawlState;
use crate::Result;
use crate::rank::power::step;
use crate::rows::Rows;

/// Returns the importance of each known page after `sweeps` sweeps.
pub(super) fn settle(
    crawl: &CrawlState,
    rows: &dyn Rows,
    damping: f64,
    sweeps: u32,
) -> Result<Vec<f64>> {
    let pages = crawl.pages() as usize;
    let mut x = vec![1.0 / pages.max(1) as f64; pages];
    let mut y = vec![0.0; pages];
    for _ in 0..sweeps {
        step(rows, damping, |page| crawl.is_read(page), &x, &mut y)?;
        pay(crawl, &mut y);
        std::mem::swap(&mut x, &mut y);
    }
    Ok(x)
}

/// Distributes what is missing from 1, as the virtual page's payment.
fn pay(crawl: &CrawlState, y: &mut [f64]) {
    let units = 1.0 - y.iter().sum::<f64>();
    let rest = units * (1.0 - pay_focus(crawl, units, y));
    let each = rest / y.len().max(1) as f64;
    y.iter_mut().for_each(|y| *y += each);
}

/// Pays the pages of each rule of the focus its share of `units`; returns the sum of the shares paid.
fn pay_focus(crawl: &CrawlState, units: f64, y: &mut [f64]) -> f64 {
    let focus = crawl.focus();
    let members = focus.members(crawl);
    let mut shares = 0.0;
    let each: Vec<f64> = focus
        .shares()
        .iter()
        .zip(&members)
        .map(|(share, &members)| {
            shares += if members > 0 { share } else { &0.0 };
            units * share / f64::from(members.max(1))
        })
        .collect();
    if shares > 0.0 {
        for page in 0..crawl.pages() {
            if let Some(rule) = focus.pays(page, crawl.is_read(page)) {
                y[page as usize] += each[rule];
            }
        }
    }
    shares
}
