//! Forecast: importance settled on the known graph, estimating what unread pages will contribute.
//!
//! It differs from the importance of the known graph ([`super::settled`]) in three respects:
//!
//! - An unread page is assumed to link like the pages that link to it: of what it receives from a page, 0.93 a returns
//!   there.
//! - The virtual page pays the share a (1 - read/known)^2.5 s/(s + 10) to the s seeds, the rest equally to pages read:
//!   early, a crawl is about the neighbourhood of the seeds, later about the web.
//! - The score of an unread page is what it receives, times the adjustments of [`super::near`], with u = 0.35 v and g =
//!   0.2 v min(1, e), v = b c min(1, 2 (1 - read/known))^2: pages left unread until late lead to little. An `unseen` above
//!   0.35 spreads the crawl over the parts of a site, and finds the last of its most important pages sooner.
//!
//! **Observations of the crawl.** a is five times the share of pages that link back to the page that found them, at most
//! 1; b is the same among pages with links; c is five times the share of pages with links, at most 1. e is the mean number
//! of pages that a page read is the first to lead to. All of them weigh late reads more than early ones
//! ([`RunningMean`]). If nothing returns, a is 0, and scores are the importance of the known graph.
//!
//! ```text
//! x_i = b_i + y_i + r d u_i x_i                        of each page i that was read
//! y_j = sum over pages p read that link to j of  d w_pj x_p      of every page j
//! ```
//!
//! b_i is what the virtual page pays page i, w_pi the part of p's links that leads to i, u_i the part of i's links that
//! leads to unread pages, and r the part returned of what those receive. The score of an unread page j is y_j.
//!
//! **Solution** by Gauss-Seidel sweeps: where a row is read, x_i is computed again, and its change is passed on. The
//! importance p_j of the last settled ranking is the start. It meets p_j = t + sum of d w_pj p_p, so x_i = c p_i and
//! y_j = c (p_j - t) meet the second equation before any sweep; c is such that the first equation holds on the sum of all
//! pages read. The start is 0 without a settled ranking, with another damping, and in a shard. Sweeps end when one of them
//! changed the x by less than three tenths of their sum, as the order of the best pages then hardly changes.

use prefetch_index::prefetch_index;

use super::history::LATER;
use super::near::{NO_FINDER, Near, Powers};
use super::{CrawlFacts, CrawlState, ScoredPage, SettledRanking, Strategy, StrategySpec};
use crate::Result;
use crate::engine::Cells;
use crate::rows::{Bits, Row, Stop};

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "forecast",
    about: "the importance that a page will finally have, estimated from the known links",
    parameters: &["damping", "unseen"],
    by_names: true,
    ..StrategySpec::of(|of| {
        Box::new(Forecast {
            damping: of.damping(),
            unseen: of.unseen,
            ..Forecast::default()
        })
    })
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
/// Least change that a page passes on, per square root of its links + 1, relative to the mean payment to a page read.
const LEAST: f64 = 0.02;
/// Share of what pages pass on: sweeps end once one changed it by no more.
const ENOUGH: f64 = 0.3;
/// Maximum difference from 1 of the sum of a ranking that is used.
const PART: f64 = 1e-3;
const SWEEPS: u32 = 100;
/// Distance in rows at which memory of a row's targets is prefetched, and the number of targets.
const NEXT: usize = 2;
const TOUCHED: usize = 64;

#[derive(Default)]
struct Forecast {
    damping: f64,
    unseen: f64,
    /// The page that found each page.
    found_by: Vec<u32>,
    /// Bitmap of the pages that were read and have links.
    with_links: Bits,
    /// Share of the pages that others found and that were read that links back to the page that found it.
    back: RunningMean,
    /// The same share of those with links.
    back_of_linking: RunningMean,
    /// Share of them that has links.
    linking: RunningMean,
    /// Mean number of pages that one of them found.
    finding: RunningMean,
    /// Pages found since the last one was read.
    found_now: u32,
    scores: Cells<f32>,
    links: u64,
}

/// Running mean: first the plain mean, with ten values of 1 in advance; later a read has the weight 1/(30 + read/8).
struct RunningMean {
    value: f64,
    count: f64,
}

impl Default for RunningMean {
    fn default() -> RunningMean {
        RunningMean {
            value: 1.0,
            count: 10.0,
        }
    }
}

impl RunningMean {
    fn add(&mut self, of: u32, read: u32) {
        self.count += 1.0;
        let weight = 1.0 / self.count.min(30.0 + f64::from(read) / 8.0);
        self.value += (f64::from(of) - self.value) * weight;
    }

    /// Returns the mean scaled to 0 to 1.
    fn likeness(&self) -> f64 {
        (self.value / BACK).min(1.0)
    }
}

impl Forecast {
    fn returned(&self) -> f64 {
        RETURNED * self.back.likeness()
    }

    /// Returns the share that seeds are paid.
    fn to_seeds(&self, crawl: &CrawlState) -> f64 {
        let seeds = crawl.seeds().len() as f64;
        let late = libm::pow(crawl.unread_share(), SEEDS);
        self.back.likeness() * late * seeds / (seeds + FEW_SEEDS)
    }

    /// Returns the exponents of the neighbours' adjustments.
    fn powers(&self, crawl: &CrawlState) -> Powers {
        let late = (2.0 * crawl.unread_share()).min(1.0);
        let much = self.back_of_linking.likeness() * self.linking.likeness() * late * late;
        Powers {
            unseen: self.unseen * much,
            found: FOUND * much * self.finding.value.min(1.0),
        }
    }

    /// Returns what the virtual page pays each page, given the bits of the seeds; in total, one unit per page read.
    fn payments<'a>(
        &self,
        crawl: &'a CrawlState,
        seeds: &'a Bits,
    ) -> impl Fn(u32) -> f64 + use<'a> {
        let read = f64::from(crawl.read());
        let share = self.to_seeds(crawl);
        let seed = share * read / crawl.seeds().len().max(1) as f64;
        crawl.focus().payments(crawl.pages(), read, move |page| {
            let as_read = if crawl.is_read(page) {
                1.0 - share
            } else {
                0.0
            };
            as_read + if seeds.get(page.into()) { seed } else { 0.0 }
        })
    }

    /// Returns where the sweeps start: a multiple of the ranking, or 0. The first cells have what each page read passes
    /// on (x), the second what each page receives over links (y), in huge pages: rows refer to them at random.
    fn start(
        &self,
        crawl: &CrawlState,
        ranking: Option<SettledRanking<'_>>,
    ) -> Result<(Cells<f32>, Cells<f32>)> {
        let mut x = Cells::reserve(crawl.pages() as usize)?;
        let mut y = Cells::reserve(crawl.pages() as usize)?;
        let Some(ranking) = ranking.filter(|ranking| {
            ranking.bound_l1.is_finite() && (ranking.damping - self.damping).abs() < 1e-6
        }) else {
            return Ok((x, y));
        };
        let (handed, received) = (&mut *x, &mut *y);
        let (mut all, mut of_read, mut of_linking) = (0.0, 0.0, 0.0);
        let mut pages = 0..crawl.pages();
        ranking.importances.each(&mut |importance| {
            let Some(page) = pages.next() else {
                return;
            };
            let to = &mut received[page as usize];
            *to = importance as f32;
            all += importance;
            if crawl.is_read(page) {
                of_read += importance;
                handed[page as usize] = importance as f32;
            }
            if self.with_links.get(page.into()) {
                of_linking += importance;
            }
        })?;
        let teleport = (1.0 - self.damping * of_linking) / f64::from(crawl.pages());
        let mut to_unread = 0.0;
        for (page, received) in (0..).zip(&mut *received) {
            *received = (*received - teleport as f32).max(0.0);
            if !crawl.is_read(page) {
                to_unread += f64::from(*received);
            }
        }
        // Pages read do not pass this on to pages read, or get it back; the virtual page pays it.
        let lost = of_read - self.damping * of_linking + (1.0 - self.returned()) * to_unread;
        // The pages of one shard have only a part of the importance.
        let scale = if lost > 0.0 && (all - 1.0).abs() < PART {
            f64::from(crawl.read()) / lost
        } else {
            0.0
        };
        for units in [received, handed].into_iter().flatten() {
            *units = (f64::from(*units) * scale) as f32;
        }
        Ok((x, y))
    }

    /// Solves the equations. Returns x of each page read and y of each other page, as shares of their sum.
    fn solve(&mut self, crawl: &CrawlState, facts: &CrawlFacts<'_>) -> Result<Cells<f32>> {
        let (mut x, mut y) = self.start(crawl, facts.ranking)?;
        let (handed, received) = (&mut *x, &mut *y);
        let returned = self.returned() * self.damping;
        let seeds = crawl.seed_pages();
        let pays = self.payments(crawl, &seeds);
        let read = crawl.read_pages();
        for _ in 0..SWEEPS {
            let mut moved = 0.0;
            let swept = facts.rows.walk(&mut |rows| {
                for (nth, &row) in rows.iter().enumerate() {
                    if let Some(later) = rows.get(nth + LATER) {
                        prefetch_index(&*received, later.page as usize);
                        prefetch_index(&*handed, later.page as usize);
                        read.prefetch(later.page.into());
                        seeds.prefetch(later.page.into());
                    }
                    if let Some(next) = rows.get(nth + NEXT) {
                        for &target in next.targets.iter().take(TOUCHED) {
                            prefetch_index(&*received, target as usize);
                            read.prefetch(target.into());
                        }
                    }
                    if !crawl.is_read(row.page) {
                        continue;
                    }
                    let kept = 1.0 - returned * unread_part(crawl, row);
                    // Corrections may leave what a page receives slightly below zero.
                    let units = (pays(row.page) + f64::from(received[row.page as usize])) / kept;
                    let handed = &mut handed[row.page as usize];
                    moved += hand_on(row, units.max(0.0), self.damping, handed, received);
                }
                Ok(())
            });
            Stop::is_whole(swept)?;
            self.links += facts.rows.links();
            let handed: f64 = handed.iter().map(|&units| f64::from(units)).sum();
            if moved <= ENOUGH * handed {
                break;
            }
        }
        let mut sum = 0.0;
        for ((page, score), &received) in (0..).zip(&mut *handed).zip(&*received) {
            if !crawl.is_read(page) {
                *score = (f64::from(received) + pays(page)).max(0.0) as f32;
            }
            sum += f64::from(*score);
        }
        if sum > 0.0 {
            let share = |score: &mut f32| *score = (f64::from(*score) / sum) as f32;
            handed.iter_mut().for_each(share);
        }
        Ok(x)
    }
}

/// Sets what a page hands on, and passes on the difference unless it is too small. Returns its amount.
fn hand_on(row: Row<'_>, units: f64, damping: f64, handed: &mut f32, received: &mut [f32]) -> f64 {
    let before = f64::from(*handed);
    let least = LEAST * ((row.targets.len() + 1) as f64).sqrt();
    if (units - before).abs() <= least {
        return 0.0;
    }
    *handed = units as f32;
    let change = f64::from(*handed) - before;
    if row.weights.is_empty() {
        let each = (damping * change / row.targets.len() as f64) as f32;
        for (at, &target) in row.targets.iter().enumerate() {
            if let Some(&later) = row.targets.get(at + TOUCHED) {
                prefetch_index(&*received, later as usize);
            }
            received[target as usize] += each;
        }
    } else {
        for (target, part) in row.parts() {
            received[target as usize] += (damping * part * change) as f32;
        }
    }
    change.abs()
}

/// Returns the part of a page's links that leads to unread pages.
fn unread_part(crawl: &CrawlState, row: Row<'_>) -> f64 {
    if row.weights.is_empty() {
        let unread = row.targets.iter().filter(|&&target| !crawl.is_read(target));
        return unread.count() as f64 / row.targets.len().max(1) as f64;
    }
    let unread = row.parts().filter(|&(target, _)| !crawl.is_read(target));
    unread.map(|(_, part)| part).sum()
}

impl Strategy for Forecast {
    fn found(&mut self, crawl: &CrawlState, page: u32, by: Option<u32>) {
        self.found_by.resize(crawl.pages() as usize, NO_FINDER);
        self.found_by[page as usize] = by.unwrap_or(NO_FINDER);
        self.found_now += u32::from(by.is_some());
    }

    fn expect(&self, page: u32) {
        prefetch_index(&*self.found_by, page as usize);
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        let found = std::mem::take(&mut self.found_now);
        let has_links = row.degree() > 0;
        if has_links {
            self.with_links.grow(crawl.pages().into());
            self.with_links.set(row.page.into());
        }
        let by = self.found_by[row.page as usize];
        if by == NO_FINDER {
            return;
        }
        let read = crawl.read();
        let back = row.targets.contains(&by) && row.links().any(|target| target == by);
        let back = u32::from(back);
        self.finding.add(found, read);
        self.back.add(back, read);
        self.linking.add(has_links.into(), read);
        if has_links {
            self.back_of_linking.add(back, read);
        }
    }

    fn prepare(&mut self, crawl: &CrawlState, facts: &CrawlFacts<'_>) -> Result<()> {
        self.scores = self.solve(crawl, facts)?;
        Ok(())
    }

    fn best(
        &mut self,
        crawl: &CrawlState,
        facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        self.found_by.resize(crawl.pages() as usize, NO_FINDER);
        let near = Near {
            crawl,
            names: facts.names,
            found_by: &self.found_by,
            with_links: &self.with_links,
            powers: self.powers(crawl),
        };
        near.best(&self.scores, count)
    }

    fn links(&self) -> u64 {
        self.links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::RankOptions;
    use crate::rank::settle::settle;
    use crate::rows::{Rows, RowsVisitor};
    use crate::schedule::CrawlHistory;

    const DAMPING: f64 = 0.85;

    /// Rows in the order of reading.
    struct RowsRead {
        rows: Vec<(u32, Vec<u32>)>,
        pages: u32,
    }

    impl Rows for RowsRead {
        fn pages(&self) -> u64 {
            self.pages.into()
        }

        fn links(&self) -> u64 {
            self.rows.iter().map(|(_, row)| row.len() as u64).sum()
        }

        fn walk(&self, visit: &mut RowsVisitor<'_>) -> Result<(), Stop> {
            let mut rows = self.rows.iter();
            rows.try_for_each(|(page, targets)| visit(&[Row::new(*page, targets)]))
        }
    }

    impl RowsRead {
        /// Returns a crawl of a web in which page p links to p/2, p + 1 and a few others, of which the first half is read.
        fn half_of(pages: u32) -> RowsRead {
            let links = |page: u32| {
                let mut targets = vec![page / 2, page + 1, page * 7 % 97, page * 2, page + 9];
                targets.retain(|&target| target != page);
                targets.sort_unstable();
                targets.dedup();
                targets
            };
            RowsRead {
                rows: (0..pages / 2).map(|page| (page, links(page))).collect(),
                pages: pages + 10,
            }
        }

        /// Returns a strategy that followed the rows, and the crawl.
        fn followed(&self) -> (Forecast, CrawlHistory) {
            let mut forecast = Forecast {
                damping: DAMPING,
                unseen: UNSEEN,
                ..Forecast::default()
            };
            let mut history = CrawlHistory::new(Box::new(crate::schedule::near::NoOrder));
            for (page, row) in &self.rows {
                let row = Row::new(*page, row);
                let known = history.crawl().pages().max(page + 1);
                history.row(row);
                forecast.found_by.resize(known as usize, NO_FINDER);
                forecast
                    .found_by
                    .resize(history.crawl().pages() as usize, *page);
                forecast.read(history.crawl(), row);
            }
            history.known_below(self.pages);
            (forecast, history)
        }

        /// Solves the equations by fixed-point iteration.
        fn solved(&self, forecast: &Forecast, crawl: &CrawlState) -> Vec<f64> {
            let seeds = crawl.seed_pages();
            let (pays, returned) = (forecast.payments(crawl, &seeds), forecast.returned());
            let mut now = vec![0.0; self.pages as usize];
            for _ in 0..500 {
                let mut then: Vec<f64> = (0..self.pages).map(&pays).collect();
                for (page, targets) in &self.rows {
                    let each = DAMPING * now[*page as usize] / targets.len() as f64;
                    for &target in targets {
                        then[target as usize] += each;
                        if !crawl.is_read(target) {
                            then[*page as usize] += returned * each;
                        }
                    }
                }
                now = then;
            }
            let sum: f64 = now.iter().sum();
            now.iter().map(|units| units / sum).collect()
        }
    }

    /// From nothing and from a ranking, scores come near the solution of the equations; from a ranking within a few
    /// sweeps. A ranking of another damping is not used.
    #[test]
    fn scores_solve_the_equations() {
        for pages in [200, 2_000] {
            let rows = RowsRead::half_of(pages);
            let options = RankOptions::until((DAMPING * 2f64.powi(32)) as u64, 0.01);
            let importance = settle(&rows, &options, &mut ())
                .unwrap()
                .unwrap()
                .importance();
            let ranking = SettledRanking {
                damping: DAMPING,
                bound_l1: 0.01,
                importances: &importance,
            };
            let other = SettledRanking {
                damping: 0.5,
                ..ranking
            };
            let (forecast, history) = rows.followed();
            let expected = rows.solved(&forecast, history.crawl());
            let solve = |ranking: Option<SettledRanking<'_>>| {
                let (mut forecast, history) = rows.followed();
                let facts = CrawlFacts {
                    ranking,
                    ..CrawlFacts::of(&rows)
                };
                let found = forecast.solve(history.crawl(), &facts).unwrap().to_vec();
                let off = |(found, expected): (&f32, &f64)| (f64::from(*found) - expected).abs();
                let off: f64 = found.iter().zip(&expected).map(off).sum();
                (found, off, forecast.links / rows.links())
            };
            let (scores, off, _) = solve(None);
            assert!(off < 0.3, "{pages}: {off}");
            let (_, off, sweeps) = solve(Some(ranking));
            assert!(
                off < 0.3 && sweeps <= 4,
                "{pages}: {off} after {sweeps} sweeps"
            );
            assert_eq!(solve(Some(other)).0, scores);
        }
    }
}
