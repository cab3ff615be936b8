//! Answers of the service, from a store's published snapshots and the counters of a running ingest.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cashrank::Error;
use cashrank_base::model::name_settings;
use cashrank_crawl::decode::Reason;
use cashrank_serve::{Backend, NextList, NextQuery, Problem, Result};
use cashrank_steer::answers::{Question, canonical};
use cashrank_store::snapshot::Info;
use cashrank_store::store::{RealDisk, is_busy};
use serde::Serialize;

use super::cache::{AnswerCache, is_cached};
use super::current::Current;
use super::status::{LiveIngest, StoreStatus};
use crate::cli::common::say;
use crate::cli::stat::disk_bytes;

pub struct StoreBackend {
    store: PathBuf,
    live: Option<Arc<LiveIngest>>,
    current: Arc<Current>,
    cache: AnswerCache,
}

impl StoreBackend {
    pub fn new(store: PathBuf, live: Option<Arc<LiveIngest>>) -> io::Result<StoreBackend> {
        let current = Arc::new(Current::new(store.clone()));
        Ok(StoreBackend {
            cache: AnswerCache::new(current.clone())?,
            store,
            live,
            current,
        })
    }

    fn state(&self) -> Result<StoreStatus> {
        let held = match self.current.get() {
            Ok(held) => Some(held),
            // The status must also report a new store, and an ingest that has not published anything yet.
            Err(Problem::Later(_)) => None,
            Err(problem) => return Err(problem),
        };
        let reading = self.live.as_ref().and_then(|live| live.now());
        let info = held.as_ref().map(|held| held.info());
        let (counters, pages) = match (&reading, info) {
            (Some(now), _) => (now.counters.clone(), now.pages),
            (None, Some(info)) => (info.counters.clone(), info.pages),
            (None, None) => Default::default(),
        };
        let published = held.as_ref().and_then(|held| held.written);
        let age = published.and_then(|at| at.elapsed().ok());
        let skipped = Reason::ALL.map(Reason::name).into_iter();
        let skipped = skipped.zip(counters.skipped).filter(|of| of.1 > 0);
        Ok(StoreStatus {
            version: env!("CARGO_PKG_VERSION"),
            store: self.store.display().to_string(),
            snapshot: held.as_ref().map(|held| held.name.clone()),
            snapshot_age_seconds: age.map(|age| age.as_secs()),
            records: counters.records,
            links: counters.links,
            pages,
            visited: counters.visited,
            frontier: pages.saturating_sub(counters.visited),
            gone: counters.gone,
            unchanged: counters.unchanged,
            failed: counters.failed,
            skipped: skipped.collect(),
            bound_l1: info.and_then(Info::bound_l1),
            turnovers: info.map_or(0.0, |info| info.turnovers),
            last_fetch: info.and_then(|info| info.time),
            disk_bytes: disk_bytes(&self.store).ok(),
            ingesting: is_busy(&RealDisk, &self.store),
            reading,
            published,
        })
    }
}

/// Returns an error's message with settings named as parameters.
pub fn as_parameters(error: &Error) -> String {
    name_settings(&error.to_string(), |name| name.replace('_', "-"))
}

pub fn problem(error: Error) -> Problem {
    match error {
        refused if refused.is_refusal() => Problem::Asked(as_parameters(&refused)),
        other => Problem::Failed(other.to_string()),
    }
}

pub fn json(answer: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(answer).map_err(|error| Problem::Failed(error.to_string()))
}

impl Backend for StoreBackend {
    fn status(&self) -> Result<Vec<u8>> {
        json(&self.state()?)
    }

    fn metrics(&self) -> Result<String> {
        Ok(self.state()?.metrics())
    }

    fn questions(&self) -> &'static [&'static str] {
        &Question::NAMES
    }

    fn answer(&self, question: &str, parameters: &[(String, String)]) -> Result<Vec<u8>> {
        let question = Question::of(question, parameters).map_err(problem)?;
        let n = question.n;
        let rows = if is_cached(&question) {
            self.cache.answer(question)?
        } else {
            self.current.get()?.answer(&question)?
        };
        rows(n)
    }

    fn next(&self, query: &NextQuery) -> Result<Option<Arc<NextList>>> {
        self.cache.list(query)
    }

    fn canonical(&self, url: &str) -> String {
        String::from_utf8(canonical(url)).unwrap_or_else(|_| url.into())
    }

    fn log(&self, text: &str) {
        say!("{text}");
    }
}
