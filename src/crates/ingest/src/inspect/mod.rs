//! Report of what an ingest would read in an input, and what it would not: shows why an archive looks empty.
//!
//! The input is read as an ingest reads it, to its end or as far as requested, and counted; nothing is written. Memory
//! is bounded: distinct pages and hosts are counted exactly up to a limit, and only the first positions of each oddity
//! are kept.

pub(crate) mod distinct;
mod reading;
mod report;

use crate::batches::{rules_in_memory, visit_batches};
use crate::formats::Format;
use crate::model::Limits;
use crate::pipeline::{InputReader, ReadStart, format_of};
use crate::rules::InputRules;
use crate::source::{InputName, SourceOptions};
use crate::{Error, Result};

pub use report::{
    DamageReport, DistinctCount, FetchTimeStats, InspectReport, Odd, RecordPosition, SampleRecord,
};

use reading::InspectionRun;

/// Options of an inspection.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// Format of the inputs; `None`: guessed.
    pub format: Option<Format>,
    /// Number of records, of whatever kind, after which to stop; `None`: at the end.
    pub records: Option<u64>,
    /// Number of the first crawl records to show.
    pub first: usize,
    /// Number of distinct pages, and of hosts, that are counted exactly.
    pub distinct: usize,
    /// Number of threads that decode, at least 1.
    pub threads: usize,
    pub limits: Limits,
    /// Rules for what is read from inputs.
    pub input: InputRules,
    /// Options for reading inputs.
    pub source: SourceOptions,
}

impl Default for Inspection {
    /// Reads all of the input, shows three records, and counts up to a million distinct pages and hosts.
    fn default() -> Inspection {
        Inspection {
            format: None,
            records: None,
            first: 3,
            distinct: 1_000_000,
            threads: 1,
            limits: Limits::default(),
            input: InputRules::default(),
            source: SourceOptions::default(),
        }
    }
}

/// Inspects one input. Fails with [`Error::Unsupported`] if the format cannot be guessed or a limit is out of range,
/// and with [`Error::TooLarge`] if distinct names exceed the memory limit. Damage is not an error here: see
/// [`InspectReport::damage`].
pub fn inspect(input: &InputName, how: &Inspection) -> Result<InspectReport> {
    how.limits.check()?;
    let rules = rules_in_memory(&how.limits, &how.input)?;
    let key = rules.key;
    let mut reader = InputReader::new(rules, &how.source, how.threads);
    reader.keeps_written = how.first > 0;
    let mut report = InspectReport::default();
    let mut source = match reader.open(input) {
        Ok(source) => source,
        Err(error @ Error::Corrupt { .. }) => {
            report.damage = Some(DamageReport::of(&error, 0));
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    report.compression = Some(source.compression());
    // An empty input may still be damaged, which shows in any format.
    let mut read_as = Format::Records;
    if let Some((format, why)) = format_of(&mut source, how.format)? {
        read_as = format;
        (report.format, report.recognised_by) = (Some(format), why);
    }
    let mut records = reader.read(source, read_as, ReadStart::default())?;
    let mut reading = InspectionRun::new(report, read_as, how, key);
    let summary = match how.records {
        Some(0) => None,
        _ => match visit_batches(&mut records, &mut reading) {
            Ok(summary) => summary,
            Err(error) => {
                reading.damaged(error)?;
                records.summary()
            }
        },
    };
    Ok(reading.finish(summary.as_ref()))
}
