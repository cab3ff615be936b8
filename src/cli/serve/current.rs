//! The current snapshot of a store, with the parts of it that answers need.
//!
//! Each [`SnapshotPart`] is read once, when it is first requested, and kept with its snapshot: the best pages and
//! hosts, the movers, and, for up to [`LOOKUP_PAGES`] pages, the position of each name. For more pages, names are found
//! by a sweep over the store's fingerprints. A few rankings of sites or by other measures are kept as well, with the
//! best of each (`rankings.rs`).

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use cashrank_graph::engine::PageId;
use cashrank_graph::metrics::moved::MoveOptions;
use cashrank_serve::{Problem, Result};
use cashrank_steer::answers::{
    Covered, CoveredHost, Ends, Host, Rank, RankedEnd, SeedCoverage, SnapshotMovers, Top, pages_of,
};
use cashrank_store::snapshot::{
    self, Failing, Info, Lookup, RankingName, Selection, Snapshot, SnapshotPage,
};
use cashrank_store::store::RealDisk;

use super::once::{Once, lock};
use super::problem::problem;
use super::rankings::{BEST, RankingCache, written};

/// Maximum number of pages of a snapshot whose name positions are kept in memory, 12 bytes a page.
const LOOKUP_PAGES: u64 = 8_000_000;
/// Maximum number of hosts whose coverage is kept.
const HOSTS: usize = 1_000;
/// Maximum number of snapshots whose coverage is kept.
const HISTORY: usize = 400;
/// Maximum number of movers, and of failed pages and hosts, that are kept.
const LISTED: usize = 1_000;

/// Part of a snapshot that is read once and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotPart {
    /// Most important pages.
    Best,
    /// Most important hosts.
    Hosts,
    /// Moves since the previous snapshot; only the certain ones if `certain_only`.
    Movers { certain_only: bool },
    /// Pages and hosts whose fetches failed.
    Failing,
    /// Position of each name.
    Places,
    /// Share of what readers see that was read.
    Coverage,
}

/// Ends of links and their URLs.
type NamedEnds = Vec<(RankedEnd, String)>;

/// Current snapshot of a store, replaced when a newer one is published.
pub struct Current {
    store: PathBuf,
    held: Mutex<Option<Arc<OpenSnapshot>>>,
    coverage: Arc<FollowedCoverage>,
}

/// Coverage, updated from snapshot to snapshot. The history has a lock of its own, so that it can be read during an
/// update.
#[derive(Default)]
struct FollowedCoverage {
    coverage: Mutex<SeedCoverage>,
    history: Mutex<Vec<Covered>>,
}

/// Snapshot with the parts read so far.
pub struct OpenSnapshot {
    name: String,
    written: Option<SystemTime>,
    snapshot: Snapshot,
    best: Once<Top>,
    hosts: Once<Vec<Host>>,
    rankings: RankingCache,
    /// All moves, and the certain ones.
    movers: [Once<SnapshotMovers>; 2],
    failing: Once<Failing>,
    lookup: Once<Lookup>,
    covered: Once<(Covered, Vec<CoveredHost>)>,
    coverage: Arc<FollowedCoverage>,
}

impl Current {
    pub fn new(store: PathBuf) -> Current {
        Current {
            store,
            held: Mutex::default(),
            coverage: Arc::default(),
        }
    }

    /// Returns the newest snapshot; opens it if it changed.
    pub fn get(&self) -> Result<Arc<OpenSnapshot>> {
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
        let new = Arc::new(OpenSnapshot {
            name: path
                .file_name()
                .map_or(name, |name| name.to_string_lossy().into_owned()),
            written: written_of(&snapshot),
            snapshot,
            best: Once::default(),
            hosts: Once::default(),
            rankings: RankingCache::default(),
            movers: Default::default(),
            failing: Once::default(),
            lookup: Once::default(),
            covered: Once::default(),
            coverage: self.coverage.clone(),
        });
        *held = Some(new.clone());
        Ok(new)
    }

    /// Returns the coverage of the snapshots for which it was requested, oldest first.
    pub fn covered(&self) -> Vec<Covered> {
        lock(&self.coverage.history).clone()
    }
}

fn written_of(snapshot: &Snapshot) -> Option<SystemTime> {
    written(snapshot.path())
}

impl OpenSnapshot {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn written(&self) -> Option<SystemTime> {
        self.written
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns the snapshot's counters and settings.
    pub fn info(&self) -> &Info {
        self.snapshot.info()
    }

    /// Returns a page by its number, if the snapshot has it.
    pub fn page(&self, page: PageId) -> Result<Option<SnapshotPage>> {
        self.snapshot.page(page).map_err(problem)
    }

    /// Returns a string that identifies this snapshot, even among those of the same name in a recreated store.
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

    /// Adds the name of the page that belongs to each of `things`.
    pub fn named<T>(
        &self,
        things: Vec<T>,
        page: impl Fn(&T) -> PageId,
    ) -> Result<Vec<(T, String)>> {
        let pages: Vec<PageId> = things.iter().map(page).collect();
        let names = self.snapshot.names_of(&pages).map_err(problem)?;
        Ok(things.into_iter().zip(names).collect())
    }

    /// Reads a part unless it has been read already.
    pub fn read(&self, part: SnapshotPart) -> Result<()> {
        match part {
            SnapshotPart::Best => self.best().map(drop),
            SnapshotPart::Hosts => self.hosts().map(drop),
            SnapshotPart::Movers { certain_only } => self.movers(certain_only).map(drop),
            SnapshotPart::Failing => self.failing().map(drop),
            SnapshotPart::Places if self.has_places() => self.places().map(drop),
            SnapshotPart::Places => Ok(()),
            SnapshotPart::Coverage => self.coverage().map(drop),
        }
    }

    /// Returns the most important pages, best first.
    pub fn best(&self) -> Result<&Top> {
        let usual = RankingName::default();
        self.best
            .get(|| RankingCache::first(&self.snapshot, &usual, &Selection::default()))
    }

    /// Returns the most important hosts, best first.
    pub fn hosts(&self) -> Result<&[Host]> {
        Ok(self.hosts.get(|| RankingCache::hosts(&self.snapshot))?)
    }

    /// Returns the best of a ranking that are in a scope, with `pages` of each site.
    pub fn top(&self, n: usize, of: (&RankingName, &Selection, Option<usize>)) -> Result<Top> {
        debug_assert!(n <= BEST);
        self.rankings.top(&self.snapshot, n, of)
    }

    /// Returns the ranks of URLs in a ranking.
    pub fn ranks(&self, urls: &[String], ranking: &RankingName) -> Result<Vec<Rank>> {
        self.rankings.ranks(&self.snapshot, urls, ranking)
    }

    fn has_places(&self) -> bool {
        self.info().pages <= LOOKUP_PAGES
    }

    fn places(&self) -> Result<&Lookup> {
        self.lookup
            .get(|| Lookup::new(&self.snapshot).map_err(problem))
    }

    /// Looks up pages by name, in the order of `names`.
    fn find(&self, names: &[&[u8]]) -> Result<Vec<Option<PageId>>> {
        let found = if self.has_places() {
            self.places()?.find(&self.snapshot, names)
        } else {
            self.snapshot.find(names)
        };
        found.map_err(problem)
    }

    /// Looks up pages by URLs in any form, or by opaque names.
    pub fn pages(&self, urls: &[String]) -> Result<Vec<Option<PageId>>> {
        pages_of(urls, |names| self.find(names))
    }

    /// Returns the links of a page, or with `within` its incoming links, found by a sweep over at most `within` links:
    /// their ends, their number, and the best `n` with their names.
    pub fn links(
        &self,
        page: PageId,
        n: usize,
        within: Option<u64>,
    ) -> Result<(Ends, u64, NamedEnds)> {
        let page = u32::try_from(page.0)
            .map_err(|_| Problem::Unknown(format!("page {}: no links are kept", page.0)))?;
        let found = match within {
            Some(most) => self.snapshot.rows().and_then(|rows| {
                Ok(Ends {
                    fetched: Ends::of(&self.snapshot, page)?.fetched,
                    ..Ends::to(&rows, page, most)?
                })
            }),
            None => Ends::of(&self.snapshot, page),
        };
        let found = found.map_err(problem)?;
        let mut ranked = found.ranked(&self.snapshot).map_err(problem)?;
        let count = ranked.len() as u64;
        ranked.truncate(n);
        let named = self.named(ranked, |end| end.page)?;
        Ok((found, count, named))
    }

    /// Returns the pages and hosts whose fetches failed.
    pub fn failing(&self) -> Result<&Failing> {
        self.failing
            .get(|| self.snapshot.failing(LISTED).map_err(problem))
    }

    /// Returns the share of what readers see that was read, and the hosts with the most unread.
    pub fn coverage(&self) -> Result<&(Covered, Vec<CoveredHost>)> {
        self.covered.get(|| {
            let mut coverage = lock(&self.coverage.coverage);
            let covered = coverage.update(&self.snapshot).map_err(problem)?;
            let mut hosts = coverage.hosts(&self.snapshot).map_err(problem)?;
            hosts.truncate(HOSTS);
            let mut history = lock(&self.coverage.history);
            history.retain(|earlier| earlier.records < covered.records);
            if history.len() == HISTORY {
                // Every second entry still shows the course over time.
                let mut at = 0;
                history.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
            }
            history.push(covered.clone());
            Ok((covered, hosts))
        })
    }

    /// Returns the largest moves since the previous snapshot; only the certain ones if `certain_only`.
    pub fn movers(&self, certain_only: bool) -> Result<&SnapshotMovers> {
        self.movers[usize::from(certain_only)].get(|| {
            let names = snapshot::names(&RealDisk, self.snapshot.store()).map_err(problem)?;
            let before = names.into_iter().rfind(|name| *name < self.name);
            let older = before.map(|name| {
                let folder = self.snapshot.path().with_file_name(name);
                Snapshot::open(&RealDisk, &folder)
            });
            // A snapshot that was removed in the meantime counts as absent.
            let Some(Ok(older)) = older else {
                return Ok(SnapshotMovers {
                    to: self.name.clone(),
                    ..SnapshotMovers::default()
                });
            };
            let wanted = MoveOptions {
                count: LISTED,
                certain_only,
                ..MoveOptions::default()
            };
            SnapshotMovers::between(&older, &self.snapshot, wanted).map_err(problem)
        })
    }
}
