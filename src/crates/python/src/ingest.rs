//! Ingests files of crawl records into a store, like the command `ingest`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cashrank::{Options, Reason};
use cashrank_crawl::formats::Format;
use cashrank_crawl::source::InputName;
use cashrank_graph::rank::Goal;
use cashrank_ingest::ingest::{
    IngestEvent, IngestJob, IngestOutcome, Observer, ProgressReport, ingest,
};
use cashrank_store::store::RealDisk;
use pyo3::prelude::*;

use crate::next::warning;
use crate::work::{Stop, processors};
use crate::writer::Shared;

/// Inputs of an ingest, and how to read and rank them.
pub struct Files {
    pub inputs: Vec<PathBuf>,
    pub format: Option<Format>,
    pub settle: Option<Goal>,
    pub leave_unfinished: bool,
}

/// Extracts a path or a list of paths.
pub fn paths(given: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    match given.extract() {
        Ok(path) => Ok(vec![path]),
        Err(_) => given.try_iter()?.map(|path| path?.extract()).collect(),
    }
}

/// Ingests files, and warns of records that were not used. Returns the number of those that were.
///
/// # Errors
/// Those of [`ingest`], and exceptions raised by signal handlers.
pub fn ingest_files(py: Python<'_>, writer: &Arc<Shared>, files: Files) -> PyResult<u64> {
    let (outcome, warnings) = writer.take(py)?.released(py, move |path, options, stop| {
        let mut warnings = Warnings::default();
        let outcome = ingest(
            &job(path, options, files, stop)?,
            Arc::new(RealDisk),
            &mut warnings,
        )?;
        warnings.skipped(&outcome);
        Ok((outcome, warnings))
    })?;
    for text in &warnings.0 {
        warning(py, text)?;
    }
    Ok(outcome.counters.records - outcome.before.records)
}

fn job(path: &Path, options: &Options, files: Files, stop: &Stop) -> cashrank::Result<IngestJob> {
    let inputs = files.inputs.into_iter().map(InputName::File).collect();
    let mut job = IngestJob::of(path, inputs)?;
    job.limits.memory = options.limits.memory;
    Ok(IngestJob {
        format: files.format,
        keep_links: options.keep_links,
        keep_snapshots: options.keep_snapshots,
        settle: files.settle,
        leave_unfinished: files.leave_unfinished,
        threads: processors(),
        stop: Arc::clone(&stop.0),
        ..job
    })
}

/// Warnings about an ingest that succeeded.
#[derive(Default)]
struct Warnings(Vec<String>);

impl Warnings {
    fn skipped(&mut self, outcome: &IngestOutcome) {
        let counts = outcome.counters.skipped.iter().zip(outcome.before.skipped);
        let counts = Reason::ALL.iter().zip(counts);
        let counts = counts.map(|(reason, (now, before))| (reason.name(), now - before));
        let counts = counts.filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts.map(|(name, n)| format!("{n} {name}")).collect();
        if !counts.is_empty() {
            let text = format!("records that were not used: {}", counts.join(", "));
            self.0.push(text);
        }
    }
}

impl Observer for Warnings {
    fn note(&mut self, note: IngestEvent<'_>) {
        self.0.push(match note {
            IngestEvent::Empty { input } => format!("{input}: is empty"),
            IngestEvent::Missing { input, missing } => {
                let fields = missing.fields.iter().map(|(field, _)| field.name());
                let fields: Vec<&str> = fields.collect();
                format!("{input}: its first pages have no {}", fields.join(", "))
            }
            IngestEvent::RowsGivenUp { reason } => format!("links are no longer kept: {reason}"),
            IngestEvent::Unchecked { input, members } => {
                format!("{input}: {members} frames without a checksum")
            }
            IngestEvent::Withheld { unverified } => format!(
                "no ranking was published: {} could not be verified from record {} on",
                unverified.input, unverified.from_record
            ),
            _ => return,
        });
    }

    fn progress(&mut self, _: &ProgressReport<'_>) {}
}
