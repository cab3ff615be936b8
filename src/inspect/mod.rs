//! A report of what an ingest would read in an input, and what it would not: how a user finds out why an archive looks
//! empty.
//!
//! The input is read as an ingest reads it, to its end or as far as asked, and counted; nothing is
//! written. Memory is bounded: distinct pages and hosts are counted exactly up to a limit, of what is odd
//! the first places are kept.

mod distinct;
mod reading;
mod report;

use crate::batch::{HashKey, Rules};
use crate::engine::SelfLinks;
use crate::formats::Format;
use crate::model::Limits;
use crate::pipeline::{InputReader, Next, Records, Start, format_of};
use crate::rules::InputRules;
use crate::source::{InputName, SourceOptions};
use crate::{Error, Result};

pub use report::{Damage, Distinct, First, Odd, RecordPosition, Report, Times};

use reading::Reading;

/// How to look at inputs.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// Their format; `None`: guessed.
    pub format: Option<Format>,
    /// Stop after so many records, of whatever kind; `None`: at the end.
    pub records: Option<u64>,
    /// How many of the first crawl records to show.
    pub first: usize,
    /// How many distinct pages, and hosts, are counted exactly.
    pub distinct: usize,
    /// Threads that decode. At least 1.
    pub threads: usize,
    /// Limits on input.
    pub limits: Limits,
    /// Rules for what is read from inputs.
    pub input: InputRules,
    /// How inputs are read.
    pub source: SourceOptions,
}

impl Default for Inspection {
    /// All of it, three records shown, up to a million distinct pages and hosts counted.
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

/// Looks at one input.
///
/// # Errors
/// [`Error::Io`]; [`Error::Unsupported`] if the format cannot be guessed, or the limits are out of range.
/// Damage is no error here: see [`Report::damage`]. [`Error::TooLarge`] if distinct names take more than the memory limit.
pub fn inspect(input: &InputName, how: &Inspection) -> Result<Report> {
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
        // With `preverify` a file that is damaged anywhere is not begun.
        Err(error @ Error::Corrupt { .. }) => return Ok(unread(&error)),
        Err(error) => return Err(error),
    };
    let mut report = Report {
        compression: Some(source.compression()),
        ..Report::default()
    };
    // An empty input may be damaged all the same, which shows in whatever format it is read.
    let mut read_as = Format::Records;
    if let Some((format, why)) = format_of(&mut source, how.format)? {
        read_as = format;
        (report.format, report.recognised_by) = (Some(format), why);
    }
    let records = reader.read(source, read_as, Start::default())?;
    read(records, Reading::new(report, read_as, how, key))
}

/// Reads to the end, to the damage, or as far as asked.
fn read(mut records: Records, mut reading: Reading<'_>) -> Result<Report> {
    while !reading.is_done() {
        let next = records.next();
        reading.remarks(records.remarks());
        match next {
            Ok(Next::Idle) => {}
            Ok(Next::Piece(piece)) => {
                reading.piece(&piece);
                reading.check_room()?;
                records.recycle(piece);
            }
            Ok(Next::End(summary)) => {
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

/// Nothing was read, for this damage.
fn unread(error: &Error) -> Report {
    Report {
        damage: Some(Damage::of(error, 0)),
        ..Report::default()
    }
}
