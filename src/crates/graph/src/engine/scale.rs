//! Normalisation of page values to shares of importance: one form for each kind of window.

use super::pages::EstimatePage;
use super::window::{KeptMeasures, default_weight};

/// Estimate of a window of measures before it is normalised (section 3.3).
pub(super) struct MeasuredValue {
    pub(super) measures: KeptMeasures,
    pub(super) start: u128,
    pub(super) now: u128,
    pub(super) supply: u128,
}

impl MeasuredValue {
    /// Returns the G from which an admission counts as recent: pages admitted since stand in for those without a
    /// measure.
    pub(super) fn recent(&self) -> u128 {
        match self.measures {
            KeptMeasures::Since { least: 0 } => self.start,
            _ => self.now.saturating_sub(self.supply),
        }
    }

    /// Returns a page's share of G; `None` if it has no measure.
    ///
    /// - For a window since a start: what it distributed since, over the window's length.
    /// - For a window of the last visits: what it distributed in these and holds now, over the time since the visit
    ///   before them. If that was its admission: over one turnover more, which accounts for its endowment, as in
    ///   `whole`'s (H + cash)/(G + supply). Not in the paper, where all pages exist from the start.
    pub(super) fn of(&self, page: &EstimatePage<'_>) -> Option<f64> {
        if page.rows.iter().all(|row| row.clock == 0) {
            return None;
        }
        let distributed: u128 = page.rows.iter().map(|row| row.cash).sum();
        let (units, length) = match self.measures {
            KeptMeasures::Since { least: 0 } => (
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

pub(super) enum EstimateScale {
    /// Same value for all pages, as nothing distinguishes them.
    Even { each: f64 },
    Window {
        clock: f64,
        virtual_each: f64,
        with_cash: Option<WithCash>,
    },
    Interpolated {
        /// Sum over all pages.
        sum: f64,
        /// History of a page that was just introduced.
        default: f64,
    },
    Measured {
        value: MeasuredValue,
        /// Sum over all pages.
        sum: f64,
        /// Value of a page without measures.
        default: f64,
    },
}

/// Paper's estimate with cash, (H + C)/(G + 1), the virtual page's cash spread over all pages.
pub(super) struct WithCash {
    pub(super) sum: f64,
    pub(super) virtual_each: f64,
}

impl EstimateScale {
    /// Returns (received, distributed); both are the same where receipts are not known.
    pub(super) fn estimates(&self, page: &EstimatePage<'_>) -> (f64, f64) {
        let distributed = page.rows.first().map_or(0, |row| row.cash);
        match self {
            EstimateScale::Even { each } => (*each, *each),
            EstimateScale::Window {
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
            EstimateScale::Interpolated { sum, default } => {
                let measured = page.rows.first().filter(|row| row.span > 0);
                let history = measured.map_or(*default, |row| {
                    row.cash as f64 + default_weight(row) * default
                });
                let share = history / sum;
                (share, share)
            }
            EstimateScale::Measured {
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
