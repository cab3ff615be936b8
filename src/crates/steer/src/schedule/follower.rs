//! Crawl order of a store that is kept between lists, and reads only what is new.
//!
//! A list needs the crawl's history (which page was read when, and its links), passed to a strategy row by row, and the
//! name order. From nothing, that sweeps over all kept rows and sorts all names. A follower keeps both. Given a newer
//! snapshot of the same store it reads the rows and names added since, and its strategy continues: Forecast pushes what
//! the new pages changed and sweeps over the rows once the pages read have grown by a hundredth ([`super::forecast`]);
//! the others move a few pages in their queues. What follows from the snapshot alone is read each time: which pages
//! fail, or were fetched in vain.
//!
//! **Same answers.** It passes on the latest row of each page, in the order in which they were written. So a follower
//! passes on what a new one would, wherever checkpoints dropped older rows; strategies that depend on nothing else
//! answer the same. Forecast solves the same equations, and both solutions are as close as their push thresholds allow:
//! pages whose scores are closer than that may swap places.
//!
//! **It starts over** if continuing would not give that: a page was read again, the store was replaced or is in an
//! older state, rows were written into another file (compaction), there are no rows, the strategy is not incremental
//! ([`super::StrategySpec::incremental`]), and after any error.
//!
//! **Memory**: [`Follower::bytes`]; 4 bytes and a bit per page, 28 more for the name order, and what the strategy
//! keeps: Forecast 60 bytes per page.

use std::path::Path;

use super::hosts::FetchedHosts;
use super::names::Runs;
use super::next::{ChosenPage, FOCUSED, ListLimits, ListSource, completed, interleave};
use super::queue::PageTopK;
use super::{
    Candidate, CrawlHistory, Given, NameOrder, NextOptions, PageSelection, SettledRanking, seeds,
};
use crate::rows::{PAGES_MAX, Row, RowVisitor, Rows, Stop};
use crate::snapshot::Snapshot;
use crate::store::Disk;
use crate::store::rows::KeptRows;
use crate::store::rows::Retention;
use crate::threads::join;
use crate::{Error, Result};

/// Repeatedly lists what to crawl next from one store.
pub struct Follower {
    options: NextOptions,
    /// True if further queries will follow.
    stays: bool,
    threads: usize,
    followed: Option<FollowedCrawl>,
}

/// Maximum number of threads that read names.
const THREADS: usize = 8;

/// Returns the pages to crawl next, best first. Fails with [`Error::Missing`] if there is no store or snapshot, or no
/// page is known, and there are no seeds; or if the strategy needs rows and none are kept.
pub fn next(disk: &dyn Disk, store: &Path, options: &NextOptions) -> Result<Vec<Candidate>> {
    match Snapshot::latest(disk, store) {
        Err(Error::Missing(_)) if !options.seeds.is_empty() => {
            Ok(seeds::all(options, &mut ListLimits::new(options, None)))
        }
        snapshot => Follower::once(options.clone()).next(&snapshot?),
    }
}

impl Follower {
    /// Returns a follower for repeated queries. It reads on one thread, with another that reads ahead.
    pub fn new(options: NextOptions) -> Follower {
        Follower {
            // A focus changes payments each time, which maintained state does not follow.
            options: if options.focus.is_empty() {
                options
            } else {
                NextOptions {
                    strategy: options.strategy.once(),
                    ..options
                }
            },
            stays: true,
            threads: 1,
            followed: None,
        }
    }

    /// Returns a follower for one query: nothing is maintained. Up to eight threads, one per processor, read names.
    pub fn once(options: NextOptions) -> Follower {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Follower {
            options: NextOptions {
                strategy: options.strategy.once(),
                ..options
            },
            stays: false,
            threads: threads.min(THREADS),
            followed: None,
        }
    }

    /// Returns the pages to crawl next, best first, as of this snapshot, which was its store's current one when it was
    /// opened. Fails with [`Error::Missing`] if no page is known, or the strategy needs rows and none are kept.
    pub fn next(&mut self, snapshot: &Snapshot) -> Result<Vec<Candidate>> {
        let pages = snapshot.info().pages;
        let store = snapshot.store().display();
        if pages == 0 && !self.options.seeds.is_empty() {
            let mut limits = ListLimits::new(&self.options, Some(snapshot));
            return Ok(seeds::all(&self.options, &mut limits));
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
        let rows = match snapshot.rows_retention() {
            Some(standing) if standing.kept().is_some() => Some(snapshot.rows()?),
            _ => None,
        };
        let mut asking = Asking {
            source: ListSource {
                snapshot,
                rows: rows.as_ref(),
                options: &self.options,
            },
            stays: self.stays,
            threads: self.threads,
            // Unfinished state after an error is not kept.
            followed: self.followed.take(),
        };
        let found = asking.next()?;
        self.followed = asking.followed.filter(|_| self.stays);
        Ok(found)
    }

    /// Returns the memory kept, in bytes, approximately.
    pub fn bytes(&self) -> u64 {
        let followed = self.followed.as_ref();
        followed.map_or(0, |followed| {
            bytes(&self.options, followed.names, followed.links)
        })
    }

    /// Returns the memory that a follower with these options would keep after a list of this snapshot, in bytes,
    /// approximately.
    pub fn needs(options: &NextOptions, snapshot: &Snapshot) -> u64 {
        let kept = snapshot.rows_retention().and_then(Retention::kept);
        let links = kept.map_or(0, |kept| kept.links);
        bytes(options, snapshot.info().pages, links)
    }
}

/// Returns the memory for `pages` pages and `links` links, in bytes.
fn bytes(options: &NextOptions, pages: u64, links: u64) -> u64 {
    let spec = options.strategy.spec();
    let names = if spec.by_names { 28 } else { 0 };
    let focus = u64::from(!options.focus.is_empty());
    let (page, link) = spec.bytes_per_page_and_link;
    pages * (5 + names + focus + page) + links * link
}

/// State of one query for a list.
struct Asking<'a> {
    source: ListSource<'a>,
    stays: bool,
    threads: usize,
    followed: Option<FollowedCrawl>,
}

/// Position up to which a store's rows were read, in the order in which they were written.
#[derive(Debug, Clone, Copy)]
pub struct RowPosition {
    /// Key of the store, and number of its row file.
    file: ([u64; 2], u64),
    /// Number of rows before the position, and their checksum.
    rows: u64,
    sum: u64,
}

impl RowPosition {
    /// Returns the position after the last row of a snapshot.
    pub fn of(snapshot: &Snapshot, rows: &KeptRows) -> Result<RowPosition> {
        let kept = rows.kept();
        Ok(RowPosition {
            file: (snapshot.key(), kept.number),
            rows: kept.rows,
            sum: rows.sum_before(kept.rows)?,
        })
    }

    /// Returns the number of rows before the position.
    pub fn rows(self) -> u64 {
        self.rows
    }

    /// Returns whether the rows of a snapshot begin with those before the position.
    pub fn continues(self, snapshot: &Snapshot, rows: &KeptRows) -> Result<bool> {
        let kept = rows.kept();
        Ok(self.file == (snapshot.key(), kept.number)
            && self.rows <= kept.rows
            && self.sum == rows.sum_before(self.rows)?)
    }
}

/// Crawl as far as it was followed.
struct FollowedCrawl {
    history: CrawlHistory,
    /// Position in the rows; `None` before the first.
    mark: Option<RowPosition>,
    links: u64,
    /// Number of pages whose names were read.
    names: u64,
    runs: Runs,
    order: NameOrder,
}

impl Asking<'_> {
    fn next(&mut self) -> Result<Vec<Candidate>> {
        let options = self.source.options;
        let count = options.count;
        let mut limits = ListLimits::new(options, Some(self.source.snapshot));
        let mut first = seeds::unread(&self.source, &mut limits)?;
        if options.known_hosts {
            let mut known = FetchedHosts::default();
            known.add_all(self.source.snapshot)?;
            first.iter().for_each(|seed| known.add(seed.url.as_bytes()));
            limits.known = Some(known.into());
        }
        let left = count - first.len();
        let chosen = match options.which {
            PageSelection::NotFetched => self.discover(left, &mut limits)?,
            PageSelection::Refetch => self.source.refetch(left, &mut limits)?,
            PageSelection::Either => self.either(left, &mut limits)?,
            PageSelection::Budget { discovery } => {
                let new = (count as f64 * discovery.clamp(0.0, 1.0)).round() as usize;
                let new = new.saturating_sub(first.len()).min(left);
                let mut chosen = self.discover(new, &mut limits)?;
                let rest = left - chosen.len();
                chosen.extend(self.source.refetch(rest, &mut limits)?);
                if options.strategy.spec().by_cash {
                    chosen.sort_by(|a, b| b.score().total_cmp(&a.score()));
                    chosen
                } else {
                    interleave(chosen)
                }
            }
        };
        let mut rest = self.source.describe(chosen)?;
        // A list is ordered by score.
        let best = rest.first().map_or(0.0, |page| page.score);
        first.iter_mut().for_each(|seed| seed.score = best);
        first.append(&mut rest);
        Ok(first)
    }

    /// Chooses unread pages, by the strategy.
    fn discover(&mut self, count: usize, limits: &mut ListLimits<'_>) -> Result<Vec<ChosenPage>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let cash = self.follow()?;
        let Asking {
            source, followed, ..
        } = self;
        let Some(FollowedCrawl { history, order, .. }) = followed else {
            return Ok(Vec::new());
        };
        let none = NoRows(u64::from(history.crawl().pages()));
        let given = Given {
            rows: source.rows.map_or(&none as &dyn Rows, |rows| rows),
            names: source.options.strategy.spec().by_names.then_some(order),
            settled: Some(&SnapshotRanking(source.snapshot)),
            cash: cash.as_deref(),
        };
        source.select(
            count,
            limits,
            |_| false,
            |most| {
                let best = history.best_with(given, most)?;
                Ok(completed(best, history.crawl(), most))
            },
        )
    }

    /// Chooses pages read and unread, by their claims.
    fn either(&mut self, count: usize, limits: &mut ListLimits<'_>) -> Result<Vec<ChosenPage>> {
        let Some(cash) = self.follow()? else {
            let name = self.source.options.strategy.spec().name;
            return Err(Error::Usage(format!(
                "strategy {name} says nothing of pages that were fetched: `budget` discovery=any is for `strategy` greedy; \
                 give a share from 0 to 1"
            )));
        };
        let Some(FollowedCrawl { history, .. }) = &self.followed else {
            return Ok(Vec::new());
        };
        let (source, crawl) = (&self.source, history.crawl());
        let before = source.refetch_before();
        let is_read = |page: u32| crawl.is_read(page);
        source.select(count, limits, is_read, |most| {
            let mut best = PageTopK::new(most);
            for page in source.snapshot.pages() {
                let page = page?;
                let number = page.page.0 as u32;
                if crawl.is_open(number) || is_read(number) && source.may_refetch(&page, before) {
                    best.offer(number, cash[number as usize]);
                }
            }
            Ok(best.sorted())
        })
    }

    /// Follows the crawl to the snapshot. Returns the claims of pages, for strategies that use them.
    fn follow(&mut self) -> Result<Option<Vec<f64>>> {
        let source = &self.source;
        let options = source.options;
        let known = options.strategy.spec();
        if source.rows.is_none() && !known.without_rows {
            return Err(source.needs_rows(known.name));
        }
        if !options.focus.is_empty() && !FOCUSED.contains(&known.name) {
            return Err(Error::Usage(format!(
                "strategy {} cannot favour pages by a focus; these can: {}",
                known.name,
                FOCUSED.join(", ")
            )));
        }
        let kept = match self.followed.take() {
            Some(followed) if known.incremental && followed.continues(source)? => Some(followed),
            _ => None,
        };
        let followed = self.followed.insert(match kept {
            Some(followed) => followed,
            None => FollowedCrawl::new(source),
        });
        followed.history.reopen();
        if !followed.catch_up(source, self.threads, self.stays)? {
            *followed = FollowedCrawl::new(source);
            followed.catch_up(source, self.threads, self.stays)?;
        }
        followed.hold(source)
    }
}

impl FollowedCrawl {
    /// Returns the state before any row.
    fn new(source: &ListSource<'_>) -> FollowedCrawl {
        let options = source.options;
        let damping = source.snapshot.info().settings.config.damping_asked();
        let choice = options.strategy.clone().of_store(damping);
        let mut history = CrawlHistory::new(choice.strategy());
        history.set_focus(options.focus.without_pages());
        FollowedCrawl {
            history,
            mark: None,
            links: 0,
            names: 0,
            runs: Runs::default(),
            order: NameOrder::default(),
        }
    }

    /// Returns whether the store's rows begin with those that were followed.
    fn continues(&self, source: &ListSource<'_>) -> Result<bool> {
        let (Some(rows), Some(mark)) = (source.rows, self.mark) else {
            return Ok(false);
        };
        Ok(self.names <= source.snapshot.info().pages && mark.continues(source.snapshot, rows)?)
    }

    /// Passes on the new rows and names; from nothing, the latest row of each page. Returns `false` if a page was read
    /// again: its position in the crawl changed, and the effect of its old row cannot be undone.
    fn catch_up(&mut self, source: &ListSource<'_>, threads: usize, stays: bool) -> Result<bool> {
        let snapshot = source.snapshot;
        let new = self.names..snapshot.info().pages;
        let focus = &source.options.focus;
        if !focus.is_empty() {
            let focused = self.history.focus_mut();
            snapshot.each_name(new.clone(), &mut |name| focused.add(focus.rule_of(name)))?;
        }
        self.names = new.end;
        let (runs, history) = (&mut self.runs, &mut self.history);
        let sort = || {
            if !source.options.strategy.spec().by_names {
                return Ok(None);
            }
            let each = |pages, visit: &mut dyn FnMut(&[u8])| snapshot.each_name(pages, visit);
            runs.extend(new, threads, each)?;
            let order = runs.names();
            if !stays {
                *runs = Runs::default();
            }
            Ok(Some(order))
        };
        let from = self.mark.map_or(0, RowPosition::rows);
        let tell = || match source.rows {
            Some(rows) if from == 0 => rows.sweep(&mut |row| {
                history.row(row);
                Ok(())
            }),
            Some(rows) => rows.written_from(from, &mut |row| {
                let crawl = history.crawl();
                if row.page < crawl.pages() && crawl.is_read(row.page) {
                    return Err(Stop::Enough);
                }
                history.row(row);
                Ok(())
            }),
            None => Ok(true),
        };
        let (order, followed) = join(threads > 1, sort, tell);
        let continues = followed?;
        if let Some(order) = order? {
            self.order = order;
        }
        if let Some(rows) = source.rows {
            self.links = rows.kept().links;
            self.mark = Some(RowPosition::of(snapshot, rows)?);
        }
        Ok(continues)
    }

    /// Makes pages known, and holds back those that must not be listed. Without rows, pages that were visited count as
    /// read. Returns the claims of pages, if the strategy uses them.
    fn hold(&mut self, source: &ListSource<'_>) -> Result<Option<Vec<f64>>> {
        let ListSource {
            snapshot,
            rows,
            options,
        } = source;
        let history = &mut self.history;
        history.known_below(snapshot.info().pages as u32);
        let mut cash = (options.strategy.spec().by_cash).then(Vec::new);
        if rows.is_some() {
            if let Some(cash) = &mut cash {
                for page in snapshot.pages() {
                    cash.push(page?.claim());
                }
            }
            snapshot.failures(&mut |page, fetches| {
                if fetches.last.is_some() || source.is_failing(fetches) {
                    history.hold(page);
                }
            })?;
        } else {
            for page in snapshot.pages() {
                let page = page?;
                let number = page.page.0 as u32;
                if page.fetches.visits > 0 {
                    history.row(Row::new(number, &[]));
                } else if page.fetches.last.is_some() || source.is_failing(&page.fetches) {
                    history.hold(number);
                }
                if let Some(cash) = &mut cash {
                    cash.push(page.claim());
                }
            }
        }
        let seeds = options.seeds.iter().filter_map(|seed| seed.page);
        for page in options.exclude.all().chain(seeds.map(|page| page.0)) {
            if let Ok(page) = u32::try_from(page) {
                history.hold(page);
            }
        }
        Ok(cash)
    }
}

/// Ranking of a snapshot.
struct SnapshotRanking<'a>(&'a Snapshot);

impl SettledRanking for SnapshotRanking<'_> {
    fn damping(&self) -> f64 {
        self.0.info().settings.config.damping()
    }

    fn bound_l1(&self) -> f64 {
        let info = self.0.info();
        // A ranking without expired rows has no bound for all of the rows.
        let is_settled = info.window.settled.is_some() && info.expired.is_none();
        let bound = info.bound_l1().filter(|_| is_settled);
        bound.unwrap_or(f64::INFINITY)
    }

    fn each(&self, visit: &mut dyn FnMut(u32, f64)) -> Result<()> {
        self.0.importances(visit)
    }
}

/// Rows of a store that keeps none.
struct NoRows(u64);

impl Rows for NoRows {
    fn pages(&self) -> u64 {
        self.0
    }

    fn links(&self) -> u64 {
        0
    }

    fn walk(&self, _visit: &mut RowVisitor<'_>) -> Result<(), Stop> {
        Ok(())
    }
}
