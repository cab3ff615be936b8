//! Computes importance from the ledger and the history, with a certificate.
//!
//! For the window since a mark, per page j: dH_j, the cash it distributed; dR_j, the cash it received over links, which
//! is `dH_j + D_j(now) - D_j(mark)` because a cell changes by link receipts and by what is distributed only; dW, what
//! the virtual page received; dG = sum dH.
//!
//! - `distributed`: X_j = dH_j / dG (the paper, section 3.2).
//! - `received`: Y_j = (dR_j + dW / pages) / dG. It equals L'X, one step of the damped walk with the links as they were
//!   crawled, so it is ahead of X. Not in the paper.
//!
//! **Certificate.** With r = ||Y - X||_1 and e = 2 x (links followed)/dG for rounding down to whole units: ||Y - pi||_1
//! <= (d r + e)/(1 - d) and ||X - pi||_1 <= (r + e)/(1 - d), where pi is the PageRank of the window's own graph (each
//! page's links weighted by the cash they carried). L1 distances never exceed 2, so a bound of 2 or more is vacuous and
//! reported as absent. r is summed in integers and rounded up.
//!
//! **Waiting cash.** The estimate counts the cash of pages that the end of a round would recycle ([`is_recycled`]) as
//! distributed to the virtual page. This changes no page's dR and only reduces r.

use serde::{Deserialize, Serialize};

use super::EngineState;
use super::config::Config;
use super::history::{Admission, AdmissionCursor, Admissions, Blocks, RunReader};
use super::ledger::{CHUNK_PAGES, ENDOWMENT, Totals, age_at, is_recycled};
use super::row::{HistoryRow, RowPolicy, default_weight};
use super::scores::{Certificate, Effort, Estimator, Scores, certify, ratio_up};
use super::window::{CashMark, Span, WindowPolicy};
use crate::Result;
use crate::model::Fetches;

/// Window of the history from which an estimate is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    pub policy: WindowPolicy,
    /// Number of the mark at which the window begins; 0 is the start of the stream.
    pub mark: u64,
    /// Effort of settling over the kept links, if importance was settled instead of estimated from a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Effort>,
    /// Length of the window in turnovers of the current supply; `None` if each page has its own length.
    pub turnovers: Option<f64>,
    pub estimator: Estimator,
    /// Bounds on the error; `None` where none is defined (interpolation, or nothing distributed yet).
    pub certificate: Option<Certificate>,
}

impl Window {
    /// Returns the window of settled scores, which cover no period. The bound includes the rounding of the damping.
    pub fn settled(config: &Config, scores: &dyn Scores) -> Window {
        let mut effort = scores.effort();
        let bound = scores.certificate().and_then(|found| found.received_l1);
        effort.reached &= bound.is_none_or(|bound| bound + config.damping_bound() <= effort.until);
        Window {
            policy: config.window,
            mark: 0,
            settled: Some(effort),
            turnovers: None,
            estimator: config.estimator(),
            certificate: scores.certificate(),
        }
    }

    /// Returns the certified bound on the L1 distance between importance and PageRank; `None` if there is no bound.
    pub fn bound_l1(&self) -> Option<f64> {
        self.certificate?.bound_l1(self.estimator)
    }
}

/// Importance, and share of all distributed cash.
pub type PageScores = (f64, f64);

/// Returns a predicate for rows that are measures of the window.
pub fn measure(config: &Config) -> impl Fn(&HistoryRow) -> bool + use<> {
    let keeps_measures = config.policy().keeps_measures();
    // A row that has failed fetches only is not a measure: the page distributed nothing.
    move |row| {
        if keeps_measures {
            row.clock > 0 && !row.folded
        } else {
            row.cash > 0 || row.visits > 0 || row.fetches.failed == 0
        }
    }
}

/// Input of an estimate: an engine's memory, or a store's checkpoint.
pub trait HistoryView {
    fn totals(&self) -> &Totals;
    /// Returns the state besides the totals: marks, times, and G at the start of a window of measures.
    fn state(&self) -> &EngineState;
    /// Reads the cells and ages (two per byte) of the chunk that begins with page `first`; slices have its length.
    fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()>;
    /// Reads a mark's cells in the chunk that begins with page `first`.
    fn mark_cells(&self, mark: u64, first: u64, out: &mut [u64]) -> Result<()>;
    /// Returns all admissions, in page order.
    fn admissions(&self) -> Result<Admissions<'_>>;
    /// Returns rows in page order, all rows of a page in one block: one per page unless the window keeps measures.
    /// Leaves out cash distributed before mark `since`, and measures that a window since G = `start` does not need, but
    /// keeps visits and last fetches.
    fn rows(&self, since: u64, start: u128) -> Result<Blocks<'_>>;
}

/// Calls `each` with the first page of each chunk, its cells, and its ages packed two per byte.
pub fn each_chunk(
    view: &dyn HistoryView,
    mut each: impl FnMut(u64, &[u64], &[u8]) -> Result<()>,
) -> Result<()> {
    let pages = view.totals().pages;
    let (mut cells, mut ages) = (Vec::new(), Vec::new());
    for first in (0..pages).step_by(CHUNK_PAGES as usize) {
        let len = CHUNK_PAGES.min(pages - first) as usize;
        cells.resize(len, 0);
        ages.resize(len.div_ceil(2), 0);
        view.chunk(first, &mut cells, &mut ages)?;
        each(first, &cells, &ages)?;
    }
    Ok(())
}

/// Cash of a page at the start of the window, and A at that time.
#[derive(Clone, Copy, Default)]
struct WindowBase {
    cash: u64,
    paid: u64,
    /// G at the page's admission, if that was after the mark and the window keeps measures; else 0.
    admitted: u128,
}

impl WindowBase {
    /// Returns D(now) - D(base), unwrapped: the change of cash less what the virtual page has paid since.
    fn change(self, cash_now: u64, totals: &Totals) -> i128 {
        let paid_since = totals.paid.wrapping_sub(self.paid);
        i128::from(cash_now) - i128::from(self.cash) - i128::from(paid_since)
    }
}

/// Bases of a chunk's pages, by mark: a page's cell at the mark or, if it was admitted later, its endowment.
struct Bases<'p> {
    view: &'p dyn HistoryView,
    /// Marks, each with the cells of the leading pages of the chunk that existed at the mark.
    marks: Vec<(CashMark, Vec<u64>)>,
    admissions: AdmissionCursor<'p>,
    /// Number of pages of the chunk that existed at all marks, and the admissions of the others.
    known: usize,
    admitted: Vec<Admission>,
}

impl<'p> Bases<'p> {
    fn new(view: &'p dyn HistoryView, marks: &[&CashMark]) -> Result<Bases<'p>> {
        Ok(Bases {
            view,
            marks: marks.iter().map(|&&mark| (mark, Vec::new())).collect(),
            admissions: AdmissionCursor::new(view.admissions()?),
            known: 0,
            admitted: Vec::new(),
        })
    }

    fn read(&mut self, first: u64, len: usize) -> Result<()> {
        self.known = len;
        for (mark, cells) in &mut self.marks {
            let known = mark.totals.pages.saturating_sub(first).min(len as u64);
            cells.resize(known as usize, 0);
            if known > 0 {
                self.view.mark_cells(mark.number, first, cells)?;
            }
            self.known = self.known.min(cells.len());
        }
        self.admitted.clear();
        for page in first + self.known as u64..first + len as u64 {
            self.admitted.push(self.admissions.at(page)?);
        }
        Ok(())
    }

    /// Yields the bases of the chunk's pages for the window that begins at the mark with index `which`.
    fn since(&self, which: usize) -> impl Iterator<Item = WindowBase> {
        let (mark, cells) = &self.marks[which];
        let paid = mark.totals.paid;
        let known = cells.iter().map(move |&cell| WindowBase {
            cash: cell.wrapping_add(paid),
            paid,
            admitted: 0,
        });
        let later = self.admitted.iter().skip(cells.len() - self.known);
        known.chain(later.map(|admission| WindowBase {
            cash: ENDOWMENT,
            paid: admission.paid,
            admitted: admission.clock,
        }))
    }
}

/// Estimates of all pages: selects the window, then yields pages in number order, one block at a time.
pub struct Estimation<'p> {
    view: &'p dyn HistoryView,
    config: &'p Config,
    /// Totals with the waiting cash counted as distributed, as of the end of a round.
    now: Totals,
    pub window: Window,
    base: CashMark,
    /// G at the start of a window of measures.
    start: u128,
}

impl<'p> Estimation<'p> {
    pub fn begin(view: &'p dyn HistoryView, config: &'p Config) -> Result<Estimation<'p>> {
        let waiting = waiting_cash(view, config)?;
        let mut now = *view.totals();
        now.clock += waiting;
        now.virtual_received += waiting;
        let length = |span: Span| span.units(now.clock, now.pages, &view.state().times);
        let start = (config.window).start(now.clock, now.pages, &view.state().times);
        let start = start.max(view.state().window_start);
        let begun = CashMark::default();
        let moved = |mark: &&CashMark| now.clock > mark.totals.clock || mark.number == 0;
        let marks = std::iter::once(&begun)
            .chain(&view.state().marks)
            .filter(moved);
        let marks: Vec<&CashMark> = marks.collect();
        let oldest = match config.max_age {
            Some(age) => now.clock.saturating_sub(length(age)),
            None => 0,
        };
        let marks = config
            .window
            .candidates(&marks, config.estimator(), start, oldest);
        let residuals = residuals(view, config, &now, &marks)?;
        let windows = marks.iter().map(|mark| **mark).zip(residuals);
        // Of equal residuals, the one of the newer mark.
        let best = windows.rev().min_by(|one, other| one.1.total_cmp(&other.1));
        let supply = (now.supply() as f64).max(1.0);
        let (base, residual) = best.unwrap_or((begun, f64::INFINITY));
        let since_base = now.clock - base.totals.clock;
        let window = Window {
            policy: config.window,
            mark: base.number,
            settled: None,
            turnovers: match config.window {
                _ if best.is_some() => Some(since_base as f64 / supply),
                WindowPolicy::Fixed { .. } => Some(now.clock.saturating_sub(start) as f64 / supply),
                WindowPolicy::Interpolation(Span::Turnovers(turnovers)) => Some(turnovers),
                WindowPolicy::Interpolation(span) => Some(length(span) as f64 / supply),
                _ => None,
            },
            estimator: config.estimator(),
            certificate: certificate(config, &now, &base, residual),
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

    /// Passes the fetches and scores of all pages to `each` in blocks of at most [`CHUNK_PAGES`], with the first page of
    /// each block; `each` may take the vector. Importance sums to 1. Returns the number of measures read.
    pub fn blocks(
        &self,
        each: impl FnMut(u64, &mut Vec<(Fetches, PageScores)>) -> Result<()>,
    ) -> Result<u64> {
        let estimate = self.scale()?;
        let take = |page: &EstimatePage<'_>| {
            let scores = self.window.estimator.read(estimate(page));
            (page.fetches(), scores)
        };
        self.walk(take, each)
    }

    /// Passes the scores of all pages to `each`, like [`Estimation::blocks`], without their fetches.
    pub fn scores(&self, each: impl FnMut(u64, &mut Vec<PageScores>) -> Result<()>) -> Result<u64> {
        let estimate = self.scale()?;
        self.walk(|page| self.window.estimator.read(estimate(page)), each)
    }

    fn walk<T>(
        &self,
        mut take: impl FnMut(&EstimatePage<'_>) -> T,
        mut each: impl FnMut(u64, &mut Vec<T>) -> Result<()>,
    ) -> Result<u64> {
        let (view, config) = (self.view, self.config);
        let (is_measure, totals) = (measure(config), view.totals());
        let mut rows = RunReader::new(view.rows(self.base.number, self.start)?);
        let mut bases = Bases::new(view, &[&self.base])?;
        let (mut measures, mut taken) = (0, Vec::new());
        each_chunk(view, |first, cells, ages| {
            bases.read(first, cells.len())?;
            taken.clear();
            for ((at, cell), base) in cells.iter().enumerate().zip(bases.since(0)) {
                let page = first + at as u64;
                let rows = rows.take_while(|of| of == page)?;
                measures += rows.iter().filter(|row| is_measure(row)).count() as u64;
                let cash = cell.wrapping_add(totals.paid);
                let waits = is_recycled(age_at(ages, at as u64), config.recycle_after);
                taken.push(take(&EstimatePage {
                    rows,
                    cash,
                    waiting: if waits { cash } else { 0 },
                    change: base.change(cash, totals),
                    admitted: base.admitted,
                }));
            }
            each(first, &mut taken)
        })?;
        rows.check_end()?;
        Ok(measures)
    }
}

struct EstimatePage<'r> {
    /// Rows of the page, oldest first.
    rows: &'r [HistoryRow],
    cash: u64,
    /// Part of its cash that the end of a round would recycle: all of it or 0.
    waiting: u64,
    /// D(now) - D(base): units received over links less units distributed.
    change: i128,
    /// G at its admission, if the window keeps measures.
    admitted: u128,
}

impl EstimatePage<'_> {
    fn fetches(&self) -> Fetches {
        let mut rows = self.rows.iter();
        let mut joined = rows.next().copied().unwrap_or_default();
        rows.for_each(|row| joined.take_visits(row));
        joined.known()
    }
}

/// Returns the cash of all pages that the end of a round would recycle.
fn waiting_cash(view: &dyn HistoryView, config: &Config) -> Result<u128> {
    let paid = view.totals().paid;
    let mut sum = 0u128;
    each_chunk(view, |_, cells, ages| {
        for (at, &cell) in cells.iter().enumerate() {
            if is_recycled(age_at(ages, at as u64), config.recycle_after) {
                sum += u128::from(cell.wrapping_add(paid));
            }
        }
        Ok(())
    })?;
    Ok(sum)
}

/// Computes r for the windows that begin at these marks; infinite where nothing was distributed.
fn residuals(
    view: &dyn HistoryView,
    config: &Config,
    now: &Totals,
    candidates: &[&CashMark],
) -> Result<Vec<f64>> {
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let pages = u128::from(now.pages.max(1));
    let mut bases = Bases::new(view, candidates)?;
    // |N + dW/pages| with dW/pages = whole + rest/pages: the rest adds at most `rest` units in total.
    let virtual_since: Vec<u128> = candidates
        .iter()
        .map(|mark| now.virtual_received - mark.totals.virtual_received)
        .collect();
    let mut sums: Vec<u128> = virtual_since.iter().map(|since| since % pages).collect();
    each_chunk(view, |first, cells, ages| {
        bases.read(first, cells.len())?;
        for (which, sum) in sums.iter_mut().enumerate() {
            let whole = (virtual_since[which] / pages) as i128;
            let chunk = cells.iter().zip(0..).zip(bases.since(which));
            let residuals = chunk.map(|((&cell, at), base)| {
                let cash = cell.wrapping_add(now.paid);
                let recycled = is_recycled(age_at(ages, at), config.recycle_after);
                let held = if recycled { 0 } else { cash };
                (base.change(held, now) + whole).unsigned_abs()
            });
            *sum += residuals.sum::<u128>();
        }
        Ok(())
    })?;
    Ok(candidates
        .iter()
        .zip(sums)
        .map(|(mark, sum)| ratio_up(sum, now.clock - mark.totals.clock))
        .collect())
}

fn certificate(
    config: &Config,
    now: &Totals,
    mark: &CashMark,
    residual: f64,
) -> Option<Certificate> {
    if !residual.is_finite() {
        return None;
    }
    let followed = now.followed - mark.totals.followed;
    let rounding = ratio_up(2 * followed, now.clock - mark.totals.clock);
    let mut certificate = certify(config.damping(), residual, rounding);
    if config.window == WindowPolicy::Whole {
        // The paper's estimate with cash has no bound.
        certificate.distributed_l1 = None;
    }
    Some(certificate)
}

/// Function that returns (received, distributed) of a page.
type PageEstimate = Box<dyn Fn(&EstimatePage<'_>) -> (f64, f64)>;

fn even(pages: u64) -> PageEstimate {
    let each = 1.0 / pages as f64;
    Box::new(move |_| (each, each))
}

impl Estimation<'_> {
    fn scale(&self) -> Result<PageEstimate> {
        match self.config.policy() {
            RowPolicy::Sums => Ok(self.summed()),
            RowPolicy::Folded(span) => {
                let (clock, pages) = (self.now.clock, self.now.pages);
                let recent =
                    clock.saturating_sub(span.units(clock, pages, &self.view.state().times));
                self.averaged(recent, |page| {
                    let row = page.rows.first().filter(|row| row.span > 0)?;
                    Some((row.cash as f64, default_weight(row)))
                })
            }
            measures => {
                let (now, supply) = (self.now.clock, self.now.supply());
                let is_fixed = measures == RowPolicy::Since { least: 0 };
                let since = is_fixed.then_some(self.start);
                let recent = since.unwrap_or(now.saturating_sub(supply));
                self.averaged(recent, move |page| {
                    Some((measured(page, since, (now, supply))?, 0.0))
                })
            }
        }
    }

    /// Returns the estimate of a window since a mark. With cash it is the paper's (H + C)/(G + 1), with the virtual
    /// page's cash spread over all pages.
    fn summed(&self) -> PageEstimate {
        let (now, base) = (&self.now, &self.base.totals);
        if now.clock == base.clock {
            return even(now.pages);
        }
        let (clock, pages) = ((now.clock - base.clock) as f64, now.pages as f64);
        let virtual_each = (now.virtual_received - base.virtual_received) as f64 / pages;
        let counts_cash = self.config.window == WindowPolicy::Whole;
        let all_cash = (self.view.totals().clock + now.supply()) as f64;
        let virtual_cash_each = now.virtual_cash as f64 / pages;
        Box::new(move |page| {
            let distributed = page.rows.first().map_or(0, |row| row.cash);
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

    /// Returns the estimate of windows in which a page may have no history. `of` returns a page's history c + w h as c
    /// and w, where h is the default history; `None` if it has no measure. h is the mean history of recently introduced
    /// pages (section 3.3), those admitted since G was `recent`, or of all pages if none of them has a measure: h =
    /// mean(c + w h), hence h = sum(c)/sum(1 - w). For interpolated histories h is the cash received over the time in
    /// which it was received, in units of T.
    fn averaged(
        &self,
        recent: u128,
        of: impl Fn(&EstimatePage<'_>) -> Option<(f64, f64)> + 'static,
    ) -> Result<PageEstimate> {
        let (mut all, mut young) = (Histories::default(), Histories::default());
        let add = |page: &EstimatePage<'_>| {
            if let Some(history) = of(page) {
                all.add(history);
                if page.admitted >= recent {
                    young.add(history);
                }
            }
        };
        self.walk(add, |_, _| Ok(()))?;
        let default = young.mean().or(all.mean()).unwrap_or(0.0);
        let count = self.now.pages;
        // A page without a measure has the default history with full weight.
        let sum = all.own + default * (all.weight + (count - all.pages) as f64);
        if sum <= 0.0 {
            // A window far shorter than the step of G at one visit leaves nothing.
            return Ok(even(count));
        }
        Ok(Box::new(move |page| {
            let (own, weight) = of(page).unwrap_or((0.0, 1.0));
            let share = (own + weight * default) / sum;
            (share, share)
        }))
    }
}

#[derive(Default)]
struct Histories {
    pages: u64,
    own: f64,
    /// Sum of the weights of the default history.
    weight: f64,
}

impl Histories {
    fn add(&mut self, (own, weight): (f64, f64)) {
        self.pages += 1;
        self.own += own;
        self.weight += weight;
    }

    /// Returns the default history: the mean of all histories. `None` if no page has a history of its own.
    fn mean(&self) -> Option<f64> {
        let pages = self.pages as f64 - self.weight;
        (pages > 0.0).then(|| self.own / pages)
    }
}

/// Returns a page's share of G by its measures, before it is normalised (section 3.3); `None` if it has no measure.
///
/// - For a window that began at G = `since`: the units that it distributed since, over the window's length.
/// - For a window of the last visits: the units that it distributed in them and holds, over the time since the visit
///   before them. If that was its admission, one turnover is added for its endowment, which is not in the paper.
fn measured(
    page: &EstimatePage<'_>,
    since: Option<u128>,
    (now, supply): (u128, u128),
) -> Option<f64> {
    if page.rows.iter().all(|row| row.clock == 0) {
        return None;
    }
    let distributed: u128 = page.rows.iter().map(|row| row.cash).sum();
    let base = page.rows.first().filter(|row| row.folded && row.clock > 0);
    let (held, length) = match (since, base) {
        (Some(start), _) => (page.waiting, now.saturating_sub(start)),
        (None, Some(base)) => (page.cash, now.saturating_sub(base.clock)),
        (None, None) => (page.cash, now.saturating_sub(page.admitted) + supply),
    };
    let units = distributed + u128::from(held);
    (length > 0).then(|| units as f64 / length as f64)
}
