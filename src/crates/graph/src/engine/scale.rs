//! Normalisation of page values to shares of importance: one function for each kind of window.

use super::estimate::Estimation;
use super::history_view::EstimatePage;
use super::row::HistoryRow;
use super::window::{KeptMeasures, RowPolicy, Span, default_weight};
use crate::Result;

/// Function that returns (received, distributed) of a page; both are the same where receipts are not known.
pub(super) type PageEstimate = Box<dyn Fn(&EstimatePage<'_>) -> (f64, f64)>;

/// Returns the estimate that is the same for all pages, as nothing distinguishes them.
fn even(pages: u64) -> PageEstimate {
    let each = 1.0 / pages as f64;
    Box::new(move |_| (each, each))
}

impl Estimation<'_> {
    /// Returns the conversion from units to shares of 1.
    pub(super) fn scale(&self) -> Result<PageEstimate> {
        match self.config.policy() {
            RowPolicy::Sums => Ok(self.summed()),
            RowPolicy::Measures(measures) => self.measured(measures),
            RowPolicy::Folded(span) => self.interpolated(span),
        }
    }

    /// Returns the estimate of a window since a mark. With cash it is the paper's (H + C)/(G + 1), the virtual page's
    /// cash spread over all pages.
    fn summed(&self) -> PageEstimate {
        let (now, base) = (&self.now, &self.base.totals);
        if now.clock == base.clock {
            return even(now.pages);
        }
        let (clock, pages) = ((now.clock - base.clock) as f64, now.pages as f64);
        let virtual_each = (now.virtual_received - base.virtual_received) as f64 / pages;
        let counts_cash = self.config.window.counts_cash();
        let all_cash = (self.view.totals().clock + now.supply()) as f64;
        let virtual_cash_each = now.virtual_cash as f64 / pages;
        Box::new(move |page| {
            let distributed = page.distributed();
            let received = distributed as i128 + page.change;
            let received = (received as f64 + virtual_each) / clock;
            let distributed = if counts_cash {
                let held = distributed + u128::from(page.cash);
                (held as f64 + virtual_cash_each) / all_cash
            } else {
                (distributed + u128::from(page.waiting)) as f64 / clock
            };
            (received, distributed)
        })
    }

    /// Sums all interpolated histories and computes the default history of recently introduced pages (section 3.3),
    /// which are those admitted inside the window; if none of these has a measure, all pages.
    ///
    /// Such a page has H = c + w h, with c from its measures and w the weight of the default h in it. h is their mean,
    /// h = mean(c + w h), which gives h = sum(c)/sum(1 - w): the cash received, over the time in which it was received,
    /// in units of T.
    fn interpolated(&self, span: Span) -> Result<PageEstimate> {
        let (clock, count) = (self.now.clock, self.now.pages);
        let recent = clock.saturating_sub(span.units(clock, count, self.view.times()));
        let (mut all, mut young) = (Histories::default(), Histories::default());
        let add = |page: &EstimatePage<'_>| {
            let Some(row) = page.rows.first().filter(|row| row.span > 0) else {
                return;
            };
            all.add(row);
            if page.admitted >= recent {
                young.add(row);
            }
        };
        self.walk(add, |_, _| Ok(()))?;
        let default = young.mean().or(all.mean()).unwrap_or(0.0);
        // Pages without a measure have the default alone, with full weight.
        let sum = all.cash as f64 + default * (all.weight + (count - all.pages) as f64);
        if sum <= 0.0 {
            // A window far shorter than the step of G at one visit leaves nothing.
            return Ok(even(count));
        }
        Ok(Box::new(move |page| {
            let measured = page.rows.first().filter(|row| row.span > 0);
            let history = measured.map_or(default, |row| {
                row.cash as f64 + default_weight(row) * default
            });
            (history / sum, history / sum)
        }))
    }

    /// Sums all measures and computes the value that replaces missing ones: the mean of the pages that were admitted
    /// recently.
    fn measured(&self, measures: KeptMeasures) -> Result<PageEstimate> {
        let value = MeasuredValue {
            measures,
            start: self.start,
            now: self.now.clock,
            supply: self.now.supply(),
        };
        let (mut sum, mut known) = (0.0, 0u64);
        let (mut recent_sum, mut recent) = (0.0, 0u64);
        let add = |page: &EstimatePage<'_>| {
            let Some(found) = value.of(page) else {
                return;
            };
            (sum, known) = (sum + found, known + 1);
            if page.admitted >= value.recent() {
                (recent_sum, recent) = (recent_sum + found, recent + 1);
            }
        };
        self.walk(add, |_, _| Ok(()))?;
        let default = match (recent, known) {
            (0, 0) => 0.0,
            (0, _) => sum / known as f64,
            _ => recent_sum / recent as f64,
        };
        let sum = sum + default * (self.now.pages - known) as f64;
        if sum <= 0.0 {
            return Ok(even(self.now.pages));
        }
        Ok(Box::new(move |page| {
            let share = value.of(page).unwrap_or(default) / sum;
            (share, share)
        }))
    }
}

/// Sums over interpolated histories.
#[derive(Default)]
struct Histories {
    pages: u64,
    /// Sum of the cash in measures.
    cash: u128,
    /// Sum of the weights of the default history.
    weight: f64,
}

impl Histories {
    fn add(&mut self, state: &HistoryRow) {
        self.pages += 1;
        self.cash += state.cash;
        self.weight += default_weight(state);
    }

    /// Returns the default history, which is their mean; `None` if no page has a history of its own.
    fn mean(&self) -> Option<f64> {
        let own = self.pages as f64 - self.weight;
        (own > 0.0).then(|| self.cash as f64 / own)
    }
}

/// Estimate of a window of measures before it is normalised (section 3.3).
struct MeasuredValue {
    measures: KeptMeasures,
    start: u128,
    now: u128,
    supply: u128,
}

impl MeasuredValue {
    /// Returns the G from which an admission counts as recent: pages admitted since stand in for those without a
    /// measure.
    fn recent(&self) -> u128 {
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
    fn of(&self, page: &EstimatePage<'_>) -> Option<f64> {
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
