//! Report of what an ingest would read in an input, and what it would not: shows why an archive looks empty.
//!
//! The input is read as an ingest reads it, to its end or as far as requested, and counted; nothing is written. Memory
//! is bounded: distinct pages and hosts are counted exactly up to a limit, and only the first positions of each oddity
//! are kept.

pub(crate) mod distinct;
mod reading;
mod report;

use crate::batch::{HashKey, Rules};
use crate::engine::SelfLinks;
use crate::formats::Format;
use crate::model::Limits;
use crate::pipeline::{InputReader, InputRecords, PipelineItem, ReadStart, format_of};
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
    let key = HashKey::random()?;
    let rules = Rules {
        limits: how.limits.clone(),
        self_links: SelfLinks::Drop,
        key,
        input: how.input.clone(),
        follow: Default::default(),
    };
    let mut reader = InputReader::new(rules, &how.source, how.threads);
    reader.keeps_written = how.first > 0;
    let mut source = match reader.open(input) {
        Ok(source) => source,
        Err(error @ Error::Corrupt { .. }) => return Ok(unread(&error)),
        Err(error) => return Err(error),
    };
    let mut report = InspectReport {
        compression: Some(source.compression()),
        ..InspectReport::default()
    };
    // An empty input may still be damaged, which shows in any format.
    let mut read_as = Format::Records;
    if let Some((format, why)) = format_of(&mut source, how.format)? {
        read_as = format;
        (report.format, report.recognised_by) = (Some(format), why);
    }
    let records = reader.read(source, read_as, ReadStart::default())?;
    read(records, InspectionRun::new(report, read_as, how, key))
}

/// Reads to the end, to damage, or as far as requested.
fn read(mut records: InputRecords, mut reading: InspectionRun<'_>) -> Result<InspectReport> {
    while !reading.is_done() {
        let next = records.next_piece();
        reading.remarks(records.remarks());
        match next {
            Ok(PipelineItem::Idle) => {}
            Ok(PipelineItem::Piece(piece)) => {
                reading.piece(&piece);
                reading.check_room()?;
                records.recycle(piece);
            }
            Ok(PipelineItem::End(summary)) => {
                reading.end(&summary);
                break;
            }
            Err(error) => {
                reading.damaged(error)?;
                if let Some(summary) = records.summary() {
                    reading.end(&summary);
                }
                break;
            }
        }
    }
    Ok(reading.finish())
}

/// Returns the report of an input that was not read because of this damage.
fn unread(error: &Error) -> InspectReport {
    InspectReport {
        damage: Some(DamageReport::of(error, 0)),
        ..InspectReport::default()
    }
}
