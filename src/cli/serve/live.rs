//! Counters that a running ingest shares with the service, updated with every report of progress.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Instant;

use cashrank_graph::engine::Counters;
use cashrank_ingest::ingest::{IngestEvent, Observer, ProgressReport};
use cashrank_serve::IngestStatus;

use super::once::lock;
use super::rates::Rates;

/// Name shown as the input of a pass over kept links.
const OVER_LINKS: &str = "kept links";

/// Latest counters of an ingest.
#[derive(Default)]
pub struct LiveIngest {
    now: Mutex<Option<IngestState>>,
    rates: Mutex<Rates>,
}

/// State of an ingest at its last report.
#[derive(Clone, Default)]
pub struct IngestState {
    pub reading: IngestStatus,
    pub counters: Counters,
    pub pages: u64,
}

impl LiveIngest {
    /// Returns the latest state, with the rates so far; `None` before the first report.
    pub fn now(&self) -> Option<IngestState> {
        let mut now = lock(&self.now).clone()?;
        now.reading.rates = lock(&self.rates).rates();
        Some(now)
    }
}

/// Observer that forwards all events, and records the counters for the service.
pub struct WatchedObserver<'a, O> {
    observer: &'a mut O,
    live: Arc<LiveIngest>,
    started: Instant,
    first: Option<(u64, u64)>,
}

impl<'a, O: Observer> WatchedObserver<'a, O> {
    pub fn new(observer: &'a mut O, live: Arc<LiveIngest>) -> WatchedObserver<'a, O> {
        WatchedObserver {
            observer,
            live,
            started: Instant::now(),
            first: None,
        }
    }

    fn put(&mut self, report: &ProgressReport<'_>) {
        let counters = report.counters;
        let (records, links) = *self.first.get_or_insert((counters.records, counters.links));
        let now = IngestState {
            reading: IngestStatus {
                input: report
                    .input
                    .map_or_else(|| OVER_LINKS.into(), ToString::to_string),
                input_number: report.input_index + 1,
                inputs: report.inputs,
                pass: report.pass,
                passes: report.repeat,
                read_bytes: report.input.map_or(0, |_| report.done),
                input_bytes: report.input.and(report.length),
                seconds: self.started.elapsed().as_secs_f64(),
                records: counters.records - records,
                links: counters.links - links,
                rates: Vec::new(),
            },
            counters: counters.clone(),
            pages: report.pages,
        };
        lock(&self.live.rates).add(self.started.elapsed(), now.reading.records);
        *lock(&self.live.now) = Some(now);
    }
}

impl<O: Observer> Observer for WatchedObserver<'_, O> {
    fn note(&mut self, note: IngestEvent<'_>) {
        self.observer.note(note);
    }

    fn progress(&mut self, report: &ProgressReport<'_>) {
        self.observer.progress(report);
        self.put(report);
    }
}
