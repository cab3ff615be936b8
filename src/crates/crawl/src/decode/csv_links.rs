//! Link tables of archive toolkits: `date,src,dest,anchor` as CSV. See `formats/csv-links.md`.
//!
//! A record is the run of links with one date and source: see [`groups`](super::groups).

use std::borrow::Cow;

use memchr::memchr2;

use super::groups::{Edge, GroupFormat, GroupLine, Groups};
use super::{Bad, FormatSpec, Names, Reason, time, utf8};
use crate::url;

pub const FORMAT: FormatSpec = FormatSpec {
    name: "csv-links",
    about: "`date,src,dest,anchor` as CSV, grouped by date and source",
    by: |rules, _| std::sync::Arc::new(Groups::<CsvLinks>::by(rules, Names::Url)),
};

pub struct CsvLinks;

/// State of the scan for a line's end, which may not be inside quotes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CsvScan {
    /// At a field's start, or after a quote in a quoted field: its end, or the first of two quotes.
    #[default]
    Start,
    /// In a field without quotes, or in text after the closing quote.
    Plain,
    Quoted,
    /// In a quoted field, after a backslash.
    Escaped,
}

impl CsvScan {
    /// Continues to the line's end and returns the offset after it; `None` if `buf` ends before.
    pub fn run(&mut self, buf: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < buf.len() {
            let byte = buf[at];
            *self = match (*self, byte) {
                (CsvScan::Start | CsvScan::Plain, b'\n') => return Some(at + 1),
                (CsvScan::Start, b'"') => CsvScan::Quoted,
                (CsvScan::Start | CsvScan::Plain, b',') => CsvScan::Start,
                (CsvScan::Start | CsvScan::Plain, _) => {
                    at += memchr2(b',', b'\n', &buf[at..]).unwrap_or(buf.len() - at);
                    *self = CsvScan::Plain;
                    continue;
                }
                (CsvScan::Quoted, b'\\') => CsvScan::Escaped,
                (CsvScan::Quoted, b'"') => CsvScan::Start,
                (CsvScan::Quoted, _) => {
                    at += memchr2(b'"', b'\\', &buf[at..]).unwrap_or(buf.len() - at);
                    continue;
                }
                (CsvScan::Escaped, _) => CsvScan::Quoted,
            };
            at += 1;
        }
        None
    }
}

impl GroupFormat for CsvLinks {
    const IS_CSV: bool = true;

    fn read(line: &[u8]) -> Result<GroupLine<'_>, Bad> {
        if line.trim_ascii().is_empty() {
            return Ok(GroupLine::Other("blank line"));
        }
        utf8(line).map_err(Bad::utf8)?;
        let (date, rest) = field(line)?;
        let (from, rest) = field(rest.ok_or_else(too_few)?)?;
        let key = &line[..line.len() - rest.map_or(0, |rest| rest.len() + 1)];
        let (to, rest) = field(rest.ok_or_else(too_few)?)?;
        if is_header(&date, &from) {
            return Ok(GroupLine::Other("header"));
        }
        // The anchor's text is left; a fifth field means another kind of table.
        if rest
            .map_or(Ok(None), |rest| field(rest).map(|(_, rest)| rest))?
            .is_some()
        {
            return Err(Bad::malformed(
                "more than four fields, expected date,src,dest,anchor",
            ));
        }
        for (name, url) in [("src", &from), ("dest", &to)] {
            if url.is_empty() {
                return Err(Bad::new(Reason::BadUrl, format!("`{name}` is empty")));
            }
        }
        Ok(GroupLine::Edge(Edge {
            key,
            from,
            to,
            weight: 1,
            time: time::read_archive(&date, "a date: 8 or 14 digits, or RFC 3339"),
        }))
    }
}

fn too_few() -> Bad {
    Bad::malformed("fewer than three fields, expected date,src,dest,anchor")
}

pub fn is_header(first: &[u8], second: &[u8]) -> bool {
    (first == b"crawl_date" || first == b"date") && second == b"src"
}

pub fn is_link(line: &[u8]) -> bool {
    match CsvLinks::read(line) {
        Ok(GroupLine::Other(kind)) => kind == "header",
        Ok(GroupLine::Edge(edge)) => url::is_web(&edge.from),
        _ => false,
    }
}

/// Field, and the rest of the line after its comma.
type Split<'a> = (Cow<'a, [u8]>, Option<&'a [u8]>);

fn field(line: &[u8]) -> Result<Split<'_>, Bad> {
    let Some(quoted) = line.strip_prefix(b"\"") else {
        let end = memchr::memchr(b',', line);
        let text = &line[..end.unwrap_or(line.len())];
        return Ok((Cow::Borrowed(text), end.map(|end| &line[end + 1..])));
    };
    let mut text = Cow::Borrowed(&quoted[..0]);
    let mut start = 0;
    loop {
        let Some(found) = memchr2(b'"', b'\\', &quoted[start..]) else {
            return Err(Bad::malformed("a quote that does not end"));
        };
        let at = start + found;
        append(&mut text, &quoted[start..at]);
        match (quoted[at], quoted.get(at + 1)) {
            (b'"', None) => return Ok((text, None)),
            (b'"', Some(b',')) => return Ok((text, Some(&quoted[at + 2..]))),
            (b'"', Some(b'"')) | (b'\\', Some(b'"' | b'\\')) => {
                append(&mut text, &quoted[at + 1..at + 2]);
                start = at + 2;
            }
            (b'"', Some(_)) => {
                return Err(Bad::malformed("text after a field's closing quote"));
            }
            _ => {
                append(&mut text, b"\\");
                start = at + 1;
            }
        }
    }
}

/// Appends a part; the first part stays borrowed.
fn append<'a>(text: &mut Cow<'a, [u8]>, part: &'a [u8]) {
    if text.is_empty() {
        *text = Cow::Borrowed(part);
    } else if !part.is_empty() {
        text.to_mut().extend_from_slice(part);
    }
}
