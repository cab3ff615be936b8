//! Answers of the service, from a store's published snapshots and the counters of a running ingest.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use cashrank_crawl::decode::Reason;
use cashrank_graph::engine::Counters;
use cashrank_graph::engine::PageId;
use cashrank_serve::{
    Backend, Counts, CoverageSummary, NextList, NextQuery, Problem, Result, ServiceStatus,
    SnapshotSummary,
};
use cashrank_steer::answers::{
    self, FetchState, History, HistoryOptions, Host, LinkList, LinkTarget, Moment, Question, Rank,
    RankedEnd, SnapshotMovers, Top,
};
use cashrank_store::snapshot::{
    self, Failing, Info, RankingName, SearchOptions, SearchResult, Selection,
};
use cashrank_store::store::{RealDisk, is_busy};
use serde_json::{Value, json};

use super::cache::AnswerCache;
use super::current::{Current, OpenSnapshot, SnapshotPart};
use super::live::LiveIngest;
use super::once::lock;
use super::problem::problem;
use super::rankings::written;
use crate::cli::common::{say, time};
use crate::cli::stat::disk_bytes;

/// Maximum number of snapshots whose counts `/status` lists.
const HISTORY: usize = 200;

/// Backend of the service: one store.
pub struct StoreBackend {
    store: PathBuf,
    live: Option<Arc<LiveIngest>>,
    current: Arc<Current>,
    /// Summaries of snapshots, by file name.
    infos: Mutex<HashMap<String, SnapshotSummary>>,
    cache: AnswerCache,
}

impl StoreBackend {
    pub fn new(store: PathBuf, live: Option<Arc<LiveIngest>>) -> StoreBackend {
        let current = Arc::new(Current::new(store.clone()));
        StoreBackend {
            cache: AnswerCache::new(current.clone()),
            store,
            live,
            current,
            infos: Mutex::default(),
        }
    }

    fn current(&self) -> Result<Arc<OpenSnapshot>> {
        self.current.get()
    }

    /// Returns summaries of the newest snapshots, oldest first.
    fn history(&self) -> Result<Vec<SnapshotSummary>> {
        let names = snapshot::names(&RealDisk, &self.store).map_err(problem)?;
        let newest = &names[names.len().saturating_sub(HISTORY)..];
        let snapshots = self.store.join("snapshots");
        let mut infos = lock(&self.infos);
        infos.retain(|name, _| newest.contains(name));
        let mut history = Vec::new();
        for name in newest {
            if let Some(summary) = infos.get(name) {
                history.push(summary.clone());
                continue;
            }
            // Skip a snapshot that was removed since it was listed.
            let Ok(info) = snapshot::info_of(&RealDisk, &self.store, name) else {
                continue;
            };
            let summary = summary(name, &info, written(&snapshots.join(name)));
            infos.insert(name.clone(), summary.clone());
            history.push(summary);
        }
        Ok(history)
    }
}

fn summary(name: &str, info: &Info, made: Option<SystemTime>) -> SnapshotSummary {
    let seconds = made.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    SnapshotSummary {
        snapshot: name.into(),
        made: seconds.map(|since| time(Some(since.as_secs() as i64))),
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

fn value(of: impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(of).map_err(|error| Problem::Failed(error.to_string()))
}

/// Answer with the name of its snapshot.
#[derive(serde::Serialize)]
struct SnapshotAnswer<T> {
    snapshot: String,
    #[serde(flatten)]
    answer: T,
}

impl<T> SnapshotAnswer<T> {
    fn new(held: &OpenSnapshot, answer: T) -> SnapshotAnswer<T> {
        SnapshotAnswer {
            snapshot: held.name().into(),
            answer,
        }
    }
}

#[derive(serde::Serialize)]
struct RankAnswer {
    #[serde(flatten)]
    rank: Rank,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<Moment>>,
}

impl StoreBackend {
    fn top(&self, n: usize, of: (&RankingName, &Selection, Option<usize>)) -> Result<Top> {
        let (ranking, selection, _) = of;
        if ranking.is_usual() && selection.is_all() {
            let held = self.cache.with(SnapshotPart::Best)?;
            return Ok(held.best()?.first(n));
        }
        self.current()?.top(n, of)
    }

    /// Returns ranks, with their history over the newest `snapshots` if requested.
    fn rank(
        &self,
        urls: &[String],
        ranking: &RankingName,
        snapshots: Option<usize>,
    ) -> Result<Vec<RankAnswer>> {
        let ranks = if ranking.is_usual() {
            self.ranks(urls)?
        } else {
            self.current()?.ranks(urls, ranking)?
        };
        let past = snapshots.map(|most| self.past(urls, ranking, most));
        let mut past = past.transpose()?.unwrap_or_default().into_iter();
        let answers = ranks.into_iter().map(|rank| RankAnswer {
            rank,
            history: past.next().map(|history| history.history),
        });
        Ok(answers.collect())
    }

    fn ranks(&self, urls: &[String]) -> Result<Vec<Rank>> {
        let held = self.cache.with(SnapshotPart::Places)?;
        let mut answers = Vec::new();
        for (url, page) in urls.iter().zip(held.pages(urls)?) {
            let page = match page {
                Some(page) => held.page(page)?,
                None => None,
            };
            answers.push(Rank::of(url, page.as_ref(), held.info()));
        }
        Ok(answers)
    }

    /// Returns the history of pages. Snapshots that cannot be read are left out and reported.
    fn past(&self, urls: &[String], ranking: &RankingName, most: usize) -> Result<Vec<History>> {
        let options = HistoryOptions {
            ranking: ranking.clone(),
            most: Some(most),
            ..HistoryOptions::default()
        };
        let mut failed = |error: cashrank::Error| {
            say!("cashrank: {error}");
            Ok(())
        };
        answers::history(&RealDisk, &self.store, urls, &options, &mut failed).map_err(problem)
    }

    /// Returns the links of a page, best rank first; with `within`, its incoming links, found by a sweep over at most
    /// `within` links.
    fn links(&self, url: &str, n: usize, within: Option<u64>) -> Result<LinkList> {
        let places = self.cache.with(SnapshotPart::Places)?;
        let found = places.pages(&[url.to_owned()])?.pop().flatten();
        let page = found.ok_or_else(|| Problem::Unknown(format!("{url}: not known")))?;
        // Only the current snapshot has rows; page numbers are the same in all.
        let held = self.current()?;
        let (found, count, named) = held.links(page, n, within)?;
        let pages: Vec<PageId> = named.iter().map(|(end, _)| end.page).collect();
        let states = held.snapshot().states_of(&pages).map_err(problem)?;
        let target = |((end, url), state): ((RankedEnd, String), _)| LinkTarget {
            url,
            rank: end.rank,
            state,
            ..LinkTarget::default()
        };
        Ok(LinkList {
            url: url.into(),
            visited: found.fetched != FetchState::Never,
            gone: found.fetched == FetchState::Gone,
            count,
            links: named.into_iter().zip(states).map(target).collect(),
            swept: found.swept,
        })
    }

    fn movers(&self, n: usize, certain_only: bool) -> Result<SnapshotMovers> {
        let held = self.cache.with(SnapshotPart::Movers { certain_only })?;
        Ok(held.movers(certain_only)?.first(n))
    }

    fn search(&self, wanted: &SearchOptions) -> Result<SnapshotAnswer<SearchResult>> {
        let held = self.current()?;
        let found = held.snapshot().search(wanted).map_err(problem)?;
        Ok(SnapshotAnswer::new(&held, found))
    }

    fn failures(&self, n: usize) -> Result<SnapshotAnswer<Failing>> {
        let held = self.cache.with(SnapshotPart::Failing)?;
        Ok(SnapshotAnswer::new(&held, held.failing()?.first(n)))
    }

    /// Returns the coverage with the hosts that have the most unread, and the coverage of earlier snapshots.
    fn coverage(&self, n: usize) -> Result<Value> {
        let held = self.cache.with(SnapshotPart::Coverage)?;
        let (covered, hosts) = held.coverage()?;
        let mut answer = value(covered)?;
        answer["snapshot"] = held.name().into();
        answer["hosts"] = value(&hosts[..n.min(hosts.len())])?;
        answer["history"] = value(self.current.covered())?;
        Ok(answer)
    }

    fn hosts(&self, n: usize) -> Result<Vec<Host>> {
        let held = self.cache.with(SnapshotPart::Hosts)?;
        Ok(held.hosts()?.iter().take(n).cloned().collect())
    }
}

impl Backend for StoreBackend {
    fn status(&self) -> Result<ServiceStatus> {
        let now = self.live.as_ref().and_then(|live| live.now());
        let held = match self.current() {
            Ok(held) => Some(held),
            // An ingest that has not published anything yet is reported as well, as is a new store.
            Err(Problem::Later(_)) => None,
            Err(problem) => return Err(problem),
        };
        let info = held.as_ref().map(|held| held.info());
        let counters = match (&now, info) {
            (Some(now), _) => now.counters.clone(),
            (None, Some(info)) => info.counters.clone(),
            (None, None) => Counters::default(),
        };
        let written = held.as_ref().and_then(|held| held.written());
        let pages = now.as_ref().map(|now| now.pages);
        let pages = pages.or(info.map(|info| info.pages)).unwrap_or(0);
        Ok(ServiceStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            store: self.store.display().to_string(),
            snapshot: held.as_ref().map(|held| held.name().to_owned()),
            snapshot_time: written,
            snapshot_age_seconds: written.and_then(|at| Some(at.elapsed().ok()?.as_secs())),
            counts: Counts {
                records: counters.records,
                links: counters.links,
                pages,
                visited: counters.visited,
                frontier: pages.saturating_sub(counters.visited),
                gone: counters.gone,
                unchanged: counters.unchanged,
                failed: counters.failed,
                skipped: skipped(&counters),
            },
            bound_l1: info.and_then(Info::bound_l1),
            turnovers: info.map_or(0.0, |info| info.turnovers),
            last_fetch: info.and_then(|info| info.time).map(|at| time(Some(at))),
            last_fetch_seconds: info.and_then(|info| info.time),
            // A size that cannot be read at the moment is left out.
            disk_bytes: disk_bytes(&self.store).ok(),
            ingesting: is_busy(&RealDisk, &self.store),
            coverage: self
                .current
                .covered()
                .last()
                .map(|covered| CoverageSummary {
                    records: covered.records,
                    at_least: covered.at_least,
                    at_most: covered.at_most,
                }),
            reading: now.map(|now| now.reading),
            history: if held.is_some() {
                self.history()?
            } else {
                Vec::new()
            },
        })
    }

    fn questions(&self) -> &'static [&'static str] {
        &Question::NAMES
    }

    fn answer(&self, question: &str, parameters: &[(String, String)]) -> Result<Vec<u8>> {
        let answer = match Question::of(question, parameters).map_err(problem)? {
            Question::Top(n, ranking, selection, best) => {
                serde_json::to_vec(&self.top(n, (&ranking, &selection, best))?)
            }
            Question::Movers(n, certain_only) => serde_json::to_vec(&self.movers(n, certain_only)?),
            Question::Hosts(n) => serde_json::to_vec(&json!({ "hosts": self.hosts(n)? })),
            Question::Coverage(n) => serde_json::to_vec(&self.coverage(n)?),
            Question::Rank(urls, ranking, history) => {
                let pages = self.rank(&urls, &ranking, history)?;
                serde_json::to_vec(&json!({ "pages": pages }))
            }
            Question::Links(url, n) => serde_json::to_vec(&self.links(&url, n, None)?),
            Question::LinksTo(url, n, within) => {
                serde_json::to_vec(&self.links(&url, n, Some(within))?)
            }
            Question::Search(wanted) => serde_json::to_vec(&self.search(&wanted)?),
            Question::Failures(n) => serde_json::to_vec(&self.failures(n)?),
        };
        answer.map_err(|error| Problem::Failed(error.to_string()))
    }

    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        self.cache.list(query)
    }

    fn canonical(&self, url: &str) -> String {
        let form = answers::canonical(url);
        String::from_utf8(form).unwrap_or_else(|_| url.into())
    }

    fn log(&self, text: &str) {
        say!("{text}");
    }
}
