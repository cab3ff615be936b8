//! Importance that pages receive, maintained by pushes: Forecast without sweeps over all rows.
//!
//! ```text
//! x_i = b_i + sum over pages p read that link to i of d w_pi x_p + r d u_i x_i      (i was read)
//! y_j =       sum over pages p read that link to j of d w_pj x_p                      (j was not)
//! ```
//!
//! b_i is what the virtual page pays page i, w_pi the part of p's links that leads to i, u_i the part of i's links that
//! leads to unread pages, and r the part returned of what those receive. The equations are linear: each of several
//! payers (the pages read, the seeds) has a solution, and a mixture of payers has the same mixture of solutions.
//!
//! **State.** X_i, what page i passed on so far, and D_i, its residual: x = X + D if nothing is held back. A *push* of
//! page i moves D_i/(1 - r d u_i) to X_i and adds d times that to the residuals of i's targets; the divisor accounts
//! for what would return to i. D is signed: when a page is read that others had counted as unread, what returned from
//! it is withdrawn, immediately from the page that found it, from others at their next push; the sum still to be
//! withdrawn is known (`stale`).
//!
//! **Law.** sum of D = sum of b + sum over pages read of (d [it has links] + r d u_i - 1) X_i.
//!
//! **Certificate.** A push leaves at most d of a residual at pages read. So x as a whole is within B = (sum over pages
//! read of |D_i| + r |stale|)/(1 - d) of the solution in L1, and y within d B.
//!
//! **Cost.** A page is pushed when it is read, and when D_i justifies reading its row, in [`Pushes::settle`], which
//! sweeps over the rows until no page qualifies; from the third sweep on, rows of pages close to the threshold are kept
//! in memory and processed there. 16 bytes per page and payer, and 8 more per page.
//!
//! **Restarting.** D is a function of X, the rows and b: by the equations D_i = b_i + (r d u_i - 1) X_i + sum over p of
//! d w_pi X_p. So after rows changed, one sweep recomputes D, with nothing stale ([`Pushes::renew`]); and X may start
//! from anything, such as a previously settled ranking.

use super::CrawlState;
use crate::Result;
use crate::engine::Cells;
use crate::graph::LinkRows;
use crate::rows::{Row, Rows};

/// Approximate solutions for K payers.
pub(super) struct Pushes<const K: usize> {
    /// Damping: d in the equations.
    damping: f64,
    pages: usize,
    /// X of each page, K numbers.
    handed: Cells<f64>,
    /// Residual D of each page, K numbers; y for unread pages.
    held: Cells<f64>,
    /// u of each page read, as of its last push.
    open: Cells<f64>,
    /// Returned part: r in the equations.
    returned: f64,
    /// Flow that pages received before they were read and that still counts as returning: r times this.
    stale: [f64; K],
    /// Number of links followed.
    links: u64,
}

/// Thresholds from which a push is worth its cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct PushThresholds<const K: usize> {
    /// Weight of a unit of each payer.
    pub weights: [f64; K],
    /// A page with m links is pushed if its residual exceeds this times the square root of m + 1.
    pub least: f64,
    /// Stops sweeping once all pages pushed in a sweep held no more than this together: what is left to push is less.
    pub enough: f64,
}

/// Fraction of the push threshold from which a page's row is kept in memory: most pages that will qualify are among
/// these, and pass cash to each other.
const NEAR: f64 = 0.25;
/// First sweep that keeps rows: in earlier ones nearly all would qualify.
const ACTIVE_FROM: u32 = 2;
/// Limit on the links of these rows: this part of all links, or `ACTIVE_LINKS` if that is more.
const ACTIVE_PART: u64 = 4;
const ACTIVE_LINKS: u64 = 1 << 24;

/// Rows in memory: all that were added, or none if they exceed the limit.
struct ActiveRows {
    most: usize,
    pages: Vec<u32>,
    rows: LinkRows,
}

impl ActiveRows {
    /// Returns an empty table with a limit of `links` links.
    fn new(links: u64) -> ActiveRows {
        ActiveRows {
            most: usize::try_from(links).unwrap_or(usize::MAX),
            pages: Vec::new(),
            rows: LinkRows::default(),
        }
    }

    fn add(&mut self, row: Row<'_>) {
        if self.rows.links() + row.targets.len() + self.pages.len() + 1 > self.most {
            *self = ActiveRows::new(0);
        } else {
            self.pages.push(row.page);
            self.rows.push(row.into());
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let rows = self.pages.iter().zip(self.rows.all());
        rows.map(|(&page, links)| links.of(page))
    }
}

impl<const K: usize> PushThresholds<K> {
    fn of(&self, held: &[f64; K]) -> f64 {
        let of = |(held, weight): (&f64, &f64)| held.abs() * weight;
        held.iter().zip(&self.weights).map(of).sum()
    }

    fn has(&self, held: &[f64; K], links: usize) -> bool {
        self.of(held) > self.least * ((links + 1) as f64).sqrt()
    }
}

/// Returns the K numbers of a page.
fn of<const K: usize>(cells: &[f64], page: usize) -> [f64; K] {
    let at = page * K;
    std::array::from_fn(|payer| cells.get(at + payer).copied().unwrap_or(0.0))
}

fn add_to<const K: usize>(cells: &mut [f64], page: usize, units: [f64; K]) {
    let at = page * K;
    if let Some(cells) = cells.get_mut(at..at + K) {
        cells
            .iter_mut()
            .zip(units)
            .for_each(|(cell, units)| *cell += units);
    }
}

impl<const K: usize> Pushes<K> {
    /// Returns a state in which no page holds anything.
    pub fn new(damping: f64, returned: f64) -> Pushes<K> {
        Pushes {
            damping,
            pages: 0,
            handed: Cells::default(),
            held: Cells::default(),
            open: Cells::default(),
            returned,
            stale: [0.0; K],
            links: 0,
        }
    }

    /// Returns the number of links followed so far.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// Returns what an unread page received, or the residual of a page read.
    pub fn held(&self, page: u32) -> [f64; K] {
        of(&self.held, page as usize)
    }

    /// Returns what a page passed on.
    pub fn handed(&self, page: u32) -> [f64; K] {
        of(&self.handed, page as usize)
    }

    /// Makes room for all known pages.
    pub fn grow(&mut self, pages: u32) {
        let pages = pages as usize;
        if self.pages < pages {
            self.pages = pages;
            self.handed.grow(pages * K);
            self.held.grow(pages * K);
            self.open.grow(pages);
        }
    }

    /// Pays a page from the virtual page.
    pub fn pay(&mut self, page: u32, units: [f64; K]) {
        add_to(&mut self.held, page as usize, units);
    }

    /// Changes the part returned of what unread pages receive.
    pub fn set_returned(&mut self, returned: f64) {
        let change = (returned - self.returned) * self.damping;
        if change == 0.0 {
            return;
        }
        self.returned = returned;
        let (handed, open): (&[f64], &[f64]) = (&self.handed, &self.open);
        let held: &mut [f64] = &mut self.held;
        for (page, &open) in open[..self.pages].iter().enumerate() {
            let handed = of::<K>(handed, page);
            add_to(held, page, handed.map(|handed| change * open * handed));
        }
    }

    /// Begins the reading of a page, which `by` found with this part of its links: from now on it passes on what it
    /// receives, and nothing returns from it.
    pub fn begin(&mut self, page: u32, by: Option<(u32, f64)>) {
        let received = self.held(page);
        add(&mut self.stale, received);
        if let Some((by, part)) = by {
            let back = self.handed(by).map(|handed| -self.damping * part * handed);
            self.open[by as usize] -= part;
            self.come_back(by as usize, back);
        }
    }

    /// Credits a page with the returned part of these units, which unread pages receive from it.
    fn come_back(&mut self, page: usize, units: [f64; K]) {
        let returned = units.map(|units| self.returned * units);
        add_to(&mut self.held, page, returned);
        add(&mut self.stale, units);
    }

    /// Pushes a page that was read.
    pub fn push(&mut self, crawl: &CrawlState, row: Row<'_>) {
        self.update_open(crawl, row);
        self.push_on(row);
    }

    /// Pushes a page whose part of links to unread pages is up to date.
    fn push_on(&mut self, row: Row<'_>) {
        let page = row.page as usize;
        self.links += row.targets.len() as u64;
        let back = self.returned * self.damping * self.open[page];
        let units = of::<K>(&self.held, page).map(|held| held / (1.0 - back));
        self.held[page * K..][..K].fill(0.0);
        add_to(&mut self.handed, page, units);
        self.hand_on(row, units);
    }

    /// Updates the part of a page's links that leads to unread pages.
    fn update_open(&mut self, crawl: &CrawlState, row: Row<'_>) {
        let page = row.page as usize;
        let open = open_part(crawl, row);
        let change = self.damping * (open - self.open[page]);
        if change != 0.0 {
            let units = of::<K>(&self.handed, page).map(|handed| change * handed);
            self.come_back(page, units);
        }
        self.open[page] = open;
    }

    fn hand_on(&mut self, row: Row<'_>, units: [f64; K]) {
        let (damping, held): (f64, &mut [f64]) = (self.damping, &mut self.held);
        if row.weights.is_empty() {
            let each = units.map(|units| damping * units / row.targets.len() as f64);
            for &target in row.targets {
                add_to(held, target as usize, each);
            }
            return;
        }
        for (target, part) in row.parts() {
            add_to(
                held,
                target as usize,
                units.map(|units| damping * part * units),
            );
        }
    }

    /// Sweeps over the rows until no page qualifies for a push, or the pushed pages held little together; at most
    /// `most` sweeps.
    pub fn settle(
        &mut self,
        crawl: &CrawlState,
        rows: &dyn Rows,
        worth: PushThresholds<K>,
        most: u32,
    ) -> Result<()> {
        // No page is read meanwhile: the links to unread pages are counted once per page.
        let mut seen = vec![0u64; self.pages / 64 + 1];
        let near = PushThresholds {
            least: worth.least * NEAR,
            ..worth
        };
        let links = rows.links().div_ceil(ACTIVE_PART).max(ACTIVE_LINKS);
        for sweep in 0..most {
            let mut pushed = 0.0;
            let mut active = ActiveRows::new(if sweep < ACTIVE_FROM { 0 } else { links });
            rows.sweep(&mut |row| {
                let page = row.page as usize;
                if page >= self.pages || !crawl.is_read(row.page) {
                    return Ok(());
                }
                let held = of(&self.held, page);
                if near.has(&held, row.targets.len()) {
                    active.add(row);
                }
                pushed += self
                    .push_worthy(crawl, row, &worth, &mut seen)
                    .unwrap_or(0.0);
                Ok(())
            })?;
            if pushed <= worth.enough {
                break;
            }
            let mut any = !active.pages.is_empty();
            while std::mem::take(&mut any) {
                for row in active.rows() {
                    any |= self.push_worthy(crawl, row, &worth, &mut seen).is_some();
                }
            }
        }
        Ok(())
    }

    /// Pushes a page if it qualifies, counting its links to unread pages the first time; returns its weighted residual.
    fn push_worthy(
        &mut self,
        crawl: &CrawlState,
        row: Row<'_>,
        worth: &PushThresholds<K>,
        seen: &mut [u64],
    ) -> Option<f64> {
        let page = row.page as usize;
        let held = of(&self.held, page);
        if !worth.has(&held, row.targets.len()) {
            return None;
        }
        let (word, bit) = (&mut seen[page / 64], 1 << (page % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.update_open(crawl, row);
        }
        self.push_on(row);
        Some(worth.of(&held))
    }

    /// Recomputes the residuals from what each page passed on (`handed`, for pages read) and what the virtual page pays
    /// it, by one sweep over the current rows; without a sweep if no page passed anything on.
    pub fn renew(
        &mut self,
        crawl: &CrawlState,
        rows: &dyn Rows,
        returned: f64,
        paid: impl Fn(u32) -> [f64; K],
        handed: impl Fn(&Pushes<K>, u32) -> [f64; K],
    ) -> Result<()> {
        self.grow(crawl.pages());
        self.returned = returned;
        self.stale = [0.0; K];
        self.open.fill(0.0);
        let mut nothing = true;
        for page in 0..self.pages as u32 {
            let units = if crawl.is_read(page) {
                handed(self, page)
            } else {
                [0.0; K]
            };
            nothing &= units == [0.0; K];
            self.handed[page as usize * K..][..K].copy_from_slice(&units);
            self.held[page as usize * K..][..K].copy_from_slice(&paid(page));
        }
        if nothing {
            return Ok(());
        }
        rows.sweep(&mut |row| {
            let page = row.page as usize;
            if page < self.pages && crawl.is_read(row.page) {
                self.links += row.targets.len() as u64;
                let units = of::<K>(&self.handed, page);
                self.open[page] = open_part(crawl, row);
                let kept = self.returned * self.damping * self.open[page] - 1.0;
                add_to(&mut self.held, page, units.map(|units| kept * units));
                self.hand_on(row, units);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Scales what pages passed on, and their residuals, by the factor (out of 40 tried) for which the residual left,
    /// with what the virtual page `pays`, is smallest. Assumes that residuals come only from what was passed on.
    pub fn scale(&mut self, crawl: &CrawlState, pays: impl Fn(u32) -> [f64; K]) {
        let read = || (0..self.pages as u32).filter(|&page| crawl.is_read(page));
        let sum = |of: &dyn Fn(u32) -> [f64; K]| {
            read().map(|page| of(page).iter().sum::<f64>()).sum::<f64>()
        };
        // With this factor the residuals sum to 0.
        let whole = -sum(&pays) / sum(&|page| self.held(page));
        let mut best = 0.0;
        if whole.is_finite() && whole > 0.0 {
            for (from, step) in [(0.0, whole / 8.0), (-whole / 10.0, whole / 50.0)] {
                let tried: [f64; 11] =
                    std::array::from_fn(|at| (best + from + step * at as f64).max(0.0));
                let mut left = [0.0; 11];
                for page in read() {
                    let (paid, held) = (pays(page), self.held(page));
                    for (left, scale) in left.iter_mut().zip(tried) {
                        let each = paid.iter().zip(held);
                        *left += each
                            .map(|(paid, held)| (paid + scale * held).abs())
                            .sum::<f64>();
                    }
                }
                let least = (0..tried.len()).min_by(|&a, &b| left[a].total_cmp(&left[b]));
                best = tried[least.unwrap_or(0)];
            }
        }
        let (handed, held): (&mut [f64], &mut [f64]) = (&mut self.handed, &mut self.held);
        handed.iter_mut().for_each(|units| *units *= best);
        held.iter_mut().for_each(|units| *units *= best);
        self.stale = self.stale.map(|units| units * best);
        for page in 0..self.pages as u32 {
            self.pay(page, pays(page));
        }
    }

    /// Sets what a page passed on as a starting point; [`Pushes::renew`] must follow.
    pub fn set_handed(&mut self, page: u32, units: [f64; K]) {
        if let Some(handed) = self
            .handed
            .get_mut(page as usize * K..(page as usize + 1) * K)
        {
            handed.copy_from_slice(&units);
        }
    }

    /// Returns the bound on the L1 error of the pages read, for each payer; that of the others is d times this.
    #[cfg(test)]
    pub fn bound(&self, crawl: &CrawlState) -> [f64; K] {
        let mut sum = self.stale.map(|stale| self.returned * stale.abs());
        for page in (0..crawl.pages()).filter(|&page| crawl.is_read(page)) {
            add(&mut sum, self.held(page).map(f64::abs));
        }
        sum.map(|sum| sum / (1.0 - self.damping))
    }
}

/// Returns the part of a page's links that leads to unread pages.
fn open_part(crawl: &CrawlState, row: Row<'_>) -> f64 {
    if row.weights.is_empty() {
        let open = row.targets.iter().filter(|&&target| !crawl.is_read(target));
        return open.count() as f64 / row.targets.len().max(1) as f64;
    }
    let of_open = |(target, part): (u32, f64)| if crawl.is_read(target) { 0.0 } else { part };
    row.parts().map(of_open).sum()
}

fn add<const K: usize>(to: &mut [f64; K], units: [f64; K]) {
    for (to, units) in to.iter_mut().zip(units) {
        *to += units;
    }
}

#[cfg(test)]
mod tests;
