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

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::history::{AdmissionCursor, Admissions, Rows};
use super::ledger::{CHUNK_PAGES, ENDOWMENT, Totals, age_at, is_recycled};
use super::mark::Mark;
use super::window::WindowPolicy;
use crate::Result;
use crate::decode::Time;

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
    /// One row a page, in page order. Cash distributed before mark `since` is left out; visits and
    /// last fetches are not.
    fn rows(&self, since: u64) -> Result<Rows<'_>>;
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

/// Which of a snapshot's two estimates is its importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// X or, for an interpolation, H.
    Distributed,
    /// Y.
    Received,
}

/// The window an estimate is read from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The policy that chose it.
    pub policy: WindowPolicy,
    /// The mark it begins at; 0: the start of the stream.
    pub mark: u64,
    /// Turnovers of today's supply that it spans.
    pub turnovers: f64,
    /// The importance to use.
    pub estimator: Estimator,
    /// Absent where none is defined (interpolation, nothing distributed yet).
    pub certificate: Option<Certificate>,
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
}

/// Computes the estimates of all pages: chooses the window, then hands out pages in number order,
/// a block at a time.
pub struct Estimation<'p> {
    past: &'p dyn Past,
    config: &'p Config,
    now: Now,
    window: Window,
    base: Mark,
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
    /// Reads the cells and marks, and chooses the window by the policy.
    pub fn begin(past: &'p dyn Past, config: &'p Config) -> Result<Estimation<'p>> {
        let totals = *past.totals();
        let waiting = waiting_cash(past, config)?;
        let now = Now {
            totals,
            clock: totals.clock + waiting,
            virtual_received: totals.virtual_received + waiting,
        };
        let (base, window) = match config.window {
            WindowPolicy::Auto => best_window(past, config, &now, past.marks())?,
            WindowPolicy::Whole => best_window(past, config, &now, &[])?,
            WindowPolicy::Interpolation(turnovers) => (
                Mark::default(),
                Window {
                    policy: config.window,
                    mark: 0,
                    turnovers,
                    estimator: Estimator::Distributed,
                    certificate: None,
                },
            ),
        };
        Ok(Estimation {
            past,
            config,
            now,
            window,
            base,
        })
    }

    /// The window chosen.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Hands the pages to `each`, in blocks of at most [`CHUNK_PAGES`], with each block's first page.
    pub fn blocks(&self, mut each: impl FnMut(u64, &[PageEstimate]) -> Result<()>) -> Result<()> {
        let mut rows = self.past.rows(self.window.mark)?.peekable();
        let mut base = BaseCells::new(self.past, &self.base)?;
        let scale = self.scale()?;
        let mut sweep = Sweep::new(self.past);
        let mut out = Vec::new();
        while let Some((first, cells, ages)) = sweep.next()? {
            let base_cells = base.block(first, cells.len())?;
            out.clear();
            for (at, &cell) in cells.iter().enumerate() {
                let page = first + at as u64;
                let row = match rows.next_if(|r| r.as_ref().map_or(true, |r| r.page == page)) {
                    Some(row) => Some(row?),
                    None => None,
                };
                let cash = cell.wrapping_add(self.now.totals.paid);
                let recycled = is_recycled(age_at(ages, at as u64), self.config.recycle_after);
                let flow = Flow {
                    distributed: row.map_or(0, |r| r.cash),
                    waiting: if recycled { cash } else { 0 },
                    change: base_cells[at].change(cash, &self.now.totals),
                };
                let (importance, distributed) = scale.estimates(&flow, row.is_some(), cash);
                out.push(PageEstimate {
                    importance,
                    distributed,
                    visits: row.map_or(0, |r| r.visits),
                    last_fetch: row.and_then(|r| r.last_fetch),
                    cash,
                });
            }
            each(first, &out)?;
        }
        match rows.next() {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(row)) => Err(crate::Error::Refused(format!(
                "the history has a row for page {}, which the ledger does not know",
                row.page
            ))),
        }
    }

    /// What turns units into shares of 1.
    fn scale(&self) -> Result<Scale> {
        let totals = &self.now.totals;
        let pages = totals.pages as f64;
        let since_clock = self.now.clock - self.base.totals.clock;
        let virtual_each =
            (self.now.virtual_received - self.base.totals.virtual_received) as f64 / pages;
        Ok(match self.window.policy {
            WindowPolicy::Interpolation(_) => {
                let default = self.window.policy.default_history();
                let mut sum = 0u128;
                let mut known = 0u64;
                for row in self.past.rows(0)? {
                    let row = row?;
                    known += 1;
                    sum += row.cash;
                }
                sum += u128::from(totals.pages.saturating_sub(known)) * default;
                if sum == 0 {
                    // A window far shorter than a visit's step of G leaves nothing.
                    return Ok(Scale::Even { each: 1.0 / pages });
                }
                Scale::Interpolated {
                    sum: sum as f64,
                    default,
                }
            }
            _ if since_clock == 0 => Scale::Even { each: 1.0 / pages },
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
}

/// A page's flows in the window, in units.
struct Flow {
    distributed: u128,
    waiting: u64,
    /// D(now) - D(base): link receipts less what was distributed.
    change: i128,
}

enum Scale {
    /// Nothing to tell pages apart by: all alike.
    Even {
        each: f64,
    },
    Window {
        clock: f64,
        virtual_each: f64,
        with_cash: Option<WithCash>,
    },
    Interpolated {
        sum: f64,
        default: u128,
    },
}

/// The paper's estimate with cash, (H + C)/(G + 1), the virtual page's cash spread over all.
struct WithCash {
    sum: f64,
    virtual_each: f64,
}

impl Scale {
    /// (importance, distributed).
    fn estimates(&self, flow: &Flow, has_row: bool, cash: u64) -> (f64, f64) {
        match self {
            Scale::Even { each } => (*each, *each),
            Scale::Window {
                clock,
                virtual_each,
                with_cash,
            } => {
                let received = flow.distributed as i128 + flow.change;
                let importance = (received as f64 + virtual_each) / clock;
                let distributed = match with_cash {
                    None => (flow.distributed + u128::from(flow.waiting)) as f64 / clock,
                    Some(with) => {
                        let held = flow.distributed + u128::from(cash);
                        (held as f64 + with.virtual_each) / with.sum
                    }
                };
                (importance, distributed)
            }
            Scale::Interpolated { sum, default } => {
                let history = if has_row { flow.distributed } else { *default };
                let share = history as f64 / sum;
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

/// Of the start of the stream and `marks`, the window with the least residual. Windows in which
/// nothing was distributed are no candidates; with equal residuals the newer one is taken.
fn best_window(
    past: &dyn Past,
    config: &Config,
    now: &Now,
    marks: &[Mark],
) -> Result<(Mark, Window)> {
    let start = Mark::default();
    let candidates: Vec<&Mark> = std::iter::once(&start)
        .chain(marks)
        .filter(|mark| now.totals.clock > mark.totals.clock || mark.number == 0)
        .collect();
    let residuals = residuals(past, config, now, &candidates)?;
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
        turnovers: (now.clock - mark.totals.clock) as f64 / (now.totals.supply() as f64).max(1.0),
        estimator: Estimator::Received,
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
    let mut bases = candidates
        .iter()
        .map(|mark| BaseCells::new(past, mark))
        .collect::<Result<Vec<_>>>()?;
    // |N + dW/pages| with dW/pages = whole + rest/pages: the rest adds at most `rest` units in all.
    let virtual_since: Vec<u128> = candidates
        .iter()
        .map(|mark| now.virtual_received - mark.totals.virtual_received)
        .collect();
    let mut sums: Vec<u128> = virtual_since.iter().map(|since| since % pages).collect();
    let mut sweep = Sweep::new(past);
    while let Some((first, cells, ages)) = sweep.next()? {
        for (which, base) in bases.iter_mut().enumerate() {
            let whole = (virtual_since[which] / pages) as i128;
            let base_cells = base.block(first, cells.len())?;
            for (at, &cell) in cells.iter().enumerate() {
                let cash = cell.wrapping_add(now.totals.paid);
                let recycled = is_recycled(age_at(ages, at as u64), config.recycle_after);
                let held = if recycled { 0 } else { cash };
                let change = base_cells[at].change(held, &now.totals);
                sums[which] += (change + whole).unsigned_abs();
            }
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
    let damping = config.damping();
    let bound = |l1: f64| {
        let l1 = up((l1 + rounding) / (1.0 - damping));
        (l1 < 2.0).then_some(l1)
    };
    Some(Certificate {
        residual_l1: residual,
        rounding_l1: rounding,
        received_l1: bound(damping * residual),
        distributed_l1: bound(residual).filter(|_| config.window != WindowPolicy::Whole),
    })
}

/// `units / clock`, not rounded down; infinite for 0/0.
fn ratio_up(units: u128, clock: u128) -> f64 {
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
}

impl Base {
    /// D(now) - D(base), unwrapped: the change of cash less what the virtual page paid since.
    fn change(self, cash_now: u64, totals: &Totals) -> i128 {
        let paid_since = totals.paid.wrapping_sub(self.paid);
        i128::from(cash_now) - i128::from(self.cash) - i128::from(paid_since)
    }
}

/// Each page's base: its cell at the mark or, if it was admitted later, its endowment.
struct BaseCells<'p> {
    past: &'p dyn Past,
    mark: Mark,
    admissions: AdmissionCursor<'p>,
    cells: Vec<u64>,
    block: Vec<Base>,
}

impl<'p> BaseCells<'p> {
    fn new(past: &'p dyn Past, mark: &Mark) -> Result<BaseCells<'p>> {
        Ok(BaseCells {
            past,
            mark: *mark,
            admissions: AdmissionCursor::new(past.admissions()?),
            cells: Vec::new(),
            block: Vec::new(),
        })
    }

    fn block(&mut self, first: u64, len: usize) -> Result<&[Base]> {
        let marked = self.mark.totals.pages.saturating_sub(first).min(len as u64);
        self.cells.resize(marked as usize, 0);
        if marked > 0 {
            self.past
                .mark_cells(self.mark.number, first, &mut self.cells)?;
        }
        let paid = self.mark.totals.paid;
        self.block.clear();
        self.block.extend(self.cells.iter().map(|&cell| Base {
            cash: cell.wrapping_add(paid),
            paid,
        }));
        for page in first + marked..first + len as u64 {
            self.block.push(Base {
                cash: ENDOWMENT,
                paid: self.admissions.at(page)?.paid,
            });
        }
        Ok(&self.block)
    }
}
