//! The importance that pages receive, kept up by pushes: Forecast's importance without sweeps over all rows.
//!
//! ```text
//! x_i = b_i + sum over pages p read that link to i of d w_pi x_p + r d u_i x_i      (i was read)
//! y_j =       sum over pages p read that link to j of d w_pj x_p                      (j was not)
//! ```
//!
//! b_i is what the virtual page pays page i, w_pi the part of p's links that leads to i, u_i the part of i's links that leads to
//! pages not read, and r what comes back of what those receive. The equations are linear: for several payers (the pages read, the
//! seeds) there is a solution each, and any mixture of payers has the same mixture of solutions.
//!
//! **State.** X_i, what page i handed on so far, and D_i, what it holds: x = X + D where nothing is held back. A *push* of page i
//! moves D_i/(1 - r d u_i) to X_i and hands d times that over i's links; what would come back to i is in it. D is signed: where
//! a page is read that others had counted as not read, what came back from it is taken back, at once from the page that found
//! it, from others when they are pushed next; the sum of what is still to be taken back is known (`stale`).
//!
//! **Law.** sum of D = sum of b + sum over pages read of (d [it has links] + r d u_i - 1) X_i.
//!
//! **Certificate.** A push leaves at most d of an error at pages read. So all x together are within
//! B = (sum over pages read of |D_i| + r |stale|)/(1 - d) of the solution, and all y within d B.
//!
//! **Cost.** A page is pushed when it is read, and when D_i is worth the price of its row, in [`Pushes::settle`], which goes over
//! the rows until no page is; from the third time on rows of pages that hold nearly as much are kept in memory meanwhile, and
//! gone over there. 16 bytes a page and payer, and 8 more.
//!
//! **Restarting.** D is a function of X, the rows and b: by the equations themselves D_i = b_i + (r d u_i - 1) X_i +
//! sum over p of d w_pi X_p. So where rows were changed, one sweep finds D again, with nothing to be taken back
//! ([`Pushes::renew`]); and X may be anything to begin with, such as a ranking that was settled before.

use super::Crawl;
use crate::Result;
use crate::engine::Cells;
use crate::graph::Table;
use crate::rows::{Row, Rows};

/// The solutions for K payers, as far as they are known.
pub(super) struct Pushes<const K: usize> {
    /// d
    damping: f64,
    pages: usize,
    /// Of each page X, K numbers.
    handed: Cells<f64>,
    /// Of each page D; of pages not read this is y.
    held: Cells<f64>,
    /// Of each page read u, as of its last push.
    open: Cells<f64>,
    /// r
    returned: f64,
    /// Of what pages received before they were read, what is still counted as coming back: r times this.
    stale: [f64; K],
    /// Links gone over.
    links: u64,
}

/// When a page is worth a push.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worth<const K: usize> {
    /// The weight of a unit of each payer.
    pub weights: [f64; K],
    /// A page with m links is pushed if it holds more than this times the square root of m + 1.
    pub least: f64,
    /// Where all pages that were pushed in a sweep held no more than this together, the next one is not worth it: what is left
    /// to push is less.
    pub enough: f64,
}

/// Rows of pages that hold this part of what is worth a push, or more, are kept in memory for a while: most pages that will be
/// worth one are among them, and hand on to each other.
const NEAR: f64 = 0.25;
/// From this sweep on: in the first ones that is nearly all of them.
const ACTIVE_FROM: u32 = 2;
/// If they have no more links than this part of all, or than a store of that size.
const ACTIVE_PART: u64 = 4;
const ACTIVE_LINKS: u64 = 1 << 24;

/// Rows in memory, all or none of those that were added.
struct ActiveRows {
    most: usize,
    pages: Vec<u32>,
    rows: Table,
}

impl ActiveRows {
    /// Room for so many links.
    fn new(links: u64) -> ActiveRows {
        ActiveRows {
            most: usize::try_from(links).unwrap_or(usize::MAX),
            pages: Vec::new(),
            rows: Table::default(),
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

impl<const K: usize> Worth<K> {
    fn of(&self, held: &[f64; K]) -> f64 {
        let of = |(held, weight): (&f64, &f64)| held.abs() * weight;
        held.iter().zip(&self.weights).map(of).sum()
    }

    fn has(&self, held: &[f64; K], links: usize) -> bool {
        self.of(held) > self.least * ((links + 1) as f64).sqrt()
    }
}

/// The K numbers of a page.
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
    /// Nobody holds anything.
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

    /// Links gone over so far.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// The units that a page not read received; of others, those that they hold.
    pub fn held(&self, page: u32) -> [f64; K] {
        of(&self.held, page as usize)
    }

    /// The units that a page handed on.
    pub fn handed(&self, page: u32) -> [f64; K] {
        of(&self.handed, page as usize)
    }

    /// Makes room for all pages known.
    pub fn grow(&mut self, pages: u32) {
        let pages = pages as usize;
        if self.pages < pages {
            self.pages = pages;
            self.handed.grow(pages * K);
            self.held.grow(pages * K);
            self.open.grow(pages);
        }
    }

    /// The virtual page pays a page.
    pub fn pay(&mut self, page: u32, units: [f64; K]) {
        add_to(&mut self.held, page as usize, units);
    }

    /// Changes what comes back of what pages not read receive.
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

    /// A page was read, which `by` found, with this part of its links: what it received is its own to hand on, and nothing of
    /// it comes back any more.
    pub fn begin(&mut self, page: u32, by: Option<(u32, f64)>) {
        let received = self.held(page);
        add(&mut self.stale, received);
        if let Some((by, part)) = by {
            let back = self.handed(by).map(|handed| -self.damping * part * handed);
            self.open[by as usize] -= part;
            self.come_back(by as usize, back);
        }
    }

    /// Credits a page with the part of these units that comes back from pages not read, which receive them.
    fn come_back(&mut self, page: usize, units: [f64; K]) {
        let returned = units.map(|units| self.returned * units);
        add_to(&mut self.held, page, returned);
        add(&mut self.stale, units);
    }

    /// Hands on what a page holds that was read.
    pub fn push(&mut self, crawl: &Crawl, row: Row<'_>) {
        self.update_open(crawl, row);
        self.push_on(row);
    }

    /// The same, where it is known which part of its links leads to pages not read.
    fn push_on(&mut self, row: Row<'_>) {
        let page = row.page as usize;
        self.links += row.targets.len() as u64;
        let back = self.returned * self.damping * self.open[page];
        let units = of::<K>(&self.held, page).map(|held| held / (1.0 - back));
        self.held[page * K..][..K].fill(0.0);
        add_to(&mut self.handed, page, units);
        self.hand_on(row, units);
    }

    /// Sees again which part of a page's links leads to pages not read.
    fn update_open(&mut self, crawl: &Crawl, row: Row<'_>) {
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

    /// Goes over the rows until no page is worth a push, or what all that were pushed held is little; at most so many times.
    pub fn settle(
        &mut self,
        crawl: &Crawl,
        rows: &dyn Rows,
        worth: Worth<K>,
        most: u32,
    ) -> Result<()> {
        // Nobody is read meanwhile: which links lead to pages not read is looked at once a page.
        let mut seen = vec![0u64; self.pages / 64 + 1];
        let near = Worth {
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

    /// Pushes a page if that is worth it, and looks the first time which of its links lead to pages not read; what it was
    /// worth.
    fn push_worthy(
        &mut self,
        crawl: &Crawl,
        row: Row<'_>,
        worth: &Worth<K>,
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

    /// Computes again what pages hold, from what each handed on (`handed`; only pages read do) and what the virtual
    /// page pays it, in one sweep over the rows as they are now; in none if nobody handed on anything.
    pub fn renew(
        &mut self,
        crawl: &Crawl,
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

    /// Makes what pages handed on, and hold of it, so many times as much: the multiple for which what is then left to hand on,
    /// with what the virtual page `pays` them, is least, of 40. Nobody holds anything else.
    pub fn scale(&mut self, crawl: &Crawl, pays: impl Fn(u32) -> [f64; K]) {
        let read = || (0..self.pages as u32).filter(|&page| crawl.is_read(page));
        let sum = |of: &dyn Fn(u32) -> [f64; K]| {
            read().map(|page| of(page).iter().sum::<f64>()).sum::<f64>()
        };
        // With it, what is left is 0 in all.
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

    /// Has a page have handed on so much, to begin with; [`Pushes::renew`] is to follow.
    pub fn set_handed(&mut self, page: u32, units: [f64; K]) {
        if let Some(handed) = self
            .handed
            .get_mut(page as usize * K..(page as usize + 1) * K)
        {
            handed.copy_from_slice(&units);
        }
    }

    /// The most by which all that pages read have, for each payer, differs from the solution; that of others by d times
    /// this.
    #[cfg(test)]
    pub fn bound(&self, crawl: &Crawl) -> [f64; K] {
        let mut sum = self.stale.map(|stale| self.returned * stale.abs());
        for page in (0..crawl.pages()).filter(|&page| crawl.is_read(page)) {
            add(&mut sum, self.held(page).map(f64::abs));
        }
        sum.map(|sum| sum / (1.0 - self.damping))
    }
}

/// The part of a page's links that leads to pages not read.
fn open_part(crawl: &Crawl, row: Row<'_>) -> f64 {
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
