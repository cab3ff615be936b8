//! The importance of pages by the links known, settled by sweeps over the rows.
//!
//! ```text
//! y_j = sum over rows i of d x_i w_ij + what is returned to j + what the virtual page pays j
//! ```
//!
//! The virtual page receives what is not handed on, so that the sum of all is 1. Of a focus each rule is paid its share first. Each settling starts from
//! the same state and takes the same number of sweeps: its result depends on the rows alone.

use super::Crawl;
use crate::Result;
use crate::rows::{Row, Rows};

/// Who is paid, and what becomes of what pages not read receive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Surfer {
    /// PageRank of the known graph: the virtual page pays all known pages alike, and pages not read have
    /// no links.
    Known,
    /// A page not read is taken to link as the pages do that link to it: of what it receives from a page,
    /// the share `returned` goes back there. The virtual page pays the share `seeds` to the seeds, the rest
    /// to all pages read.
    Forecast {
        /// Share that is returned.
        returned: f64,
        /// Share that seeds are paid.
        seeds: f64,
    },
}

/// Damping.
const D: f64 = 0.85;

impl Surfer {
    /// What each known page holds after so many sweeps.
    pub fn settle(self, crawl: &Crawl, rows: &dyn Rows, sweeps: u32) -> Result<Vec<f64>> {
        let pages = crawl.pages() as usize;
        let start = 1.0 / self.paid(crawl).max(1) as f64;
        let mut x: Vec<f64> = (0..crawl.pages())
            .map(|page| match self.pays(crawl, page) {
                true => start,
                false => 0.0,
            })
            .collect();
        let mut y = vec![0.0; pages];
        for _ in 0..sweeps {
            y.fill(0.0);
            rows.sweep(&mut |row| {
                if (row.page as usize) < pages && crawl.is_read(row.page) {
                    self.hand_on(crawl, row, &x, &mut y);
                }
                Ok(())
            })?;
            self.pay(crawl, &mut y);
            std::mem::swap(&mut x, &mut y);
        }
        Ok(x)
    }

    fn pays(self, crawl: &Crawl, page: u32) -> bool {
        self == Surfer::Known || crawl.is_read(page)
    }

    fn paid(self, crawl: &Crawl) -> u32 {
        match self {
            Surfer::Known => crawl.pages(),
            Surfer::Forecast { .. } => crawl.read(),
        }
    }

    fn hand_on(self, crawl: &Crawl, row: Row<'_>, x: &[f64], y: &mut [f64]) {
        let handed = D * x[row.page as usize];
        let mut not_read = 0.0;
        let mut hand = |target: u32, part: f64| {
            if let Some(y) = y.get_mut(target as usize) {
                *y += part;
                not_read += if crawl.is_read(target) { 0.0 } else { part };
            }
        };
        if row.weights.is_empty() {
            let part = handed / row.targets.len() as f64;
            row.targets.iter().for_each(|&target| hand(target, part));
        } else {
            let all: u64 = row.weights.iter().sum();
            for (&target, &weight) in row.targets.iter().zip(row.weights) {
                if weight > 0 {
                    hand(target, handed * (weight as f64 / all as f64));
                }
            }
        }
        if let Surfer::Forecast { returned, .. } = self {
            y[row.page as usize] += returned * D * not_read;
        }
    }

    /// The virtual page pays all that no page was handed.
    fn pay(self, crawl: &Crawl, y: &mut [f64]) {
        let counts = |page: &u32| self.pays(crawl, *page);
        let held: f64 = (0..crawl.pages())
            .filter(counts)
            .map(|page| y[page as usize])
            .sum();
        let rest = (1.0 - held) * (1.0 - self.pay_focus(crawl, 1.0 - held, y));
        let to_seeds = match self {
            Surfer::Forecast { seeds, .. } if !crawl.seeds().is_empty() => rest * seeds,
            _ => 0.0,
        };
        let each = (rest - to_seeds) / self.paid(crawl).max(1) as f64;
        (0..crawl.pages())
            .filter(counts)
            .for_each(|page| y[page as usize] += each);
        for &seed in crawl.seeds() {
            y[seed as usize] += to_seeds / crawl.seeds().len() as f64;
        }
    }

    /// Pays the pages of each rule of the focus its share of what the virtual page has; the sum of the shares paid.
    fn pay_focus(self, crawl: &Crawl, units: f64, y: &mut [f64]) -> f64 {
        let focus = crawl.focus();
        if focus.shares().is_empty() {
            return 0.0;
        }
        let rule = |page: u32| focus.pays(page, crawl.is_read(page));
        let mut members = vec![0u32; focus.shares().len()];
        (0..crawl.pages())
            .filter_map(rule)
            .for_each(|rule| members[rule] += 1);
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
        for page in 0..crawl.pages() {
            if let Some(rule) = rule(page) {
                y[page as usize] += each[rule];
            }
        }
        shares
    }
}
