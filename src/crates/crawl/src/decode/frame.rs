//! WARC framing: a version line, header lines, a blank line, then `Content-Length` bytes.
//!
//! A record begins with any line ends left over from the record before, and ends with its block. Lines end with LF; CRs
//! before the LF are dropped. If no record begins where one should, or its header is invalid, everything up to the next
//! line that begins with `WARC/` is one bad record.

use std::marker::PhantomData;

use memchr::{memchr, memmem};

use super::{Bad, HELD_MAX, Reason, Skipped, Skipper};

/// Maximum length of a header: 64 KiB. A longer header is bad, so that it need not be held while its end is searched.
const HEADER_MAX: usize = 64 << 10;
const _: () = assert!(HEADER_MAX < HELD_MAX);
const VERSION: &[u8] = b"WARC/";
const NEXT_RECORD: &[u8] = b"\nWARC/";
/// Error for a header that is cut by the end of the input or by the next record. Both errors must be the same, because
/// a chunk may end before the next record.
const HEADER_CUT: &str = "the WARC header is cut short";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct WarcHeader<'a> {
    /// `WARC-Type`; empty if absent.
    pub kind: &'a [u8],
    /// `Content-Type`; empty if absent.
    pub content_type: &'a [u8],
    /// `WARC-Target-URI` without the angle brackets that some writers put around it; `None` if absent.
    pub target: Option<&'a [u8]>,
    /// `WARC-Date`; empty if absent.
    pub date: &'a [u8],
    /// `WARC-Payload-Digest`; empty if absent.
    pub digest: &'a [u8],
    /// `WARC-Record-ID`; empty if absent.
    pub id: &'a [u8],
    /// `WARC-Concurrent-To`: ids of the other records of the fetch.
    pub concurrent: Vec<&'a [u8]>,
    /// `WARC-Refers-To-Target-URI`, without angle brackets; empty if absent.
    pub refers_to: &'a [u8],
    /// True if there is a `WARC-Segment-Number`: the block is only a part.
    pub segmented: bool,
    /// Length of the block (`Content-Length`), in bytes.
    pub length: u64,
    /// Length of the header including its blank line, in bytes.
    pub len: usize,
}

/// First record of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a, H = WarcHeader<'a>> {
    pub end: usize,
    /// Header and block, or the record's error.
    pub parts: Result<(H, &'a [u8]), Bad>,
}

pub fn line_ends(buf: &[u8]) -> usize {
    let line_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
    buf.iter().take_while(line_end).count()
}

/// Layout of records in which a header tells the length of the block after it.
pub trait Framing: Send {
    type Header<'a>;
    /// Error for a header that is cut short.
    const HEADER_CUT: &'static str;
    /// Error for a block that the end of the input cuts.
    const BLOCK_CUT: &'static str;

    /// Parses the header at the start of `record`, and returns it with its length and that of its block; `Ok(None)`: it
    /// is incomplete.
    fn header(record: &[u8]) -> Result<Option<(Self::Header<'_>, usize, u64)>, Bad>;

    /// Returns the offset of the next record in `junk`, after its first byte. `Err(n)`: not in the first `n` bytes,
    /// which need not be seen again.
    fn next(junk: &[u8], at_end: bool) -> Result<usize, usize>;

    /// Returns the first record of `buf`; `None` if there is none or, before the end of the input, if it is incomplete.
    fn first(buf: &[u8], at_end: bool) -> Option<Frame<'_, Self::Header<'_>>> {
        let start = line_ends(buf);
        let record = &buf[start..];
        if record.is_empty() {
            return None;
        }
        let cut_short = |message| Frame {
            end: buf.len(),
            parts: Err(Bad::new(Reason::CutShort, message)),
        };
        match Self::header(record) {
            Ok(Some((header, len, length))) => {
                let block = start + len;
                let end = usize::try_from(length).ok();
                let end = end.and_then(|length| block.checked_add(length));
                match end.and_then(|end| Some((end, buf.get(block..end)?))) {
                    Some((end, block)) => Some(Frame {
                        end,
                        parts: Ok((header, block)),
                    }),
                    None => at_end.then(|| cut_short(Self::BLOCK_CUT)),
                }
            }
            Ok(None) => at_end.then(|| cut_short(Self::HEADER_CUT)),
            Err(bad) => {
                let next = Self::next(record, at_end).ok().map(|next| start + next);
                Some(Frame {
                    end: next.or(at_end.then_some(buf.len()))?,
                    parts: Err(bad),
                })
            }
        }
    }
}

#[derive(Default)]
pub struct WarcFraming;

impl Framing for WarcFraming {
    type Header<'a> = WarcHeader<'a>;
    const HEADER_CUT: &'static str = HEADER_CUT;
    const BLOCK_CUT: &'static str = "the input ends inside a WARC block";

    fn header(record: &[u8]) -> Result<Option<(WarcHeader<'_>, usize, u64)>, Bad> {
        let header = header(record)?;
        Ok(header.map(|header| {
            let (len, length) = (header.len, header.length);
            (header, len, length)
        }))
    }

    fn next(junk: &[u8], _: bool) -> Result<usize, usize> {
        // The next record's first bytes may be the last of `junk`.
        let inside = junk.len().saturating_sub(NEXT_RECORD.len() - 1);
        memmem::find(junk, NEXT_RECORD).map_or(Err(inside), |lf| Ok(lf + 1))
    }
}

/// Maximum number of bytes of line ends between records that belong together. Writers put four.
const GAP_MAX: usize = 8;

/// Returns the header of the record that follows another to which it may belong, and the length of the line ends before
/// it; `Some(None)` if no record begins there. `None`: more bytes are needed.
pub fn header_behind(behind: &[u8], at_end: bool) -> Option<Option<(usize, WarcHeader<'_>)>> {
    let start = line_ends(behind);
    if start > GAP_MAX {
        return Some(None);
    }
    match header(&behind[start..]) {
        Ok(Some(header)) => Some(Some((start, header))),
        Ok(None) => at_end.then_some(None),
        Err(_) => Some(None),
    }
}

/// Parses the header at the start of `record`; `Ok(None)`: it is incomplete.
pub fn header(record: &[u8]) -> Result<Option<WarcHeader<'_>>, Bad> {
    let known = record.len().min(VERSION.len());
    if record[..known] != VERSION[..known] {
        return Err(Bad::malformed(
            "no WARC record begins here: garbage, or a wrong length before it",
        ));
    }
    let mut lines = HeaderLines { record, at: 0 };
    let mut header = WarcHeader::default();
    let mut length = None;
    let mut first = true;
    while let Some(line) = lines.next()? {
        if line.is_empty() && !first {
            header.length = length.ok_or_else(|| Bad::malformed("no Content-Length"))?;
            header.len = lines.at;
            return Ok(Some(header));
        }
        if !first && line.starts_with(VERSION) {
            return Err(Bad::new(Reason::CutShort, HEADER_CUT));
        }
        // An indented line continues the line before; no field read here is continued.
        if !std::mem::take(&mut first) && !line.starts_with(b" ") && !line.starts_with(b"\t") {
            field(line, &mut header, &mut length)?;
        }
    }
    Ok(None)
}

fn field<'a>(
    line: &'a [u8],
    header: &mut WarcHeader<'a>,
    length: &mut Option<u64>,
) -> Result<(), Bad> {
    let colon = memchr(b':', line).filter(|&colon| colon > 0);
    let colon = colon.ok_or_else(|| Bad::malformed("a WARC header line without a name"))?;
    let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
    if name.eq_ignore_ascii_case(b"WARC-Type") {
        header.kind = value;
    } else if name.eq_ignore_ascii_case(b"Content-Type") {
        header.content_type = value;
    } else if name.eq_ignore_ascii_case(b"WARC-Target-URI") {
        header.target = Some(bare(value));
    } else if name.eq_ignore_ascii_case(b"WARC-Record-ID") {
        header.id = value;
    } else if name.eq_ignore_ascii_case(b"WARC-Concurrent-To") {
        header.concurrent.push(value);
    } else if name.eq_ignore_ascii_case(b"WARC-Refers-To-Target-URI") {
        header.refers_to = bare(value);
    } else if name.eq_ignore_ascii_case(b"WARC-Date") {
        header.date = value;
    } else if name.eq_ignore_ascii_case(b"WARC-Payload-Digest") {
        header.digest = value;
    } else if name.eq_ignore_ascii_case(b"WARC-Segment-Number") {
        header.segmented = true;
    } else if name.eq_ignore_ascii_case(b"Content-Length") {
        let digits = std::str::from_utf8(value).ok();
        let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| Bad::malformed("Content-Length is not a length"))?;
        if length.replace(number).is_some() {
            return Err(Bad::malformed("two Content-Lengths"));
        }
    }
    Ok(())
}

/// Returns the report name of a record that is not part of a fetch.
pub fn record_kind(kind: &[u8]) -> &'static str {
    let known = [
        "warcinfo",
        "request",
        "metadata",
        "resource",
        "conversion",
        "continuation",
    ];
    let is = |known: &&str| kind.eq_ignore_ascii_case(known.as_bytes());
    known.into_iter().find(is).unwrap_or("unknown WARC-Type")
}

/// Removes the angle brackets that some writers put around a URI.
pub fn bare(uri: &[u8]) -> &[u8] {
    let inside = uri
        .strip_prefix(b"<")
        .and_then(|uri| uri.strip_suffix(b">"));
    inside.unwrap_or(uri)
}

/// Strips the CRs from a line's end: some archives have two.
pub fn without_cr(line: &[u8]) -> &[u8] {
    let cr = line.iter().rev().take_while(|&&byte| byte == b'\r').count();
    &line[..line.len() - cr]
}

struct HeaderLines<'a> {
    record: &'a [u8],
    at: usize,
}

impl<'a> HeaderLines<'a> {
    /// Returns the next line; `Ok(None)` if it is incomplete.
    fn next(&mut self) -> Result<Option<&'a [u8]>, Bad> {
        let rest = &self.record[self.at..];
        let lf = memchr(b'\n', rest);
        if self.at + lf.unwrap_or(rest.len()) >= HEADER_MAX {
            return Err(Bad::malformed("the WARC header is longer than 64 KiB"));
        }
        let Some(lf) = lf else {
            return Ok(None);
        };
        self.at += lf + 1;
        Ok(Some(without_cr(&rest[..lf])))
    }
}

#[derive(Default)]
pub struct FrameSkipper<F> {
    state: FrameState,
    framing: PhantomData<F>,
}

#[derive(Default)]
enum FrameState {
    #[default]
    Header,
    /// In a block, of which this many bytes are left.
    Block(u64),
    Junk,
}

impl<F: Framing> Skipper for FrameSkipper<F> {
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped {
        let mut at = 0;
        if matches!(self.state, FrameState::Header) {
            at = line_ends(buf);
            match F::header(&buf[at..]) {
                Ok(Some((_, len, length))) => {
                    at += len;
                    self.state = FrameState::Block(length);
                }
                Err(_) => self.state = FrameState::Junk,
                Ok(None) if at_end => return Skipped::Ended(buf.len()),
                Ok(None) => return Skipped::Inside(at),
            }
        }
        let rest = &buf[at..];
        let end = match &mut self.state {
            FrameState::Block(left) if *left <= rest.len() as u64 => Ok(*left as usize),
            FrameState::Block(left) => {
                *left -= rest.len() as u64;
                Err(rest.len())
            }
            _ => F::next(rest, at_end),
        };
        match end {
            Ok(end) => Skipped::Ended(at + end),
            Err(_) if at_end => Skipped::Ended(buf.len()),
            Err(inside) => Skipped::Inside(at + inside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_case_and_either_line_end() {
        for text in [
            "WARC/1.0\r\nWARC-Type: metadata\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\n{}",
            "WARC/0.18\nwarc-TYPE:metadata\ncontent-type : a/b \n x: y\nCONTENT-LENGTH:2\n\n{}",
        ] {
            let (header, block) = WarcFraming::first(text.as_bytes(), false)
                .unwrap()
                .parts
                .unwrap();
            assert_eq!(
                (header.kind, header.content_type),
                (&b"metadata"[..], &b"a/b"[..])
            );
            assert_eq!(block, b"{}");
        }
    }

    #[test]
    fn what_is_no_header() {
        let long = format!("WARC/1.0\nX: {}", "y".repeat(HEADER_MAX));
        for (text, message) in [
            (
                "WORC/1.0\n",
                "no WARC record begins here: garbage, or a wrong length before it",
            ),
            (
                "WARC/1.0\nContent-Length: 1\nContent-Length: 1\n\n",
                "two Content-Lengths",
            ),
            (
                "WARC/1.0\nContent-Length: -1\n\n",
                "Content-Length is not a length",
            ),
            (
                "WARC/1.0\nContent-Length:\n\n",
                "Content-Length is not a length",
            ),
            (
                "WARC/1.0\nContent-Length: 99999999999999999999\n\n",
                "Content-Length is not a length",
            ),
            ("WARC/1.0\nWARC-Type: x\n\n", "no Content-Length"),
            ("WARC/1.0\nWARC\n", "a WARC header line without a name"),
            (&long, "the WARC header is longer than 64 KiB"),
        ] {
            assert_eq!(
                header(text.as_bytes()).unwrap_err(),
                Bad::malformed(message),
                "{message}"
            );
        }
    }

    #[test]
    fn a_length_beyond_memory_is_cut_short_not_a_panic() {
        let text = b"WARC/1.0\nContent-Length: 18446744073709551615\n\n{}";
        assert_eq!(WarcFraming::first(text, false), None);
        let bad = WarcFraming::first(text, true).unwrap().parts.unwrap_err();
        assert_eq!(bad.reason, Reason::CutShort);
        assert_eq!(
            FrameSkipper::<WarcFraming>::default().skip(text, false),
            Skipped::Inside(text.len())
        );
    }

    /// Regression: a header cut by the next record was malformed, because that record's first line was taken for a
    /// header line; but it was cut short if a chunk ended there. So a store's counts depended on read sizes.
    #[test]
    fn a_header_cut_by_the_next_record_is_the_same_at_a_chunks_end() {
        let text = b"WARC/1.0\r\nWARC-Type: metadata\r\nWARC/1.0\r\n";
        let within = WarcFraming::first(text, false).unwrap();
        assert_eq!(within.end, 31);
        let bad = within.parts.unwrap_err();
        assert_eq!(bad, Bad::new(Reason::CutShort, HEADER_CUT));
        let at_end = WarcFraming::first(&text[..31], true).unwrap();
        assert_eq!((at_end.end, at_end.parts), (31, Err(bad)));
        let mut skipper = FrameSkipper::<WarcFraming>::default();
        assert_eq!(skipper.skip(text, false), Skipped::Ended(31));
    }
}
