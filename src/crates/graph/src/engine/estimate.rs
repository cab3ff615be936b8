//! Computes importance from the ledger and the history, with a certificate.
//!
//! For the window since a mark, per page j: dH_j, the cash it distributed; dR_j, the cash it received over links, which
//! is `dH_j + D_j(now) - D_j(mark)` because a cell changes by link receipts and by what is distributed only; dW, what
//! the virtual page received; dG = sum dH.
//!
//! - `distributed`: X_j = dH_j / dG (the paper, section 3.2).
//! - `received`: Y_j = (dR_j + dW / pages) / dG. It equals L'X, one step of the damped walk with
//!   the links as they were crawled, so it is ahead of X. Not in the paper.
//!
//! **Certificate.** With r = ||Y - X||_1 and e = 2 x (links followed)/dG for rounding down to whole units: ||Y - pi||_1
//! <= (d r + e)/(1 - d) and ||X - pi||_1 <= (r + e)/(1 - d), where pi is the PageRank of the window's own graph (each
//! page's links weighted by the cash they carried). L1 distances never exceed 2, so a bound of 2 or more is vacuous and
//! reported as absent. r is summed in integers and rounded up.
//!
//! **Waiting cash.** Before estimating, the cash of pages that the end of a round would recycle ([`is_recycled`]) is
//! counted as distributed to the virtual page. It changes no page's dR and only reduces r; the ledger itself is
//! unchanged. So a snapshot can be taken anywhere, and taking one changes nothing.

use serde::{Deserialize, Serialize};

use super::certificate::{Certificate, certify, ratio_up};
use super::config::Config;
use super::estimator::Estimator;
use super::history_view::{Bases, CellSweep, HistoryView};
use super::ledger::{age_at, is_recycled};
use super::mark::CashMark;
use super::pages::{EstimatePage, EstimatePages, Ground, RoundEndTotals};
use super::row::HistoryRow;
use super::scale::{EstimateScale, MeasuredValue, WithCash};
use super::scores::{Effort, Scores};
use super::window::{KeptMeasures, RowContent, Span, WindowPolicy, default_weight};
use crate::Result;
use crate::model::Fetches;

/// Window of the history from which an estimate is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Policy that selected the window.
    pub policy: WindowPolicy,
    /// Number of the mark at which the window begins; 0 is the start of the stream.
    pub mark: u64,
    /// True for rankings of version 0.1 made with `--correction`, which are not estimates of a window. New rankings
    /// never set it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub correction: bool,
    /// Effort of settling over the kept links, if importance was settled instead of estimated from a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Effort>,
    /// Length of the window in turnovers of the current supply; `None` if each page has its own length.
    pub turnovers: Option<f64>,
    /// Estimator that gives importance.
    pub estimator: Estimator,
    /// Bounds on the error; `None` where none is defined (interpolation, or nothing distributed yet).
    pub certificate: Option<Certificate>,
}

impl Window {
    /// Returns the entry for settled scores, which have no window. The bound includes the effect of rounding the
    /// damping, as does the bound that is published.
    pub fn settled(config: &Config, scores: &dyn Scores) -> Window {
        let mut effort = scores.effort();
        let bound = scores.certificate().and_then(|found| found.received_l1);
        effort.reached &= bound.is_none_or(|bound| bound + config.damping_bound() <= effort.until);
        Window {
            policy: config.window,
            mark: 0,
            correction: false,
            settled: Some(effort),
            turnovers: None,
            estimator: config.estimator(),
            certificate: scores.certificate(),
        }
    }

    /// Returns the certified bound on the L1 distance between importance and PageRank; `None` if there is no bound.
    pub fn bound_l1(&self) -> Option<f64> {
        let certificate = self.certificate?;
        match self.estimator {
            Estimator::Received => certificate.received_l1,
            Estimator::Distributed => certificate.distributed_l1,
        }
    }
}

/// Importance of a page, and its share of all distributed cash.
pub type PageScores = (f64, f64);

/// Facts about a page that do not depend on the estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryFacts {
    /// Current cash, in units.
    pub cash: u64,
    /// Fetches of the page; recyclings are not visits.
    pub fetches: Fetches,
}

impl HistoryFacts {
    fn of(page: &EstimatePage<'_>) -> HistoryFacts {
        HistoryFacts {
            cash: page.cash,
            fetches: page.fetches(),
        }
    }
}

/// Reads the facts of all pages and passes them to `each` in blocks of at most [`CHUNK_PAGES`](super::CHUNK_PAGES),
/// with the first page of each block; `each` may take the vector and leave another. Returns the number of measures
/// read.
pub(super) fn facts(
    view: &dyn HistoryView,
    config: &Config,
    each: impl FnMut(u64, &mut Vec<HistoryFacts>) -> Result<()>,
) -> Result<u64> {
    let ground = Ground {
        view,
        recycle_after: config.recycle_after,
        totals: *view.totals(),
        base: None,
        mark: 0,
        start: 0,
    };
    walk(ground, config, HistoryFacts::of, each)
}

/// Returns a predicate that is true for rows that are measures of the window.
pub fn measure(config: &Config) -> impl Fn(&HistoryRow) -> bool + use<> {
    let keeps_measures = config.window.measures(config.estimator()).is_some();
    // A row of failed fetches only is not a measure: the page distributed nothing.
    move |row| {
        if keeps_measures {
            row.clock > 0 && !row.folded
        } else {
            row.cash > 0 || row.visits > 0 || row.fetches.failed == 0
        }
    }
}

/// Passes the result of `take` for each page to `each`, block by block. Returns the number of measures read.
fn walk<T>(
    ground: Ground<'_>,
    config: &Config,
    take: impl Fn(&EstimatePage<'_>) -> T,
    mut each: impl FnMut(u64, &mut Vec<T>) -> Result<()>,
) -> Result<u64> {
    let is_measure = measure(config);
    let mut measures = 0;
    let mut pages = EstimatePages::begin(ground)?;
    let mut taken = Vec::new();
    while let Some(first) = pages.next_block()? {
        taken.clear();
        while let Some(page) = pages.next()? {
            measures += page.rows.iter().filter(|row| is_measure(row)).count() as u64;
            taken.push(take(&page));
        }
        each(first, &mut taken)?;
    }
    pages.end()?;
    Ok(measures)
}

/// Estimates of all pages: selects the window, then yields pages in number order, one block at a time.
pub struct Estimation<'p> {
    view: &'p dyn HistoryView,
    config: &'p Config,
    now: RoundEndTotals,
    window: Window,
    base: CashMark,
    /// G at the start of a window of measures.
    start: u128,
}

impl<'p> Estimation<'p> {
    /// Returns the source of pages.
    fn ground(&self) -> Ground<'p> {
        Ground {
            view: self.view,
            recycle_after: self.config.recycle_after,
            totals: self.now.totals,
            base: Some(self.base),
            mark: self.window.mark,
            start: self.start,
        }
    }

    /// Reads the cells and marks, and selects the window by the policy.
    pub fn begin(view: &'p dyn HistoryView, config: &'p Config) -> Result<Estimation<'p>> {
        let totals = *view.totals();
        let waiting = waiting_cash(view, config)?;
        let now = RoundEndTotals {
            totals,
            clock: totals.clock + waiting,
            virtual_received: totals.virtual_received + waiting,
        };
        let length = |span: Span| span.units(now.clock, totals.pages, view.times());
        let shape = config.window.shape();
        let start = shape.start(now.clock, &length).max(view.window_start());
        let begun = CashMark::default();
        let moved = |mark: &&CashMark| now.clock > mark.totals.clock || mark.number == 0;
        let marks = std::iter::once(&begun).chain(view.marks()).filter(moved);
        let marks: Vec<&CashMark> = marks.collect();
        let oldest = match config.max_age {
            Some(age) => now.clock.saturating_sub(length(age)),
            None => 0,
        };
        let marks = shape.candidates(&marks, config.estimator(), start, oldest);
        let (base, window) = match &marks[..] {
            [] => {
                let supply = (totals.supply() as f64).max(1.0);
                let since = now.clock.saturating_sub(start);
                let window = Window {
                    policy: config.window,
                    mark: 0,
                    correction: false,
                    settled: None,
                    turnovers: shape.turnovers(since, supply, &length),
                    estimator: Estimator::Distributed,
                    certificate: None,
                };
                (begun, window)
            }
            marks => best_window(view, config, &now, marks)?,
        };
        Ok(Estimation {
            view,
            config,
            now,
            window,
            base,
            start,
        })
    }

    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Passes the pages to `each` as [`facts`] does, with (importance, distributed). Importance is that of
    /// [`Window::estimator`] and sums to 1 over all pages.
    pub fn blocks(
        &self,
        each: impl FnMut(u64, &mut Vec<(HistoryFacts, PageScores)>) -> Result<()>,
    ) -> Result<u64> {
        let scale = self.scale()?;
        let take = |page: &EstimatePage<'_>| {
            let scores = self.window.estimator.read(scale.estimates(page));
            (HistoryFacts::of(page), scores)
        };
        walk(self.ground(), self.config, take, each)
    }

    /// Returns the conversion from units to shares of 1.
    fn scale(&self) -> Result<EstimateScale> {
        let totals = &self.now.totals;
        let pages = totals.pages as f64;
        let even = EstimateScale::Even { each: 1.0 / pages };
        let since_clock = self.now.clock - self.base.totals.clock;
        let virtual_each =
            (self.now.virtual_received - self.base.totals.virtual_received) as f64 / pages;
        let shape = self.window.policy.shape();
        Ok(match shape.kept(self.config.estimator()) {
            RowContent::Measures(measures) => return self.measured(measures),
            RowContent::Folded(span) => {
                let units = span.units(self.now.clock, totals.pages, self.view.times());
                return self.interpolated(self.now.clock.saturating_sub(units));
            }
            RowContent::Sums if since_clock == 0 => even,
            RowContent::Sums => EstimateScale::Window {
                clock: since_clock as f64,
                virtual_each,
                with_cash: shape.counts_cash().then(|| WithCash {
                    sum: (totals.clock + totals.supply()) as f64,
                    virtual_each: totals.virtual_cash as f64 / pages,
                }),
            },
        })
    }

    /// Sums all interpolated histories and computes the default history of recently introduced pages (section 3.3),
    /// which are those admitted since G = `recent`; if none of these has a measure, all pages.
    ///
    /// Such a page has H = c + w h, with c from its measures and w the weight of the default h in it. h is their mean,
    /// h = mean(c + w h), which gives h = sum(c)/sum(1 - w): the cash received, over the time in which it was received,
    /// in units of T.
    fn interpolated(&self, recent: u128) -> Result<EstimateScale> {
        let (mut all, mut young) = (Histories::default(), Histories::default());
        let mut pages = EstimatePages::begin(self.ground())?;
        let mut count = 0u64;
        while pages.next_block()?.is_some() {
            while let Some(page) = pages.next()? {
                count += 1;
                let Some(row) = page.rows.first().filter(|row| row.span > 0) else {
                    continue;
                };
                all.add(row);
                if page.admitted >= recent {
                    young.add(row);
                }
            }
        }
        pages.end()?;
        let default = young.mean().or(all.mean()).unwrap_or(0.0);
        // Pages without a measure have the default alone, with full weight.
        let sum = all.cash as f64 + default * (all.weight + (count - all.pages) as f64);
        Ok(if sum > 0.0 {
            EstimateScale::Interpolated { sum, default }
        } else {
            // A window far shorter than the step of G at one visit leaves nothing.
            EstimateScale::Even {
                each: 1.0 / count as f64,
            }
        })
    }

    /// Sums all measures and computes the value that replaces missing ones.
    fn measured(&self, measures: KeptMeasures) -> Result<EstimateScale> {
        let value = MeasuredValue {
            measures,
            start: self.start,
            now: self.now.clock,
            supply: self.now.totals.supply(),
        };
        let (mut sum, mut known, mut pages) = (0.0, 0u64, 0u64);
        let (mut recent_sum, mut recent) = (0.0, 0u64);
        let mut all = EstimatePages::begin(self.ground())?;
        while all.next_block()?.is_some() {
            while let Some(page) = all.next()? {
                pages += 1;
                let Some(found) = value.of(&page) else {
                    continue;
                };
                (sum, known) = (sum + found, known + 1);
                if page.admitted >= value.recent() {
                    (recent_sum, recent) = (recent_sum + found, recent + 1);
                }
            }
        }
        all.end()?;
        let default = match (recent, known) {
            (0, 0) => 0.0,
            (0, _) => sum / known as f64,
            _ => recent_sum / recent as f64,
        };
        let sum = sum + default * (pages - known) as f64;
        Ok(if sum > 0.0 {
            EstimateScale::Measured {
                value,
                sum,
                default,
            }
        } else {
            EstimateScale::Even {
                each: 1.0 / pages as f64,
            }
        })
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

/// Returns the total cash of all pages that the end of a round would recycle.
fn waiting_cash(view: &dyn HistoryView, config: &Config) -> Result<u128> {
    let paid = view.totals().paid;
    let mut sum = 0u128;
    let mut sweep = CellSweep::new(view);
    while let Some((_, cells, ages)) = sweep.next()? {
        for (at, &cell) in cells.iter().enumerate() {
            if is_recycled(age_at(ages, at as u64), config.recycle_after) {
                sum += u128::from(cell.wrapping_add(paid));
            }
        }
    }
    Ok(sum)
}

/// Returns the window with the least residual among those that begin at the candidates, the newer one if equal.
/// `candidates` must not be empty, and are oldest first.
fn best_window(
    view: &dyn HistoryView,
    config: &Config,
    now: &RoundEndTotals,
    candidates: &[&CashMark],
) -> Result<(CashMark, Window)> {
    let residuals = residuals(view, config, now, candidates)?;
    let mut best: Option<(usize, f64)> = None;
    for (at, &residual) in residuals.iter().enumerate() {
        if best.is_none_or(|(_, least)| residual <= least) {
            best = Some((at, residual));
        }
    }
    let (at, residual) = best.unwrap_or((0, f64::INFINITY));
    let mark = *candidates[at];
    let window = Window {
        policy: config.window,
        mark: mark.number,
        correction: false,
        settled: None,
        turnovers: Some(
            (now.clock - mark.totals.clock) as f64 / (now.totals.supply() as f64).max(1.0),
        ),
        estimator: config.estimator(),
        certificate: certificate(config, now, &mark, residual),
    };
    Ok((mark, window))
}

/// Computes r for each candidate; infinite where nothing was distributed.
fn residuals(
    view: &dyn HistoryView,
    config: &Config,
    now: &RoundEndTotals,
    candidates: &[&CashMark],
) -> Result<Vec<f64>> {
    let pages = u128::from(now.totals.pages.max(1));
    let mut bases = Bases::new(view, candidates)?;
    // |N + dW/pages| with dW/pages = whole + rest/pages: the rest adds at most `rest` units in total.
    let virtual_since: Vec<u128> = candidates
        .iter()
        .map(|mark| now.virtual_received - mark.totals.virtual_received)
        .collect();
    let mut sums: Vec<u128> = virtual_since.iter().map(|since| since % pages).collect();
    let mut sweep = CellSweep::new(view);
    while let Some((first, cells, ages)) = sweep.next()? {
        bases.read(first, cells.len())?;
        for (which, sum) in sums.iter_mut().enumerate() {
            let whole = (virtual_since[which] / pages) as i128;
            let chunk = cells.iter().zip(0..).zip(bases.since(which));
            let residuals = chunk.map(|((&cell, at), base)| {
                let cash = cell.wrapping_add(now.totals.paid);
                let recycled = is_recycled(age_at(ages, at), config.recycle_after);
                let held = if recycled { 0 } else { cash };
                (base.change(held, &now.totals) + whole).unsigned_abs()
            });
            *sum += residuals.sum::<u128>();
        }
    }
    Ok(candidates
        .iter()
        .zip(sums)
        .map(|(mark, sum)| ratio_up(sum, now.clock - mark.totals.clock))
        .collect())
}

fn certificate(
    config: &Config,
    now: &RoundEndTotals,
    mark: &CashMark,
    residual: f64,
) -> Option<Certificate> {
    if !residual.is_finite() {
        return None;
    }
    let followed = now.totals.followed - mark.totals.followed;
    let rounding = ratio_up(2 * followed, now.clock - mark.totals.clock);
    Some(certified(config, residual, rounding))
}

/// Applies [`certify`], but gives no bound for the paper's estimate with cash.
fn certified(config: &Config, residual: f64, rounding: f64) -> Certificate {
    let certificate = certify(config.damping(), residual, rounding);
    if config.window.shape().counts_cash() {
        Certificate {
            distributed_l1: None,
            ..certificate
        }
    } else {
        certificate
    }
}
