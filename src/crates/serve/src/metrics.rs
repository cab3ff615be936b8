//! Counts for Prometheus, in its text format.

use std::fmt::Write;

use crate::backend::Status;

pub(crate) const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn text(status: &Status) -> String {
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
            "ingesting",
            "1 while an ingest runs.",
            Some(f64::from(u8::from(status.reading.is_some()))),
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

/// A label's value, with what would end it escaped.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
