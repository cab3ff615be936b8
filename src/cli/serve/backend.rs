//! Answers of the service, from a store's published snapshots and the counters of a running ingest.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use cashrank::Error;
use cashrank_base::model::name_settings;
use cashrank_base::threads::lock;
use cashrank_crawl::decode::Reason;
use cashrank_graph::engine::Counters;
use cashrank_serve::{Backend, NextList, NextQuery, Problem, Result};
use cashrank_steer::answers::{Question, canonical};
use cashrank_store::snapshot::{self, Info, SnapshotColumns};
use cashrank_store::store::{RealDisk, is_busy};
use serde::Serialize;

use super::cache::{AnswerCache, is_cached};
use super::current::Current;
use super::status::{CoverageStatus, LiveIngest, ServiceStatus, SnapshotStatus};
use crate::cli::common::{say, time, written_at};
use crate::cli::stat::disk_bytes;

/// Maximum number of snapshots whose counts `/status` lists.
const HISTORY: usize = 200;

pub struct StoreBackend {
    store: PathBuf,
    live: Option<Arc<LiveIngest>>,
    current: Arc<Current>,
    infos: Mutex<HashMap<String, SnapshotStatus>>,
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

    /// Returns summaries of the newest snapshots, oldest first.
    fn history(&self) -> Result<Vec<SnapshotStatus>> {
        let names = snapshot::names(&RealDisk, &self.store).map_err(problem)?;
        let newest = &names[names.len().saturating_sub(HISTORY)..];
        let snapshots = self.store.join("snapshots");
        let mut infos = lock(&self.infos);
        infos.retain(|name, _| newest.contains(name));
        for name in newest.iter() {
            // A snapshot may have been removed since it was listed.
            if !infos.contains_key(name)
                && let Ok(columns) = SnapshotColumns::of(&RealDisk, &snapshots.join(name))
            {
                let made = written_at(&snapshots.join(name));
                let status = SnapshotStatus::of(name, columns.info(), made);
                infos.insert(name.clone(), status);
            }
        }
        let known = newest.iter().filter_map(|name| infos.get(name));
        Ok(known.cloned().collect())
    }

    fn service_status(&self) -> Result<ServiceStatus> {
        let now = self.live.as_ref().and_then(|live| live.now());
        let held = match self.current.get() {
            Ok(held) => Some(held),
            // The status must also report a new store, and an ingest that has not published anything yet.
            Err(Problem::Later(_)) => None,
            Err(problem) => return Err(problem),
        };
        let info = held.as_ref().map(|held| held.info());
        let (counters, pages) = match (&now, info) {
            (Some(now), _) => (now.counters.clone(), now.pages),
            (None, Some(info)) => (info.counters.clone(), info.pages),
            (None, None) => (Counters::default(), 0),
        };
        let skipped = Reason::ALL.iter().zip(counters.skipped);
        let skipped = skipped.filter(|(_, count)| *count > 0);
        let written = held.as_ref().and_then(|held| held.written());
        Ok(ServiceStatus {
            version: env!("CARGO_PKG_VERSION"),
            store: self.store.display().to_string(),
            snapshot: held.as_ref().map(|held| held.name().to_owned()),
            snapshot_time: written,
            snapshot_age_seconds: written.and_then(|at| Some(at.elapsed().ok()?.as_secs())),
            records: counters.records,
            links: counters.links,
            pages,
            visited: counters.visited,
            frontier: pages.saturating_sub(counters.visited),
            gone: counters.gone,
            unchanged: counters.unchanged,
            failed: counters.failed,
            skipped: skipped
                .map(|(reason, count)| (reason.name(), count))
                .collect(),
            bound_l1: info.and_then(Info::bound_l1),
            turnovers: info.map_or(0.0, |info| info.turnovers),
            last_fetch: info.and_then(|info| info.time).map(|at| time(Some(at))),
            last_fetch_seconds: info.and_then(|info| info.time),
            disk_bytes: disk_bytes(&self.store).ok(),
            ingesting: is_busy(&RealDisk, &self.store),
            coverage: self.current.covered().last().map(|of| CoverageStatus {
                records: of.records,
                at_least: of.at_least,
                at_most: of.at_most,
            }),
            reading: now,
            history: match held {
                Some(_) => self.history()?,
                None => Vec::new(),
            },
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
        json(&self.service_status()?)
    }

    fn metrics(&self) -> Result<String> {
        Ok(self.service_status()?.metrics())
    }

    fn questions(&self) -> &'static [&'static str] {
        &Question::NAMES
    }

    fn answer(&self, question: &str, parameters: &[(String, String)]) -> Result<Vec<u8>> {
        let Question { n, subject } = Question::of(question, parameters).map_err(problem)?;
        if is_cached(&subject) {
            self.cache.rows(subject)?(n)
        } else {
            self.current.get()?.answer(&subject, n)?(n)
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
