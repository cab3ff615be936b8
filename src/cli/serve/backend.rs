//! The service's answers, from a store's published snapshots and the counters of a running ingest.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use cashrank::answers::{
    self, History, HistoryOptions, Host, Links, Moment, Movers, Question, Rank, Target, Top,
};
use cashrank::decode::Reason;
use cashrank::engine::{Counters, PageId};
use cashrank::rules::Scope;
use cashrank::snapshot::{self, Info, RankingName};
use cashrank::store::RealDisk;
use cashrank_serve::{
    Backend, Counts, CoverageSummary, NextList, NextQuery, Problem, Result, SnapshotSummary, Status,
};
use serde_json::{Value, json};

use super::cache::AnswerCache;
use super::current::{Current, OpenSnapshot, Part};
use super::live::Live;
use super::once::lock;
use super::problem::problem;
use crate::cli::common::{say, time};

/// Newest snapshots whose counts `/status` lists.
const HISTORY: usize = 200;

/// A store, as the service sees it.
pub struct StoreBackend {
    store: PathBuf,
    live: Option<Arc<Live>>,
    current: Arc<Current>,
    /// Summaries of snapshots.
    infos: Mutex<HashMap<String, SnapshotSummary>>,
    cache: AnswerCache,
}

impl StoreBackend {
    pub fn new(store: PathBuf, live: Option<Arc<Live>>) -> StoreBackend {
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

    /// The newest snapshots, oldest first.
    fn history(&self) -> Result<Vec<SnapshotSummary>> {
        let names = snapshot::names(&RealDisk, &self.store).map_err(problem)?;
        let newest = &names[names.len().saturating_sub(HISTORY)..];
        let mut infos = lock(&self.infos);
        infos.retain(|name, _| newest.contains(name));
        let mut history = Vec::new();
        for name in newest {
            if let Some(summary) = infos.get(name) {
                history.push(summary.clone());
                continue;
            }
            // One that went since it was listed is no longer of the history.
            let Ok(info) = snapshot::info_of(&RealDisk, &self.store, name) else {
                continue;
            };
            let summary = summary(name, &info);
            infos.insert(name.clone(), summary.clone());
            history.push(summary);
        }
        Ok(history)
    }
}

fn summary(name: &str, info: &Info) -> SnapshotSummary {
    SnapshotSummary {
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

#[derive(serde::Serialize)]
struct RankAnswer {
    #[serde(flatten)]
    rank: Rank,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<Moment>>,
}

/// Answers.
impl StoreBackend {
    fn top(&self, n: usize, of: (&RankingName, &Scope, Option<usize>)) -> Result<Top> {
        let (ranking, scope, _) = of;
        if ranking.is_usual() && scope.is_all() {
            let held = self.cache.with(Part::Best)?;
            return Ok(held.best()?.first(n));
        }
        self.current()?.top(n, of)
    }

    /// With their ranks in so many of the newest snapshots.
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
        let held = self.cache.with(Part::Places)?;
        let pages = held.info().pages;
        let mut answers = Vec::new();
        for (url, page) in urls.iter().zip(held.pages(urls)?) {
            let page = match page {
                Some(page) => held.page(page)?,
                None => None,
            };
            answers.push(Rank::of(url, page.as_ref(), pages));
        }
        Ok(answers)
    }

    /// Snapshots that cannot be read are left out, and reported.
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

    fn links(&self, url: &str, n: usize) -> Result<Links> {
        let places = self.cache.with(Part::Places)?;
        let found = places.pages(&[url.to_owned()])?.pop().flatten();
        let page = found.ok_or_else(|| Problem::Unknown(format!("{url}: not known")))?;
        // Only the current snapshot has rows; pages keep their numbers.
        let held = self.current()?;
        let row = held.row(page)?;
        let mut targets = Vec::new();
        for &target in row.iter().flatten().take(n) {
            targets.push(PageId(u64::from(target)));
        }
        let mut links = Vec::new();
        for (page, url) in held.named(targets, |page| *page)? {
            let rank = held.page(page)?;
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
        let held = self.cache.with(Part::Movers)?;
        let movers = held.movers()?;
        Ok(Movers {
            from: movers.from.clone(),
            to: movers.to.clone(),
            movers: movers.movers.iter().take(n).cloned().collect(),
        })
    }

    /// With the hosts where most was not read, and what earlier snapshots were asked of.
    fn coverage(&self, n: usize) -> Result<Value> {
        let held = self.cache.with(Part::Coverage)?;
        let (covered, hosts) = held.coverage()?;
        let failed = |error: serde_json::Error| Problem::Failed(error.to_string());
        let mut answer = serde_json::to_value(covered).map_err(failed)?;
        answer["snapshot"] = held.name().into();
        answer["hosts"] = serde_json::to_value(&hosts[..n.min(hosts.len())]).map_err(failed)?;
        answer["history"] = serde_json::to_value(self.current.covered()).map_err(failed)?;
        Ok(answer)
    }

    fn hosts(&self, n: usize) -> Result<Vec<Host>> {
        let held = self.cache.with(Part::Hosts)?;
        Ok(held.hosts()?.iter().take(n).cloned().collect())
    }
}

impl Backend for StoreBackend {
    fn status(&self) -> Result<Status> {
        let now = self.live.as_ref().and_then(|live| live.now());
        let held = match self.current() {
            Ok(held) => Some(held),
            // An ingest that has published nothing yet is reported as well; so is a new store.
            Err(Problem::Later(_)) => None,
            Err(problem) => return Err(problem),
        };
        let info = held.as_ref().map(|held| held.info());
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
            snapshot: held.as_ref().map(|held| held.name().to_owned()),
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
            Question::Top(n, ranking, scope, best) => {
                serde_json::to_vec(&self.top(n, (&ranking, &scope, best))?)
            }
            Question::Movers(n) => serde_json::to_vec(&self.movers(n)?),
            Question::Hosts(n) => serde_json::to_vec(&json!({ "hosts": self.hosts(n)? })),
            Question::Coverage(n) => serde_json::to_vec(&self.coverage(n)?),
            Question::Rank(urls, ranking, history) => {
                let pages = self.rank(&urls, &ranking, history)?;
                serde_json::to_vec(&json!({ "pages": pages }))
            }
            Question::Links(url, n) => serde_json::to_vec(&self.links(&url, n)?),
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
