//! Options that `convert`, `inspect` and `load` share, and what `ingest` and `convert` report in the same words.

use crate::batch::{Batch, HashKey, Rules, What};
use crate::decode::{Names, Reason};
use crate::engine::SelfLinks;
use crate::formats::Format;
use crate::ingest::{IngestEvent, Observer};
use crate::model::{InputPosition, Limits};
use crate::pipeline::{InputReader, Remark, checked_format_of};
use crate::rules::{Follow, InputRules};
use crate::source::{Damage, DamageKind, InputName, InputSummary, Source, SourceOptions};
use crate::store::Unverified;
use crate::{Error, Result};

/// Options for reading inputs without a store.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    pub format: Option<Format>,
    /// Number of threads that decode; 0 for one.
    pub threads: usize,
    pub limits: Limits,
    pub input: InputRules,
    pub source: SourceOptions,
}

impl ReadOptions {
    /// Returns a reader of inputs, which drops links from a page to itself.
    pub(crate) fn reader(&self) -> Result<InputReader> {
        self.limits.check()?;
        let rules = rules_in_memory(&self.limits, &self.input)?;
        Ok(InputReader::new(rules, &self.source, self.threads))
    }
}

/// Returns the rules for batches that no store keeps: without links from a page to itself, and with a key of their own.
pub(crate) fn rules_in_memory(limits: &Limits, input: &InputRules) -> Result<Rules> {
    Ok(Rules {
        limits: limits.clone(),
        self_links: SelfLinks::Drop,
        key: HashKey::random()?,
        input: input.clone(),
        follow: Follow::default(),
    })
}

/// Determines the format and reports it; `None` if the input is empty. `before` is the kind of names read before.
pub(crate) fn report_format(
    source: &mut Source,
    asked: Option<Format>,
    before: Option<Names>,
    observer: &mut dyn Observer,
) -> Result<Option<Format>> {
    let found = checked_format_of(source, asked, before)?;
    let input = &source.name;
    if let (Some((format, why)), None) = (&found, asked) {
        observer.say(format!("{input}: read as {} ({why})", format.name()));
    }
    Ok(found.map(|(format, _)| format))
}

pub(crate) fn report_remark(input: &InputName, remark: &Remark, observer: &mut dyn Observer) {
    observer.note(match remark {
        Remark::Missing(missing) => IngestEvent::Missing { input, missing },
        Remark::Caveat(caveat) => IngestEvent::Caveat { input, caveat },
    });
}

/// Reports at the end of an input how many members lack a checksum, and how many groups have a `source` that came back.
pub(crate) fn report_end(
    input: &InputName,
    summary: &InputSummary,
    sources: u64,
    observer: &mut dyn Observer,
) {
    let members = summary.unchecked;
    if members > 0 {
        observer.note(IngestEvent::Unchecked { input, members });
    }
    if sources > 0 {
        observer.note(IngestEvent::Ungrouped { input, sources });
    }
}

/// Reports the record of a batch at `place` as [`report_skipped`] does or, in the first pass, if its time is unreadable.
pub(crate) fn report_record(
    input: &InputName,
    place: InputPosition,
    (batch, at): (&Batch, usize),
    strict: bool,
    first_pass: bool,
    observer: &mut dyn Observer,
) -> Result<()> {
    if let What::Skipped(reason) = batch.entries[at].what {
        let detail = batch.complaint(at);
        return report_skipped(input, place, reason, detail, strict, observer);
    }
    if first_pass && batch.entries[at].is_timeless {
        observer.note(IngestEvent::BadRecord {
            input,
            record: place.records + 1,
            offset: place.offset,
            reason: Reason::BadTime,
            detail: batch.complaint(at),
        });
    }
    Ok(())
}

/// Tracks that a record at `place` is used, `verified` or not; a verified one vouches for all before it.
pub(crate) fn note_use(
    verified: bool,
    input: &InputName,
    place: InputPosition,
    unverified: &mut Option<Unverified>,
) {
    if verified {
        *unverified = None;
    } else if unverified.is_none() {
        *unverified = Some(Unverified {
            input: input.to_string(),
            from_record: place.records + 1,
        });
    }
}

/// Reports a record that cannot be used, if there is a detail. With `strict` it is an error.
pub(crate) fn report_skipped(
    input: &InputName,
    place: InputPosition,
    reason: Reason,
    detail: Option<&str>,
    strict: bool,
    observer: &mut dyn Observer,
) -> Result<()> {
    let (record, offset) = (place.records + 1, place.offset);
    if strict {
        return Err(Error::BadRecord {
            input: input.to_string(),
            record,
            offset,
            reason: reason.name(),
            detail: detail.unwrap_or_default().into(),
        });
    }
    if detail.is_some() {
        observer.note(IngestEvent::BadRecord {
            input,
            record,
            offset,
            reason,
            detail,
        });
    }
    Ok(())
}

/// Returns true if records were used whose check then failed, against the options. Those of an input cut short are sound.
pub(crate) fn is_unsound(damage: &Damage, options: &SourceOptions) -> bool {
    let failed = matches!(
        damage.kind,
        DamageKind::ChecksumFailed | DamageKind::InvalidData
    );
    failed && damage.unverified_records() && !options.accept_unverified
}
