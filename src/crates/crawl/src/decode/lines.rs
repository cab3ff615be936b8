//! Lines of text, as all line formats define them: a line ends with LF; one CR before the LF, or before the end of the
//! input, is dropped, and so is a byte order mark (U+FEFF) at the line's start.

use memchr::{memchr, memrchr};

use super::{Bad, Skipped};

pub struct TextLine<'a> {
    /// Line without its end and without a byte order mark.
    pub text: &'a [u8],
    pub start: usize,
    pub end: usize,
    /// False only for the last line of an input, if it lacks its LF.
    pub terminated: bool,
}

/// Yields lines, each of which ends where `line_end` says.
pub fn lines_by(
    chunk: &[u8],
    line_end: impl Fn(&[u8]) -> Option<usize>,
) -> impl Iterator<Item = TextLine<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = chunk.get(start..).filter(|rest| !rest.is_empty())?;
        let len = line_end(rest);
        let line = TextLine {
            text: trim(len.map_or(rest, |len| &rest[..len - 1])),
            start,
            end: start + len.unwrap_or(rest.len()),
            terminated: len.is_some(),
        };
        start = line.end;
        Some(line)
    })
}

/// Returns the offset after the line that `buf` begins with, if it holds the line's end.
pub fn line_end(buf: &[u8]) -> Option<usize> {
    memchr(b'\n', buf).map(|lf| lf + 1)
}

pub fn lines(chunk: &[u8]) -> impl Iterator<Item = TextLine<'_>> {
    lines_by(chunk, line_end)
}

pub fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
}

/// Returns the position of the first control byte other than tab and CR: a file with one is not text.
pub fn control(line: &[u8]) -> Option<usize> {
    let is_control = |byte: u8| (byte < b' ' && byte != b'\t' && byte != b'\r') || byte == 0x7F;
    // Nearly no line has one; a loop without an early exit can be vectorised.
    if line
        .iter()
        .fold(false, |found, &byte| found | is_control(byte))
    {
        line.iter().position(|&byte| is_control(byte))
    } else {
        None
    }
}

pub(super) fn check_control(line: &[u8]) -> Result<(), Bad> {
    control(line).map_or(Ok(()), |at| {
        Err(Bad::malformed(format!(
            "a control byte (0x{:02x}) at byte {} of the line: this is not text, so not a graph",
            line[at],
            at + 1
        )))
    })
}

pub fn whole(buf: &[u8]) -> usize {
    memrchr(b'\n', buf).map_or(0, |lf| lf + 1)
}

pub(super) fn skip(buf: &[u8], at_end: bool) -> Skipped {
    match line_end(buf) {
        Some(end) => Skipped::Ended(end),
        None if at_end => Skipped::Ended(buf.len()),
        None => Skipped::Inside(buf.len()),
    }
}
