//! Records with a header that tells the length of the block after it, and the header of WARC.
//!
//! A record begins with any line ends left over from the record before, and ends with its block. If no record begins
//! where one should, or its header is invalid, everything up to where the next one may begin (in WARC, a line that begins
//! with `WARC/`) is one bad record.

use memchr::{memchr, memmem};

use super::{Bad, HELD_MAX, Reason, Skipped, Skipper, lower_case};

/// Maximum length of a header. A longer one is bad, so that it need not be held while its end is searched.
const HEADER_MAX: usize = 64 << 10;
const _: () = assert!(HEADER_MAX < HELD_MAX);
const VERSION: &[u8] = b"WARC/";
const NEXT_RECORD: &[u8] = b"\nWARC/";
/// Error for a header that is cut by the input's end or by the next record, which a chunk may not hold.
const HEADER_CUT: &str = "the WARC header is cut short";

/// Header of a WARC record: see [`field`]. Texts are empty if absent.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WarcHeader<'a> {
    pub kind: &'a [u8],
    pub content_type: &'a [u8],
    pub target: Option<&'a [u8]>,
    pub date: &'a [u8],
    pub digest: &'a [u8],
    pub id: &'a [u8],
    pub concurrent: Vec<&'a [u8]>,
    pub refers_to: &'a [u8],
    /// True if the block is only a part.
    pub segmented: bool,
    pub length: u64,
    /// Length of the header including its blank line.
    pub len: usize,
}

impl WarcHeader<'_> {
    pub fn is(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind.as_bytes())
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub end: usize,
    /// Header and block, or the record's error.
    pub parts: Result<(WarcHeader<'a>, &'a [u8]), Bad>,
}

pub fn line_ends(buf: &[u8]) -> usize {
    let line_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
    buf.iter().take_while(line_end).count()
}

/// Layout of records in which a header tells the length of the block after it.
pub struct Framing {
    /// Parses the header at the start of a record; `Ok(None)`: it is incomplete.
    pub header: fn(&[u8]) -> Result<Option<WarcHeader<'_>>, Bad>,
    /// Returns the offset of the next record in junk, after its first byte. `Err(n)`: not in the first `n` bytes, which
    /// need not be seen again. The flag says that the input ends with the junk.
    pub next: fn(&[u8], bool) -> Result<usize, usize>,
    pub header_cut: &'static str,
    pub block_cut: &'static str,
    /// True if line ends after a record are read with it; otherwise they come before the next one.
    pub takes_line_ends: bool,
}

pub static WARC: Framing = Framing {
    header,
    next: next_warc,
    header_cut: HEADER_CUT,
    block_cut: "the input ends inside a WARC block",
    takes_line_ends: false,
};

impl Framing {
    /// Returns the first record of `buf`; `None` if there is none or, before the end of the input, if it is incomplete.
    pub fn first<'a>(&self, buf: &'a [u8], at_end: bool) -> Option<Frame<'a>> {
        let start = line_ends(buf);
        let record = &buf[start..];
        if record.is_empty() {
            return None;
        }
        let cut_short = |message| Frame {
            end: buf.len(),
            parts: Err(Bad::new(Reason::CutShort, message)),
        };
        match (self.header)(record) {
            Ok(Some(header)) => {
                let block = start + header.len;
                let end = usize::try_from(header.length).ok();
                let end = end.and_then(|length| block.checked_add(length));
                match end.and_then(|end| Some((end, buf.get(block..end)?))) {
                    Some((end, block)) => Some(Frame {
                        end,
                        parts: Ok((header, block)),
                    }),
                    None => at_end.then(|| cut_short(self.block_cut)),
                }
            }
            Ok(None) => at_end.then(|| cut_short(self.header_cut)),
            Err(bad) => {
                let next = (self.next)(record, at_end).ok().map(|next| start + next);
                Some(Frame {
                    end: next.or(at_end.then_some(buf.len()))?,
                    parts: Err(bad),
                })
            }
        }
    }
}

fn next_warc(junk: &[u8], _: bool) -> Result<usize, usize> {
    // The next record's first bytes may be the last of `junk`.
    let inside = junk.len().saturating_sub(NEXT_RECORD.len() - 1);
    memmem::find(junk, NEXT_RECORD).map_or(Err(inside), |lf| Ok(lf + 1))
}

pub fn header(record: &[u8]) -> Result<Option<WarcHeader<'_>>, Bad> {
    let known = record.len().min(VERSION.len());
    if record[..known] != VERSION[..known] {
        return Err(Bad::malformed(
            "no WARC record begins here: garbage, or a wrong length before it",
        ));
    }
    let mut header = WarcHeader::default();
    let mut length = None;
    loop {
        let rest = &record[header.len..];
        let lf = memchr(b'\n', rest);
        if header.len + lf.unwrap_or(rest.len()) >= HEADER_MAX {
            return Err(Bad::malformed("the WARC header is longer than 64 KiB"));
        }
        let Some(lf) = lf else {
            return Ok(None);
        };
        let (line, is_first) = (without_cr(&rest[..lf]), header.len == 0);
        header.len += lf + 1;
        if is_first {
            continue;
        }
        if line.is_empty() {
            header.length = length.ok_or_else(|| Bad::malformed("no Content-Length"))?;
            return Ok(Some(header));
        }
        if line.starts_with(VERSION) {
            return Err(Bad::new(Reason::CutShort, HEADER_CUT));
        }
        // An indented line continues the line before; no field read here is continued.
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            field(line, &mut header, &mut length)?;
        }
    }
}

fn field<'a>(
    line: &'a [u8],
    header: &mut WarcHeader<'a>,
    length: &mut Option<u64>,
) -> Result<(), Bad> {
    let colon = memchr(b':', line).filter(|&colon| colon > 0);
    let colon = colon.ok_or_else(|| Bad::malformed("a WARC header line without a name"))?;
    let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
    match lower_case(name, &mut [0; 32]) {
        b"warc-type" => header.kind = value,
        b"content-type" => header.content_type = value,
        b"warc-target-uri" => header.target = Some(bare(value)),
        b"warc-record-id" => header.id = value,
        b"warc-concurrent-to" => header.concurrent.push(value),
        b"warc-refers-to-target-uri" => header.refers_to = bare(value),
        b"warc-date" => header.date = value,
        b"warc-payload-digest" => header.digest = value,
        b"warc-segment-number" => header.segmented = true,
        b"content-length" => {
            let number = whole_length(value);
            let number = number.ok_or_else(|| Bad::malformed("Content-Length is not a length"))?;
            if length.replace(number).is_some() {
                return Err(Bad::malformed("two Content-Lengths"));
            }
        }
        _ => {}
    }
    Ok(())
}

pub fn whole_length(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok();
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok())
}

/// Report name of the record that describes an ARC file.
pub const FILE_HEAD: &str = "filedesc";

/// Returns the report name of a record that is not part of a fetch.
pub fn record_kind(kind: &[u8]) -> &'static str {
    let known = [
        FILE_HEAD,
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

/// Removes the angle brackets that some writers put around URIs.
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

enum FrameState {
    Header,
    /// In a block, of which this many bytes are left.
    Block(u64),
    Junk,
}

pub fn skipper(framing: &'static Framing) -> Skipper {
    let mut state = FrameState::Header;
    Box::new(move |buf, at_end| {
        let mut at = 0;
        if matches!(state, FrameState::Header) {
            at = line_ends(buf);
            match (framing.header)(&buf[at..]) {
                Ok(Some(header)) => {
                    at += header.len;
                    state = FrameState::Block(header.length);
                }
                Err(_) => state = FrameState::Junk,
                Ok(None) if at_end => return Skipped::Ended(buf.len()),
                Ok(None) => return Skipped::Inside(at),
            }
        }
        let rest = &buf[at..];
        let end = match &mut state {
            FrameState::Block(left) if *left <= rest.len() as u64 => Ok(*left as usize),
            FrameState::Block(left) => {
                *left -= rest.len() as u64;
                Err(rest.len())
            }
            _ => (framing.next)(rest, at_end),
        };
        match end {
            Ok(end) => Skipped::Ended(at + end),
            Err(_) if at_end => Skipped::Ended(buf.len()),
            Err(inside) => Skipped::Inside(at + inside),
        }
    })
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
            let (header, block) = WARC.first(text.as_bytes(), false).unwrap().parts.unwrap();
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
        assert_eq!(WARC.first(text, false), None);
        let bad = WARC.first(text, true).unwrap().parts.unwrap_err();
        assert_eq!(bad.reason, Reason::CutShort);
        assert_eq!(skipper(&WARC)(text, false), Skipped::Inside(text.len()));
    }

    /// Regression: a header cut by the next record was malformed, because that record's first line was taken for a
    /// header line; but it was cut short if a chunk ended there. So a store's counts depended on read sizes.
    #[test]
    fn a_header_cut_by_the_next_record_is_the_same_at_a_chunks_end() {
        let text = b"WARC/1.0\r\nWARC-Type: metadata\r\nWARC/1.0\r\n";
        let within = WARC.first(text, false).unwrap();
        assert_eq!(within.end, 31);
        let bad = within.parts.unwrap_err();
        assert_eq!(bad, Bad::new(Reason::CutShort, HEADER_CUT));
        let at_end = WARC.first(&text[..31], true).unwrap();
        assert_eq!((at_end.end, at_end.parts), (31, Err(bad)));
        assert_eq!(skipper(&WARC)(text, false), Skipped::Ended(31));
    }
}
