//! ARC, the predecessor of WARC: a line `URL IP-address date ... length`, then `length` bytes. See `formats/arc.md`.
//!
//! A record begins with any line ends left over from the record before, and ends with its block. If no record begins
//! where one should, or its length is no number, the bad record ends at the next line that looks like a first one.

use std::borrow::Cow;

use memchr::{memchr, memrchr};

use super::frame::{Frame, FrameSkipper, Framing, line_ends, without_cr};
use super::http::{HttpResponse, NO_BODY};
use super::warc::is_web;
use super::{
    Bad, Decoder, FormatSpec, HELD_MAX, Names, Parsed, Record, Sink, Skipper, parsed, put_time,
    skips_links, time, whole_by,
};
use crate::rules::Shard;

pub const FORMAT: FormatSpec = FormatSpec {
    name: "arc",
    about: "ARC files, the predecessor of WARC",
    by: |rules, limits| {
        std::sync::Arc::new(Arc {
            body_bytes: limits.line_bytes,
            shard: rules.shard,
        })
    },
};

pub fn is_header(line: &[u8]) -> bool {
    header(line).is_some()
}

pub struct Arc {
    /// Maximum size of a decoded body, in bytes.
    pub body_bytes: u64,
    /// Shard whose records are decoded beyond their headers; `None`: all records are.
    pub shard: Option<Shard>,
}

impl Decoder for Arc {
    fn whole(&self, buf: &[u8]) -> usize {
        let end = whole_by(buf, |rest| Some(ArcFraming::first(rest, false)?.end));
        end + line_ends(&buf[end..])
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(FrameSkipper::<ArcFraming>::default())
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        let mut end = 0;
        while let Some(frame) = ArcFraming::first(&chunk[end..], true) {
            let start = end;
            end += frame.end;
            let read = self.read(frame, &mut record, &mut || {
                sink(start, Parsed::Large);
            });
            if !sink(end, parsed(read, &record)) {
                return;
            }
        }
    }
}

impl Arc {
    /// Reads a frame into `record`; returns its kind if it is valid, but not a crawl record.
    fn read<'a>(
        &self,
        frame: Frame<'a, ArcHeader<'a>>,
        record: &mut Record<'a>,
        large: &mut dyn FnMut(),
    ) -> Result<Option<&'static str>, Bad> {
        let (header, block) = frame.parts?;
        if header.url.starts_with(b"filedesc:") {
            return Ok(Some("filedesc"));
        }
        if !is_web(header.url) || block.trim_ascii().is_empty() {
            return Ok(Some("no HTTP response"));
        }
        record.clear();
        record.url = Cow::Borrowed(header.url);
        if skips_links(self.shard, header.url, Names::Url) {
            return Ok(None);
        }
        let answer = HttpResponse::read(block);
        if answer.lacks_body() {
            return Ok(Some(NO_BODY));
        }
        put_time(record, time::read_archive(header.date, "a time"));
        record.status = answer.status;
        record.redirect = answer.redirect();
        if record.redirect.is_none() {
            answer.links(record, self.body_bytes, large)?;
        }
        Ok(None)
    }
}

const LINE_MAX: usize = 64 << 10;
const _: () = assert!(LINE_MAX < HELD_MAX);

#[derive(Debug, PartialEq, Eq)]
struct ArcHeader<'a> {
    url: &'a [u8],
    /// Digits, or another notation that looks like a date.
    date: &'a [u8],
    length: Option<u64>,
}

#[derive(Default)]
struct ArcFraming;

impl Framing for ArcFraming {
    type Header<'a> = ArcHeader<'a>;
    const HEADER_CUT: &'static str = "the ARC header is cut short";
    const BLOCK_CUT: &'static str = "the input ends inside an ARC block";

    fn header(record: &[u8]) -> Result<Option<(ArcHeader<'_>, usize, u64)>, Bad> {
        let len = match memchr(b'\n', record) {
            Some(lf) => lf + 1,
            None if record.len() <= LINE_MAX => return Ok(None),
            None => record.len(),
        };
        let Some(header) = header(&record[..len]) else {
            return Err(Bad::malformed(
                "no ARC record begins here: garbage, or a wrong length before it",
            ));
        };
        let length = header
            .length
            .ok_or_else(|| Bad::malformed("the length in an ARC header is not a number"))?;
        Ok(Some((header, len, length)))
    }

    fn next(junk: &[u8], at_end: bool) -> Result<usize, usize> {
        let mut at = 0;
        while let Some(lf) = memchr(b'\n', &junk[at..]) {
            let start = at + lf + 1;
            let rest = &junk[start..];
            let line = match memchr(b'\n', rest) {
                Some(lf) => &rest[..=lf],
                None if at_end || rest.len() > LINE_MAX => rest,
                // The line may begin the next record.
                None => return Err(start - 1),
            };
            if header(line).is_some() {
                return Ok(start);
            }
            at = start;
        }
        Err(junk.len())
    }
}

/// Parses a record's first line, with or without its end; `None` if it is not one.
///
/// Version 1 has five fields, version 2 ten; in both, the date follows the host's address, and the length comes last.
/// URLs and types may hold spaces.
fn header(line: &[u8]) -> Option<ArcHeader<'_>> {
    let line = without_cr(line.strip_suffix(b"\n").unwrap_or(line));
    if line.len() > LINE_MAX || !has_scheme(line) {
        return None;
    }
    let (mut front, length) = split_last(line)?;
    loop {
        let (rest, field) = split_last(front)?;
        if is_date(field)
            && let Some((url, _)) = split_last(rest).filter(|(_, address)| is_address(address))
        {
            let length = std::str::from_utf8(length).ok();
            let digits = length.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            return Some(ArcHeader {
                url,
                date: field,
                length: digits.and_then(|digits| digits.parse().ok()),
            });
        }
        front = rest;
    }
}

fn split_last(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memrchr(b' ', line)?;
    Some((&line[..space], &line[space + 1..]))
}

/// Returns whether a line begins with a scheme: `http:`, `dns:`, `filedesc:`.
fn has_scheme(line: &[u8]) -> bool {
    let other = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"+.-".contains(byte));
    let end = line.iter().position(other);
    line.first().is_some_and(u8::is_ascii_alphabetic) && end.is_some_and(|end| line[end] == b':')
}

/// Returns whether a field is a date: 12 to 20 digits (fewer may be an offset), or like `2008-10-29T04:21:46-0700`.
fn is_date(field: &[u8]) -> bool {
    let digits = field.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == field.len() {
        return (12..=20).contains(&digits);
    }
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"-:.+TZ".contains(byte);
    let year = field
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    year == 4 && field[4] == b'-' && (8..=20).contains(&digits) && field.iter().all(is_part)
}

/// Returns whether a field is an IPv4 or IPv6 address, or `-` for an unknown one.
fn is_address(field: &[u8]) -> bool {
    let part = |byte: &u8| byte.is_ascii_hexdigit() || b".:".contains(byte);
    let text = field.iter().all(part) && field.iter().any(|byte| b".:".contains(byte));
    text || field == b"-"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Reason, Skipped};

    /// Layouts in the description of the ARC file format, and lines seen in archives.
    #[test]
    fn first_lines() {
        for (line, url, date, length) in [
            (
                "http://a/ 1.2.3.4 20140102030405 text/html 15\n",
                "http://a/",
                "20140102030405",
                Some(15),
            ),
            (
                "http://a/ 1.2.3.4 20140102030405 text/html 200 c5ed9f http://b/ 20140102030405 x.arc 15\r\n",
                "http://a/",
                "20140102030405",
                Some(15),
            ),
            (
                "http://a/x y 3.4.5.6 z 1.2.3.4 20140102030405 text/html; charset=utf-8 15",
                "http://a/x y 3.4.5.6 z",
                "20140102030405",
                Some(15),
            ),
            (
                "http://a/ 2001:db8::1 20140102030405 no-type 0\n",
                "http://a/",
                "20140102030405",
                Some(0),
            ),
            (
                "filedesc://x.arc.gz 0.0.0.0 20140301000000 text/plain -1\n",
                "filedesc://x.arc.gz",
                "20140301000000",
                None,
            ),
            (
                "http://a/ 1.2.3.4 201404010000000000 text/html abc\n",
                "http://a/",
                "201404010000000000",
                None,
            ),
        ] {
            let header = header(line.as_bytes()).unwrap();
            assert_eq!((header.url, header.date), (url.as_bytes(), date.as_bytes()));
            assert_eq!(header.length, length, "{line}");
        }
        for line in [
            "URL IP-address Archive-date Content-type Archive-length",
            "",
            "http://a/ 1.2.3.4 2014 text/html 15",
            "http://a/ localhost 20140102030405 text/html 15",
            "/a 1.2.3.4 20140102030405 text/html 15",
            "http://a/ 1.2.3.4 20140102030405",
        ] {
            assert_eq!(header(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn lengths_beyond_memory_are_cut_short_not_a_panic() {
        let text = b"http://a/ 1.2.3.4 20140102030405 t 18446744073709551615\nx";
        assert_eq!(ArcFraming::first(text, false), None);
        let bad = ArcFraming::first(text, true).unwrap().parts.unwrap_err();
        assert_eq!(bad.reason, Reason::CutShort);
        let skipped = FrameSkipper::<ArcFraming>::default().skip(text, false);
        assert_eq!(skipped, Skipped::Inside(text.len()));
    }
}
