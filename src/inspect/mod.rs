//! What an ingest would read in an input, and what it would not: how a user finds out why an archive looks
//! empty.
//!
//! The input is read as an ingest reads it, to its end or as far as asked, and counted; nothing is
//! written. Memory is bounded: distinct pages and hosts are counted exactly up to a limit, of what is odd
//! the first places are kept.

mod distinct;
mod reading;
mod report;

use crate::archive::Chain;
use crate::batch::{HashKey, Rules};
use crate::engine::SelfLinks;
use crate::formats::{Format, is_decided};
use crate::model::Limits;
use crate::pipeline::guess_of;
use crate::pipeline::{BufferPool, Delays, Next, Pipeline};
use crate::rules::InputRules;
use crate::source::{InputName, Source, SourceOptions, Summary};
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
    /// What is taken from inputs.
    pub input: InputRules,
    /// How inputs are read.
    pub source: SourceOptions,
}

impl Default for Inspection {
    /// All of it, three records shown, a million pages and hosts told apart.
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
/// Damage is no error here: see [`Report::damage`].
pub fn inspect(input: &InputName, how: &Inspection) -> Result<Report> {
    how.limits.check()?;
    let mut source = match Source::open(input, &how.limits, &how.source) {
        Ok(source) => source,
        // With `preverify` a file that is damaged anywhere is not begun.
        Err(error @ Error::Corrupt { .. }) => return Ok(unread(&error)),
        Err(error) => return Err(error),
    };
    let mut report = Report {
        compression: Some(source.compression()),
        ..Report::default()
    };
    let format = match how.format {
        Some(_) if source.head_until(is_decided)?.is_empty() => None,
        Some(format) => Some((format, "as `format` says".into())),
        None => guess_of(input, &mut source)?,
    };
    // An empty input may be damaged all the same, which shows in whatever format it is read.
    let (read_as, _) = format.clone().unwrap_or((Format::Records, String::new()));
    if let Some((format, why)) = format {
        (report.format, report.told_by) = (Some(format), why);
    }
    let reading = Reading::new(report, read_as, how, HashKey::random()?);
    read(source, read_as, how, reading)
}

/// Reads to the end, to the damage, or as far as asked.
fn read(
    source: Source,
    format: Format,
    how: &Inspection,
    mut reading: Reading<'_>,
) -> Result<Report> {
    let input = source.name().clone();
    let rules = Rules {
        limits: how.limits.clone(),
        self_links: SelfLinks::Drop,
        key: reading.key(),
        input: how.input.clone(),
        classes: false,
    };
    let mut chain = (format == Format::Cza).then(Chain::default);
    let spent = BufferPool::new(how.threads);
    let mut pipeline =
        Pipeline::start(source, format, &rules, how.threads, 0, &spent, Delays::NONE)?;
    while !reading.is_done() {
        let next = pipeline.next().and_then(|next| {
            if let (Next::Piece(piece), Some(chain)) = (&next, &mut chain) {
                chain.follow(&piece.chunk, &piece.batch, &input)?;
            }
            Ok(next)
        });
        match next {
            Ok(Next::Idle) => {}
            Ok(Next::Piece(piece)) => {
                reading.piece(&piece);
                pipeline.recycle(piece);
            }
            Ok(Next::End(summary)) => {
                let end = chain.map(|chain| chain.finish(&input, summary.bytes));
                reading.end(&summary);
                if let Some(Err(error)) = end {
                    reading.damaged(error)?;
                }
                break;
            }
            Err(error) => {
                reading.damaged(error)?;
                if let Some(summary) = summary(&mut pipeline) {
                    reading.end(&summary);
                }
                break;
            }
        }
    }
    Ok(reading.finish())
}

/// What the source read, after damage.
fn summary(pipeline: &mut Pipeline) -> Option<Summary> {
    match pipeline.next() {
        Ok(Next::End(summary)) => Some(summary),
        _ => None,
    }
}

/// Nothing was read, for this damage.
fn unread(error: &Error) -> Report {
    Report {
        damage: Some(Damage::of(error, 0)),
        ..Report::default()
    }
}
