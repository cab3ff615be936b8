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
//! **From a base** (`base`). A settled state of earlier rows may be the start as well: pages that came since have X = 0,
//! and where a page's row is another now, what X handed on over the old one is given back, and handed on over the new
//! one. D is then the function of X and the latest rows that it is above, exactly, and all of this holds as from
//! nothing. Where little changed, little waits anywhere.
//!
//! **In advance.** What a page receives has most often the sign of what it received last. So a page whose K had one
//! sign at j visits in a row hands on 1 + j/10 times what it has, j <= 4; the next K of the other sign ends that. It is
//! over-relaxation, but page by page, and takes a third off the links; with one factor for all
//! pages it stalls on some graphs, where links go round in pairs. The advances of a sweep are together at most
//! half of ||K||_1 at its beginning, so that the norm at most doubles; a sweep that gained little is followed by one without, which
//! never takes the norm up.
//!
//! **No number overflows.** From nothing the first sweep adds at most 2^58 to a page, and ||K||_1 <= 2^59 after it; from a base it is at
//! most 2^59 at first, or the base is not used. It at most doubles in a sweep,
//! and with twice the least so far no advances are made: so it is below 2^61. Where an X passes 2^61, as it may near
//! d = 1, where pages with nearly all importance begin with as little as the others, X and D are halved, rounded down, and
//! T = -sum D; so they are where a base's X sum to more than 2^60. D is from then on the function of X above and a vector c,
//! which no visit and no change of a row touches, and T is off by -sum c. Halving makes of c at most c/2, half a unit a page for D,
//! (1 + d)/2 a page for X and what it hands on, and for the rounding of each link half a unit before and one after: ||c||_1/2 + 1.5 (n + links).
//! It takes Y off by ||c||_1 + |sum c| at most, however many pages there come to be. So with
//! F = 0 at first, and F/2 + 3 (n + links) after each halving, 2 ||c||_1 <= F and e = (F + 2 links)/s.
//!
//! **Which pages to visit** (`worth`). A sweep reads all rows and visits those pages whose |K_i| is large for what
//! a visit costs: |K_i|/(m_i + 1)^0.8 at least theta. The pages above theta hold a share q of ||K||_1; when the end is near,
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
//! | the same in advance by 0.15; by 0.1 j, j <= 4: **this** | 3.8 / 6.8 / 14.4; 3.6 / 5.9 / 12.0 |
//!
//! **Memory**: 18 bytes a page ([`BYTES`]), and what reading rows takes.

mod base;
mod ledger;
#[cfg(test)]
mod tests;
mod worth;

use super::{FINEST, Method, Options, Teleport};
use crate::engine::{Certificate, Effort, Engine, InMemory, Ranking, Scores, certify, ratio_up};
use crate::rows::{Row, Rows, Stop};
use crate::{Error, Result};
pub(crate) use base::{Base, BaseUse, CHECKING, Changed, settle_from, verify};
use ledger::Ledger;
use worth::{Level, Worth};

/// Bytes of memory a page.
pub const BYTES: u64 = crate::memory::SETTLING;
/// A sweep that takes less than this off the norm, for each unit that it was to visit, is followed by one without
/// advances.
const GAIN_MIN: f64 = 0.1;
/// So many sweeps without a thousandth gained are the end: numbers of 64 bits resolve no more,
const PATIENCE: u32 = 64;
/// unless more waits than rounding explains: near d = 1 a sweep may gain no more than 1 - d. Then it is this over 1 - d.
const PATIENCE_UNDAMPED: f64 = 4.0;

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
pub trait Watch {
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
    /// What is added for pages below 0: see the module's head.
    below: (u128, u128),
    /// How far it came.
    pub progress: Progress,
    /// What is certain of it.
    pub certificate: Certificate,
    /// The bound asked for.
    pub until: f64,
    /// Whether it was reached.
    pub reached: bool,
    /// It ended because that was reached, or more sweeps would be of no use: nobody stopped it.
    by_itself: bool,
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
        }
    }

    fn read(&self, first: u64, len: usize, out: &mut Vec<(f64, f64)>) {
        out.clear();
        out.extend(self.estimates(first, len));
    }
}

impl Settled {
    /// Pages.
    pub fn pages(&self) -> u64 {
        self.ledger.pages()
    }

    /// (y, x) of `len` pages from `first` on: importance, and what was distributed. Each sums to 1 over all pages.
    pub fn estimates(&self, first: u64, len: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        let sum = self.ledger.sum() as f64;
        let sums = (sum + self.below.0 as f64, sum + self.below.1 as f64);
        let pages = self.ledger.cells(first as usize, len);
        let pages = pages.zip(self.ledger.paid(first as usize, len));
        pages.map(move |((own, account), paid)| {
            let received = (i128::from(own) + i128::from(account)) as f64 + paid;
            (received.max(0.0) / sums.0, own.max(0) as f64 / sums.1)
        })
    }

    /// All of y, in page order.
    pub fn importance(&self) -> Vec<f64> {
        let pages = self.estimates(0, self.pages() as usize);
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
    let ledger = Ledger::new(rows.pages(), options.damping, teleport.clone())?;
    let level = if teleport.is_uniform() {
        Level::Beginning
    } else {
        // Few may have anything at first: all are looked at.
        Level::From {
            level: i32::MIN,
            pages: rows.pages(),
        }
    };
    Settling::new(ledger, rows).run(rows, options, Next::Sweep(level), watch)
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

fn is_reached(options: &Options, certificate: &Certificate) -> bool {
    certificate.received_l1.unwrap_or(2.0) <= options.until
}

/// Rows and links that a sweep read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Seen {
    rows: u64,
    /// Rows with links that count, and their links.
    linked: (u64, u64),
    links: u64,
}

/// What comes next.
enum Next {
    /// A sweep over pages of this level.
    Sweep(Level),
    /// Nothing: it is near enough, or no sweep would be of use (`by_itself`), or it is over.
    End {
        certificate: Certificate,
        by_itself: bool,
    },
}

struct Settling {
    ledger: Ledger,
    progress: Progress,
    /// The state that it began with, if it did not begin with nothing, has the rows' costs.
    is_resumed: bool,
    /// The least residual so far, and sweeps since it was last bettered by a thousandth.
    best: (f64, u32),
    /// What the first sweep read.
    first: Option<Seen>,
    /// The residual before this sweep, and what share of it was to be visited.
    planned: Option<(f64, f64)>,
    /// What pages may hand on in advance in the next sweep.
    advance: u128,
}

/// Rows between two questions whether it is over.
const ASK_EVERY: u64 = 1 << 16;

impl Settling {
    /// With a ledger of so many pages as the rows have.
    fn new(ledger: Ledger, rows: &dyn Rows) -> Settling {
        Settling {
            ledger,
            progress: Progress {
                links: rows.links(),
                ..Progress::default()
            },
            is_resumed: false,
            best: (f64::INFINITY, 0),
            first: None,
            planned: None,
            advance: 0,
        }
    }

    /// Goes on to the end. `None`: it was over before anything was known, or a base led nowhere.
    fn run(
        mut self,
        rows: &dyn Rows,
        options: &Options,
        mut next: Next,
        watch: &mut dyn Watch,
    ) -> Result<Option<Settled>> {
        loop {
            let level = match next {
                Next::Sweep(level) => level,
                Next::End {
                    certificate,
                    by_itself,
                } => return Ok(Some(self.end(options, certificate, by_itself))),
            };
            let whole = self.sweep(rows, level, watch)?;
            if !whole && self.first.is_none() && !self.is_resumed {
                return Ok(None);
            }
            let Some(worth) = self.weigh()? else {
                return Ok(None);
            };
            self.progress.sweeps += 1;
            next = self.look(options, &worth, whole, watch);
        }
    }

    /// What comes after this state was reached, after a sweep that was `whole`.
    fn look(
        &mut self,
        options: &Options,
        worth: &Worth,
        whole: bool,
        watch: &mut dyn Watch,
    ) -> Next {
        let certificate = self.certificate(options, worth);
        self.progress.bound = certificate.received_l1;
        watch.swept(&self.progress);
        let by_itself = whole
            && (self.is_enough(options, &certificate)
                || self.is_stuck(options, worth, &certificate));
        if by_itself || !whole || watch.is_over() {
            return Next::End {
                certificate,
                by_itself,
            };
        }
        Next::Sweep(self.level(options, worth, &certificate))
    }

    fn end(self, options: &Options, certificate: Certificate, by_itself: bool) -> Settled {
        Settled {
            below: self.ledger.below(),
            ledger: self.ledger,
            progress: self.progress,
            reached: is_reached(options, &certificate),
            certificate,
            until: options.until,
            by_itself,
        }
    }

    /// Visits the pages that are worth it; where these are few, only their rows are read. Whether nobody stopped it.
    fn sweep(&mut self, rows: &dyn Rows, level: Level, watch: &mut dyn Watch) -> Result<bool> {
        let mut seen = Seen::default();
        let is_first = self.first.is_none();
        let is_resumed = is_first && self.is_resumed;
        let (ledger, progress) = (&mut self.ledger, &mut self.progress);
        ledger.begin_sweep(self.advance);
        let few = level
            .is_of_few(ledger.pages())
            .map(|level| ledger.all_worth(level));
        let mut visit = |row: Row<'_>| {
            if seen.rows.is_multiple_of(ASK_EVERY) && watch.is_over() {
                return Err(Stop::Enough);
            }
            let links = row.targets.len() as u64;
            seen.rows += 1;
            seen.links += links;
            if is_resumed {
                ledger.check_known(&row)?;
            } else if is_first {
                ledger.know(&row)?;
            }
            if ledger.has_links(row.page) {
                seen.linked.0 += 1;
                seen.linked.1 += links;
                let level = level.of(seen.linked.0, seen.linked.1, ledger.at_first());
                if ledger.is_worth(row.page, level) {
                    ledger.visit(&row)?;
                    progress.links_touched += links;
                }
            }
            Ok(())
        };
        if let Some(marked) = few {
            return Stop::is_whole(rows.walk_some(&marked, &mut visit));
        }
        if !rows.sweep(&mut visit)? {
            return Ok(false);
        }
        match self.first {
            None => self.first = Some(seen),
            Some(first) if first != seen => {
                return Err(Error::internal(format!(
                    "the rows are not the same in every sweep: {} with {} links at first, then {} with {}",
                    first.rows, first.links, seen.rows, seen.links
                )));
            }
            Some(_) => {}
        }
        Ok(true)
    }

    /// Visits pages without links, checks the books, keeps numbers small, and weighs what is left. `None`: a base led to a
    /// state without importance, as it may where most of what it had is taken back.
    fn weigh(&mut self) -> Result<Option<Worth>> {
        self.ledger.visit_dangling();
        self.ledger.check_law().map_err(Error::internal)?;
        if self.ledger.sum() <= 0 {
            if self.is_resumed {
                return Ok(None);
            }
            return Err(Error::internal("settling: no importance is left"));
        }
        self.ledger.keep_in_bounds(self.links());
        Ok(Some(self.ledger.weigh()))
    }

    fn certificate(&self, options: &Options, worth: &Worth) -> Certificate {
        let of_all = |units: u128| ratio_up(units, self.ledger.sum().unsigned_abs());
        let rounding = self.ledger.rounding(self.links());
        certify(options.damping(), of_all(worth.norm()), of_all(rounding))
    }

    /// Returns whether it is as near as it should be, or as is cheap.
    fn is_enough(&self, options: &Options, certificate: &Certificate) -> bool {
        let is_fine = || certificate.received_l1.is_some_and(|bound| bound <= FINEST);
        let next = self.progress.links_touched + self.links();
        is_reached(options, certificate) && (next >= options.spare || is_fine())
    }

    /// Links that a sweep reads.
    fn links(&self) -> u64 {
        self.first.map_or(self.progress.links, |seen| seen.links)
    }

    /// Returns whether more sweeps would be of no use.
    fn is_stuck(&mut self, options: &Options, worth: &Worth, certificate: &Certificate) -> bool {
        let residual = certificate.residual_l1;
        self.best = match self.best {
            (best, _) if residual < 0.999 * best => (residual, 0),
            (best, since) => (best, since + 1),
        };
        let patience = if residual > certificate.rounding_l1 {
            PATIENCE.max((PATIENCE_UNDAMPED / (1.0 - options.damping())) as u32)
        } else {
            PATIENCE
        };
        self.best.1 > patience || worth.is_none()
    }

    /// How the next sweep begins. What the last one gained for what it visited, this one will gain, too.
    fn level(&mut self, options: &Options, worth: &Worth, certificate: &Certificate) -> Level {
        let residual = certificate.residual_l1;
        let gain = self
            .planned
            .map(|(before, share)| (before - residual) / (before * share));
        // Where advances do harm, a sweep without them is never worse than none.
        let helps = gain.is_none_or(|gain| gain >= GAIN_MIN) && residual <= 2.0 * self.best.0;
        self.advance = if helps { worth.norm() / 2 } else { 0 };
        let damping = options.damping();
        let until = if is_reached(options, certificate) {
            FINEST
        } else {
            options.until
        };
        let enough = (until * (1.0 - damping) - certificate.rounding_l1) / damping;
        let (level, share) = worth.level(enough / residual, gain);
        self.planned = Some((residual, share));
        level
    }
}
