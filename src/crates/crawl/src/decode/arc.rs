//! ARC, the predecessor of WARC: a line `URL IP-address date ... length`, then `length` bytes. See `formats/arc.md`.
//!
//! A bad record ends at the next line that looks like a first one.

use memchr::{memchr, memrchr};

use super::exchange::Archives;
use super::frame::{FILE_HEAD, Framing, WarcHeader, whole_length, without_cr};
use super::{Bad, FormatSpec, HELD_MAX, warc};
use crate::rules::Outlinks;

pub const FORMAT: FormatSpec = FormatSpec {
    name: "arc",
    about: "ARC files, the predecessor of WARC",
    by: |rules, limits| {
        std::sync::Arc::new(Archives {
            framing: &ARC,
            role: |_, _| None,
            has_ids: false,
            outlinks: Outlinks::Html,
            limit: limits.line_bytes,
            shard: rules.shard,
            read: warc::read,
        })
    },
};

static ARC: Framing = Framing {
    header: warc_header,
    next,
    header_cut: "the ARC header is cut short",
    block_cut: "the input ends inside an ARC block",
    takes_line_ends: true,
};

pub fn is_header(line: &[u8]) -> bool {
    header(line).is_some()
}

const LINE_MAX: usize = 64 << 10;
const _: () = assert!(LINE_MAX < HELD_MAX);

/// URL, date in digits or another notation that looks like one, and length of the block; `None`: it is no number.
type ArcHeader<'a> = (&'a [u8], &'a [u8], Option<u64>);

/// Parses the header at the start of `record`, as that of a WARC record; `Ok(None)`: it is incomplete.
fn warc_header(record: &[u8]) -> Result<Option<WarcHeader<'_>>, Bad> {
    let len = match memchr(b'\n', record) {
        Some(lf) => lf + 1,
        None if record.len() <= LINE_MAX => return Ok(None),
        None => record.len(),
    };
    let Some((url, date, length)) = header(&record[..len]) else {
        return Err(Bad::malformed(
            "no ARC record begins here: garbage, or a wrong length before it",
        ));
    };
    let length =
        length.ok_or_else(|| Bad::malformed("the length in an ARC header is not a number"))?;
    let is_head = url.starts_with(b"filedesc:");
    Ok(Some(WarcHeader {
        kind: if is_head {
            FILE_HEAD.as_bytes()
        } else {
            b"response"
        },
        target: Some(url),
        date,
        length,
        len,
        ..WarcHeader::default()
    }))
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
        if is_header(line) {
            return Ok(start);
        }
        at = start;
    }
    Err(junk.len())
}

/// Parses a record's first line, with or without its end; `None` if it is not one. In both versions the date follows the
/// host's address, and the length comes last. URLs and types may hold spaces.
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
            return Some((url, field, whole_length(length)));
        }
        front = rest;
    }
}

fn split_last(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memrchr(b' ', line)?;
    Some((&line[..space], &line[space + 1..]))
}

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
    use crate::decode::frame::skipper;
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
            let expected = (url.as_bytes(), date.as_bytes(), length);
            assert_eq!(header, expected, "{line}");
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
        assert_eq!(ARC.first(text, false), None);
        let bad = ARC.first(text, true).unwrap().parts.unwrap_err();
        assert_eq!(bad.reason, Reason::CutShort);
        let skipped = skipper(&ARC)(text, false);
        assert_eq!(skipped, Skipped::Inside(text.len()));
    }
}
