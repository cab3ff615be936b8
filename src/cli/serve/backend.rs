//! Answers of the service, from a store's published snapshots and the counters of a running ingest.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cashrank::Error;
use cashrank_base::model::name_settings;
use cashrank_serve::{Backend, NextList, NextQuery, Problem, Result};
use cashrank_steer::answers::{Question, canonical};
use cashrank_store::snapshot::Info;
use cashrank_store::store::{RealDisk, is_busy};
use serde::Serialize;

use super::cache::{AnswerCache, is_cached};
use super::current::{Current, OpenSnapshot};
use super::status::{LiveIngest, StoreState};
use crate::cli::common::{say, time};
use crate::cli::json::object;
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

    fn state(&self) -> Result<(StoreState, Option<Arc<OpenSnapshot>>)> {
        let held = match self.current.get() {
            Ok(held) => Some(held),
            // The status must also report a new store, and an ingest that has not published anything yet.
            Err(Problem::Later(_)) => None,
            Err(problem) => return Err(problem),
        };
        let reading = self.live.as_ref().and_then(|live| live.now());
        let info = held.as_ref().map(|held| held.info());
        let of_info = || info.map(|info| (info.counters.clone(), info.pages));
        let counts = reading
            .as_ref()
            .map(|now| (now.counters.clone(), now.pages));
        let (counters, pages) = counts.or_else(of_info).unwrap_or_default();
        let state = StoreState {
            counters,
            pages,
            reading,
            bound_l1: info.and_then(Info::bound_l1),
            turnovers: info.map_or(0.0, |info| info.turnovers),
            published: held.as_ref().and_then(|held| held.written),
            last_fetch: info.and_then(|info| info.time),
            disk_bytes: disk_bytes(&self.store).ok(),
            is_busy: is_busy(&RealDisk, &self.store),
        };
        Ok((state, held))
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
        let (state, held) = self.state()?;
        let counters = &state.counters;
        let skipped: BTreeMap<&str, u64> = state.skipped().collect();
        json(&object! {
            "version": env!("CARGO_PKG_VERSION"),
            "store": self.store.display().to_string(),
            "snapshot": held.as_ref().map(|held| &held.name),
            "snapshot_age_seconds": state.age().map(|age| age.as_secs()),
            "records": counters.records,
            "links": counters.links,
            "pages": state.pages,
            "visited": counters.visited,
            "frontier": state.frontier(),
            "gone": counters.gone,
            "unchanged": counters.unchanged,
            "failed": counters.failed,
            "skipped": skipped,
            "bound_l1": state.bound_l1,
            "turnovers": state.turnovers,
            "last_fetch": state.last_fetch.map(|at| time(Some(at))),
            "disk_bytes": state.disk_bytes,
            // True while any process writes to the store.
            "ingesting": state.is_busy,
            "reading": &state.reading,
        })
    }

    fn metrics(&self) -> Result<String> {
        Ok(self.state()?.0.metrics())
    }

    fn questions(&self) -> &'static [&'static str] {
        &Question::NAMES
    }

    fn answer(&self, question: &str, parameters: &[(String, String)]) -> Result<Vec<u8>> {
        let question = Question::of(question, parameters).map_err(problem)?;
        if is_cached(&question.subject) {
            self.cache.answer(question)
        } else {
            self.current.get()?.answer(&question)
        }
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
