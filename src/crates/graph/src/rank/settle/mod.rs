//! Settling: computes the PageRank of pages from their links, with a certificate.
//!
//! OPIC distributes cash when a page is crawled, mostly once. Over kept links ([`Rows`]) cash can pass again without
//! fetching anything. [`settle`] does that from the latest row of every page alone: the same rows give the same bytes,
//! whatever their order of arrival.
//!
//! **The ledger** (`block`). Let X be any estimate and Y = L'X, one step of the damped walk from it. K = Y - X is
//! *signed cash*: it sums to 0, and where it is 0 everywhere X is PageRank. A visit of page i adds K_i to X_i and
//! passes it on like cash; credits and debts cancel on the way. (K. Avrachenkov, P. Brown, N. Litvak, "Red Light Green
//! Light Method for Solving Large Markov Chains", 2022; OPIC is the case without debts; L. Page's power iteration is
//! the case in which all pages are visited at once.) All numbers are whole. With m_i links of page i, n pages and
//! damping d:
//!
//! ```text
//! share(x)_i = floor(floor(|x| d) / m_i), with the sign of x    what page i passes on over each link
//! D_j = sum over links i -> j of share(X_i)_i  -  X_j           the link part of Y - X
//! T   = sum over pages i of  X_i - m_i share(X_i)_i             what the virtual page has received
//! K_j = D_j + T/n                                               law: sum D + T = 0
//! ```
//!
//! D is a function of X: a visit passes on share(X_i + k) - share(X_i), so that rounding does not accumulate. If links
//! have weights w of W in total, a link carries floor(floor(|x| d) w / W). A page with no row or an empty one passes
//! all it has to the virtual page.
//!
//! **Certificate.** Let s = sum X, x = X/s, r = ||K||_1/s, pi PageRank, and y = (X + K)/s what is published. Each
//! link's share is off by less than one unit from d X_i/m_i (|x| d is rounded once and its quotient once, and
//! floor(floor(a)/m) = floor(a/m)), and the virtual page receives the remainder: y differs from the exact step L'x by
//! at most e = 2 x links/s in L1. L' shrinks differences of vectors of the same sum by d, so
//!
//! ```text
//! ||y - pi|| <= ||y - L'x|| + ||L'x - L'pi|| <= e + d ||x - pi||    and    ||x - pi|| <= ||x - y|| + ||y - pi|| = r + ||y - pi||
//! hence     ||y - pi||_1 <= (d r + e)/(1 - d)      and      ||x - pi||_1 <= (r + e)/(1 - d)
//! ```
//!
//! T/n is not rounded: with T = n w + v and 0 <= v < n, ||K||_1 <= sum |D_j + w| + v, and this bound is used. If the
//! virtual page pays page j by a weight w_j of W in total ([`Teleport`]), T w_j/W replaces T/n and W replaces n: it
//! pays w_j times the whole units per unit of weight, and v < W is left. d is the engine's damping, a multiple of
//! 2^-32, in both. Pages below 0, which signed cash allows, are published as 0, and the others are divided by the new
//! sum 1 + b; that reduces the distance by b at the pages below 0 and adds at most b at the others. Quotients are
//! rounded up. The law and the sum of X are checked after every sweep, on all pages.
//!
//! **Start.** X = 0 and K = 2^58/n everywhere, as if the virtual page had just paid all pages, so no sweep is needed to
//! initialise D.
//!
//! **From an earlier state.** A settled state of earlier rows can be the start (warm start): new pages have X = 0, and if
//! a page's row changed, what X passed on over the old row is taken back and passed on over the new one. D is then
//! exactly the above function of X and the latest rows, so everything holds as from nothing. A state is not used if it
//! has less than half of the pages, if more links changed than there are, or if more than half of all importance waits
//! after the update, for settling from nothing is then as quick. Another start is an **estimate**, such as a published
//! ranking: X is the estimate in whole units, and a sweep computes D from X. It may be wrong, or belong to other rows or
//! another damping: the certificate does not depend on it.
//!
//! **Over-relaxation.** What a page receives mostly has the sign of what it received last. So a page whose K had the
//! same sign at j consecutive visits passes on 1 + j/10 times what it has, j <= 4; a change of sign resets j. This
//! saves a third of the links; one factor for all pages stalls on some graphs with pairs of mutual links. The
//! additional units of a sweep are at most half of ||K||_1 at its beginning, so the norm at most doubles; a sweep that
//! gained little is followed by one without over-relaxation, which never increases the norm.
//!
//! **No number overflows.** From nothing the first sweep adds at most 2^58 to a page, and ||K||_1 <= 2^59 after it; an
//! earlier state with a larger norm is not used. The norm at most doubles in a sweep, and above twice the least so far
//! there is no over-relaxation, so it is below 2^61. If an X exceeds 2^61, as it may near d = 1, where pages with
//! nearly all importance begin with as little as the others, X and D are halved, rounded down, and T = -sum D; likewise
//! if an earlier state's X sum to more than 2^60. From then on D is the above function of X plus a vector c, which
//! visits and changes of rows do not affect, and T is off by -sum c. Halving turns c into at most c/2, plus half a unit
//! per page for D, (1 + d)/2 per page for X and what it passes on, and for the rounding of each link half a unit before
//! and one after: ||c||_1/2 + 1.5 (n + links). It changes Y by at most ||c||_1 + |sum c|, whatever the later number of
//! pages. So with F = 0 at first, and F/2 + 3 (n + links) after each halving, 2 ||c||_1 <= F and e = (F + 2 links)/s.
//!
//! **Which pages to visit** (`worth`). A sweep visits the pages whose |K_i| is large relative to the cost of a
//! visit, |K_i|/(m_i + 1)^0.8 >= theta, both when it begins and when it reaches their rows; the first sweep from nothing
//! considers all. The pages above theta hold a share q of ||K||_1; near the end, as much as is needed to reach the goal.
//! After some sweeps (4 where d = 0.85) that hardly reduced r, although rounding does not explain what waits, all pages
//! that have anything are visited: on tiny graphs the pages above theta may pass what they have to each other. Any
//! choice of pages keeps the certificate. Pages without links are visited all at once after each sweep, exactly.
//!
//! **Memory**: 18 bytes per page ([`BYTES`]), and what reading rows takes.

mod block;
mod settling;
mod shards;
#[cfg(test)]
pub mod tests;
mod worth;

use super::peers::OneProcess;
use super::{RankOptions, Teleport};
use crate::engine::{
    Certificate, Effort, Engine, Estimator, InMemory, Ranking, ScoreUnits, Scores, SettledPages,
    SettledPagesMut, SettledTotals, ratio_up,
};
use crate::rows::{RowVisitor, Rows, Stop};
use crate::{Error, Result};
use block::{LedgerBlock, SUPPLY};
use settling::{LedgerTotals, Settling};
pub use shards::{ShardRows, settle_shards};
use worth::{LevelHistogram, VisitLevel};

pub const BYTES: u64 = 18;
/// Smallest sum of X for which there are enough units to distinguish bounds.
const SUM_MIN: i128 = 1 << 50;
/// Sum of X above which units are doubled before rows change, as the sum mostly grows from one state to the next.
const SUM_MAX: i128 = 1 << 60;
/// Maximum ||K||_1 at the start: see "No number overflows".
const UNITS_MAX: u128 = 1 << 59;
/// Value of ||K||_1 / s above which a state is not used.
const WAITING_MAX: f64 = 0.5;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SettlingProgress {
    pub sweeps: u64,
    /// Number of links over which something was passed on.
    pub links_touched: u64,
    pub links: u64,
    /// Certified bound so far; `None` if it is 2 or more.
    pub bound: Option<f64>,
}

/// Observer of a settling, which can stop it.
pub trait Watch: Send {
    fn swept(&mut self, progress: &SettlingProgress);
    /// Returns true to stop with the current state. Called often, also within sweeps.
    fn is_over(&mut self) -> bool;
}

impl Watch for () {
    fn swept(&mut self, _: &SettlingProgress) {}

    fn is_over(&mut self) -> bool {
        false
    }
}

/// Settled ranking of the pages of a store, or of one shard, without the scores of its remote pages.
pub struct SettlingResult {
    block: LedgerBlock,
    totals: LedgerTotals,
    /// Sums of y and of x over all shards, including the corrections for pages below 0.
    sums: (f64, f64),
    pub effort: Effort,
    pub certificate: Certificate,
    /// True if it reached the bound or further sweeps were useless; false if it was stopped.
    by_itself: bool,
}

impl Scores for SettlingResult {
    fn certificate(&self) -> Option<Certificate> {
        Some(self.certificate)
    }

    fn effort(&self) -> Effort {
        self.effort
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
        out.clear();
        out.extend(self.estimates(first, len));
        Ok(())
    }
}

impl SettlingResult {
    /// Returns the unit of importances, if all pages have the same weight.
    pub fn units(&self, estimator: Estimator) -> ScoreUnits {
        let (offset, sum) = match estimator {
            Estimator::Received => (self.totals.paid(), self.sums.0),
            Estimator::Distributed => (0.0, self.sums.1),
        };
        ScoreUnits { offset, sum }
    }

    /// Yields (y, x) of `len` pages from `first` on: importance and distributed. Each sums to 1 over all pages.
    fn estimates(&self, first: u64, len: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        let (paid, sums) = (self.totals.paid(), self.sums);
        let pages = self.block.cells(first as usize, len);
        pages.map(move |(own, account, weight)| {
            // Few sums are so large that they need the slow conversion, which rounds the same.
            let received = match own.checked_add(account) {
                Some(received) => received as f64,
                None => (i128::from(own) + i128::from(account)) as f64,
            };
            let received = received + paid * weight as f64;
            (received.max(0.0) / sums.0, own.max(0) as f64 / sums.1)
        })
    }

    /// Checks that D is the function of X defined in the module documentation over these rows, within the stated bound
    /// if units were doubled.
    #[cfg(test)]
    fn is_function_of_own(&self, rows: &dyn Rows) -> Result<bool> {
        let mut peers = OneProcess::new(1);
        let (uniform, own) = (Teleport::default(), &self.block);
        let damping = self.totals.damping;
        let mut other = Settling::of_store(rows, damping, &uniform, &mut peers)?;
        other.hand_on(|_, block| {
            block.own_as(own);
            block.hand_on_all(own, rows)
        })?;
        Ok(2 * other.blocks[0].differs(own) <= self.totals.strayed)
    }

    /// Returns y of a page.
    pub fn share(&self, page: u32) -> f64 {
        let mut pages = self.estimates(page.into(), 1);
        pages.next().map_or(0.0, |(received, _)| received)
    }

    /// Yields y of a store without shards, in page order.
    pub fn shares(&self) -> impl Iterator<Item = f64> + '_ {
        let pages = self.estimates(0, self.totals.pages as usize);
        pages.map(|(received, _)| received)
    }

    pub fn importance(&self) -> Vec<f64> {
        self.shares().collect()
    }

    /// Returns the numbers of all pages; `None` if the teleport is not uniform.
    pub fn settled_pages(&self) -> Option<SettledPages<'_>> {
        self.block.settled_pages()
    }

    /// Returns the totals of a state to start from, if this settling was not stopped and is usable.
    pub fn state_totals(&self) -> Option<SettledTotals> {
        let totals = SettledTotals {
            pages: self.totals.pages,
            damping: self.totals.damping,
            sum: self.totals.sum,
            virtual_page: self.totals.virtual_page,
            strayed: self.totals.strayed,
            effort: self.effort,
        };
        (self.by_itself && totals.sum >= SUM_MIN).then_some(totals)
    }
}

/// Settles the rows. Returns `None` if it was stopped before the first sweep was complete, or if there are no pages.
/// Fails if rows differ between sweeps or name pages that do not exist.
pub fn settle(
    rows: &dyn Rows,
    options: &RankOptions,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    settle_for(rows, options, &Teleport::default(), watch)
}

/// Settles personalised PageRank, in which the virtual page pays pages by weights. Fails with [`Error::Usage`] if
/// `teleport` does not have a weight for each page.
pub fn settle_for(
    rows: &dyn Rows,
    options: &RankOptions,
    teleport: &Teleport,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    if rows.pages() == 0 {
        return Ok(None);
    }
    teleport.check(rows.pages())?;
    let mut peers = OneProcess::new(1);
    let settling = Settling::of_store(rows, options.damping, teleport, &mut peers)?;
    let level = if teleport.is_uniform() {
        VisitLevel::Beginning(settling.totals.at_first())
    } else {
        // Few pages may have anything at first, so all are visited.
        VisitLevel::From(i32::MIN)
    };
    settling.run_one(options, Some(level), watch)
}

impl Engine<InMemory> {
    /// Returns a ranking by PageRank of the links of all pages as of their last visits, with a certified L1 error of at
    /// most `until`.
    /// Fails with [`Error::Usage`] if the settings ask for importance over a period, which links alone do not give.
    pub fn settled(&mut self, until: f64) -> Result<Ranking> {
        let rows = self.rows().ok_or_else(|| {
            Error::Usage(
                "importance over a period, which the window asks for, cannot be settled".into(),
            )
        })?;
        let damping = self.config().damping_units();
        let settled = settle(rows, &RankOptions::until(damping, until), &mut ())?;
        self.ranking_by(settled.as_ref().map(|settled| settled as &dyn Scores))
    }
}

/// Settled state of earlier rows, and the changes of rows since.
pub trait StartState: Sync {
    fn totals(&self) -> &SettledTotals;
    /// Returns the effort of the state if it covers everything read, which a settling with nothing to do reports.
    fn own_effort(&self) -> Option<Effort>;
    /// Returns the numbers of new rows and of links in new and superseded rows, for the state's pages.
    fn changed(&self) -> (u64, u64);
    /// Fills in the numbers of the state's pages.
    fn load(&self, pages: SettledPagesMut<'_>) -> Result<()>;
    /// Calls `visit` with each row superseded since the state was made.
    fn old_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;
    /// Calls `visit` with each row added since the state was made.
    fn new_rows(&self, visit: &mut RowVisitor<'_>) -> Result<(), Stop>;
}

impl Settling<'_> {
    /// Halves numbers until the sum of X may grow. `links` is the number of links of the state's rows.
    fn make_room(&mut self, links: u64) -> Result<()> {
        while self.totals.sum > SUM_MAX {
            self.halve(links)?;
        }
        Ok(())
    }

    /// Settles from the current state; returns `None` if settling from nothing is as quick.
    fn resume(
        mut self,
        waiting: Option<LevelHistogram>,
        options: &RankOptions,
        watch: &mut dyn Watch,
    ) -> Result<Option<SettlingResult>> {
        let is_near = |waiting: &LevelHistogram| {
            let norm = waiting.norm();
            let share = ratio_up(norm, self.totals.sum.unsigned_abs());
            share <= WAITING_MAX && norm <= UNITS_MAX
        };
        let Some(waiting) = waiting.filter(is_near) else {
            return Ok(None);
        };
        let next = self.look(options, &waiting, true, watch)?;
        self.run_one(options, next, watch)
    }
}

/// Returns true if a state of the first `known` pages, whose X sum to `sum`, is worth settling from.
fn is_useful(rows: &dyn Rows, known: u64, sum: i128) -> bool {
    let pages = rows.pages();
    known > 0 && known <= pages && known >= pages.div_ceil(2) && sum >= SUM_MIN
}

/// Settles from an earlier state. Returns `None` if it is useless, or if it was stopped before anything was known.
pub fn settle_from(
    rows: &dyn Rows,
    options: &RankOptions,
    start: &dyn StartState,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    let (totals, pages) = (start.totals(), rows.pages());
    let (changed_rows, changed_links) = start.changed();
    if totals.damping != options.damping
        || !is_useful(rows, totals.pages, totals.sum)
        || changed_links > rows.links()
    {
        return Ok(None);
    }
    let mut peers = OneProcess::new(1);
    let uniform = Teleport::default();
    let mut settling = Settling::of_store(rows, totals.damping, &uniform, &mut peers)?;
    settling.is_resumed = true;
    settling.totals = LedgerTotals {
        sum: totals.sum,
        virtual_page: totals.virtual_page,
        strayed: totals.strayed,
        is_first_sweep: false,
        ..settling.totals
    };
    start.load(settling.blocks[0].first_pages(totals.pages as usize))?;
    let is_same = changed_rows == 0 && pages == totals.pages;
    if !is_same {
        settling.make_room(totals.effort.links)?;
    }
    settling.hand_on(|_, block| {
        Stop::is_whole(start.old_rows(&mut |row| block.take_back(&row).map_err(Stop::Failed)))?;
        Stop::is_whole(start.new_rows(&mut |row| block.hand_out(&row).map_err(Stop::Failed)))
    })?;
    let waiting = if is_same {
        Some(settling.weigh(None)?.0)
    } else {
        settling.end_sweep()?
    };
    // If nothing changed, nothing is improved, however cheap that is.
    let spare = if is_same { 0 } else { options.spare };
    let options = &RankOptions { spare, ..*options };
    let Some(mut settled) = settling.resume(waiting, options, watch)? else {
        return Ok(None);
    };
    let is_unmoved = changed_rows == 0 && settled.effort.sweeps == 0;
    let own = start.own_effort().filter(|own| own.until == options.until);
    if let Some(own) = own.filter(|_| is_unmoved) {
        settled.effort.sweeps = own.sweeps;
        settled.effort.links_touched = own.links_touched;
        settled.effort.resumed = own.resumed;
    }
    Ok(Some(settled))
}

/// Source of importances to settle from.
pub trait Importances: Sync {
    /// Returns the number of importances; they belong to the first pages.
    fn pages(&self) -> u64;
    /// Calls `visit` with each importance, in page order; they sum to about 1.
    fn each(&self, visit: &mut dyn FnMut(f64)) -> Result<()>;
}

impl Importances for Vec<f64> {
    fn pages(&self) -> u64 {
        self.len() as u64
    }

    fn each(&self, visit: &mut dyn FnMut(f64)) -> Result<()> {
        self.iter().for_each(|share| visit(*share));
        Ok(())
    }
}

fn units(share: f64) -> i64 {
    (share.clamp(0.0, 1.0) * SUPPLY as f64) as i64
}

/// Settles from an estimate. Returns `None` if it is useless, or if it was stopped before anything was known.
pub fn settle_near(
    rows: &dyn Rows,
    near: &dyn Importances,
    options: &RankOptions,
    watch: &mut dyn Watch,
) -> Result<Option<SettlingResult>> {
    let known = near.pages().min(rows.pages());
    let mut peers = OneProcess::new(1);
    let uniform = Teleport::default();
    let mut settling = Settling::of_store(rows, options.damping, &uniform, &mut peers)?;
    settling.is_resumed = true;
    let cells = settling.blocks[0].first_pages(known as usize);
    let mut cells = cells.own.iter_mut().zip(cells.accounts);
    let mut sum = 0;
    near.each(&mut |share| {
        if let Some((own, account)) = cells.next() {
            *own = units(share);
            *account = -*own;
            sum += i128::from(*own);
        }
    })?;
    if !is_useful(rows, known, sum) {
        return Ok(None);
    }
    settling.totals.sum = sum;
    // A page whose row was not passed on over passes everything to the virtual page.
    settling.totals.virtual_page = sum;
    settling.totals.is_first_sweep = false;
    settling.make_room(0)?;
    settling
        .hand_on(|_, block| rows.sweep(&mut |row| block.hand_out(&row).map_err(Stop::Failed)))?;
    let waiting = settling.end_sweep()?;
    settling.resume(waiting, options, watch)
}

#[cfg(test)]
mod resume_tests {
    use super::tests::distance;
    use super::*;
    use crate::rank::elimination::{TestRows, dense, numbers};

    const PAGES: u64 = 120;

    /// Returns pages with up to nine links, a fifth of them without.
    fn rows(seed: u64) -> TestRows {
        let mut pick = numbers(seed);
        let mut kept = TestRows {
            pages: PAGES,
            rows: Vec::new(),
        };
        for page in 0..PAGES as u32 {
            let mut targets: Vec<u32> = (0..pick(5) * pick(3) + pick(2))
                .map(|_| pick(PAGES) as u32)
                .collect();
            targets.sort_unstable();
            targets.dedup();
            kept.visit(page, &targets, &[]);
        }
        kept
    }

    fn options(damping: f64, until: f64) -> RankOptions {
        RankOptions::until((damping * 2f64.powi(32)) as u64, until)
    }

    /// From PageRank itself one sweep suffices, over the links of pages that have any.
    #[test]
    fn what_is_settled_takes_a_sweep() {
        for (seed, damping) in (0..).zip([0.5, 0.85, 0.99]) {
            let rows = rows(seed);
            let options = options(damping, 1e-9);
            let exact = dense(&rows, options.damping());
            let settled = settle_near(&rows, &exact, &options, &mut ());
            let settled = settled.unwrap().unwrap();
            assert!(settled.effort.reached);
            assert_eq!(settled.effort.links_touched, rows.links());
            let off = distance(&settled.importance(), &exact);
            assert!(off <= 1e-9, "{damping}: {off}");
        }
    }

    /// Whatever the start, the bound holds; a rough ranking takes less work than starting from nothing.
    #[test]
    fn any_estimate_leads_to_pagerank() {
        let rows = rows(7);
        let options = options(0.85, 1e-6);
        let exact = dense(&rows, options.damping());
        let until = |until| RankOptions { until, ..options };
        let rough = settle(&rows, &until(0.01), &mut ()).unwrap().unwrap();
        let rough = rough.importance();
        let whole = settle(&rows, &options, &mut ()).unwrap().unwrap();
        let effort = |near: &[f64]| {
            // A useless start is not used.
            let settled = match settle_near(&rows, &near.to_vec(), &options, &mut ()).unwrap() {
                Some(settled) => settled,
                None => settle(&rows, &options, &mut ()).unwrap().unwrap(),
            };
            let bound = settled.certificate.received_l1.unwrap();
            assert!(settled.effort.reached && bound <= 1e-6, "{bound}");
            let off = distance(&settled.importance(), &exact);
            assert!(off <= bound + 1e-12, "{off} is not within {bound}");
            settled.effort.links_touched
        };
        assert!(effort(&rough) < whole.effort.links_touched);
        let mut one = vec![0.0; PAGES as usize];
        one[3] = 1.0;
        let longer = [&rough[..], &rough[..]].concat();
        let others: [&[f64]; 9] = [
            &rough[..100],
            &rough[..10],
            &longer,
            &one,
            &[],
            &[0.0; PAGES as usize],
            &[f64::NAN; PAGES as usize],
            &[f64::INFINITY; PAGES as usize],
            &[-1.0; PAGES as usize],
        ];
        for near in others {
            effort(near);
        }
    }
}
