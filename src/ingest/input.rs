//! What an ingest and a conversion do alike with an input: they guess its format, pass over what
//! cannot be used, and keep in mind what is not verified yet.

use super::{Note, Observer};
use crate::decode::Reason;
use crate::formats::Format;
use crate::pipeline::guess_of;
use crate::source::{Damage, DamageKind, InputName, Source, SourceOptions};
use crate::store::Unverified;
use crate::{Error, Result};

/// Guesses the format, and tells of it. `None`: the input is empty.
pub(super) fn guessed(
    input: &InputName,
    source: &mut Source,
    observer: &mut dyn Observer,
) -> Result<Option<Format>> {
    let Some((format, why)) = guess_of(input, source)? else {
        observer.note(Note::Empty { input });
        return Ok(None);
    };
    observer.note(Note::Guessed {
        input,
        format,
        why: &why,
    });
    Ok(Some(format))
}

/// Says what should be known of the format, if anything.
pub(super) fn warn(input: &InputName, format: Format, observer: &mut dyn Observer) {
    if let Some(caveat) = format.caveat() {
        observer.note(Note::Caveat { input, caveat });
    }
}

/// A record that cannot be used.
pub(super) struct Bad<'a> {
    pub input: &'a InputName,
    /// Its number, from 1.
    pub record: u64,
    /// Where it begins.
    pub offset: u64,
    pub reason: Reason,
}

impl Bad<'_> {
    /// Ends the reading if `strict`; else tells of it, if there is a detail to tell.
    pub fn pass_over(
        self,
        detail: Option<&str>,
        strict: bool,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let Bad {
            input,
            record,
            offset,
            reason,
        } = self;
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
            observer.note(Note::Skipped {
                input,
                record,
                offset,
                reason,
                detail,
            });
        }
        Ok(())
    }
}

/// Notes that `record` is used, `verified` or not: what is verified vouches for all before it.
pub(super) fn note_use(
    unverified: &mut Option<Unverified>,
    verified: bool,
    input: &InputName,
    record: u64,
) {
    if verified {
        *unverified = None;
    } else if unverified.is_none() {
        *unverified = Some(Unverified {
            input: input.to_string(),
            from_record: record,
        });
    }
}

/// Whether records were used whose check then failed, against the options. Those that are
/// unverified only because the input was cut short may be used.
pub(super) fn is_unsound(damage: &Damage, options: &SourceOptions) -> bool {
    let failed = matches!(
        damage.kind,
        DamageKind::ChecksumFailed | DamageKind::InvalidData
    );
    failed && damage.unverified_records() && !options.accept_unverified
}
