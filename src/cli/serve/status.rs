//! State of a store and of a running ingest, as JSON and for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cashrank_base::threads::lock;
use cashrank_graph::engine::Counters;
use cashrank_ingest::ingest::ProgressReport;
use cashrank_store::snapshot::Info;
use serde::Serialize;

/// State of the store and of a running ingest. Counts are those of the ingest, or else of the snapshot.
#[derive(Clone, Default, Serialize)]
pub struct ServiceStatus {
    pub version: &'static str,
    pub store: String,
    pub snapshot: Option<String>,
    #[serde(skip)]
    pub snapshot_time: Option<SystemTime>,
    pub snapshot_age_seconds: Option<u64>,
    pub records: u64,
    pub links: u64,
    pub pages: u64,
    pub visited: u64,
    /// Number of known pages that were never visited.
    pub frontier: u64,
    pub gone: u64,
    pub unchanged: u64,
    pub failed: u64,
    pub skipped: BTreeMap<&'static str, u64>,
    pub bound_l1: Option<f64>,
    pub turnovers: f64,
    pub last_fetch: Option<String>,
    /// Time of the latest fetch, in seconds since 1970.
    #[serde(skip)]
    pub last_fetch_seconds: Option<i64>,
    pub disk_bytes: Option<u64>,
    /// True while any process writes to the store.
    pub ingesting: bool,
    /// Share of what readers see that was crawled, as last computed.
    pub coverage: Option<CoverageStatus>,
    /// Progress of the ingest of this process.
    pub reading: Option<IngestStatus>,
    /// Newest snapshots, oldest first.
    pub history: Vec<SnapshotStatus>,
}

#[derive(Clone, Serialize)]
pub struct CoverageStatus {
    pub records: u64,
    pub at_least: f64,
    pub at_most: f64,
}

#[derive(Clone, Serialize)]
pub struct SnapshotStatus {
    snapshot: String,
    made: Option<String>,
    records: u64,
    pages: u64,
    visited: u64,
    bound_l1: Option<f64>,
}

impl SnapshotStatus {
    pub fn of(name: &str, info: &Info, made: Option<String>) -> SnapshotStatus {
        SnapshotStatus {
            snapshot: name.into(),
            made,
            records: info.counters.records,
            pages: info.pages,
            visited: info.counters.visited,
            bound_l1: info.bound_l1(),
        }
    }
}

impl ServiceStatus {
    pub fn metrics(&self) -> String {
        let mut out = String::new();
        let mut put = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# HELP cashrank_{name} {help}");
            let _ = writeln!(out, "# TYPE cashrank_{name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(out, "cashrank_{name}{labels} {value}");
            }
        };
        let one = |value: f64| [(String::new(), value)];
        let mut counter = |name, count: u64, help| put(name, "counter", help, &one(count as f64));
        counter("records_total", self.records, "Records read.");
        counter("links_total", self.links, "Links read.");
        let help = "Records of pages that are gone.";
        counter("gone_total", self.gone, help);
        let help = "Records of unchanged pages.";
        counter("unchanged_total", self.unchanged, help);
        let help = "Records of fetches that failed.";
        counter("failed_total", self.failed, help);
        let skipped = self.skipped.iter();
        let skipped = skipped.map(|(reason, count)| (label("reason", reason), *count as f64));
        let skipped: Vec<_> = skipped.collect();
        let help = "Records that could not be used, by reason.";
        put("skipped_total", "counter", help, &skipped);
        let help = "The version of the program, as a label.";
        let version = label("version", self.version);
        put("build_info", "gauge", help, &[(version, 1.0)]);
        let mut gauge = |name, value: Option<f64>, help| {
            if let Some(value) = value {
                put(name, "gauge", help, &one(value));
            }
        };
        let seconds = |at: SystemTime| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs_f64());
        let last_fetch = self.last_fetch_seconds.map(|seconds| seconds as f64);
        let age = seconds(SystemTime::now()).zip(last_fetch);
        let age = age.map(|(now, then)| now - then);
        let disk = self.disk_bytes.map(|bytes| bytes as f64);
        gauge("pages", Some(self.pages as f64), "Pages known.");
        gauge("pages_visited", Some(self.visited as f64), "Pages visited.");
        let help = "Pages known and never visited.";
        gauge("frontier_pages", Some(self.frontier as f64), help);
        let help = "Certified bound on the L1 error of the current snapshot.";
        gauge("bound_l1", self.bound_l1, help);
        let help = "How often all cash was passed on.";
        gauge("turnovers", Some(self.turnovers), help);
        let help = "When the current snapshot was published, in seconds since 1970.";
        let published = self.snapshot_time.and_then(seconds);
        gauge("snapshot_timestamp_seconds", published, help);
        let help = "Seconds since the current snapshot was published.";
        let snapshot_age = self.snapshot_age_seconds.map(|age| age as f64);
        gauge("snapshot_age_seconds", snapshot_age, help);
        let help = "The latest fetch in the current snapshot, in seconds since 1970.";
        gauge("last_fetch_timestamp_seconds", last_fetch, help);
        let help = "Seconds since the latest fetch in the current snapshot.";
        gauge("last_fetch_age_seconds", age, help);
        gauge("disk_bytes", disk, "Bytes of the store on disk.");
        let help = "1 while a process writes to the store, this one or another.";
        gauge("ingesting", Some(f64::from(u8::from(self.ingesting))), help);
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

/// Returns a label with the characters escaped that would end its value.
fn label(name: &str, value: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("{{{name}=\"{value}\"}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text format: names, then one value per line; characters that would end a label are escaped.
    #[test]
    fn prometheus_reads_the_metrics() {
        let body = ServiceStatus {
            version: "1",
            records: 7,
            frontier: 4,
            skipped: [("bad \"url\"\n", 3)].into(),
            bound_l1: Some(0.25),
            snapshot_time: Some(UNIX_EPOCH + Duration::from_secs(1_800_000_000)),
            snapshot_age_seconds: Some(77),
            last_fetch_seconds: Some(86_400),
            disk_bytes: Some(4_096),
            ingesting: true,
            ..ServiceStatus::default()
        }
        .metrics();
        for line in [
            "# TYPE cashrank_records_total counter",
            "cashrank_records_total 7",
            r#"cashrank_skipped_total{reason="bad \"url\"\n"} 3"#,
            "cashrank_frontier_pages 4",
            "cashrank_bound_l1 0.25",
            r#"cashrank_build_info{version="1"} 1"#,
            "cashrank_snapshot_timestamp_seconds 1800000000",
            "cashrank_snapshot_age_seconds 77",
            "cashrank_last_fetch_timestamp_seconds 86400",
            "cashrank_disk_bytes 4096",
            "cashrank_ingesting 1",
        ] {
            assert!(
                body.lines().any(|found| found == line),
                "{line:?} in {body}"
            );
        }
        let age = "cashrank_last_fetch_age_seconds ";
        let age = body
            .lines()
            .find_map(|line| line.strip_prefix(age))
            .unwrap();
        let now = UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        assert!((now - 86_400.0 - age.parse::<f64>().unwrap()).abs() < 600.0);
        for line in body.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
