//! State of a store and of a running ingest, for `/status` and for Prometheus: counts are those of the ingest, or else of
//! the snapshot.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cashrank_base::model::{Time, rfc_3339};
use cashrank_base::threads::lock;
use cashrank_crawl::decode::Reason;
use cashrank_graph::engine::Counters;
use cashrank_ingest::ingest::ProgressReport;
use serde::Serialize;

#[derive(Default, Serialize)]
pub struct StoreStatus {
    pub version: &'static str,
    pub store: String,
    pub snapshot: Option<String>,
    pub snapshot_age_seconds: Option<u64>,
    pub records: u64,
    pub links: u64,
    pub pages: u64,
    pub visited: u64,
    pub frontier: u64,
    pub gone: u64,
    pub unchanged: u64,
    pub failed: u64,
    /// Numbers of records that could not be used, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    pub bound_l1: Option<f64>,
    pub turnovers: f64,
    #[serde(serialize_with = "rfc_3339")]
    pub last_fetch: Option<Time>,
    pub disk_bytes: Option<u64>,
    /// True while any process writes to the store.
    pub ingesting: bool,
    /// Progress of the ingest of this process.
    pub reading: Option<IngestStatus>,
    #[serde(skip)]
    pub published: Option<SystemTime>,
}

/// Metrics with one value: name, kind and meaning, in the order of [`StoreStatus::metrics`].
const METRICS: &str = "\
records_total counter Records read.
links_total counter Links read.
gone_total counter Records of pages that are gone.
unchanged_total counter Records of unchanged pages.
failed_total counter Records of fetches that failed.
pages gauge Pages known.
pages_visited gauge Pages visited.
frontier_pages gauge Pages known and never visited.
bound_l1 gauge Certified bound on the L1 error of the current snapshot.
turnovers gauge How often all cash was passed on.
snapshot_timestamp_seconds gauge When the current snapshot was published, in seconds since 1970.
snapshot_age_seconds gauge Seconds since the current snapshot was published.
last_fetch_timestamp_seconds gauge The latest fetch in the current snapshot, in seconds since 1970.
last_fetch_age_seconds gauge Seconds since the latest fetch in the current snapshot.
disk_bytes gauge Bytes of the store on disk.
ingesting gauge 1 while a process writes to the store, this one or another.";

impl StoreStatus {
    /// Returns the state in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let count = |count: u64| Some(count as f64);
        let seconds = |at: SystemTime| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs_f64());
        let last_fetch = self.last_fetch.map(|at| at as f64);
        let fetch_age = last_fetch.and_then(|at| Some(seconds(SystemTime::now())? - at));
        let values = [
            count(self.records),
            count(self.links),
            count(self.gone),
            count(self.unchanged),
            count(self.failed),
            count(self.pages),
            count(self.visited),
            count(self.frontier),
            self.bound_l1,
            Some(self.turnovers),
            self.published.and_then(seconds),
            self.snapshot_age_seconds.and_then(count),
            last_fetch,
            fetch_age,
            self.disk_bytes.and_then(count),
            count(self.ingesting.into()),
        ];
        let mut out = String::new();
        let mut put = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# HELP cashrank_{name} {help}");
            let _ = writeln!(out, "# TYPE cashrank_{name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(out, "cashrank_{name}{labels} {value}");
            }
        };
        for (line, value) in METRICS.lines().zip(values) {
            let mut parts = line.splitn(3, ' ');
            let [name, kind, help] = [(); 3].map(|()| parts.next().unwrap_or_default());
            if let Some(value) = value {
                put(name, kind, help, &[(String::new(), value)]);
            }
        }
        let skipped = Reason::ALL.map(Reason::name).into_iter();
        let skipped = skipped.filter_map(|why| Some((why, *self.skipped.get(why)?)));
        let skipped = skipped.map(|(why, count)| (format!("{{reason=\"{why}\"}}"), count as f64));
        let help = "Records that could not be used, by reason.";
        put(
            "skipped_total",
            "counter",
            help,
            &skipped.collect::<Vec<_>>(),
        );
        let help = "The version of the program, as a label.";
        let version = concat!("{version=\"", env!("CARGO_PKG_VERSION"), "\"}");
        put("build_info", "gauge", help, &[(version.into(), 1.0)]);
        out
    }
}

/// Latest report of a running ingest; `None` before the first one.
#[derive(Default)]
pub struct LiveIngest(Mutex<Option<IngestStatus>>);

/// Progress of a running ingest as JSON. Inputs and passes count from 1, records and links from the ingest's start.
#[derive(Clone, Default, Serialize)]
pub struct IngestStatus {
    input: String,
    input_number: usize,
    inputs: usize,
    pass: u32,
    passes: u32,
    /// Number of compressed bytes read of the input.
    read_bytes: u64,
    input_bytes: Option<u64>,
    seconds: f64,
    records: u64,
    links: u64,
    /// Counts of the whole store.
    #[serde(skip)]
    pub counters: Counters,
    #[serde(skip)]
    pub pages: u64,
}

impl LiveIngest {
    pub fn now(&self) -> Option<IngestStatus> {
        lock(&self.0).clone()
    }

    /// Takes a report of an ingest that has run for `elapsed` and has read these records and links.
    pub fn put(
        &self,
        report: &ProgressReport<'_>,
        elapsed: Duration,
        (records, links): (u64, u64),
    ) {
        *lock(&self.0) = Some(IngestStatus {
            input: report
                .input
                .map_or_else(|| "kept links".into(), ToString::to_string),
            input_number: report.input_index + 1,
            inputs: report.inputs,
            pass: report.pass,
            passes: report.repeat,
            read_bytes: report.input.map_or(0, |_| report.done),
            input_bytes: report.input.and(report.length),
            seconds: elapsed.as_secs_f64(),
            records,
            links,
            counters: report.counters.clone(),
            pages: report.pages,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text format: names, then one value per line.
    #[test]
    fn prometheus_reads_the_metrics() {
        let now = UNIX_EPOCH.elapsed().unwrap().as_secs();
        let body = StoreStatus {
            records: 7,
            skipped: [(Reason::ALL[2].name(), 3)].into(),
            pages: 4,
            frontier: 4,
            bound_l1: Some(0.25),
            snapshot_age_seconds: Some(77),
            published: Some(UNIX_EPOCH + Duration::from_secs(now - 77)),
            last_fetch: Some(86_400),
            disk_bytes: Some(4_096),
            ingesting: true,
            ..StoreStatus::default()
        }
        .metrics();
        for line in [
            "# TYPE cashrank_records_total counter",
            "cashrank_records_total 7",
            r#"cashrank_skipped_total{reason="bad-url"} 3"#,
            "cashrank_frontier_pages 4",
            "cashrank_bound_l1 0.25",
            concat!(
                r#"cashrank_build_info{version=""#,
                env!("CARGO_PKG_VERSION"),
                r#""} 1"#
            ),
            &format!("cashrank_snapshot_timestamp_seconds {}", now - 77),
            "cashrank_last_fetch_timestamp_seconds 86400",
            "cashrank_disk_bytes 4096",
            "# HELP cashrank_ingesting 1 while a process writes to the store, this one or another.",
            "cashrank_ingesting 1",
        ] {
            assert!(
                body.lines().any(|found| found == line),
                "{line:?} in {body}"
            );
        }
        let value = |name: &str| -> f64 {
            let mut lines = body.lines();
            let found = lines.find_map(|line| line.strip_prefix(name));
            found.unwrap().parse().unwrap()
        };
        assert!(value("cashrank_snapshot_age_seconds ") == 77.0);
        let age = value("cashrank_last_fetch_age_seconds ");
        assert!((now as f64 - 86_400.0 - age).abs() < 600.0);
        for line in body.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
