//! Steps for an input that an ingest and a conversion share: guessing its format, skipping what cannot be used, and
//! tracking what is not verified yet.

use super::{IngestEvent, Observer};
use crate::batch::{Batch, What};
use crate::decode::Names;
use crate::formats::Format;
use crate::model::InputPosition;
use crate::pipeline::{InputRecords, Remark, checked_format_of};
use crate::source::{Damage, DamageKind, InputName, InputSummary, Source, SourceOptions};
use crate::store::Unverified;
use crate::{Error, Result};

/// Determines the format and reports it; `None` if the input is empty. `before` is the kind of names read before.
pub(super) fn report_format(
    source: &mut Source,
    asked: Option<Format>,
    before: Option<Names>,
    observer: &mut dyn Observer,
) -> Result<Option<Format>> {
    let found = checked_format_of(source, asked, before)?;
    let input = source.name();
    if let (Some((format, why)), None) = (&found, asked) {
        observer.note(IngestEvent::Guessed {
            input,
            format: *format,
            why,
        });
    }
    Ok(found.map(|(format, _)| format))
}

/// Reports the caveat of a format, if it has one.
pub(super) fn warn(input: &InputName, format: Format, observer: &mut dyn Observer) {
    if let Some(caveat) = format.caveat() {
        observer.note(IngestEvent::Caveat { input, caveat });
    }
}

/// Reports what the first records of an input show.
pub(super) fn remark(records: &mut InputRecords, observer: &mut dyn Observer) {
    for remark in records.remarks() {
        let input = &records.input;
        observer.note(match &remark {
            Remark::Missing(missing) => IngestEvent::Missing { input, missing },
            Remark::Caveat(caveat) => IngestEvent::Caveat { input, caveat },
        });
    }
}

/// Reports the number of members without a checksum, if any.
pub(super) fn report_unchecked(
    input: &InputName,
    summary: &InputSummary,
    observer: &mut dyn Observer,
) {
    let members = summary.unchecked;
    if members > 0 {
        observer.note(IngestEvent::Unchecked { input, members });
    }
}

/// Record of a batch, and the position before it.
pub(super) struct RecordAt<'a> {
    pub input: &'a InputName,
    pub place: InputPosition,
    pub batch: &'a Batch,
    /// Index of the record in the batch.
    pub at: usize,
}

impl RecordAt<'_> {
    /// Reports what is wrong with the record if there is a detail, and in the first pass an unreadable time. With
    /// `strict`, an unusable record is an error.
    pub fn report(
        &self,
        strict: bool,
        first_pass: bool,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let (input, record, offset) = (self.input, self.place.records + 1, self.place.offset);
        if let What::Skipped(reason) = self.batch.entries[self.at].what {
            let detail = self.batch.complaint(self.at);
            if strict {
                return Err(Error::BadRecord {
                    input: input.to_string(),
                    record,
                    offset,
                    reason: reason.name(),
                    detail: detail.unwrap_or_default().into(),
                });
            }
            if let Some(detail) = detail {
                observer.note(IngestEvent::Skipped {
                    input,
                    record,
                    offset,
                    reason,
                    detail,
                });
            }
        } else if first_pass && self.batch.is_timeless(self.at) {
            observer.note(IngestEvent::BadTime {
                input,
                record,
                offset,
                detail: self.batch.complaint(self.at),
            });
        }
        Ok(())
    }

    /// Tracks that the record is used, `verified` or not; a verified one vouches for all before it.
    pub fn note_use(&self, verified: bool, unverified: &mut Option<Unverified>) {
        if verified {
            *unverified = None;
        } else if unverified.is_none() {
            *unverified = Some(Unverified {
                input: self.input.to_string(),
                from_record: self.place.records + 1,
            });
        }
    }
}

/// Returns true if records were used whose check then failed, against the options. Records that are unverified only
/// because the input was cut short may be used.
pub(super) fn is_unsound(damage: &Damage, options: &SourceOptions) -> bool {
    let failed = matches!(
        damage.kind,
        DamageKind::ChecksumFailed | DamageKind::InvalidData
    );
    failed && damage.unverified_records() && !options.accept_unverified
}
