//! From what is known of a page to its share of all importance: one form for each kind of window.

use super::pages::Page;
use super::window::{Measures, default_weight};

/// The estimate of a window of measures, before it is normalised (section 3.3).
pub(super) struct Value {
    pub(super) measures: Measures,
    pub(super) start: u128,
    pub(super) now: u128,
    pub(super) supply: u128,
}

impl Value {
    /// G from which on an admission is recent: pages admitted since stand in for those that have no
    /// measure.
    pub(super) fn recent(&self) -> u128 {
        match self.measures {
            Measures::Since { least: 0 } => self.start,
            _ => self.now.saturating_sub(self.supply),
        }
    }

    /// A page's share of G; `None`: it has no measure.
    ///
    /// - What it distributed since the window's start, over the window's length.
    /// - Or what it distributed in its last visits and now holds, over the time since the visit before
    ///   them. Where that was its admission: over one turnover more, which is what its endowment stands
    ///   for, as in `whole`'s (H + cash)/(G + supply). Not in the paper, whose pages are all there from
    ///   the start.
    pub(super) fn of(&self, page: &Page<'_>) -> Option<f64> {
        if page.rows.iter().all(|row| row.clock == 0) {
            return None;
        }
        let distributed: u128 = page.rows.iter().map(|row| row.cash).sum();
        let (units, length) = match self.measures {
            Measures::Since { least: 0 } => (
                distributed + u128::from(page.waiting),
                self.now.saturating_sub(self.start),
            ),
            _ => {
                let base = page.rows.first().filter(|row| row.folded && row.clock > 0);
                let length = match base {
                    Some(base) => self.now.saturating_sub(base.clock),
                    None => self.now.saturating_sub(page.admitted) + self.supply,
                };
                (distributed + u128::from(page.cash), length)
            }
        };
        (length > 0).then(|| units as f64 / length as f64)
    }
}

pub(super) enum Scale {
    /// Nothing to tell pages apart by: all alike.
    Even { each: f64 },
    Window {
        clock: f64,
        virtual_each: f64,
        with_cash: Option<WithCash>,
    },
    Interpolated {
        /// Of all pages.
        sum: f64,
        /// The history of a page that was just introduced.
        default: f64,
    },
    Measured {
        value: Value,
        /// Of all pages.
        sum: f64,
        /// Of a page without measures.
        default: f64,
    },
}

/// The paper's estimate with cash, (H + C)/(G + 1), the virtual page's cash spread over all.
pub(super) struct WithCash {
    pub(super) sum: f64,
    pub(super) virtual_each: f64,
}

impl Scale {
    /// (received, distributed); the same where nothing is known of receipts.
    pub(super) fn estimates(&self, page: &Page<'_>) -> (f64, f64) {
        let distributed = page.rows.first().map_or(0, |row| row.cash);
        match self {
            Scale::Even { each } => (*each, *each),
            Scale::Window {
                clock,
                virtual_each,
                with_cash,
            } => {
                let received = distributed as i128 + page.change;
                let received = (received as f64 + virtual_each) / clock;
                let distributed = match with_cash {
                    None => (distributed + u128::from(page.waiting)) as f64 / clock,
                    Some(with) => {
                        let held = distributed + u128::from(page.cash);
                        (held as f64 + with.virtual_each) / with.sum
                    }
                };
                (received, distributed)
            }
            Scale::Interpolated { sum, default } => {
                let measured = page.rows.first().filter(|row| row.span > 0);
                let history = measured.map_or(*default, |row| {
                    row.cash as f64 + default_weight(row) * default
                });
                let share = history / sum;
                (share, share)
            }
            Scale::Measured {
                value,
                sum,
                default,
            } => {
                let share = value.of(page).unwrap_or(*default) / sum;
                (share, share)
            }
        }
    }
}
