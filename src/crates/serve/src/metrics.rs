//! Counts in the text format of Prometheus.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::backend::ServiceStatus;

pub(crate) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn text(status: &ServiceStatus) -> String {
    let mut out = String::new();
    let counts = &status.counts;
    let counters = [
        ("records", "Records read.", counts.records),
        ("links", "Links read.", counts.links),
        ("gone", "Records of pages that are gone.", counts.gone),
        ("unchanged", "Records of unchanged pages.", counts.unchanged),
        ("failed", "Records of fetches that failed.", counts.failed),
    ];
    for (name, help, value) in counters {
        metric(&mut out, &format!("{name}_total"), "counter", help);
        sample(&mut out, &format!("{name}_total"), value as f64);
    }
    let help = "Records that could not be used, by reason.";
    metric(&mut out, "skipped_total", "counter", help);
    for (reason, count) in &counts.skipped {
        let name = format!("skipped_total{{reason=\"{}\"}}", label(reason));
        sample(&mut out, &name, *count as f64);
    }
    let help = "The version of the program, as a label.";
    metric(&mut out, "build_info", "gauge", help);
    let name = format!("build_info{{version=\"{}\"}}", label(&status.version));
    sample(&mut out, &name, 1.0);
    let seconds = |at: SystemTime| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs_f64());
    let last_fetch = status.last_fetch_seconds.map(|seconds| seconds as f64);
    let now = seconds(SystemTime::now());
    let gauges = [
        ("pages", "Pages known.", Some(counts.pages as f64)),
        (
            "pages_visited",
            "Pages visited.",
            Some(counts.visited as f64),
        ),
        (
            "frontier_pages",
            "Pages known and never visited.",
            Some(counts.frontier as f64),
        ),
        (
            "bound_l1",
            "Certified bound on the L1 error of the current snapshot.",
            status.bound_l1,
        ),
        (
            "turnovers",
            "How often all cash was passed on.",
            Some(status.turnovers),
        ),
        (
            "snapshot_timestamp_seconds",
            "When the current snapshot was published, in seconds since 1970.",
            status.snapshot_time.and_then(seconds),
        ),
        (
            "snapshot_age_seconds",
            "Seconds since the current snapshot was published.",
            status.snapshot_age_seconds.map(|age| age as f64),
        ),
        (
            "last_fetch_timestamp_seconds",
            "The latest fetch in the current snapshot, in seconds since 1970.",
            last_fetch,
        ),
        (
            "last_fetch_age_seconds",
            "Seconds since the latest fetch in the current snapshot.",
            now.zip(last_fetch).map(|(now, then)| now - then),
        ),
        (
            "disk_bytes",
            "Bytes of the store on disk.",
            status.disk_bytes.map(|bytes| bytes as f64),
        ),
        (
            "ingesting",
            "1 while a process writes to the store, this one or another.",
            Some(f64::from(u8::from(status.ingesting))),
        ),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            metric(&mut out, name, "gauge", help);
            sample(&mut out, name, value);
        }
    }
    out
}

fn metric(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "# HELP cashrank_{name} {help}\n# TYPE cashrank_{name} {kind}"
    );
}

fn sample(out: &mut String, name: &str, value: f64) {
    let _ = writeln!(out, "cashrank_{name} {value}");
}

/// Returns a label's value with the characters escaped that would end it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
