//! Rankings of sites and by other measures, for the snapshot that the service answers from.
//!
//! A ranking is opened when it is first requested. Roll-ups take 4 bytes per page and about 100 per site, so at most
//! [`OPENED`] rankings of at most [`SITES_BYTES`] are kept open. The best [`BEST`] rows are kept for [`TOPS`]
//! selections. The least recently requested ones are evicted, and all of them go with the snapshot. A ranking that is
//! computed again has a new file, and is opened again.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use cashrank::Error;
use cashrank_graph::sites::Level;
use cashrank_serve::{Problem, Result};
use cashrank_steer::answers::{Host, Rank, Top, ranks_of};
use cashrank_store::snapshot::{LevelRanking, RankingName, Selection, Snapshot};
use cashrank_store::store::RealDisk;

use super::once::{Once, lock};
use super::problem::{as_parameters, problem};

/// Number of rows kept in memory for each selection: the maximum that can be requested.
pub const BEST: usize = 1_000;
/// Maximum number of open rankings.
const OPENED: usize = 2;
/// Maximum number of selections whose best rows are kept.
const TOPS: usize = 16;
/// Maximum memory of a ranking's sites, in bytes.
const SITES_BYTES: u64 = 1 << 30;

/// Name of a ranking, and the time at which its file was written, if it has a file of its own.
type Named = (RankingName, Option<SystemTime>);

/// Rankings that were requested.
#[derive(Default)]
pub struct RankingCache {
    opened: Few<Named, LevelRanking, OPENED>,
    /// Best rows of a selection, with a number of pages for each site.
    tops: Few<(Named, Selection, Option<usize>), Top, TOPS>,
}

impl RankingCache {
    /// Returns the first `n` rows of a ranking in a scope, with `pages` pages of each site.
    pub fn top(
        &self,
        snapshot: &Snapshot,
        n: usize,
        (name, selection, pages): (&RankingName, &Selection, Option<usize>),
    ) -> Result<Top> {
        let list = self
            .tops
            .of((named(snapshot, name), selection.clone(), pages));
        let top = list.get(|| {
            let opened = self.opened(snapshot, name);
            let ranking = opened.get(|| open(snapshot, name))?;
            let mut top = Top::of(ranking, BEST, selection).map_err(problem)?;
            if let Some(pages) = pages {
                let added = top.add_pages(ranking, pages, Some(SITES_BYTES));
                added.map_err(problem)?;
            }
            Ok(top)
        })?;
        Ok(top.first(n))
    }

    /// Returns the ranks of pages or sites.
    pub fn ranks(
        &self,
        snapshot: &Snapshot,
        urls: &[String],
        name: &RankingName,
    ) -> Result<Vec<Rank>> {
        let opened = self.opened(snapshot, name);
        let ranking = opened.get(|| open(snapshot, name))?;
        let ranks = ranks_of(ranking, urls).map_err(problem)?;
        Ok(ranks.into_iter().map(|(_, rank)| rank).collect())
    }

    fn opened(&self, snapshot: &Snapshot, name: &RankingName) -> Arc<Once<LevelRanking>> {
        self.opened.of(named(snapshot, name))
    }

    /// Returns the best rows of a ranking without keeping it open.
    pub fn first(snapshot: &Snapshot, name: &RankingName, selection: &Selection) -> Result<Top> {
        Top::of(&open(snapshot, name)?, BEST, selection).map_err(problem)
    }

    /// Returns the most important hosts; empty if names are opaque.
    pub fn hosts(snapshot: &Snapshot) -> Result<Vec<Host>> {
        let name = RankingName {
            level: Level::Host,
            ..RankingName::default()
        };
        let ranking = match opened(snapshot, &name) {
            Err(Error::Unsupported(_)) => return Ok(Vec::new()),
            opened => opened.map_err(problem)?,
        };
        let best = ranking.top(BEST, &Selection::default()).map_err(problem)?;
        let hosts = best.into_iter().map(|row| {
            let site = row.site.unwrap_or_default();
            Host {
                host: row.url.into_owned(),
                rank: row.rank,
                pages: site.pages,
                importance: row.importance,
                best: site.best,
                best_state: site.best_state,
            }
        });
        Ok(hosts.collect())
    }
}

fn named(snapshot: &Snapshot, name: &RankingName) -> Named {
    let file = name.file(snapshot.path());
    (name.clone(), file.and_then(|file| written(&file)))
}

fn open(snapshot: &Snapshot, name: &RankingName) -> Result<LevelRanking> {
    opened(snapshot, name).map_err(|error| match error {
        Error::Missing(_) => Problem::Unknown(as_parameters(&error)),
        error => problem(error),
    })
}

fn opened(snapshot: &Snapshot, name: &RankingName) -> cashrank::Result<LevelRanking> {
    let snapshot = Snapshot::open(&RealDisk, snapshot.path())?;
    LevelRanking::open(&RealDisk, snapshot, name, Some(SITES_BYTES))
}

/// Map of at most `MOST` values; the least recently requested ones are evicted.
struct Few<K, V, const MOST: usize>(Mutex<Vec<(K, Arc<Once<V>>)>>);

impl<K, V, const MOST: usize> Default for Few<K, V, MOST> {
    fn default() -> Few<K, V, MOST> {
        Few(Mutex::default())
    }
}

impl<K: PartialEq, V, const MOST: usize> Few<K, V, MOST> {
    /// Returns the value for this key, which may still have to be computed.
    fn of(&self, name: K) -> Arc<Once<V>> {
        let mut kept = lock(&self.0);
        let known = kept.iter().position(|(known, _)| *known == name);
        let found = match known {
            Some(at) => kept.remove(at),
            None => (name, Arc::default()),
        };
        if kept.len() == MOST {
            kept.remove(0);
        }
        let value = found.1.clone();
        kept.push(found);
        value
    }
}

/// Returns when a file was last written, if known.
pub fn written(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asked_for_longest_is_forgotten() {
        let few: Few<u8, u8, 2> = Few::default();
        let get = |name| few.of(name).get(|| Ok(name)).copied();
        assert_eq!(
            (get(1), get(2), get(1), get(3)),
            (Ok(1), Ok(2), Ok(1), Ok(3))
        );
        let held: Vec<u8> = lock(&few.0).iter().map(|(name, _)| *name).collect();
        assert_eq!(held, [1, 3]);
        // A computation that failed is tried again.
        let failing = few.of(1);
        assert_eq!(failing.get(|| Ok(7)), Ok(&1));
        let new = few.of(4);
        let failed = new.get(|| Err(Problem::Later("soon".into())));
        assert!(failed.is_err() && few.of(4).get(|| Ok(4)) == Ok(&4));
    }
}
