//! From the ledger and the history to importance, with a certificate.
//!
//! For the window since a mark, per page j: dH_j, the cash it distributed; dR_j, the cash it
//! received over links, which is `dH_j + D_j(now) - D_j(mark)` because a cell changes by link
//! receipts and by what is distributed only; dW, what the virtual page received; dG = sum dH.
//!
//! - `distributed`: X_j = dH_j / dG (the paper, section 3.2).
//! - `received`: Y_j = (dR_j + dW / pages) / dG. It equals L'X, one step of the damped walk with
//!   the links as they were crawled, so it is ahead of X. Not in the paper.
//!
//! **Certificate.** With r = ||Y - X||_1 and e = 2 x (links followed)/dG for rounding down to whole
//! units: ||Y - pi||_1 <= (d r + e)/(1 - d) and ||X - pi||_1 <= (r + e)/(1 - d), where pi is the
//! PageRank of the window's own graph (each page's links weighted by the cash they carried). L1
//! distances never exceed 2, so a bound of 2 or more says nothing and is given as absent. r is
//! summed in integers and rounded up.
//!
//! **As at a round's end.** Before estimating, cash that waits at pages which a round's end would
//! recycle ([`is_recycled`]) is counted as distributed to the virtual page. It changes no page's
//! dR and only shortens r; the ledger itself is left alone. So a snapshot can be taken anywhere,
//! and taking one changes nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::accounts::CHUNK_PAGES;
use super::config::Config;
use super::fetches::Fetches;
use super::history::{Admission, AdmissionCursor, Admissions, Row};
use super::ledger::{ENDOWMENT, Totals, age_at, is_recycled};
use super::mark::Mark;
use super::runs::Rows;
use super::window::{Measures, Span, TimeTable, WindowPolicy};
use crate::Result;
use crate::model::Time;

/// What an estimate is made from: an engine's memory, or a store's checkpoint.
pub trait Past {
    /// The ledger's totals now.
    fn totals(&self) -> &Totals;
    /// The retained marks, oldest first.
    fn marks(&self) -> &[Mark];
    /// Reads chunk `first / CHUNK_PAGES`: cells, and ages two a byte. `first` begins a chunk, and
    /// the slices are as long as the chunk is.
    fn chunk(&self, first: u64, cells: &mut [u64], ages: &mut [u8]) -> Result<()>;
    /// Reads a mark's cells of the chunk that begins with page `first`.
    fn mark_cells(&self, mark: u64, first: u64, out: &mut [u64]) -> Result<()>;
    /// All admissions, in page order.
    fn admissions(&self) -> Result<Admissions<'_>>;
    /// Rows in page order, one a page unless the window keeps measures. Cash distributed before mark
    /// `since` is left out, and measures that a window since G = `start` does not want; visits and last
    /// fetches are not.
    fn rows(&self, since: u64, start: u128) -> Result<Rows<'_>>;
    /// Which time was at which G.
    fn times(&self) -> &TimeTable;
    /// G where a window of measures began at the last round's end.
    fn window_start(&self) -> u128;
}

/// How sure an estimate is. Distances are L1, between vectors that sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// ||Y - X||_1, rounded up.
    pub residual_l1: f64,
    /// e: what rounding to whole units can have changed.
    pub rounding_l1: f64,
    /// Bound on ||received - PageRank||_1; absent if 2 or more.
    pub received_l1: Option<f64>,
    /// Bound on ||distributed - PageRank||_1; absent if 2 or more, or for the paper's estimate
    /// with cash (`whole`).
    pub distributed_l1: Option<f64>,
}

/// What settling took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// The bound on the L1 error that was asked for.
    pub until: f64,
    /// Whether it was reached; if not, time was up, or numbers of 64 bits resolve no more.
    pub reached: bool,
    /// Sweeps over the kept rows.
    pub sweeps: u64,
    /// Links over which something was handed on.
    pub links_touched: u64,
    /// Links that the rows hold.
    pub links: u64,
}

/// Estimates of all pages that were made elsewhere, with a certificate of their own.
pub(crate) trait Settled {
    /// What is certain of them.
    fn certificate(&self) -> Certificate;
    /// What they took.
    fn effort(&self) -> Effort;
    /// (received, distributed) of `len` pages from `first` on.
    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>);
}

/// Which of a snapshot's two estimates is its importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// X; for a window of measures or an interpolation, what section 3.3 makes of them.
    Distributed,
    /// Y.
    Received,
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Estimator::Distributed => "distributed",
            Estimator::Received => "received",
        })
    }
}

impl FromStr for Estimator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "distributed" => Ok(Estimator::Distributed),
            "received" => Ok(Estimator::Received),
            _ => Err(format!("{text:?}: received or distributed")),
        }
    }
}

/// The window an estimate is read from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The policy that chose it.
    pub policy: WindowPolicy,
    /// The mark it begins at; 0: the start of the stream.
    pub mark: u64,
    /// It is no window: a ledger of version 0.1, `--correction`, had the better certificate. No ranking is made so
    /// any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub correction: bool,
    /// It is no window: importance was settled over the kept links, the latest of every page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Effort>,
    /// Turnovers of today's supply that it spans; absent where each page has its own.
    pub turnovers: Option<f64>,
    /// The importance to use.
    pub estimator: Estimator,
    /// Absent where none is defined (interpolation, nothing distributed yet).
    pub certificate: Option<Certificate>,
}

impl Window {
    /// The certified bound on the L1 distance of the importance to PageRank; `None`: no bound.
    pub fn bound_l1(&self) -> Option<f64> {
        let certificate = self.certificate?;
        match self.estimator {
            Estimator::Received => certificate.received_l1,
            Estimator::Distributed => certificate.distributed_l1,
        }
    }
}

/// What is known of one page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageEstimate {
    /// The importance, by [`Window::estimator`]; all pages sum to 1.
    pub importance: f64,
    /// The distributed estimate.
    pub distributed: f64,
    /// Visits, recyclings not counted.
    pub visits: u64,
    /// Time of the last fetch.
    pub last_fetch: Option<Time>,
    /// Cash now, in units.
    pub cash: u64,
    /// What fetches told beside.
    pub fetches: Fetches,
}

/// Computes the estimates of all pages: chooses the window, then hands out pages in number order,
/// a block at a time.
pub struct Estimation<'p> {
    past: &'p dyn Past,
    config: &'p Config,
    now: Now,
    window: Window,
    base: Mark,
    /// If importance is that of what was settled.
    settled: Option<&'p dyn Settled>,
    /// G where the window begins, if it keeps measures.
    start: u128,
}

/// The totals as at a round's end.
#[derive(Clone, Copy)]
struct Now {
    totals: Totals,
    /// The clock, and what the virtual page received, with the waiting cash counted.
    clock: u128,
    virtual_received: u128,
}

impl<'p> Estimation<'p> {
    /// Takes importance from what was settled.
    pub(crate) fn settled(
        past: &'p dyn Past,
        config: &'p Config,
        settled: &'p dyn Settled,
    ) -> Estimation<'p> {
        let totals = *past.totals();
        Estimation {
            past,
            config,
            now: Now {
                totals,
                clock: totals.clock,
                virtual_received: totals.virtual_received,
            },
            window: Window {
                policy: config.window,
                mark: 0,
                correction: false,
                settled: Some(settled.effort()),
                turnovers: None,
                estimator: config.estimator(),
                certificate: Some(settled.certificate()),
            },
            base: Mark::default(),
            settled: Some(settled),
            start: 0,
        }
    }

    /// Reads the cells and marks, and chooses the window by the policy.
    pub fn begin(past: &'p dyn Past, config: &'p Config) -> Result<Estimation<'p>> {
        let totals = *past.totals();
        let waiting = waiting_cash(past, config)?;
        let now = Now {
            totals,
            clock: totals.clock + waiting,
            virtual_received: totals.virtual_received + waiting,
        };
        let length = |span: Span| span.units(now.clock, totals.pages, past.times());
        let start = match config.window {
            WindowPolicy::Fixed { span, .. } => now.clock - length(span).min(now.clock),
            _ => 0,
        };
        let start = start.max(past.window_start());
        let begun = Mark::default();
        let moved = |mark: &&Mark| now.clock > mark.totals.clock || mark.number == 0;
        let marks = std::iter::once(&begun).chain(past.marks()).filter(moved);
        let (base, window) = match (config.window, config.estimator()) {
            (WindowPolicy::Auto, _) => {
                let oldest = config
                    .max_age
                    .map_or(0, |age| now.clock - length(age).min(now.clock));
                let mut marks: Vec<&Mark> = marks.collect();
                // The newest is the best there is, if all are too old.
                let old = marks.partition_point(|mark| mark.totals.clock < oldest);
                marks.drain(..old.min(marks.len().saturating_sub(1)));
                best_window(past, config, &now, &marks)?
            }
            (WindowPolicy::Whole, _) => best_window(past, config, &now, &[&begun])?,
            (WindowPolicy::Fixed { .. }, Estimator::Received) => {
                let off = |mark: &&Mark| mark.totals.clock.abs_diff(start);
                let nearest = marks.min_by_key(off).unwrap_or(&begun);
                best_window(past, config, &now, &[nearest])?
            }
            (policy, _) => {
                let supply = (totals.supply() as f64).max(1.0);
                let turnovers = match policy {
                    WindowPolicy::Fixed { .. } => {
                        Some(now.clock.saturating_sub(start) as f64 / supply)
                    }
                    WindowPolicy::Interpolation(Span::Turnovers(turnovers)) => Some(turnovers),
                    WindowPolicy::Interpolation(span) => Some(length(span) as f64 / supply),
                    _ => None,
                };
                let window = Window {
                    policy,
                    mark: 0,
                    correction: false,
                    settled: None,
                    turnovers,
                    estimator: Estimator::Distributed,
                    certificate: None,
                };
                (begun, window)
            }
        };
        Ok(Estimation {
            past,
            config,
            now,
            window,
            base,
            settled: None,
            start,
        })
    }

    /// The window chosen.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Hands the pages to `each`, in blocks of at most [`CHUNK_PAGES`], with each block's first page; it may
    /// take the vector and leave another. How many measures were read.
    pub fn blocks(
        &self,
        mut each: impl FnMut(u64, &mut Vec<PageEstimate>) -> Result<()>,
    ) -> Result<u64> {
        let keeps_measures = self
            .window
            .policy
            .measures(self.config.estimator())
            .is_some();
        // A row of failed fetches only is none: the page never distributed anything.
        let is_measure = |row: &&Row| match keeps_measures {
            true => row.clock > 0 && !row.folded,
            false => row.cash > 0 || row.visits > 0 || row.fetches.failed == 0,
        };
        let mut measures = 0;
        let mut pages = Pages::begin(self)?;
        let scale = self.scale()?;
        let mut out = Vec::new();
        while let Some(first) = pages.next_block()? {
            out.clear();
            while let Some(page) = pages.next()? {
                let (importance, distributed) = scale.estimates(&page);
                let (importance, distributed) = match self.window.estimator {
                    Estimator::Received => (importance, distributed),
                    Estimator::Distributed => (distributed, distributed),
                };
                measures += page.rows.iter().filter(is_measure).count() as u64;
                out.push(PageEstimate {
                    importance,
                    distributed,
                    visits: page.rows.iter().map(|row| row.visits).sum(),
                    last_fetch: page.rows.iter().filter_map(|row| row.last_fetch).max(),
                    cash: page.cash,
                    fetches: page.fetches(),
                });
            }
            each(first, &mut out)?;
        }
        pages.end()?;
        Ok(measures)
    }

    /// What turns units into shares of 1.
    fn scale(&self) -> Result<Scale> {
        let totals = &self.now.totals;
        let pages = totals.pages as f64;
        let even = Scale::Even { each: 1.0 / pages };
        let since_clock = self.now.clock - self.base.totals.clock;
        let virtual_each =
            (self.now.virtual_received - self.base.totals.virtual_received) as f64 / pages;
        if self.settled.is_some() {
            return Ok(Scale::Settled);
        }
        let policy = self.window.policy;
        if let Some(measures) = policy.measures(self.config.estimator()) {
            return self.measured(measures);
        }
        Ok(match policy {
            WindowPolicy::Interpolation(span) => {
                let units = span.units(self.now.clock, totals.pages, self.past.times());
                let default = units / u128::from(totals.pages.max(1));
                let mut sum = 0u128;
                let mut known = 0u64;
                for row in self.past.rows(0, 0)? {
                    let row = row?;
                    known += u64::from(row.span > 0);
                    sum += row.cash;
                }
                sum += u128::from(totals.pages.saturating_sub(known)) * default;
                match sum {
                    // A window far shorter than a visit's step of G leaves nothing.
                    0 => even,
                    _ => Scale::Interpolated {
                        sum: sum as f64,
                        default,
                    },
                }
            }
            _ if since_clock == 0 => even,
            policy => Scale::Window {
                clock: since_clock as f64,
                virtual_each,
                with_cash: (policy == WindowPolicy::Whole).then(|| WithCash {
                    sum: (totals.clock + totals.supply()) as f64,
                    virtual_each: totals.virtual_cash as f64 / pages,
                }),
            },
        })
    }

    /// Goes through all measures for their sum, and for what stands in for those that are missing.
    fn measured(&self, measures: Measures) -> Result<Scale> {
        let value = Value {
            measures,
            start: self.start,
            now: self.now.clock,
            supply: self.now.totals.supply(),
        };
        let (mut sum, mut known, mut pages) = (0.0, 0u64, 0u64);
        let (mut recent_sum, mut recent) = (0.0, 0u64);
        let mut all = Pages::begin(self)?;
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
        Ok(match sum > 0.0 {
            true => Scale::Measured {
                value,
                sum,
                default,
            },
            false => Scale::Even {
                each: 1.0 / pages as f64,
            },
        })
    }
}

/// A page, as an estimate sees it.
struct Page<'r> {
    /// Its rows, oldest first.
    rows: &'r [Row],
    cash: u64,
    /// The part of its cash that a round's end would recycle: all or nothing.
    waiting: u64,
    /// D(now) - D(base): link receipts less what was distributed.
    change: i128,
    /// G at its admission, if the window keeps measures.
    admitted: u128,
    /// (received, distributed), if they were settled.
    settled: Option<(f64, f64)>,
}

impl Page<'_> {
    fn fetches(&self) -> Fetches {
        let mut rows = self.rows.iter();
        let mut fetches = rows.next().map_or_else(Fetches::default, |row| row.fetches);
        rows.for_each(|row| fetches.join(&row.fetches));
        fetches
    }
}

/// Walks over all pages, a chunk at a time.
struct Pages<'p> {
    estimation: &'p Estimation<'p>,
    rows: std::iter::Peekable<Rows<'p>>,
    bases: Bases<'p>,
    sweep: Sweep<'p>,
    /// The chunk: its first page, and cash and base of each.
    first: u64,
    cash: Vec<(u64, bool)>,
    base: Vec<Base>,
    at: usize,
    page: Vec<Row>,
    /// Of the chunk, if importance was settled.
    settled: Vec<(f64, f64)>,
}

impl<'p> Pages<'p> {
    fn begin(estimation: &'p Estimation<'p>) -> Result<Pages<'p>> {
        let past = estimation.past;
        let rows = past.rows(estimation.window.mark, estimation.start)?;
        Ok(Pages {
            estimation,
            rows: rows.peekable(),
            bases: Bases::new(past, &[&estimation.base])?,
            sweep: Sweep::new(past),
            first: 0,
            cash: Vec::new(),
            base: Vec::new(),
            at: 0,
            page: Vec::new(),
            settled: Vec::new(),
        })
    }

    /// Goes on to the next chunk; its first page.
    fn next_block(&mut self) -> Result<Option<u64>> {
        let Some((first, cells, ages)) = self.sweep.next()? else {
            return Ok(None);
        };
        let Estimation { now, config, .. } = self.estimation;
        self.bases.read(first, cells.len())?;
        self.base.clear();
        self.base.extend(self.bases.since(0));
        if let Some(settled) = self.estimation.settled {
            settled.read(first, cells.len(), &mut self.settled);
        }
        self.cash.clear();
        let pages = cells.iter().zip(0..);
        self.cash.extend(pages.map(|(cell, at)| {
            let recycled = is_recycled(age_at(ages, at), config.recycle_after);
            (cell.wrapping_add(now.totals.paid), recycled)
        }));
        (self.first, self.at) = (first, 0);
        Ok(Some(first))
    }

    /// The next page of the chunk.
    fn next(&mut self) -> Result<Option<Page<'_>>> {
        let Some(&(cash, recycled)) = self.cash.get(self.at) else {
            return Ok(None);
        };
        let number = self.first + self.at as u64;
        self.page.clear();
        while let Some(row) = self
            .rows
            .next_if(|row| row.as_ref().map_or(true, |row| row.page == number))
        {
            self.page.push(row?);
        }
        let base = self.base[self.at];
        let settled = self.settled.get(self.at).copied();
        self.at += 1;
        Ok(Some(Page {
            rows: &self.page,
            cash,
            waiting: if recycled { cash } else { 0 },
            change: base.change(cash, &self.estimation.now.totals),
            admitted: base.admitted,
            settled,
        }))
    }

    /// After the last page: there must be no rows left.
    fn end(mut self) -> Result<()> {
        match self.rows.next() {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(row)) => Err(crate::Error::internal(format!(
                "the history has a row for page {}, which the ledger does not know",
                row.page
            ))),
        }
    }
}

/// The estimate of a window of measures, before it is normalised (section 3.3).
struct Value {
    measures: Measures,
    start: u128,
    now: u128,
    supply: u128,
}

impl Value {
    /// G from which on an admission is recent: pages admitted since stand in for those that have no
    /// measure.
    fn recent(&self) -> u128 {
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
    fn of(&self, page: &Page<'_>) -> Option<f64> {
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

enum Scale {
    /// Nothing to tell pages apart by: all alike.
    Even {
        each: f64,
    },
    /// The shares were settled.
    Settled,
    Window {
        clock: f64,
        virtual_each: f64,
        with_cash: Option<WithCash>,
    },
    Interpolated {
        sum: f64,
        default: u128,
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
struct WithCash {
    sum: f64,
    virtual_each: f64,
}

impl Scale {
    /// (received, distributed); the same where nothing is known of receipts.
    fn estimates(&self, page: &Page<'_>) -> (f64, f64) {
        let distributed = page.rows.first().map_or(0, |row| row.cash);
        match self {
            Scale::Even { each } => (*each, *each),
            Scale::Settled => page.settled.unwrap_or_default(),
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
                let history = measured.map_or(*default, |row| row.cash);
                let share = history as f64 / sum;
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

/// The waiting cash of all pages that a round's end would recycle.
fn waiting_cash(past: &dyn Past, config: &Config) -> Result<u128> {
    let paid = past.totals().paid;
    let mut sum = 0u128;
    let mut sweep = Sweep::new(past);
    while let Some((_, cells, ages)) = sweep.next()? {
        for (at, &cell) in cells.iter().enumerate() {
            if is_recycled(age_at(ages, at as u64), config.recycle_after) {
                sum += u128::from(cell.wrapping_add(paid));
            }
        }
    }
    Ok(sum)
}

/// Of the windows since some marks, the one with the least residual; with equal residuals the newer.
/// `candidates` are not none, oldest first.
fn best_window(
    past: &dyn Past,
    config: &Config,
    now: &Now,
    candidates: &[&Mark],
) -> Result<(Mark, Window)> {
    let residuals = residuals(past, config, now, candidates)?;
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

/// r for each candidate; infinite where nothing was distributed.
fn residuals(
    past: &dyn Past,
    config: &Config,
    now: &Now,
    candidates: &[&Mark],
) -> Result<Vec<f64>> {
    let pages = u128::from(now.totals.pages.max(1));
    let mut bases = Bases::new(past, candidates)?;
    // |N + dW/pages| with dW/pages = whole + rest/pages: the rest adds at most `rest` units in all.
    let virtual_since: Vec<u128> = candidates
        .iter()
        .map(|mark| now.virtual_received - mark.totals.virtual_received)
        .collect();
    let mut sums: Vec<u128> = virtual_since.iter().map(|since| since % pages).collect();
    let mut sweep = Sweep::new(past);
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

fn certificate(config: &Config, now: &Now, mark: &Mark, residual: f64) -> Option<Certificate> {
    if !residual.is_finite() {
        return None;
    }
    let followed = now.totals.followed - mark.totals.followed;
    let rounding = ratio_up(2 * followed, now.clock - mark.totals.clock);
    Some(certified(config, residual, rounding))
}

/// As [`certify`], but the paper's estimate with cash has no bound.
fn certified(config: &Config, residual: f64, rounding: f64) -> Certificate {
    let certificate = certify(config.damping(), residual, rounding);
    match config.window {
        WindowPolicy::Whole => Certificate {
            distributed_l1: None,
            ..certificate
        },
        _ => certificate,
    }
}

/// The bounds that a residual and what rounding can have changed allow.
pub(crate) fn certify(damping: f64, residual: f64, rounding: f64) -> Certificate {
    let bound = |l1: f64| {
        let l1 = up((l1 + rounding) / (1.0 - damping));
        (l1 < 2.0).then_some(l1)
    };
    Certificate {
        residual_l1: residual,
        rounding_l1: rounding,
        received_l1: bound(damping * residual),
        distributed_l1: bound(residual),
    }
}

/// `units / clock`, not rounded down; infinite for 0/0.
pub(crate) fn ratio_up(units: u128, clock: u128) -> f64 {
    if clock == 0 {
        return f64::INFINITY;
    }
    up(units as f64 / clock as f64)
}

/// A little more than `x`, to cover the rounding of a few operations and of the published values:
/// each is off by at most 2^-53 of itself, and they sum to 1.
fn up(x: f64) -> f64 {
    x * (1.0 + 1e-14) + 1e-14
}

/// A chunk's first page, its cells, and its ages two a byte.
pub(crate) type Swept<'s> = (u64, &'s [u64], &'s [u8]);

/// Walks over cells and ages, a chunk at a time.
pub(crate) struct Sweep<'p> {
    past: &'p dyn Past,
    at: u64,
    cells: Vec<u64>,
    ages: Vec<u8>,
}

impl<'p> Sweep<'p> {
    pub fn new(past: &'p dyn Past) -> Sweep<'p> {
        Sweep {
            past,
            at: 0,
            cells: Vec::new(),
            ages: Vec::new(),
        }
    }

    /// The next chunk.
    #[allow(clippy::should_implement_trait)] // It lends.
    pub fn next(&mut self) -> Result<Option<Swept<'_>>> {
        let first = self.at;
        let len = CHUNK_PAGES.min(self.past.totals().pages - first) as usize;
        if len == 0 {
            return Ok(None);
        }
        self.cells.resize(len, 0);
        self.ages.resize(len.div_ceil(2), 0);
        self.past.chunk(first, &mut self.cells, &mut self.ages)?;
        self.at += len as u64;
        Ok(Some((first, &self.cells, &self.ages)))
    }
}

/// A page's cash at the window's beginning, and A then.
#[derive(Clone, Copy)]
struct Base {
    cash: u64,
    paid: u64,
    /// G at its admission, if that was after the mark and the window keeps measures; else 0.
    admitted: u128,
}

impl Base {
    /// D(now) - D(base), unwrapped: the change of cash less what the virtual page paid since.
    fn change(self, cash_now: u64, totals: &Totals) -> i128 {
        let paid_since = totals.paid.wrapping_sub(self.paid);
        i128::from(cash_now) - i128::from(self.cash) - i128::from(paid_since)
    }
}

/// The bases of a chunk's pages, for windows that begin at some marks: a page's cell at the mark or, if it
/// was admitted later, its endowment.
struct Bases<'p> {
    past: &'p dyn Past,
    /// The marks, each with the cells of those pages of the chunk that it knows: the first ones.
    marks: Vec<(Mark, Vec<u64>)>,
    admissions: AdmissionCursor<'p>,
    /// Pages of the chunk that all marks know.
    known: usize,
    /// The admissions of the others.
    admitted: Vec<Admission>,
}

impl<'p> Bases<'p> {
    fn new(past: &'p dyn Past, marks: &[&Mark]) -> Result<Bases<'p>> {
        Ok(Bases {
            past,
            marks: marks.iter().map(|&&mark| (mark, Vec::new())).collect(),
            admissions: AdmissionCursor::new(past.admissions()?),
            known: 0,
            admitted: Vec::new(),
        })
    }

    /// Goes on to the chunk of `len` pages that begins with page `first`.
    fn read(&mut self, first: u64, len: usize) -> Result<()> {
        self.known = len;
        for (mark, cells) in &mut self.marks {
            let known = mark.totals.pages.saturating_sub(first).min(len as u64);
            cells.resize(known as usize, 0);
            if known > 0 {
                self.past.mark_cells(mark.number, first, cells)?;
            }
            self.known = self.known.min(cells.len());
        }
        self.admitted.clear();
        for page in first + self.known as u64..first + len as u64 {
            self.admitted.push(self.admissions.at(page)?);
        }
        Ok(())
    }

    /// Those of the chunk's pages, for the window that begins at one of the marks.
    fn since(&self, which: usize) -> impl Iterator<Item = Base> {
        let (mark, cells) = &self.marks[which];
        let paid = mark.totals.paid;
        let known = cells.iter().map(move |&cell| Base {
            cash: cell.wrapping_add(paid),
            paid,
            admitted: 0,
        });
        let later = self.admitted.iter().skip(cells.len() - self.known);
        known.chain(later.map(|admission| Base {
            cash: ENDOWMENT,
            paid: admission.paid,
            admitted: admission.clock,
        }))
    }
}
