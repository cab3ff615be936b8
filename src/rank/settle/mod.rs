//! Settling: from the links of pages to their PageRank, with a certificate.
//!
//! OPIC hands on cash when a page is crawled, and most pages are crawled once: importance then knows all
//! links, but has gone over each a single time. Where the links are kept ([`Rows`]) it can go over them
//! again, at no cost to the web. [`settle`] does that, from nothing but the latest row of every page: the
//! same rows give the same bytes, however they came, whatever was published before, and whether links
//! changed on the way.
//!
//! **The ledger** (`ledger`). Let X be any estimate and Y = L'X, one step of the damped walk from it.
//! K = Y - X is *signed cash*: it sums to 0, and where it is 0 everywhere X is PageRank. To visit page i is
//! to add K_i to X_i and to hand it on as cash is handed on; credits and debts cancel on the way. (K.
//! Avrachenkov, P. Brown, N. Litvak, "Red Light Green Light Method for Solving Large Markov Chains", 2022;
//! OPIC is the case without debts; L. Page's power iteration is the case in which all pages are visited at
//! once.) All in whole numbers. With m_i links of page i, n pages and damping d:
//!
//! ```text
//! share(x)_i = floor(floor(|x| d) / m_i), with the sign of x    what page i hands on over each link
//! D_j = sum over links i -> j of share(X_i)_i  -  X_j           the link part of Y - X
//! T   = sum over pages i of  X_i - m_i share(X_i)_i             what the virtual page has received
//! K_j = D_j + T/n                                               law: sum D + T = 0
//! ```
//!
//! D is a function of X: a visit hands on share(X_i + k) - share(X_i), so that rounding never adds up. Where
//! links have weights w of W in all, a link carries floor(floor(|x| d) w / W). A page with no row or an empty
//! one hands all it has to the virtual page.
//!
//! **Certificate.** Let s = sum X, x = X/s, r = ||K||_1/s, pi PageRank, and y = (X + K)/s what is published.
//! Each link's share is off by less than one unit from d X_i/m_i (|x| d is rounded once and its quotient once, and
//! floor(floor(a)/m) = floor(a/m)), and the virtual page has all that is missing: y differs from the exact
//! step L'x by at most e = 2 x links/s in L1. L' shrinks differences of vectors of the same sum by d, so
//!
//! ```text
//! ||y - pi|| <= ||y - L'x|| + ||L'x - L'pi|| <= e + d ||x - pi||    and    ||x - pi|| <= ||x - y|| + ||y - pi|| = r + ||y - pi||
//! hence     ||y - pi||_1 <= (d r + e)/(1 - d)      and      ||x - pi||_1 <= (r + e)/(1 - d)
//! ```
//!
//! T/n is rounded nowhere: with T = n w + v and 0 <= v < n, ||K||_1 <= sum |D_j + w| + v, which is what is
//! taken for it. Where the virtual page pays page j by a weight w_j, of W in all ([`Teleport`]), read T w_j/W for T/n, and
//! W for n in this: it pays w_j times the whole units that it has for a unit of weight, and v < W is left. d is the engine's damping, a multiple of 2^-32, in both. Pages below 0, which signed cash
//! allows, are published as 0 and the others divided by what is then the sum; with the sum 1 + b, that takes b off
//! the distance at the pages that were below 0 and adds b at most at the others. Quotients are rounded upwards.
//! The law and the sum of X are checked after every sweep, on all pages.
//!
//! **Start.** X = 0 and K = 2^58/n everywhere, as if the virtual page had just paid everybody. So the first sweep is the
//! first useful one: nothing is read to begin with.
//!
//! **From an earlier state** (`resume`). A settled state of earlier rows may be the start as well: a warm start: pages that came since have X = 0,
//! and where a page's row is another now, what X handed on over the old one is given back, and handed on over the new
//! one. D is then the function of X and the latest rows that it is above, exactly, and all of this holds as from
//! nothing. Where little changed, little waits anywhere.
//!
//! **From an estimate** (`near`). So may any other numbers, such as a ranking that was published: D is found from X by a sweep.
//!
//! **In advance.** What a page receives has most often the sign of what it received last. So a page whose K had one
//! sign at j visits in a row hands on 1 + j/10 times what it has, j <= 4; the next K of the other sign ends that. It is
//! over-relaxation, but page by page, and takes a third off the links; with one factor for all
//! pages it stalls on some graphs, where links go round in pairs. The advances of a sweep are together at most
//! half of ||K||_1 at its beginning, so that the norm at most doubles; a sweep that gained little is followed by one without, which
//! never takes the norm up.
//!
//! **No number overflows.** From nothing the first sweep adds at most 2^58 to a page, and ||K||_1 <= 2^59 after it; from an earlier state it is at
//! most 2^59 at first, or that is not used. It at most doubles in a sweep,
//! and with twice the least so far no advances are made: so it is below 2^61. Where an X passes 2^61, as it may near
//! d = 1, where pages with nearly all importance begin with as little as the others, X and D are halved, rounded down, and
//! T = -sum D; so they are where an earlier state's X sum to more than 2^60. D is from then on the function of X above and a vector c,
//! which no visit and no change of a row touches, and T is off by -sum c. Halving makes of c at most c/2, half a unit a page for D,
//! (1 + d)/2 a page for X and what it hands on, and for the rounding of each link half a unit before and one after: ||c||_1/2 + 1.5 (n + links).
//! It takes Y off by ||c||_1 + |sum c| at most, however many pages there come to be. So with
//! F = 0 at first, and F/2 + 3 (n + links) after each halving, 2 ||c||_1 <= F and e = (F + 2 links)/s.
//!
//! **Which pages to visit** (`worth`). A sweep visits those pages whose |K_i| is large for what
//! a visit costs, |K_i|/(m_i + 1)^0.8 at least theta, when it begins and when it comes to their rows. Those of the others are read
//! as well, unless the pages are few, but nothing that is kept of their pages is looked at: it lies anywhere in memory. (The first
//! sweep from nothing looks at all.) The pages above theta hold a share q of ||K||_1; when the end is near,
//! as much as is needed to get there. Any choice of pages keeps the certificate. Pages without links are
//! visited all at once after each sweep, for an exact solution of their part.
//!
//! Sweeps' worth of links (links touched / links there are) to a certified bound, on real graphs from nothing:
//!
//! | schedule | cnr-2000, breadth-first: 0.01 / 1e-4 / 1e-9 |
//! |---|---|
//! | every row, read order | 9 / 21 / 55 |
//! | K/(m + 1) >= theta, q = 0.6 | 4.3 / 8.6 / 19.9 |
//! | q = 0.3; 0.9 | 4.7 / 9.3 / 20.4; 4.8 / 9.3 / 21.4 |
//! | all pages over-relaxed by 1.1 | 4.4 / stalls |
//! | X of two sweeps combined for the least norm (twice the memory) | 4.2 / 8.3 / 18.5 |
//! | q = 0.65, power 0.8, the end foreseen | 4.2 / 8.6 / 19.8 |
//! | the same in advance by 0.15; by 0.1 j, j <= 4 | 3.8 / 6.8 / 14.4; 3.6 / 5.9 / 12.0 |
//! | the same, of pages that were worth it when the sweep began: **this** | 3.7 / 6.0 / 12.5 |
//!
//! The last takes a quarter to a half more sweeps for as many links, and of a crawl of 100 M pages two thirds of the time.
//!
//! **Memory**: 18 bytes a page ([`BYTES`]), and what reading rows takes.

mod block;
mod ledger;
mod near;
mod resume;
mod shards;
mod sweeps;
#[cfg(test)]
pub(crate) mod tests;
mod worth;

use super::peers::Peers;
use super::{Method, Options, Teleport};
use crate::engine::{
    Certificate, Effort, Engine, Estimator, InMemory, Ranking, ScoreUnits, Scores,
};
use crate::rows::Rows;
use crate::{Error, Result};
use block::Block;
use ledger::{Ledger, alone};
pub(crate) use near::{Importances, settle_near};
pub(crate) use resume::{Changed, StartState, settle_from};
pub use shards::{ShardRows, settle_shards};
use sweeps::{Next, Settling};
use worth::Level;

/// Bytes of memory a page.
pub const BYTES: u64 = crate::memory::SETTLING;

/// How far a settling is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Sweeps over the rows so far.
    pub sweeps: u64,
    /// Links over which something was handed on.
    pub links_touched: u64,
    /// Links that the rows hold.
    pub links: u64,
    /// The certified bound so far; `None`: none below 2.
    pub bound: Option<f64>,
}

/// Who watches a settling.
pub trait Watch: Send {
    /// A sweep is complete.
    fn swept(&mut self, progress: &Progress);

    /// Returns whether to end with what there is. Asked often, also within sweeps.
    fn is_over(&mut self) -> bool;
}

/// Nobody watches: it ends at the bound asked for.
impl Watch for () {
    fn swept(&mut self, _: &Progress) {}

    fn is_over(&mut self) -> bool {
        false
    }
}

pub(super) const METHOD: Method = Method {
    name: "settled",
    about: "signed cash handed on over the rows where they are, with a proven bound",
    bytes: |pages, _| pages * BYTES,
    compute: |rows, options, teleport, watch| {
        let settled = settle_for(rows, options, teleport, watch)?;
        Ok(settled.map(|settled| Box::new(settled) as Box<dyn Scores>))
    },
};

/// A settled ranking.
pub struct Settled {
    ledger: Ledger,
    scale: Scale,
    /// How far it came.
    pub progress: Progress,
    /// What is certain of it.
    pub certificate: Certificate,
    /// The bound asked for.
    pub until: f64,
    /// Whether it was reached.
    pub reached: bool,
    /// See [`Effort::resumed`].
    resumed: bool,
    /// It ended because that was reached, or more sweeps would be of no use: nobody stopped it.
    by_itself: bool,
}

/// From units to shares of 1.
struct Scale {
    /// All of y and of x, with what is added for pages below 0: see the module's head.
    sums: (f64, f64),
    /// What the virtual page paid for a unit of weight.
    paid: f64,
}

impl Scale {
    fn of(ledger: &mut Ledger, peers: &mut dyn Peers) -> Result<Scale> {
        let below = ledger.below(peers)?;
        let sum = ledger.sum() as f64;
        Ok(Scale {
            sums: (sum + below.0 as f64, sum + below.1 as f64),
            paid: ledger.paid(),
        })
    }
}

impl Scores for Settled {
    fn certificate(&self) -> Option<Certificate> {
        Some(self.certificate)
    }

    fn effort(&self) -> Effort {
        Effort {
            until: self.until,
            reached: self.reached,
            sweeps: self.progress.sweeps,
            links_touched: self.progress.links_touched,
            links: self.progress.links,
            resumed: self.resumed,
        }
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
        self.shard(0).read(first, len, out)
    }
}

/// The scores of one of the shards that were settled: of its own pages. Remote ones are their owners'.
pub struct SettledShard<'s> {
    settled: &'s Settled,
    block: &'s Block,
}

impl Scores for SettledShard<'_> {
    fn certificate(&self) -> Option<Certificate> {
        self.settled.certificate()
    }

    fn effort(&self) -> Effort {
        self.settled.effort()
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) -> Result<()> {
        out.clear();
        out.extend(self.estimates(first, len));
        Ok(())
    }
}

impl SettledShard<'_> {
    /// (y, x) of `len` pages from `first` on: importance, and what was distributed. Each sums to 1 over all pages.
    fn estimates(&self, first: u64, len: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        let block = self.block;
        let pages = block.cells(first as usize, len).zip(first as usize..);
        pages.map(move |((own, account), page)| {
            (self.settled).estimate(own, account, block.weight(page))
        })
    }
}

impl Settled {
    /// Pages, of all shards together.
    pub fn pages(&self) -> u64 {
        self.ledger.pages()
    }

    /// Scores of the shard of this place among those of this process.
    pub fn shard(&self, at: usize) -> SettledShard<'_> {
        SettledShard {
            settled: self,
            block: &self.ledger.blocks()[at],
        }
    }

    /// What importances are whole numbers of, where all pages have the same weight.
    pub fn units(&self, estimator: Estimator) -> ScoreUnits {
        let sums = self.scale.sums;
        match estimator {
            Estimator::Received => ScoreUnits {
                offset: self.scale.paid,
                sum: sums.0,
            },
            Estimator::Distributed => ScoreUnits {
                offset: 0.0,
                sum: sums.1,
            },
        }
    }

    /// The importance and what was distributed of a page with this X and D, and this weight for the virtual page.
    fn estimate(&self, own: i64, account: i64, weight: u32) -> (f64, f64) {
        // Few sums are so large that they need the slow conversion, which rounds the same.
        let received = match own.checked_add(account) {
            Some(received) => received as f64,
            None => (i128::from(own) + i128::from(account)) as f64,
        };
        let received = received + self.scale.paid * f64::from(weight);
        let sums = self.scale.sums;
        (received.max(0.0) / sums.0, own.max(0) as f64 / sums.1)
    }

    /// All of y of a store without shards, in page order.
    pub fn importance(&self) -> Vec<f64> {
        let shard = self.shard(0);
        let pages = shard.estimates(0, self.pages() as usize);
        pages.map(|(received, _)| received).collect()
    }
}

/// Settles. `None`: it was over before the first sweep was complete, or there are no pages: nothing is known.
///
/// # Errors
///
/// Those of reading rows; rows that are not the same in every sweep or name pages that there are not; more
/// pages than memory holds.
pub fn settle(
    rows: &dyn Rows,
    options: &Options,
    watch: &mut dyn Watch,
) -> Result<Option<Settled>> {
    settle_for(rows, options, &Teleport::default(), watch)
}

/// The same, with a virtual page that pays some pages more than others: personalised PageRank.
///
/// # Errors
///
/// As [`settle`]; [`Error::Usage`] if `teleport` has not a weight for each page.
pub fn settle_for(
    rows: &dyn Rows,
    options: &Options,
    teleport: &Teleport,
    watch: &mut dyn Watch,
) -> Result<Option<Settled>> {
    if rows.pages() == 0 {
        return Ok(None);
    }
    let ledger = Ledger::new(rows.pages(), options.damping, teleport)?;
    let level = if teleport.is_uniform() {
        Level::Beginning
    } else {
        // Few may have anything at first: all are looked at.
        Level::From(i32::MIN)
    };
    let mut peers = alone();
    let settling = Settling::new(ledger, one_store(rows), &mut peers)?;
    settling.run(options, Next::Sweep(level), watch)
}

/// A store without shards.
fn one_store(rows: &dyn Rows) -> Vec<ShardRows<'_>> {
    vec![ShardRows { rows, remote: &[] }]
}

impl Engine<InMemory> {
    /// A ranking by PageRank of the links of all pages as they were visited last, certified to be within `until` of it in L1.
    ///
    /// # Errors
    /// [`Error::Usage`]: the settings ask for importance over a period, which links do not tell; those of [`settle`].
    pub fn settled(&mut self, until: f64) -> Result<Ranking> {
        let rows = self.rows().ok_or_else(|| {
            Error::Usage(
                "importance over a period, which the window asks for, cannot be settled".into(),
            )
        })?;
        let damping = self.config().damping_units();
        let settled = settle(rows, &Options::until(damping, until), &mut ())?;
        self.ranking_by(settled.as_ref().map(|settled| settled as &dyn Scores))
    }
}
