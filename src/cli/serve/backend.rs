//! The service's answers, from a store's published snapshots and the counters of a running ingest.
//!
//! Of a snapshot everything is read once, when it is first asked for, and kept until a newer one is asked for: its best
//! pages, what moved, and, of up to [`LOOKUP_PAGES`] pages, where each name is. Beyond that, a page is found by a sweep
//! over the store's fingerprints.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cashrank::Error;
use cashrank::decode::Reason;
use cashrank::engine::{Counters, PageId};
use cashrank::metrics::moved::{By, Move, Standing, Wanted};
use cashrank::rows::row_of;
use cashrank::snapshot::{self, Info, Lookup, Ranked, Snapshot};
use cashrank::store::RealDisk;
use cashrank::url;
use cashrank_serve::{
    Backend, Host, Links, Mover, Movers, NextList, NextQuery, Page, Past, Problem, Rank, Result,
    Status, Target, Top,
};

use super::super::rank::pages_of;
use super::lists::Lists;
use super::live::Live;
use crate::cli::common::{as_options, canonical, percentile, say, time};

/// Snapshots of at most so many pages have the places of their names in memory: 12 bytes a page.
const LOOKUP_PAGES: u64 = 8_000_000;
/// Best pages of a snapshot that are kept in memory; hosts are counted among them.
const BEST: usize = 10_000;
/// Movers that are kept.
const MOVERS: usize = 1_000;
/// Newest snapshots whose counts are told.
const HISTORY: usize = 200;

/// A store, as the service sees it.
pub struct StoreBackend {
    store: PathBuf,
    live: Option<Arc<Live>>,
    current: Arc<Current>,
    /// What snapshots say of themselves.
    infos: Mutex<HashMap<String, Past>>,
    lists: Lists,
}

/// The current snapshot of a store: read again when there is a newer one.
pub struct Current {
    store: PathBuf,
    held: Mutex<Option<Arc<Held>>>,
}

/// A snapshot, and what was read of it.
pub struct Held {
    name: String,
    written: Option<SystemTime>,
    snapshot: Snapshot,
    best: OnceLock<Vec<Page>>,
    movers: OnceLock<Movers>,
    lookup: OnceLock<Lookup>,
}

impl Current {
    pub fn get(&self) -> Result<Arc<Held>> {
        let name = snapshot::current_name(&RealDisk, &self.store).map_err(problem)?;
        let name = name.ok_or_else(|| {
            Problem::Later(format!(
                "{}: no snapshot published yet; `cashrank ingest` publishes one at its end and at every \
                 --snapshot-every",
                self.store.display()
            ))
        })?;
        let written = written(&self.store.join("snapshots").join(&name));
        let mut held = lock(&self.held);
        if let Some(held) = &*held
            && held.name == name
            && held.written == written
        {
            return Ok(held.clone());
        }
        let snapshot = Snapshot::latest(&RealDisk, &self.store).map_err(problem)?;
        let path = snapshot.path();
        let new = Arc::new(Held {
            name: path
                .file_name()
                .map_or(name, |name| name.to_string_lossy().into_owned()),
            written: written_of(&snapshot),
            snapshot,
            best: OnceLock::new(),
            movers: OnceLock::new(),
            lookup: OnceLock::new(),
        });
        *held = Some(new.clone());
        Ok(new)
    }
}

impl StoreBackend {
    pub fn new(store: PathBuf, live: Option<Arc<Live>>) -> StoreBackend {
        let current = Arc::new(Current {
            store: store.clone(),
            held: Mutex::default(),
        });
        StoreBackend {
            lists: Lists::new(store.clone(), current.clone()),
            store,
            live,
            current,
            infos: Mutex::default(),
        }
    }

    fn current(&self) -> Result<Arc<Held>> {
        self.current.get()
    }

    /// The newest snapshots, oldest first.
    fn history(&self) -> Result<Vec<Past>> {
        let names = snapshot::names(&RealDisk, &self.store).map_err(problem)?;
        let newest = &names[names.len().saturating_sub(HISTORY)..];
        let mut infos = lock(&self.infos);
        infos.retain(|name, _| newest.contains(name));
        let mut history = Vec::new();
        for name in newest {
            if let Some(past) = infos.get(name) {
                history.push(past.clone());
                continue;
            }
            // One that went since it was listed is no longer of the history.
            let Ok(info) = snapshot::info_of(&RealDisk, &self.store, name) else {
                continue;
            };
            let past = past(name, &info);
            infos.insert(name.clone(), past.clone());
            history.push(past);
        }
        Ok(history)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn written(path: &std::path::Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

fn written_of(snapshot: &Snapshot) -> Option<SystemTime> {
    written(snapshot.path())
}

pub fn problem(error: Error) -> Problem {
    match error {
        refused if refused.is_refusal() => Problem::Asked(as_options(&refused.to_string())),
        other => Problem::Failed(other.to_string()),
    }
}

fn past(name: &str, info: &Info) -> Past {
    Past {
        snapshot: name.into(),
        records: info.counters.records,
        pages: info.pages,
        visited: info.counters.visited,
        bound_l1: info.bound_l1(),
    }
}

fn skipped(counters: &Counters) -> BTreeMap<String, u64> {
    let counts = Reason::ALL.iter().zip(counters.skipped);
    let counts = counts.filter(|(_, count)| *count > 0);
    counts
        .map(|(reason, count)| (reason.name().to_owned(), count))
        .collect()
}

impl Held {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn written(&self) -> Option<SystemTime> {
        self.written
    }

    pub fn records(&self) -> u64 {
        self.snapshot.info().counters.records
    }

    /// Tells it from every other snapshot, one of the same name too, of a store that was made anew.
    pub fn version(&self) -> String {
        let since = self
            .written
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        format!(
            "{}-{:x}",
            self.name,
            since.map_or(0, |since| since.as_nanos())
        )
    }

    /// Names a list of things that have a page each.
    fn named<T>(&self, things: Vec<T>, page: impl Fn(&T) -> PageId) -> Result<Vec<(T, String)>> {
        let pages: Vec<PageId> = things.iter().map(page).collect();
        let names = self.snapshot.names_of(&pages).map_err(problem)?;
        Ok(things.into_iter().zip(names).collect())
    }

    fn best(&self) -> Result<&[Page]> {
        if let Some(best) = self.best.get() {
            return Ok(best);
        }
        let top = self.snapshot.top(BEST).map_err(problem)?;
        let page = |(page, url): (Ranked, String)| Page {
            rank: page.rank,
            importance: page.importance,
            visits: page.visits,
            last_fetch: page.last_fetch.map(|at| time(Some(at))),
            url,
        };
        let named = self.named(top, |page| page.page)?;
        Ok(self
            .best
            .get_or_init(|| named.into_iter().map(page).collect()))
    }

    /// The numbers of pages, in the order of the names given.
    fn find(&self, names: &[&[u8]]) -> Result<Vec<Option<PageId>>> {
        if self.snapshot.info().pages > LOOKUP_PAGES {
            return self.snapshot.find(&RealDisk, names).map_err(problem);
        }
        let lookup = match self.lookup.get() {
            Some(lookup) => lookup,
            None => {
                let lookup = Lookup::new(&self.snapshot).map_err(problem)?;
                self.lookup.get_or_init(|| lookup)
            }
        };
        let found = lookup.find(&RealDisk, &self.snapshot, names);
        found.map_err(problem)
    }

    /// The pages of URLs in any form, or of opaque names.
    fn pages(&self, urls: &[String]) -> Result<Vec<Option<PageId>>> {
        pages_of(urls, |names| self.find(names))
    }

    /// The targets of a page's links, by a sweep over the rows that the store keeps; `None`: it was not visited.
    fn row(&self, page: PageId) -> Result<Option<Vec<u32>>> {
        let rows = self.snapshot.rows().map_err(problem)?;
        let Ok(page) = u32::try_from(page.0) else {
            return Ok(None);
        };
        row_of(&rows, page, |row| row.targets.to_vec()).map_err(problem)
    }

    fn movers(&self, before: Option<&str>) -> Result<&Movers> {
        if let Some(movers) = self.movers.get() {
            return Ok(movers);
        }
        let older = before.map(|name| {
            let folder = self.snapshot.path().with_file_name(name);
            Snapshot::open(&RealDisk, &folder)
        });
        let mut found = Movers {
            to: self.name.clone(),
            ..Movers::default()
        };
        // One that went in the meantime is as if there were none.
        if let Some(Ok(older)) = older {
            found.from = before.map(str::to_owned);
            found.movers = self.moved(&older)?;
        }
        Ok(self.movers.get_or_init(|| found))
    }

    fn moved(&self, older: &Snapshot) -> Result<Vec<Mover>> {
        let wanted = Wanted {
            count: MOVERS,
            by: By::Change,
            top: u64::MAX,
            margin: None,
        };
        let moved = snapshot::moved(older, &self.snapshot, wanted).map_err(problem)?;
        let both = moved.rose.into_iter().chain(moved.fell);
        let both = both.map(|Move { page, left, right }| (page, Some(left), Some(right)));
        let new = moved
            .new
            .into_iter()
            .map(|(page, right)| (page, None, Some(right)));
        let mut all: Vec<(PageId, Option<Standing>, Option<Standing>)> = both.chain(new).collect();
        let of = |standing: &Option<Standing>| standing.map_or(0.0, |standing| standing.importance);
        let change = |(_, left, right): &(PageId, Option<Standing>, Option<Standing>)| {
            (of(right) - of(left)).abs()
        };
        all.sort_by(|a, b| change(b).total_cmp(&change(a)).then(a.0.cmp(&b.0)));
        all.truncate(MOVERS);
        let named = self.named(all, |(page, ..)| *page)?;
        let mover =
            |((_, left, right), url): ((_, Option<Standing>, Option<Standing>), String)| Mover {
                url,
                rank_before: left.map(|standing| standing.rank),
                rank: right.map(|standing| standing.rank),
                importance_before: left.map(|standing| standing.importance),
                importance: right.map(|standing| standing.importance),
            };
        Ok(named.into_iter().map(mover).collect())
    }
}

impl Backend for StoreBackend {
    fn status(&self) -> Result<Status> {
        let now = self.live.as_ref().and_then(|live| live.now());
        let held = match self.current() {
            Ok(held) => Some(held),
            // An ingest that has published nothing yet is told of all the same; so is a new store.
            Err(Problem::Later(_)) => None,
            Err(problem) => return Err(problem),
        };
        let info = held.as_ref().map(|held| held.snapshot.info());
        let counters = match (&now, info) {
            (Some(now), _) => now.counters.clone(),
            (None, Some(info)) => info.counters.clone(),
            (None, None) => Counters::default(),
        };
        let pages = now.as_ref().map(|now| now.pages);
        let pages = pages.or(info.map(|info| info.pages)).unwrap_or(0);
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").into(),
            store: self.store.display().to_string(),
            snapshot: held.as_ref().map(|held| held.name.clone()),
            records: counters.records,
            links: counters.links,
            pages,
            visited: counters.visited,
            frontier: pages.saturating_sub(counters.visited),
            gone: counters.gone,
            unchanged: counters.unchanged,
            failed: counters.failed,
            skipped: skipped(&counters),
            bound_l1: info.and_then(Info::bound_l1),
            turnovers: info.map_or(0.0, |info| info.turnovers),
            last_fetch: info.and_then(|info| info.time).map(|at| time(Some(at))),
            reading: now.map(|now| now.reading),
            history: if held.is_some() {
                self.history()?
            } else {
                Vec::new()
            },
        })
    }

    fn top(&self, n: usize) -> Result<Top> {
        let held = self.current()?;
        let info = held.snapshot.info();
        Ok(Top {
            snapshot: held.name.clone(),
            records: info.counters.records,
            pages: info.pages,
            bound_l1: info.bound_l1(),
            top: held.best()?.iter().take(n).cloned().collect(),
        })
    }

    fn rank(&self, urls: &[String]) -> Result<Vec<Rank>> {
        let held = self.current()?;
        let pages = held.snapshot.info().pages;
        let mut answers = Vec::new();
        for (url, page) in urls.iter().zip(held.pages(urls)?) {
            let page = match page {
                Some(page) => held.snapshot.page(page).map_err(problem)?,
                None => None,
            };
            answers.push(Rank {
                url: url.clone(),
                known: page.is_some(),
                importance: page.map(|page| page.importance),
                rank: page.map(|page| page.rank),
                percentile: page.map(|page| percentile(page.rank, pages)),
                visits: page.map(|page| page.visits),
                last_fetch: page
                    .and_then(|page| page.last_fetch)
                    .map(|at| time(Some(at))),
                failed: page.map(|page| page.failed),
                compared: page.map(|page| page.compared),
                changed: page.map(|page| page.changed),
            });
        }
        Ok(answers)
    }

    fn links(&self, url: &str, n: usize) -> Result<Links> {
        let held = self.current()?;
        let found = held.pages(&[url.to_owned()])?.pop().flatten();
        let page = found.ok_or_else(|| Problem::Unknown(format!("{url}: not known")))?;
        let row = held.row(page)?;
        let mut targets = Vec::new();
        for &target in row.iter().flatten().take(n) {
            targets.push(PageId(u64::from(target)));
        }
        let mut links = Vec::new();
        for (page, url) in held.named(targets, |page| *page)? {
            let rank = held.snapshot.page(page).map_err(problem)?;
            links.push(Target {
                url,
                rank: rank.map(|page| page.rank),
            });
        }
        Ok(Links {
            url: url.into(),
            visited: row.is_some(),
            count: row.map_or(0, |row| row.len() as u64),
            links,
        })
    }

    fn movers(&self, n: usize) -> Result<Movers> {
        let held = self.current()?;
        let names = snapshot::names(&RealDisk, &self.store).map_err(problem)?;
        let before = names.iter().rev().find(|name| **name < held.name);
        let movers = held.movers(before.map(String::as_str))?;
        Ok(Movers {
            from: movers.from.clone(),
            to: movers.to.clone(),
            movers: movers.movers.iter().take(n).cloned().collect(),
        })
    }

    fn hosts(&self, n: usize) -> Result<Vec<Host>> {
        let held = self.current()?;
        let mut hosts: HashMap<&[u8], (u64, f64)> = HashMap::new();
        for page in held.best()? {
            let host = url::host(page.url.as_bytes());
            let sums = hosts.entry(host).or_default();
            sums.0 += 1;
            sums.1 += page.importance;
        }
        let host = |(host, (pages, importance)): (&[u8], (u64, f64))| Host {
            host: String::from_utf8_lossy(host).into_owned(),
            pages,
            importance,
        };
        let mut hosts: Vec<Host> = hosts.into_iter().map(host).collect();
        hosts.sort_by(|a, b| {
            let by_importance = b.importance.total_cmp(&a.importance);
            by_importance.then_with(|| a.host.cmp(&b.host))
        });
        hosts.truncate(n);
        Ok(hosts)
    }

    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        self.lists.get(query)
    }

    fn canonical(&self, url: &str) -> String {
        let form = canonical(url);
        String::from_utf8(form).unwrap_or_else(|_| url.into())
    }

    fn tell(&self, text: &str) {
        say!("{text}");
    }
}
