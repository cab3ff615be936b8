//! Forecast: importance settled on the known graph, estimating what unread pages will contribute.
//!
//! It differs from the importance of the known graph ([`super::settled`]) in three ways:
//!
//! - An unread page is assumed to link like the pages that link to it: of what it receives from a page, 0.93 a returns
//!   there. So the pages that a page has found and that are unread count for that page.
//! - The virtual page pays the share a (1 - read/known)^2.5 s/(s + 10) to the s seeds, the rest equally to pages read:
//!   early, a crawl is about the neighbourhood of the seeds, later about the web. A few seeds say little about what
//!   matters in it.
//! - An unread page with few read neighbours has most of its links still unseen, and one near which much was found
//!   leads to more: its score is what it receives, times the adjustments of [`super::near`], with u = 0.35 v and g =
//!   0.2 v min(1, e), v = b c min(1, 2 (1 - read/known))^2: pages left unread until late have few links, and lead to
//!   little. The parameter `unseen` replaces the 0.35: a larger one spreads the crawl over the parts of a site, and
//!   finds the last of its most important pages sooner.
//!
//! **Observations of the crawl.** Whether a page links back to the page that found it is seen when it is read. a is
//! five times the share of pages that did, at most 1; b is the same among pages with links; c is five times the share
//! of pages with links, at most 1. e is the mean number of pages that a page read is the first to lead to: below one,
//! the crawl runs out of pages to find. In all of these, late reads count more than early ones ([`RunningMean`]). If
//! links are drawn at random nothing returns, and if the unread pages have no links nothing will: then a is 0, and
//! this is the importance of the known graph.
//!
//! [`super::pushes`] has the equations and their solution. For a single query, rows are swept until no page qualifies
//! for a push, in 28 bytes per page besides the crawl's own (36 with names), and 22 more for neighbours; starting from
//! a ranking of the same rows, if one was settled and much of the known graph was read. With the parameter `pushes`, on
//! unless `next` asks once, the solution is maintained while the crawl grows: each page read is pushed, and whenever
//! the pages read have grown by a hundredth, so are the others that qualify. That takes 56 bytes per page, and no rows
//! in memory except those of pages that are pushed repeatedly. The result then depends on the rows and their order
//! alone, not on when the order was asked for; if many rows were added before the first list, as when a follower
//! begins, nearly so. Both ways solve the same equations within the certificate; pages whose scores are closer than
//! that may come in another order.

use super::near::{Near, Powers};
use super::pushes::{PushThresholds, Pushes};
use super::{Ask, Batching, CrawlState, ScoredPage, Strategy, StrategySpec, best_of};
use crate::Result;
use crate::rows::{Bits, Row, Rows};

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "forecast",
    about: "the importance that a page will finally have, estimated from the known links",
    parameters: &["damping", "unseen", "pushes"],
    batching: Batching::Part(100),
    without_rows: false,
    by_cash: false,
    by_names: true,
    incremental: true,
    bytes_per_page_and_link: (60, 0),
    make: |of| Box::new(Forecast::new(of.damping(), of.unseen, of.pushes)),
};

/// Maximum returned part of what an unread page receives.
const RETURNED: f64 = 0.93;
/// Exponent of the unread share in what seeds are paid.
const SEEDS: f64 = 2.5;
/// Number of seeds that are paid half of that share.
const FEW_SEEDS: f64 = 10.0;
/// Default exponent of the unseen share near a page, while most pages are unread.
pub(super) const UNSEEN: f64 = 0.35;
/// Exponent of what was found near a page.
const FOUND: f64 = 0.2;
/// Share of pages linking back, or having links, from which on all count as if they did.
const BACK: f64 = 0.2;

/// Push thresholds, relative to what the virtual page pays one page read: for a single query, and maintained.
const ONCE: f64 = 0.02;
const KEPT_UP: f64 = 0.05;
/// Stops sweeping once the pushed pages held no more than this together, relative to what all pages read are paid. What
/// is left is less than 0.85/0.15 times as much, of a total of ten times what they are paid.
const ENOUGH: f64 = 0.005;
const ENOUGH_KEPT_UP: f64 = 0.001;
/// A single query starts from a ranking of the same rows, if there is one and at least one in this many known pages was
/// read.
const WARM: u64 = 4;
/// Maximum number of sweeps.
const SWEEPS: u32 = 100;
/// Stands for no page in `found_by`.
const NONE: u32 = u32::MAX;

struct Forecast {
    damping: f64,
    unseen: f64,
    /// The page that found each page.
    found_by: Vec<u32>,
    /// Bitmap of the pages that were read and have links.
    with_links: Bits,
    means: LinkBackStats,
    /// Pages found since the last one was read.
    found_now: u32,
    kept_up: Option<KeptUp>,
    /// Scores of the last answer: only reading a page changes them.
    scores: Vec<f64>,
    /// Numbers of pages known and read at the last answer.
    settled: (u32, u32),
    links: u64,
}

/// Running mean of a share or count while the crawl grows: the plain mean at first, started as ten times 1; later a
/// read has the weight 1/(30 + read/8).
struct RunningMean {
    value: f64,
    count: f64,
}

/// Statistics of all pages read that were found by others.
struct LinkBackStats {
    /// Share that links back.
    back: RunningMean,
    /// Share of those with links that links back.
    back_of_linking: RunningMean,
    /// Share that has links.
    linking: RunningMean,
    /// Mean number of pages found.
    finding: RunningMean,
}

impl LinkBackStats {
    fn new() -> LinkBackStats {
        LinkBackStats {
            back: RunningMean::new(),
            back_of_linking: RunningMean::new(),
            linking: RunningMean::new(),
            finding: RunningMean::new(),
        }
    }
}

impl RunningMean {
    fn new() -> RunningMean {
        RunningMean {
            value: 1.0,
            count: 10.0,
        }
    }

    fn add(&mut self, is_so: bool, read: u32) {
        self.add_count(u32::from(is_so), read);
    }

    fn add_count(&mut self, of: u32, read: u32) {
        self.count += 1.0;
        let weight = 1.0 / self.count.min(30.0 + f64::from(read) / 8.0);
        self.value += (f64::from(of) - self.value) * weight;
    }

    /// Returns the mean scaled to 0 to 1.
    fn likeness(&self) -> f64 {
        (self.value / BACK).min(1.0)
    }
}

/// Solutions for two payers: the pages read, each paying 1 to itself, and the seeds.
struct KeptUp {
    pushes: Pushes<2>,
    /// Part of its finder's links that leads to each page.
    parts: Vec<f32>,
    /// Number of pages read at which the rows are swept next.
    next: u32,
    /// True if residuals must be recomputed: rows were changed, or nothing was settled yet.
    renew: bool,
}

impl Forecast {
    fn new(damping: f64, unseen: f64, keep_up: bool) -> Forecast {
        Forecast {
            damping,
            unseen,
            found_by: Vec::new(),
            with_links: Bits::default(),
            means: LinkBackStats::new(),
            found_now: 0,
            kept_up: keep_up.then(|| KeptUp {
                pushes: Pushes::new(damping, RETURNED),
                parts: Vec::new(),
                next: 0,
                renew: true,
            }),
            scores: Vec::new(),
            settled: (0, 0),
            links: 0,
        }
    }

    fn returned(&self) -> f64 {
        RETURNED * self.means.back.likeness()
    }

    /// Returns the share that seeds are paid.
    fn to_seeds(&self, crawl: &CrawlState) -> f64 {
        let seeds = crawl.seeds().len() as f64;
        self.means.back.likeness() * libm::pow(not_read(crawl), SEEDS) * seeds / (seeds + FEW_SEEDS)
    }

    /// Returns the exponents of the neighbours' adjustments.
    fn powers(&self, crawl: &CrawlState) -> Powers {
        let late = (2.0 * not_read(crawl)).min(1.0);
        let much =
            self.means.back_of_linking.likeness() * self.means.linking.likeness() * late * late;
        Powers {
            unseen: self.unseen * much,
            found: FOUND * much * self.means.finding.value.min(1.0),
        }
    }

    /// Returns the weight of a unit of both payers: together they pay one unit per page read.
    fn weights(&self, crawl: &CrawlState) -> [f64; 2] {
        let seeds = self.to_seeds(crawl);
        let each = f64::from(crawl.read()) / crawl.seeds().len().max(1) as f64;
        [1.0 - seeds, seeds * each]
    }

    /// Settles the units that each page receives, from nothing or from a ranking.
    fn settle_once(&mut self, ask: &Ask<'_>) -> Result<Vec<f64>> {
        let crawl = ask.crawl;
        let mut pushes = Pushes::new(self.damping, self.returned());
        let [page, seed] = self.weights(crawl);
        let focus = crawl.focus();
        let members = focus.members(crawl);
        let units =
            |rule: usize| focus.shares()[rule] * f64::from(crawl.read()) / f64::from(members[rule]);
        let shares = focus.shares().iter().zip(&members);
        let focused: f64 = shares
            .filter(|(_, members)| **members > 0)
            .map(|(share, _)| share)
            .sum();
        let is_seed = seeds_of(crawl);
        let paid = |of: u32| {
            let is_read = crawl.is_read(of);
            let as_read = if is_read { page } else { 0.0 };
            let as_seed = if is_seed(of) { seed } else { 0.0 };
            let as_focused = focus.pays(of, is_read).map_or(0.0, &units);
            [(as_read + as_seed) * (1.0 - focused) + as_focused]
        };
        match ask.settled {
            // A ranking gives less weight to what a page found, so it helps only if much of the known graph was read.
            Some(ranking)
                if ranking.bound_l1().is_finite()
                    && u64::from(crawl.read()) * WARM >= u64::from(crawl.pages()) =>
            {
                pushes.grow(crawl.pages());
                ranking.each(&mut |page, importance| pushes.set_handed(page, [importance]))?;
                let returned = self.returned();
                pushes.renew(crawl, ask.rows, returned, |_| [0.0], Pushes::handed)?;
                pushes.scale(crawl, paid);
            }
            _ => pushes.renew(crawl, ask.rows, self.returned(), paid, |_, _| [0.0])?,
        }
        let worth = PushThresholds {
            weights: [1.0],
            least: ONCE,
            enough: ENOUGH * f64::from(crawl.read()),
        };
        pushes.settle(crawl, ask.rows, worth, SWEEPS)?;
        self.links += pushes.links();
        Ok(shares_of(crawl, |of| {
            (pushes.held(of)[0], pushes.handed(of)[0])
        }))
    }
}

/// Returns a predicate for seeds, backed by a bitmap.
fn seeds_of(crawl: &CrawlState) -> impl Fn(u32) -> bool + use<> {
    let mut seeds = Bits::new(crawl.pages().into());
    for &seed in crawl.seeds() {
        seeds.set(seed.into());
    }
    move |page| seeds.get(page.into())
}

fn not_read(crawl: &CrawlState) -> f64 {
    1.0 - f64::from(crawl.read()) / f64::from(crawl.pages().max(1))
}

/// Returns what pages hold and passed on, as shares of the total.
fn shares_of(crawl: &CrawlState, of: impl Fn(u32) -> (f64, f64)) -> Vec<f64> {
    let mut all: Vec<f64> = (0..crawl.pages())
        .map(|page| {
            let (held, handed) = of(page);
            held + handed
        })
        .collect();
    let sum: f64 = all.iter().sum();
    if sum > 0.0 {
        all.iter_mut().for_each(|share| *share /= sum);
    }
    all
}

impl KeptUp {
    fn settle(
        &mut self,
        crawl: &CrawlState,
        rows: &dyn Rows,
        weights: [f64; 2],
        returned: f64,
    ) -> Result<()> {
        if std::mem::take(&mut self.renew) {
            let is_seed = seeds_of(crawl);
            let paid = |page| {
                let paid = f64::from(u8::from(crawl.is_read(page)));
                [paid, f64::from(u8::from(is_seed(page)))]
            };
            self.pushes
                .renew(crawl, rows, returned, paid, Pushes::handed)?;
        }
        self.pushes.grow(crawl.pages());
        self.pushes.set_returned(returned);
        let worth = PushThresholds {
            weights,
            least: KEPT_UP,
            enough: ENOUGH_KEPT_UP * f64::from(crawl.read()),
        };
        self.pushes.settle(crawl, rows, worth, SWEEPS)?;
        self.next = crawl.read() + (crawl.read() / 100).max(1);
        Ok(())
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>, found_by: &[u32]) {
        self.parts.resize(crawl.pages() as usize, 0.0);
        for (target, part) in row.parts() {
            if found_by[target as usize] == row.page {
                self.parts[target as usize] = part as f32;
            }
        }
        if self.renew {
            // All rows are read before any is passed on.
            return;
        }
        self.pushes.grow(crawl.pages());
        let by = found_by[row.page as usize];
        let part = f64::from(self.parts[row.page as usize]);
        self.pushes
            .begin(row.page, (by != NONE).then_some((by, part)));
        let is_seed = crawl.seeds().last() == Some(&row.page);
        self.pushes
            .pay(row.page, [1.0, f64::from(u8::from(is_seed))]);
        self.pushes.push(crawl, row);
    }
}

impl Strategy for Forecast {
    fn found(&mut self, _crawl: &CrawlState, page: u32, by: Option<u32>) {
        if self.found_by.len() <= page as usize {
            self.found_by.resize(page as usize + 1, NONE);
        }
        self.found_by[page as usize] = by.unwrap_or(NONE);
        self.found_now += u32::from(by.is_some());
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        self.found_by.resize(crawl.pages() as usize, NONE);
        let by = self.found_by[row.page as usize];
        let has_links = row.degree() > 0;
        if has_links {
            self.with_links.grow(u64::from(row.page) + 1);
            self.with_links.set(row.page.into());
        }
        let found = std::mem::take(&mut self.found_now);
        if by != NONE {
            self.means.finding.add_count(found, crawl.read());
            let back = row.links().any(|target| target == by);
            self.means.back.add(back, crawl.read());
            self.means.linking.add(has_links, crawl.read());
            if has_links {
                self.means.back_of_linking.add(back, crawl.read());
            }
        }
        if let Some(kept_up) = &mut self.kept_up {
            kept_up.read(crawl, row, &self.found_by);
        }
    }

    fn keep_up(&mut self, crawl: &CrawlState, rows: &dyn Rows) -> Result<()> {
        let (weights, returned) = (self.weights(crawl), self.returned());
        match &mut self.kept_up {
            Some(kept_up) if crawl.read() >= kept_up.next => {
                kept_up.settle(crawl, rows, weights, returned)
            }
            _ => Ok(()),
        }
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        let crawl = ask.crawl;
        let now = (crawl.pages(), crawl.read());
        if self.settled != now {
            self.keep_up(crawl, ask.rows)?;
            let weights = self.weights(crawl);
            let mut scores = match &self.kept_up {
                Some(kept_up) if crawl.focus().shares().is_empty() => {
                    let sum = |of: [f64; 2]| of[0] * weights[0] + of[1] * weights[1];
                    let pushes = &kept_up.pushes;
                    shares_of(crawl, |of| (sum(pushes.held(of)), sum(pushes.handed(of))))
                }
                _ => self.settle_once(ask)?,
            };
            let near = Near {
                crawl,
                names: ask.names,
                found_by: &self.found_by,
                with_links: &self.with_links,
            };
            near.lift(&mut scores, self.powers(crawl));
            self.scores = scores;
            self.settled = now;
        }
        let scores = &self.scores;
        Ok(best_of(crawl, ask.count, |page| scores[page as usize]))
    }

    fn links(&self) -> u64 {
        self.links + self.kept_up.as_ref().map_or(0, |of| of.pushes.links())
    }
}
