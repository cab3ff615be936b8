//! Start of reading an input: determines its format, and passes over the part that an earlier run read.

use crate::decode::Names;
use crate::formats::{Format, check_names, check_text, guess, is_decided};
use crate::model::InputPosition;
use crate::source::{Compression, HEAD_BYTES, Source};
use crate::{Error, Result};

/// Determines the format of an input, and how it was recognised, for messages. `None`: the input is empty. Fails with
/// [`Error::Unsupported`] if the format cannot be guessed.
pub fn format_of(source: &mut Source, asked: Option<Format>) -> Result<Option<(Format, String)>> {
    if let Some((format, why)) = &source.known_format {
        let Some(asked) = asked.filter(|asked| asked != format) else {
            return Ok(Some((*format, why.clone())));
        };
        return Err(Error::Unsupported(format!(
            "{}: {why}, which is read as `format` {}, not {}; leave `format` out",
            source.name,
            format.name(),
            asked.name()
        )));
    }
    let is_live = source.is_live();
    let head = source.head_until(is_decided)?;
    if head.is_empty() {
        return Ok(None);
    }
    let found = match asked {
        Some(format) => Ok((format, "as `format` says".into())),
        None => guess(head),
    };
    let of_lines = found.as_ref().is_ok_and(|(format, _)| format.ends_lines());
    if asked.is_none() && of_lines && is_live && !head.contains(&b'\n') {
        return Err(Error::Unsupported(
            "-: the stream ends inside its first line, by which its format is known: send it again whole, or name it with \
             `format`"
                .into(),
        ));
    }
    found
        .map(Some)
        .map_err(|error| Error::Unsupported(format!("{}: {error}", source.name)))
}

/// Returns the format of a resumed stream, of which `read` bytes were read as `before`. If that was guessed from fewer
/// bytes than there are, it is guessed again: the front of a WAT may look like a WARC, that of an adjacency list like
/// edges. Fails with [`Error::Unsupported`] if nothing was read and the format cannot be guessed.
pub fn format_again(source: &mut Source, before: Format, read: u64) -> Result<Format> {
    if !source.is_at_start() || read > HEAD_BYTES as u64 {
        return Ok(before);
    }
    let input = source.name.clone();
    let head = source.head_until(is_decided)?;
    let front = &head[..head.len().min(read as usize)];
    if head.is_empty() || (read > 0 && guess(front).is_ok_and(|(front, _)| front != before)) {
        return Ok(before);
    }
    match guess(head) {
        Ok((format, _)) => Ok(format),
        Err(_) if read > 0 => Ok(before),
        Err(error) => Err(Error::Unsupported(format!("{input}: {error}"))),
    }
}

/// Determines the format like [`format_of`]; rejects an input that is not text if a text format was requested, and a
/// guessed format whose kind of names differs from `before`.
pub fn checked_format_of(
    source: &mut Source,
    asked: Option<Format>,
    before: Option<Names>,
) -> Result<Option<(Format, String)>> {
    let found = format_of(source, asked)?;
    let input = source.name.clone();
    let checked = match (asked, &found) {
        (Some(format), _) => check_text(format, source.head_until(is_decided)?),
        (None, Some((format, why))) => check_names(*format, why, before),
        (None, None) => Ok(()),
    };
    checked.map_err(|error| Error::Unsupported(format!("{input}: {error}")))?;
    Ok(found)
}

/// Passes over everything before the position where an earlier run stopped, which may take long. Compares its hash,
/// unless it is known to be unchanged (`trusted`).
pub fn pass_over(
    mut source: Source,
    format: Format,
    place: InputPosition,
    trusted: bool,
) -> Result<Source> {
    let InputPosition { offset, prefix, .. } = place;
    let shows_lines = source.is_at_start() || source.compression() == Compression::Plain;
    let expected = (!trusted).then_some(prefix);
    if offset > 0 && format.ends_lines() && shows_lines {
        // The last record that counted may have more lines by now. A later member may begin inside a line.
        source.pass_whole_to(offset, expected, format.decoder())?;
    } else if offset > 0 {
        source.pass_to(offset, expected)?;
    }
    if matches!(format, Format::Records | Format::NodeRecords) {
        // An object counts without its line end if a stream ended after it.
        source.pass_line_end()?;
    }
    Ok(source)
}
