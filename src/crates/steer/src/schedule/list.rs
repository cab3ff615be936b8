//! List of what a store's crawl should fetch next: a strategy applied to the last snapshot and its kept rows.
//!
//! Works beside a writer, without a lock. Pages that have a row count as read, including those found gone; without
//! rows, pages that were visited. One sweep over the rows tells the strategy the history of the crawl: the latest row of
//! each page, in the order in which they were written. So lists do not depend on which older rows checkpoints dropped.
//!
//! Memory: 1 byte per page, 12 for the name order while it is sorted and 4 afterwards, what the strategy keeps (Forecast
//! 12 bytes, and 8 per page read), and the list.

use std::collections::HashSet;
use std::path::Path;

use super::names::by_name;
use super::next::{ListLimits, host_hash, listed_seeds};
use super::refresh::{self, Looks};
use super::{
    Candidate, CrawlFacts, CrawlHistory, CrawlState, NextOptions, PageSelection, ScoredPage,
    SettledRanking, StrategySpec,
};
use crate::decode::Time;
use crate::graph::Graph;
use crate::metrics::BestItems;
use crate::model::PageId;
use crate::rows::{PAGES_MAX, Row, Rows, Stop};
use crate::snapshot::{Snapshot, SnapshotPage};
use crate::store::Disk;
use crate::store::rows::{KeptRows, Retention};
use crate::threads::join;
use crate::{Error, Result};

/// Maximum number of threads that read names.
pub(super) const THREADS: usize = 8;
/// Number of pages whose names and facts are read at a time.
const NAMED: usize = 1 << 17;
/// Strategies with a virtual page, which can be focused.
const FOCUSED: [&str; 3] = ["forecast", "settled", "xyleme"];

/// Returns the pages to crawl next, best first. Fails with [`Error::Missing`] if there is no store or snapshot, or no
/// page is known, and there are no seeds; or if the strategy needs rows and none are kept.
pub fn next(disk: &dyn Disk, store: &Path, options: &NextOptions) -> Result<Vec<Candidate>> {
    match Snapshot::latest(disk, store) {
        Err(Error::Missing(_)) if !options.seeds.is_empty() => Ok(listed_seeds(options, None).0),
        snapshot => next_of(&snapshot?, options, THREADS),
    }
}

/// Returns the pages to crawl next, as of this snapshot, which was its store's current one when it was opened. Up to
/// `threads` threads read names. Fails with [`Error::Missing`] if no page is known, or no rows that the strategy needs.
pub fn next_of(
    snapshot: &Snapshot,
    options: &NextOptions,
    threads: usize,
) -> Result<Vec<Candidate>> {
    let pages = snapshot.info().pages;
    let store = snapshot.store().display();
    if pages == 0 && !options.seeds.is_empty() {
        return Ok(listed_seeds(options, Some(snapshot)).0);
    }
    if pages == 0 {
        return Err(Error::Missing(format!(
            "{store}: no page is known yet; crawl the seeds first and ingest what was read"
        )));
    }
    if pages >= PAGES_MAX {
        return Err(Error::Unsupported(format!(
            "{store}: {pages} pages; crawl orders are for fewer than {PAGES_MAX}"
        )));
    }
    let is_kept = snapshot
        .rows_retention()
        .and_then(Retention::kept)
        .is_some();
    let source = ListSource {
        snapshot,
        rows: is_kept.then(|| snapshot.rows()).transpose()?,
        none: Graph::default(),
        options,
        now: options.now(snapshot),
        threads: threads.clamp(1, THREADS),
    };
    source.list()
}

struct ListSource<'a> {
    snapshot: &'a Snapshot,
    rows: Option<KeptRows>,
    /// Empty graph for strategies that work without rows.
    none: Graph,
    options: &'a NextOptions,
    now: Option<Time>,
    threads: usize,
}

impl ListSource<'_> {
    fn list(&self) -> Result<Vec<Candidate>> {
        let options = self.options;
        let count = options.count;
        let (mut first, mut limits) = listed_seeds(options, Some(self.snapshot));
        if options.known_hosts {
            let seeds = first.iter().map(|seed| host_hash(seed.url.as_bytes()));
            let mut known: HashSet<u64> = seeds.collect();
            let (visited, mut page) = (self.snapshot.visited(1)?, 0);
            self.snapshot
                .each_name(0..self.snapshot.len(), &mut |name| {
                    if visited.get(page) {
                        known.insert(host_hash(name));
                    }
                    page += 1;
                })?;
            limits.known = Some(known.into());
        }
        let left = count - first.len();
        let mut rest = match options.which {
            PageSelection::NotFetched => self.discover(left, &mut limits, false)?,
            PageSelection::Refetch => self.choose(left, &mut limits, None, true)?,
            PageSelection::Either => self.discover(left, &mut limits, true)?,
            PageSelection::Budget { discovery } => {
                let new = (count as f64 * discovery.clamp(0.0, 1.0)).round() as usize;
                let new = new.saturating_sub(first.len()).min(left);
                let mut chosen = self.discover(new, &mut limits, false)?;
                let rest = left - chosen.len();
                chosen.extend(self.choose(rest, &mut limits, None, true)?);
                if options.strategy.spec().by_cash {
                    chosen.sort_by(|a, b| b.score.total_cmp(&a.score));
                    chosen
                } else {
                    interleave(chosen)
                }
            }
        };
        if options.facts {
            self.describe(&mut rest)?;
        }
        // A list is ordered by score.
        let best = rest.first().map_or(0.0, |page| page.score);
        first.iter_mut().for_each(|seed| seed.score = best);
        first.append(&mut rest);
        Ok(first)
    }

    /// Chooses unread pages, and with `rereads` also pages to read again, by the strategy.
    fn discover(
        &self,
        count: usize,
        limits: &mut ListLimits<'_>,
        rereads: bool,
    ) -> Result<Vec<Candidate>> {
        let StrategySpec { name, by_cash, .. } = self.options.strategy.spec();
        if rereads && !by_cash {
            return Err(Error::Usage(format!(
                "strategy {name} says nothing of pages that were fetched: `budget` discovery=any is for `strategy` greedy; \
                 give a share from 0 to 1"
            )));
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let (mut history, names) = self.follow()?;
        if *by_cash {
            return self.choose(count, limits, Some(history.crawl()), rereads);
        }
        let facts = CrawlFacts {
            names: names.as_deref(),
            ..self.facts()
        };
        let order = |most| {
            let best = history.best(&facts, most)?;
            Ok(completed(best, history.crawl(), most))
        };
        self.select(count, limits, |_| false, order)
    }

    /// Chooses the open pages of a crawl, and with `rereads` pages to read again: by cash if the strategy uses it, else
    /// by gain.
    fn choose(
        &self,
        count: usize,
        limits: &mut ListLimits<'_>,
        crawl: Option<&CrawlState>,
        rereads: bool,
    ) -> Result<Vec<Candidate>> {
        let by_cash = self.options.strategy.spec().by_cash;
        let mut all = Looks::default();
        if !by_cash {
            for page in self.snapshot.pages() {
                all.add(Looks::of(&page?.fetches));
            }
        }
        let usual = all.usual_rate();
        // The time before which a page must have been fetched to be read again, if the options set an age.
        let before = self.options.older_than.and_then(|seconds| {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            Some(self.now?.saturating_sub(seconds))
        });
        let is_open = |page| crawl.is_some_and(|crawl| crawl.is_open(page));
        let is_read = |page| crawl.is_none_or(|crawl| crawl.is_read(page));
        self.select(count, limits, is_read, |most| {
            let mut best = BestItems::new(most);
            for page in self.snapshot.pages() {
                let page = page?;
                let number = page.page.0 as u32;
                if is_open(number) || rereads && is_read(number) && self.may_refetch(&page, before)
                {
                    let score = if by_cash {
                        page.claim()
                    } else {
                        refresh::gain_now(page.importance, &page.fetches, self.now, usual)
                    };
                    best.add(ScoredPage::new(number, score), ScoredPage::best_first);
                }
            }
            Ok(best.finish(ScoredPage::best_first))
        })
    }

    /// Returns whether a page was read and may be read again: it is not gone, and was last fetched before `before`.
    fn may_refetch(&self, page: &SnapshotPage, before: Option<Time>) -> bool {
        page.fetches.visits > 0
            && !page.fetches.gone
            && !self.options.is_failing(self.now, &page.fetches)
            && !self.options.exclude.get(page.page.0)
            && match (before, page.fetches.last) {
                (Some(before), Some(fetched)) => fetched < before,
                _ => true,
            }
    }

    /// Returns the first `count` pages of an order that may be listed, of which it requests more until there are enough.
    fn select(
        &self,
        count: usize,
        limits: &mut ListLimits<'_>,
        is_fetched: impl Fn(u32) -> bool,
        mut order: impl FnMut(usize) -> Result<Vec<ScoredPage>>,
    ) -> Result<Vec<Candidate>> {
        let pages = self.snapshot.info().pages as usize;
        let spare = if limits.any() { 4 } else { 1 };
        let mut most = count.saturating_mul(spare).min(pages);
        loop {
            let best = order(most)?;
            let mut trial = limits.clone();
            let mut chosen = Vec::new();
            for best in best.chunks(NAMED) {
                if chosen.len() == count {
                    break;
                }
                let numbers = best.iter().map(|of| PageId(of.page.into()));
                let numbers: Vec<PageId> = numbers.collect();
                let names = self.snapshot.names_of(&numbers)?;
                for ((of, page), url) in best.iter().zip(numbers).zip(names) {
                    if chosen.len() < count && trial.takes(&url) {
                        chosen.push(Candidate {
                            page: Some(page),
                            url,
                            score: of.score,
                            fetched: is_fetched(of.page),
                            ..Candidate::default()
                        });
                    }
                }
            }
            if chosen.len() == count || best.len() < most || most >= pages {
                *limits = trial;
                return Ok(chosen);
            }
            most = most.saturating_mul(4).min(pages);
        }
    }

    fn describe(&self, chosen: &mut [Candidate]) -> Result<()> {
        for chosen in chosen.chunks_mut(NAMED) {
            let numbers: Vec<PageId> = chosen.iter().filter_map(|of| of.page).collect();
            for (of, page) in chosen.iter_mut().zip(self.snapshot.pages_of(&numbers)?) {
                of.importance = page.importance;
                of.fetches = page.fetches;
            }
        }
        Ok(())
    }

    /// Returns the kept rows, if any, and the ranking.
    fn facts(&self) -> CrawlFacts<'_> {
        let rows = (self.rows.as_ref()).map_or(&self.none as &dyn Rows, |rows| rows);
        let info = self.snapshot.info();
        // A ranking without expired rows has no bound for all of the rows.
        let is_settled = info.window.settled.is_some() && info.expired.is_none();
        let bound = info.bound_l1().filter(|_| is_settled);
        CrawlFacts {
            ranking: Some(SettledRanking {
                damping: info.settings.config.damping(),
                bound_l1: bound.unwrap_or(f64::INFINITY),
                importances: self.snapshot.ranking(),
            }),
            ..CrawlFacts::of(rows)
        }
    }

    /// Follows the crawl to the snapshot. Returns the order of pages by name with it, if its strategy uses that.
    fn follow(&self) -> Result<(CrawlHistory, Option<Vec<u32>>)> {
        let (options, snapshot) = (self.options, self.snapshot);
        let spec = options.strategy.spec();
        if self.rows.is_none() && !spec.without_rows {
            return Err(self.needs_rows(spec.name));
        }
        let pages = snapshot.info().pages;
        let damping = snapshot.info().settings.config.damping_asked();
        let strategy = options.strategy.clone().of_store(damping).strategy();
        let mut history = CrawlHistory::new(strategy);
        if !options.focus.is_empty() {
            if !FOCUSED.contains(&spec.name) {
                return Err(Error::Usage(format!(
                    "strategy {} cannot favour pages by a focus; these can: {}",
                    spec.name,
                    FOCUSED.join(", ")
                )));
            }
            let each = |visit: &mut dyn FnMut(&[u8])| snapshot.each_name(0..pages, visit);
            history.set_focus(options.focus.clone().places(each)?);
        }
        let sort = || {
            let each = |pages, visit: &mut dyn FnMut(&[u8])| snapshot.each_name(pages, visit);
            let order = || by_name(pages, self.threads, each);
            spec.by_names.then(order).transpose()
        };
        let sweep = || {
            if let Some(rows) = &self.rows {
                let whole = rows.walk(&mut |rows| {
                    history.rows(rows);
                    Ok(())
                });
                Stop::is_whole(whole)?;
            }
            self.hold(&mut history)
        };
        let (names, swept) = join(self.threads > 1, sort, sweep);
        swept?;
        Ok((history, names?))
    }

    /// Makes pages known, and holds back those that must not be listed. Without rows, pages that were visited count as
    /// read.
    fn hold(&self, history: &mut CrawlHistory) -> Result<()> {
        let (snapshot, options) = (self.snapshot, self.options);
        history.known_below(snapshot.info().pages as u32);
        if self.rows.is_none() {
            for page in snapshot.visited(1)?.all() {
                history.row(Row::new(page as u32, &[]));
            }
        }
        snapshot.failures(&mut |page, fetches| {
            if fetches.last.is_some() || options.is_failing(self.now, fetches) {
                history.hold(page);
            }
        })?;
        let seeds = options.seeds.iter().filter_map(|seed| seed.page.page);
        for page in options.exclude.all().chain(seeds.map(|page| page.0)) {
            if let Ok(page) = u32::try_from(page) {
                history.hold(page);
            }
        }
        Ok(())
    }

    fn needs_rows(&self, name: &str) -> Error {
        let others: Vec<&str> = super::STRATEGIES
            .iter()
            .filter(|strategy| strategy.without_rows)
            .map(|strategy| strategy.name)
            .collect();
        let why = match self.snapshot.rows_retention() {
            Some(standing) => standing.why_not(),
            None => "the snapshot is not the store's current one".into(),
        };
        Error::Missing(format!(
            "strategy {name} needs the links of pages: {}: {why}. Without them: `strategy` {}",
            self.snapshot.store().display(),
            others.join(", ")
        ))
    }
}

/// Appends the open pages that an order lacks, such as those that no current row links to.
fn completed(mut best: Vec<ScoredPage>, crawl: &CrawlState, most: usize) -> Vec<ScoredPage> {
    if best.len() >= most {
        return best;
    }
    let named: HashSet<u32> = best.iter().map(|of| of.page).collect();
    let score = best.last().map_or(0.0, |last| last.score.min(0.0));
    let rest = (0..crawl.pages()).filter(|page| crawl.is_open(*page) && !named.contains(page));
    let room = most - best.len();
    best.extend(rest.take(room).map(|page| ScoredPage { page, score }));
    best
}

/// Spreads new pages and pages to read again evenly over the list, each kind in its order.
fn interleave(chosen: Vec<Candidate>) -> Vec<Candidate> {
    let all = chosen.len();
    let (again, new): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|of| of.fetched);
    let (again_len, mut again, mut new) = (again.len(), again.into_iter(), new.into_iter());
    let mut taken = 0;
    let mixed = (1..=all).filter_map(|at| {
        // The first `at` pages have the same share as the whole list.
        let due = at * again_len / all;
        if taken < due {
            taken += 1;
            again.next()
        } else {
            new.next()
        }
    });
    mixed.collect()
}
