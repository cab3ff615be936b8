//! The current snapshot of a store, with what was read of it to answer questions.
//!
//! A [`Listing`] is computed when it is first requested, with as many rows as anyone may request, and kept with the
//! snapshot, as is, for up to [`LOOKUP_PAGES`] pages, the position of each name. For more pages, names are found by a
//! sweep over the store's fingerprints. Roll-ups to sites take 4 bytes per page and about 100 per site, so at most
//! [`OPENED`] rankings of at most [`SITES_BYTES`] are kept open. A ranking that is computed again has a new file, and is
//! opened again.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cashrank::Error;
use cashrank_graph::engine::PageId;
use cashrank_graph::metrics::moved::MoveOptions;
use cashrank_graph::sites::Level;
use cashrank_serve::{Problem, Result};
use cashrank_steer::answers::{
    Covered, CoveredHost, Host, LISTING_MAX, Listing, Rank, SeedCoverage, Seeds, SnapshotMovers,
    Top, pages_of, ranks_of,
};
use cashrank_store::snapshot::{
    self, Failing, Info, LevelRanking, Lookup, RankingName, Selection, Snapshot,
};
use cashrank_store::store::RealDisk;
use once_cell::sync::OnceCell;
use serde::Serialize;

use super::backend::{as_parameters, problem};
use super::live::thin;

/// Maximum number of pages of a snapshot whose name positions are kept in memory, 12 bytes a page.
const LOOKUP_PAGES: u64 = 8_000_000;
/// Maximum number of snapshots whose coverage is kept.
const HISTORY: usize = 400;
/// Number of listings that are prepared for each new snapshot.
const PREPARED: usize = 6;
/// Maximum number of other listings that are kept.
const LISTINGS: usize = 18;
/// Maximum number of open rankings.
const OPENED: usize = 2;
/// Maximum memory of a ranking's sites, in bytes.
const SITES_BYTES: u64 = 1 << 30;

/// Part of a snapshot that is read once and kept.
#[derive(Clone, PartialEq, Eq)]
pub enum SnapshotPart {
    Listing(Listing),
    /// Position of each name.
    Names,
}

/// Answer of a listing: its first rows as JSON.
type FirstRows = Box<dyn Fn(usize) -> serde_json::Result<Vec<u8>> + Send + Sync>;

/// Name of a ranking, and the time at which its file was written, if it has a file of its own.
type RankingKey = (RankingName, Option<SystemTime>);

/// Current snapshot of a store, replaced when a newer one is published.
pub struct Current {
    store: PathBuf,
    held: Mutex<Option<Arc<OpenSnapshot>>>,
    /// Coverage of the snapshots for which it was requested.
    covered: Arc<Mutex<Vec<Covered>>>,
}

/// Snapshot with the parts read so far.
pub struct OpenSnapshot {
    name: String,
    written: Option<SystemTime>,
    snapshot: Snapshot,
    prepared: Recent<Listing, FirstRows, PREPARED>,
    listings: Recent<(Listing, Option<SystemTime>), FirstRows, LISTINGS>,
    rankings: Recent<RankingKey, LevelRanking, OPENED>,
    lookup: OnceCell<Lookup>,
    covered: Arc<Mutex<Vec<Covered>>>,
}

/// Answer with the name of its snapshot.
#[derive(Serialize)]
pub struct SnapshotAnswer<'a, T> {
    pub snapshot: &'a str,
    #[serde(flatten)]
    pub answer: T,
}

/// Coverage with the hosts that have the most unread, and that of earlier snapshots.
#[derive(Serialize)]
struct CoverageAnswer<'a> {
    #[serde(flatten)]
    covered: &'a Covered,
    hosts: &'a [CoveredHost],
    history: Vec<Covered>,
}

impl Current {
    pub fn new(store: PathBuf) -> Current {
        Current {
            store,
            held: Mutex::default(),
            covered: Arc::default(),
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
        let written_now = written(&self.store.join("snapshots").join(&name));
        let mut held = lock(&self.held);
        if let Some(held) = &*held
            && held.name == name
            && held.written == written_now
        {
            return Ok(held.clone());
        }
        let snapshot = Snapshot::latest(&RealDisk, &self.store).map_err(problem)?;
        let path = snapshot.path();
        let new = Arc::new(OpenSnapshot {
            name: path
                .file_name()
                .map_or(name, |name| name.to_string_lossy().into_owned()),
            written: written(path),
            snapshot,
            prepared: Recent::default(),
            listings: Recent::default(),
            rankings: Recent::default(),
            lookup: OnceCell::new(),
            covered: self.covered.clone(),
        });
        *held = Some(new.clone());
        Ok(new)
    }

    /// Returns the coverage of the snapshots for which it was requested, oldest first.
    pub fn covered(&self) -> Vec<Covered> {
        lock(&self.covered).clone()
    }
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

    /// Reads a part unless it has been read already.
    pub fn read(&self, part: &SnapshotPart) -> Result<()> {
        match part {
            SnapshotPart::Listing(listing) => self.first(listing, 0).map(drop),
            SnapshotPart::Names if self.has_lookup() => self.lookup().map(drop),
            SnapshotPart::Names => Ok(()),
        }
    }

    /// Returns the first `n` rows of a listing as JSON.
    pub fn first(&self, listing: &Listing, n: usize) -> Result<Vec<u8>> {
        let listed = match listing {
            Listing::Top(name, ..) if !is_prepared(listing) => {
                self.listings.of((listing.clone(), self.key(name).1))
            }
            _ => self.prepared.of(listing.clone()),
        };
        let rows = listed.get_or_try_init(|| self.list(listing))?;
        rows(n).map_err(|error| Problem::Failed(error.to_string()))
    }

    fn list(&self, listing: &Listing) -> Result<FirstRows> {
        let name = self.name.clone();
        Ok(match listing {
            Listing::Top(ranking, selection, pages) => {
                let top = self.top(ranking, selection, *pages)?;
                Box::new(move |n| serde_json::to_vec(&top.first(n)))
            }
            Listing::Movers(certain_only) => {
                let movers = self.movers(*certain_only)?;
                Box::new(move |n| serde_json::to_vec(&movers.first(n)))
            }
            Listing::Hosts => {
                let hosts = self.hosts()?;
                Box::new(move |n| {
                    let first = &hosts[..n.min(hosts.len())];
                    serde_json::to_vec(&serde_json::json!({ "hosts": first }))
                })
            }
            Listing::Coverage => {
                let (covered, hosts) = self.covered()?;
                let history = self.covered.clone();
                Box::new(move |n| {
                    let answer = CoverageAnswer {
                        covered: &covered,
                        hosts: &hosts[..n.min(hosts.len())],
                        history: lock(&history).clone(),
                    };
                    let snapshot = &name;
                    serde_json::to_vec(&SnapshotAnswer { snapshot, answer })
                })
            }
            Listing::Failures => {
                let failing: Failing = self.snapshot.failing(LISTING_MAX).map_err(problem)?;
                Box::new(move |n| {
                    let (snapshot, answer) = (&*name, failing.first(n));
                    serde_json::to_vec(&SnapshotAnswer { snapshot, answer })
                })
            }
        })
    }

    /// Returns the best of a ranking that are selected, with `pages` of each site.
    fn top(&self, name: &RankingName, selection: &Selection, pages: Option<usize>) -> Result<Top> {
        if name.is_usual() {
            let ranking = self.open_known(name)?;
            return Top::of(&ranking, LISTING_MAX, selection).map_err(problem);
        }
        let ranking = self.rankings.of(self.key(name));
        let ranking = ranking.get_or_try_init(|| self.open_known(name))?;
        let mut top = Top::of(ranking, LISTING_MAX, selection).map_err(problem)?;
        if let Some(pages) = pages {
            let added = top.add_pages(ranking, pages, Some(SITES_BYTES));
            added.map_err(problem)?;
        }
        Ok(top)
    }

    /// Returns the ranks of URLs in a ranking of sites or by a measure.
    pub fn ranks(&self, urls: &[String], name: &RankingName) -> Result<Vec<Rank>> {
        let ranking = self.rankings.of(self.key(name));
        let ranking = ranking.get_or_try_init(|| self.open_known(name))?;
        let ranks = ranks_of(ranking, urls).map_err(problem)?;
        Ok(ranks.into_iter().map(|(_, rank)| rank).collect())
    }

    fn key(&self, name: &RankingName) -> RankingKey {
        let file = name.file(self.snapshot.path());
        (name.clone(), file.and_then(|file| written(&file)))
    }

    fn open(&self, name: &RankingName) -> cashrank::Result<LevelRanking> {
        let snapshot = Snapshot::open(&RealDisk, self.snapshot.path())?;
        LevelRanking::open(&RealDisk, snapshot, name, Some(SITES_BYTES))
    }

    fn open_known(&self, name: &RankingName) -> Result<LevelRanking> {
        self.open(name).map_err(|error| match error {
            Error::Missing(_) => Problem::Unknown(as_parameters(&error)),
            error => problem(error),
        })
    }

    /// Returns the most important hosts, best first; none if names are opaque.
    fn hosts(&self) -> Result<Vec<Host>> {
        let name = RankingName {
            level: Level::Host,
            ..RankingName::default()
        };
        let ranking = match self.open(&name) {
            Err(Error::Unsupported(_)) => return Ok(Vec::new()),
            opened => opened.map_err(problem)?,
        };
        let best = ranking.top(LISTING_MAX, &Selection::default());
        let host = |row: cashrank::Page<'static>| {
            let site = row.site.unwrap_or_default();
            Host {
                host: row.url.into_owned(),
                rank: row.rank,
                pages: site.pages,
                importance: row.importance,
                best: site.best,
                best_state: site.best_state,
            }
        };
        Ok(best.map_err(problem)?.into_iter().map(host).collect())
    }

    /// Returns the share of what readers see that was read, and the hosts with the most unread.
    fn covered(&self) -> Result<(Covered, Vec<CoveredHost>)> {
        let coverage = SeedCoverage::of(&self.snapshot, &Seeds::Found).map_err(problem)?;
        let mut hosts = coverage.hosts(&self.snapshot).map_err(problem)?;
        hosts.truncate(LISTING_MAX);
        let covered = coverage.covered;
        let mut history = lock(&self.covered);
        history.retain(|earlier| earlier.records < covered.records);
        if history.len() == HISTORY {
            thin(&mut history);
        }
        history.push(covered.clone());
        Ok((covered, hosts))
    }

    /// Returns the largest moves since the previous snapshot; only the certain ones if `certain_only`.
    fn movers(&self, certain_only: bool) -> Result<SnapshotMovers> {
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
            count: LISTING_MAX,
            certain_only,
            ..MoveOptions::default()
        };
        SnapshotMovers::between(&older, &self.snapshot, wanted).map_err(problem)
    }

    fn has_lookup(&self) -> bool {
        self.info().pages <= LOOKUP_PAGES
    }

    fn lookup(&self) -> Result<&Lookup> {
        self.lookup
            .get_or_try_init(|| Lookup::new(&self.snapshot).map_err(problem))
    }

    /// Looks up pages by URLs in any form, or by opaque names.
    pub fn pages(&self, urls: &[String]) -> Result<Vec<Option<PageId>>> {
        pages_of(urls, |names| {
            let found = if self.has_lookup() {
                self.lookup()?.find(&self.snapshot, names)
            } else {
                self.snapshot.find(names)
            };
            found.map_err(problem)
        })
    }
}

/// Returns whether a listing is prepared for each new snapshot: all are but those of some pages, of sites, or by another
/// measure, whose number has no bound.
pub fn is_prepared(listing: &Listing) -> bool {
    match listing {
        Listing::Top(name, selection, _) => name.is_usual() && selection.is_all(),
        _ => true,
    }
}

/// Returns when a file was last written, if known.
pub fn written(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// Map of at most `MOST` values; the least recently requested ones are evicted. The first caller computes a value while
/// others wait for it; a computation that failed is tried again.
pub struct Recent<K, V, const MOST: usize>(Mutex<Vec<(K, Arc<OnceCell<V>>)>>);

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Recent<K, V, MOST> {
        Recent(Mutex::default())
    }
}

impl<K: PartialEq, V, const MOST: usize> Recent<K, V, MOST> {
    /// Returns the value for this key, which may still have to be computed.
    pub fn of(&self, key: K) -> Arc<OnceCell<V>> {
        let mut kept = lock(&self.0);
        let known = kept.iter().position(|(known, _)| *known == key);
        let found = match known {
            Some(at) => kept.remove(at),
            None => (key, Arc::default()),
        };
        if kept.len() == MOST {
            kept.remove(0);
        }
        let value = found.1.clone();
        kept.push(found);
        value
    }
}

/// Takes a lock even if its holder panicked: the data behind these locks is consistent at any time.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asked_for_longest_is_forgotten() {
        let few: Recent<u8, u8, 2> = Recent::default();
        let get = |name| few.of(name).get_or_try_init(|| Ok::<_, ()>(name)).copied();
        assert_eq!(
            (get(1), get(2), get(1), get(3)),
            (Ok(1), Ok(2), Ok(1), Ok(3))
        );
        let held: Vec<u8> = lock(&few.0).iter().map(|(name, _)| *name).collect();
        assert_eq!(held, [1, 3]);
        // A computation that failed is tried again.
        let new = few.of(4);
        assert!(new.get_or_try_init(|| Err(())).is_err());
        assert_eq!(few.of(4).get_or_try_init(|| Ok::<_, ()>(4)), Ok(&4));
    }
}
