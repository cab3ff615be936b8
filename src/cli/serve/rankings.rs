//! Rankings of sites and by measures, of the snapshot that a service answers from.
//!
//! A ranking is opened when it is first asked for. Roll-ups hold 4 bytes for each page and about 100 for each site, so [`OPENED`]
//! are kept, each of at most [`SITES_BYTES`]; of [`TOPS`] lists the best [`BEST`] are. Those that nobody asked for longest are
//! forgotten, and all of them with the snapshot. A ranking that is computed again has a new file, and is opened again.

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

/// The best of a ranking that are kept in memory: the most that is asked for.
pub const BEST: usize = 1_000;
/// Rankings that are kept open.
const OPENED: usize = 2;
/// Lists of the best that are kept.
const TOPS: usize = 16;
/// Bytes of memory that the sites of a ranking may take.
const SITES_BYTES: u64 = 1 << 30;

/// A ranking, and when its file was written, if it has one of its own.
type Named = (RankingName, Option<SystemTime>);

/// Rankings that were asked for.
#[derive(Default)]
pub struct RankingCache {
    opened: Few<Named, LevelRanking, OPENED>,
    /// With so many pages of each site.
    tops: Few<(Named, Selection, Option<usize>), Top, TOPS>,
}

impl RankingCache {
    /// The best of a ranking that are in a scope, with `pages` of each site.
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

    /// Ranks of pages or sites.
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

    /// The best of a ranking, which is not kept open.
    pub fn first(snapshot: &Snapshot, name: &RankingName, selection: &Selection) -> Result<Top> {
        Top::of(&open(snapshot, name)?, BEST, selection).map_err(problem)
    }

    /// The hosts of most importance. Names of nodes have none.
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

/// A few values by name; of more, those that nobody asked for longest are forgotten.
struct Few<K, V, const MOST: usize>(Mutex<Vec<(K, Arc<Once<V>>)>>);

impl<K, V, const MOST: usize> Default for Few<K, V, MOST> {
    fn default() -> Few<K, V, MOST> {
        Few(Mutex::default())
    }
}

impl<K: PartialEq, V, const MOST: usize> Few<K, V, MOST> {
    /// The value of this name, which may still have to be made.
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

/// When a file was written, if that is known.
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
        // What could not be made is tried again.
        let failing = few.of(1);
        assert_eq!(failing.get(|| Ok(7)), Ok(&1));
        let new = few.of(4);
        let failed = new.get(|| Err(Problem::Later("soon".into())));
        assert!(failed.is_err() && few.of(4).get(|| Ok(4)) == Ok(&4));
    }
}
