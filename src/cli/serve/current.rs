//! Current snapshot of a store, and the data read from it to answer questions.
//!
//! Roll-ups to sites take 4 bytes per page and about 100 per site: at most [`OPENED`] rankings of at most
//! [`SITES_BYTES`] are kept open.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use cashrank::Error;
use cashrank_base::threads::lock;
use cashrank_graph::metrics::moved::MoveOptions;
use cashrank_serve::{Problem, Result};
use cashrank_steer::answers::{
    LinkList, Question, Rank, SeedCoverage, SnapshotMovers, Top, ranks_of,
};
use cashrank_store::snapshot::{self, Info, LevelRanking, RankingName, SearchOptions, Snapshot};
use cashrank_store::store::RealDisk;
use serde::Serialize;

use super::backend::{as_parameters, json, problem};
use crate::cli::json::{joined, object};

const OPENED: usize = 2;
const SITES_BYTES: u64 = 1 << 30;
/// Default number of kept links that are searched for links to a page.
const LINKS_WITHIN: u64 = 200_000_000;

/// Name of a ranking, and the time at which its file was written, if it has a file of its own.
type RankingKey = (RankingName, Option<SystemTime>);

/// Current snapshot of a store, replaced when a newer one is published.
pub struct Current {
    store: PathBuf,
    held: Mutex<Option<Arc<OpenSnapshot>>>,
}

pub struct OpenSnapshot {
    pub name: String,
    pub written: Option<SystemTime>,
    /// String that identifies this snapshot, even among those of the same name in a recreated store.
    pub version: String,
    pages: LevelRanking,
    /// Opened rankings, the one requested last first.
    rankings: Mutex<Vec<(RankingKey, Arc<LevelRanking>)>>,
}

/// Writes an answer as JSON, with at most this many rows.
pub type AnswerRows = Arc<dyn Fn(usize) -> Result<Vec<u8>> + Send + Sync>;

fn rows<T: Clone + Serialize + Send + Sync + 'static>(
    all: T,
    cut: fn(&mut T, usize),
) -> Result<AnswerRows> {
    Ok(Arc::new(move |n| {
        let mut some = all.clone();
        cut(&mut some, n);
        json(&some)
    }))
}

impl Current {
    pub fn new(store: PathBuf) -> Current {
        Current {
            store,
            held: Mutex::default(),
        }
    }

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
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let written = written(path);
        let since = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let since = since.map_or(0, |since| since.as_nanos());
        let new = Arc::new(OpenSnapshot {
            version: format!("{name}-{since:x}"),
            name: name.into_owned(),
            written,
            pages: LevelRanking::of_pages(snapshot),
            rankings: Mutex::default(),
        });
        *held = Some(new.clone());
        Ok(new)
    }
}

impl OpenSnapshot {
    pub fn snapshot(&self) -> &Snapshot {
        self.pages.snapshot()
    }

    pub fn info(&self) -> &Info {
        self.snapshot().info()
    }

    /// Answers with the rows that the question wants. Answers about all pages can be written with fewer.
    pub fn answer(&self, question: &Question) -> Result<AnswerRows> {
        let (snapshot, n, ranking) = (self.snapshot(), question.n, &question.ranking);
        let of = object! { "snapshot": self.name.clone() };
        match &*question.name {
            "top" => {
                let top = self.with_ranking(ranking, |of| Top::of(of, n, &question.selection))?;
                rows(top, |top, n| top.top.truncate(n))
            }
            "movers" => rows(self.movers(question.certain_only, n)?, |movers, n| {
                movers.movers.truncate(n);
                movers.new.truncate(n);
            }),
            "coverage" => {
                let coverage = SeedCoverage::of(snapshot, None).map_err(problem)?;
                let mut hosts = coverage.hosts(snapshot).map_err(problem)?;
                hosts.truncate(n);
                let covered = joined(coverage.covered, object! { "hosts": hosts });
                rows(joined(of, covered), |all, n| {
                    all.second.second.0.1.truncate(n)
                })
            }
            "failures" => {
                let failing = snapshot.failing(n).map_err(problem)?;
                rows(joined(of, failing), |all, n| {
                    all.second.hosts.truncate(n);
                    all.second.best_failed.truncate(n);
                    all.second.best_gone.truncate(n);
                })
            }
            "search" => {
                let found = snapshot.search(&SearchOptions {
                    text: question.text.clone(),
                    scope: question.selection.scope.clone(),
                    count: n,
                    within: question.within.unwrap_or(snapshot::WITHIN),
                });
                rows(joined(of, found.map_err(problem)?), |_, _| {})
            }
            "rank" => {
                let ranks = self.with_ranking(ranking, |of| ranks_of(of, &question.urls))?;
                let pages: Vec<Rank> = ranks.into_iter().map(|(_, rank)| rank).collect();
                rows(object! { "pages": pages }, |_, _| {})
            }
            _ => {
                let url = question.urls.concat();
                let within = question.within.unwrap_or(LINKS_WITHIN);
                let within = question.incoming.then_some(within);
                let links = LinkList::of(snapshot, &url, n, within, |_| Ok(()));
                let unknown = || Problem::Unknown(format!("{url}: not known"));
                rows(links.map_err(problem)?.ok_or_else(unknown)?, |_, _| {})
            }
        }
    }

    /// Reads the ranking of pages, or another one, which stays open for later questions.
    fn with_ranking<T>(
        &self,
        name: &RankingName,
        read: impl FnOnce(&LevelRanking) -> cashrank::Result<T>,
    ) -> Result<T> {
        if name.is_usual() {
            return read(&self.pages).map_err(problem);
        }
        let file = name.file(self.snapshot().path());
        let key = (name.clone(), file.and_then(|file| written(&file)));
        let known = |of: &&(RankingKey, _)| of.0 == key;
        let opened = lock(&self.rankings)
            .iter()
            .find(known)
            .map(|of| of.1.clone());
        let ranking = match opened {
            Some(ranking) => ranking,
            // Others need not wait while it is opened: two may open the same.
            None => {
                let snapshot =
                    Snapshot::open(&RealDisk, self.snapshot().path()).map_err(problem)?;
                let opened = LevelRanking::open(&RealDisk, snapshot, name, Some(SITES_BYTES));
                Arc::new(opened.map_err(|error| match error {
                    Error::Missing(_) => Problem::Unknown(as_parameters(&error)),
                    error => problem(error),
                })?)
            }
        };
        let mut opened = lock(&self.rankings);
        opened.retain(|of| of.0 != key);
        opened.insert(0, (key, ranking.clone()));
        opened.truncate(OPENED);
        drop(opened);
        read(&ranking).map_err(problem)
    }

    /// Returns the largest moves since the previous snapshot; only the certain ones if `certain_only`.
    fn movers(&self, certain_only: bool, n: usize) -> Result<SnapshotMovers> {
        let newer = self.snapshot();
        let names = snapshot::names(&RealDisk, newer.store()).map_err(problem)?;
        let before = names.into_iter().rfind(|name| *name < self.name);
        let older =
            before.map(|name| Snapshot::open(&RealDisk, &newer.path().with_file_name(name)));
        // A snapshot that was removed in the meantime counts as absent.
        let Some(Ok(older)) = older else {
            return Ok(SnapshotMovers {
                to: self.name.clone(),
                ..SnapshotMovers::default()
            });
        };
        let wanted = MoveOptions {
            count: n,
            certain_only,
            ..MoveOptions::default()
        };
        SnapshotMovers::between(&older, newer, wanted).map_err(problem)
    }
}

fn written(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}
