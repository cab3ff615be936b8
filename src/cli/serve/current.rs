//! The current snapshot of a store, and what is read of it for answers.
//!
//! Each [`SnapshotPart`] is read once, when it is first asked for, and kept with its snapshot: the best pages and
//! hosts, what moved, and, of up to [`LOOKUP_PAGES`] pages, where each name is. Beyond that, a page is found by a
//! sweep over the store's fingerprints. So are a few rankings of sites or by measures, and the best of them
//! (`rankings.rs`).

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
/// Hosts of which is kept how much of them was read.
const HOSTS: usize = 1_000;
/// Snapshots of which is kept how much was covered, at most.
const HISTORY: usize = 400;
/// Movers that are kept, and pages and hosts of failures.
const LISTED: usize = 1_000;

/// The parts of a snapshot that are read once and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotPart {
    /// Its best pages.
    Best,
    /// Its best hosts.
    Hosts,
    /// Moves since the previous snapshot, or those of them that are certain.
    Movers { certain_only: bool },
    /// What could not be fetched.
    Failing,
    /// Where each name is.
    Places,
    /// How much of what readers see was read.
    Coverage,
}

/// Ends of links and their URLs.
type NamedEnds = Vec<(RankedEnd, String)>;

/// The current snapshot of a store: read again when there is a newer one.
pub struct Current {
    store: PathBuf,
    held: Mutex<Option<Arc<OpenSnapshot>>>,
    coverage: Arc<FollowedCoverage>,
}

/// How much was covered as snapshots came. The history is locked apart: it is read while the next one is computed.
#[derive(Default)]
struct FollowedCoverage {
    coverage: Mutex<SeedCoverage>,
    history: Mutex<Vec<Covered>>,
}

/// A snapshot, and what was read of it.
pub struct OpenSnapshot {
    name: String,
    written: Option<SystemTime>,
    snapshot: Snapshot,
    best: Once<Top>,
    hosts: Once<Vec<Host>>,
    rankings: RankingCache,
    /// All, and those that are certain.
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

    /// The snapshot that is the newest now.
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

    /// The coverage of the snapshots that were asked for it, oldest first.
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

    /// The snapshot itself.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Counters and settings of the run.
    pub fn info(&self) -> &Info {
        self.snapshot.info()
    }

    /// A page, if it has it.
    pub fn page(&self, page: PageId) -> Result<Option<SnapshotPage>> {
        self.snapshot.page(page).map_err(problem)
    }

    /// Distinguishes it from every other snapshot, also from one of the same name of a store that was created again.
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
    pub fn named<T>(
        &self,
        things: Vec<T>,
        page: impl Fn(&T) -> PageId,
    ) -> Result<Vec<(T, String)>> {
        let pages: Vec<PageId> = things.iter().map(page).collect();
        let names = self.snapshot.names_of(&pages).map_err(problem)?;
        Ok(things.into_iter().zip(names).collect())
    }

    /// Reads a part, if that was not done yet.
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

    /// The best pages, best first.
    pub fn best(&self) -> Result<&Top> {
        let usual = RankingName::default();
        self.best
            .get(|| RankingCache::first(&self.snapshot, &usual, &Selection::default()))
    }

    /// The hosts of most importance, best first, of all.
    pub fn hosts(&self) -> Result<&[Host]> {
        Ok(self.hosts.get(|| RankingCache::hosts(&self.snapshot))?)
    }

    /// Returns the best of a ranking that are in a scope, with `pages` of each site.
    pub fn top(&self, n: usize, of: (&RankingName, &Selection, Option<usize>)) -> Result<Top> {
        debug_assert!(n <= BEST);
        self.rankings.top(&self.snapshot, n, of)
    }

    /// Ranks in a ranking.
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

    /// The numbers of pages, in the order of the names given.
    fn find(&self, names: &[&[u8]]) -> Result<Vec<Option<PageId>>> {
        let found = if self.has_places() {
            self.places()?.find(&self.snapshot, names)
        } else {
            self.snapshot.find(names)
        };
        found.map_err(problem)
    }

    /// The pages of URLs in any form, or of opaque names.
    pub fn pages(&self, urls: &[String]) -> Result<Vec<Option<PageId>>> {
        pages_of(urls, |names| self.find(names))
    }

    /// The links of a page, or with `within` those to it among so many: how many they are, and the best `n` by name.
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

    /// What could not be fetched.
    pub fn failing(&self) -> Result<&Failing> {
        self.failing
            .get(|| self.snapshot.failing(LISTED).map_err(problem))
    }

    /// How much of what readers see was read, and the hosts with most that was not.
    pub fn coverage(&self) -> Result<&(Covered, Vec<CoveredHost>)> {
        self.covered.get(|| {
            let mut coverage = lock(&self.coverage.coverage);
            let covered = coverage.update(&self.snapshot).map_err(problem)?;
            let mut hosts = coverage.hosts(&self.snapshot).map_err(problem)?;
            hosts.truncate(HOSTS);
            let mut history = lock(&self.coverage.history);
            history.retain(|earlier| earlier.records < covered.records);
            if history.len() == HISTORY {
                // Every second one tells how it went.
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

    /// The largest moves since the previous snapshot, or those of them that are certain.
    pub fn movers(&self, certain_only: bool) -> Result<&SnapshotMovers> {
        self.movers[usize::from(certain_only)].get(|| {
            let names = snapshot::names(&RealDisk, self.snapshot.store()).map_err(problem)?;
            let before = names.into_iter().rfind(|name| *name < self.name);
            let older = before.map(|name| {
                let folder = self.snapshot.path().with_file_name(name);
                Snapshot::open(&RealDisk, &folder)
            });
            // One that went in the meantime is as if there were none.
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
