//! Fast path for plain records, read in one scan: no escapes, no tabs, whole numbers, links as strings. Most are plain.
//!
//! The scan returns what serde would, or `None`, after which serde decides. It therefore affects speed only: whatever
//! is rare or wrong yields `None`, and all errors are serde's.

use std::borrow::Cow;

use wide::u8x16;

use super::names::NameBits;
use super::{FieldName, Link, RawRecord, RecordReader, Value, keep};

pub(super) fn read<'a>(
    text: &'a str,
    reader: RecordReader<'_>,
    links: &mut Vec<Link<'a>>,
) -> Option<RawRecord<'a>> {
    let mut scan = PlainScan {
        text,
        at: 0,
        block: 0,
        quotes: quotes(text.as_bytes())?,
    };
    let mut raw = RawRecord::default();
    let mut seen = NameBits::default();
    let mut has_links = false;
    scan.token(b'{')?;
    loop {
        let name = scan.string()?;
        scan.token(b':')?;
        match reader.by.names.record.field(name) {
            Some(known) => {
                // Serde decides which of two link fields counts.
                let is_second =
                    known.field == FieldName::Links && std::mem::replace(&mut has_links, true);
                if seen.again(known.order) || is_second {
                    return None;
                }
                if known.field != FieldName::Links {
                    let value = scan.value()?;
                    raw.set(known, value).ok()?;
                } else if reader.skips_links(&raw) {
                    scan.links(|_| ())?;
                    raw.lacks_links = true;
                } else {
                    scan.links(|link| keep(links, Cow::Borrowed(link)))?;
                }
            }
            None => drop(scan.string()?),
        }
        match scan.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    scan.is_at_end().then_some(raw)
}

const BLOCK: usize = 64;

struct PlainScan<'a> {
    text: &'a str,
    at: usize,
    /// Offset of the block scanned last.
    block: usize,
    /// Bitmap of the quotes of that block that are not consumed yet.
    quotes: u64,
}

impl<'a> PlainScan<'a> {
    /// Returns the offset of the next quote. Callers must consume every quote.
    #[inline]
    fn quote(&mut self) -> Option<usize> {
        while self.quotes == 0 {
            self.block += BLOCK;
            self.quotes = quotes(self.text.as_bytes().get(self.block..)?)?;
        }
        let at = self.block + self.quotes.trailing_zeros() as usize;
        self.quotes &= self.quotes - 1;
        Some(at)
    }

    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            self.at += 1;
            if byte != b' ' {
                return Some(byte);
            }
        }
    }

    fn token(&mut self, token: u8) -> Option<()> {
        (self.next()? == token).then_some(())
    }

    fn is_at_end(&mut self) -> bool {
        self.next().is_none()
    }

    fn string(&mut self) -> Option<&'a str> {
        self.token(b'"')?;
        self.rest_of_string()
    }

    fn rest_of_string(&mut self) -> Option<&'a str> {
        let (from, to) = self.inside()?;
        // Both ends are next to a quote, hence on character boundaries.
        self.text.get(from..to)
    }

    /// Returns the span of the string after whose opening quote the scan is.
    #[inline]
    fn inside(&mut self) -> Option<(usize, usize)> {
        let from = self.at;
        if self.quote()? + 1 != from {
            return None;
        }
        let to = self.quote()?;
        self.at = to + 1;
        Some((from, to))
    }

    fn value(&mut self) -> Option<Value<'a>> {
        match self.next()? {
            b'"' => Some(Value::Text(Cow::Borrowed(self.rest_of_string()?))),
            _ => {
                self.at -= 1;
                Some(Value::Int(self.whole()?))
            }
        }
    }

    /// Reads a whole number of at most 18 digits, without sign.
    fn whole(&mut self) -> Option<i64> {
        let first = self.next()?;
        self.at -= 1;
        let rest = &self.text.as_bytes()[self.at..];
        let digits = rest
            .iter()
            .take(19)
            .take_while(|byte| byte.is_ascii_digit());
        let len = digits.count();
        let zero = first == b'0' && len > 1;
        if len == 0 || len > 18 || zero || !matches!(rest.get(len)?, b',' | b'}' | b' ') {
            return None;
        }
        let number = rest[..len].iter();
        self.at += len;
        Some(number.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    fn links(&mut self, mut each: impl FnMut(&'a [u8])) -> Option<()> {
        self.token(b'[')?;
        match self.next()? {
            b']' => return Some(()),
            b'"' => {}
            _ => return None,
        }
        loop {
            let (from, to) = self.inside()?;
            each(self.text.as_bytes().get(from..to)?);
            match self.next()? {
                b',' => self.token(b'"')?,
                b']' => return Some(()),
                _ => return None,
            }
        }
    }
}

/// Returns a bitmap of the quotes among the first [`BLOCK`] bytes; `None` if a byte is not plain.
#[inline]
fn quotes(bytes: &[u8]) -> Option<u64> {
    match bytes.first_chunk() {
        Some(block) => quotes_of(block),
        None => {
            let mut block = [b' '; BLOCK];
            block[..bytes.len()].copy_from_slice(bytes);
            quotes_of(&block)
        }
    }
}

#[inline]
fn quotes_of(block: &[u8; BLOCK]) -> Option<u64> {
    let [a, b, c, d] = block.as_chunks().0 else {
        return None;
    };
    let [a, b, c, d] = [a, b, c, d].map(|part| u8x16::new(*part));
    let special = |part: u8x16| {
        let control = part.min(u8x16::splat(b' ' - 1)).simd_eq(part);
        control | part.simd_eq(u8x16::splat(b'\\'))
    };
    if (special(a) | special(b) | special(c) | special(d)).any() {
        return None;
    }
    let quotes = |part: u8x16| u64::from(part.simd_eq(u8x16::splat(b'"')).to_bitmask());
    Some(quotes(a) | quotes(b) << 16 | quotes(c) << 32 | quotes(d) << 48)
}

#[cfg(test)]
mod tests {
    use super::super::{Fetch, JsonRecords, RecordReader};
    use proptest::prelude::*;

    const USUAL: RecordReader<'static> = RecordReader {
        by: &JsonRecords::USUAL,
        shard: None,
        terminated: true,
    };

    /// Generates lines of what the scan knows and of what it must leave to serde.
    fn line() -> impl Strategy<Value = String> {
        let key = prop::sample::select(vec![
            "url",
            "links",
            "outlinks",
            "fetched_at",
            "time",
            "timestamp",
            "status",
            "redirect",
            "digest",
            "statusCode",
            "crawl_time",
            "requested_url",
            "final_url",
            "base",
            "method",
            "links_nofollow",
            "links_rel",
            "title",
            "ur\\u006c",
            "",
        ]);
        let string = prop::sample::select(vec![
            r#""http://a.example/""#,
            r#""""#,
            r#""\u0041""#,
            r#""2026-01-31T12:00:00Z""#,
            r#""é€𝄞""#,
            "\"tab\there\"",
            r#""say \"so\"""#,
            "\"open",
        ]);
        let number = prop::sample::select(vec![
            "0",
            "200",
            "007",
            "-1",
            "1.5",
            "1e3",
            "999999999999999999",
            "9999999999999999999",
            "1700000000",
            "4294967296",
            "200x",
            "-",
            "2 0",
        ]);
        let other = prop::sample::select(vec![
            r#""http://a.example/@@/b""#,
            "null",
            "[null]",
            r#""POST""#,
            r#""True@@False""#,
            r#""['/a', None]""#,
            "[true]",
            "true",
            "{}",
            "[]",
            "[1]",
            "nul",
            "",
        ]);
        let link = prop_oneof![6 => string.clone(), 1 => other.clone().prop_map(|s| s)];
        let links =
            prop::collection::vec(link, 0..4).prop_map(|links| format!("[{}]", links.join(",")));
        let value = prop_oneof![
            string.prop_map(String::from),
            number.prop_map(String::from),
            other.prop_map(String::from),
            links,
        ];
        let space = prop::sample::select(vec!["", "", "", " ", "\t", "\r", "\u{a0}"]);
        let field = (key, space.clone(), value, space.clone())
            .prop_map(|(key, a, value, b)| format!("\"{key}\"{a}:{b}{value}{a}"));
        let end = prop::sample::select(vec!["}", "}", "}", "} ", "}x", "", ",}", "}}"]);
        // Leading blanks let blocks begin anywhere.
        let parts = (
            0..2 * super::BLOCK,
            prop::collection::vec(field, 0..5),
            space,
            end,
        );
        parts.prop_map(|(blanks, fields, space, end)| {
            format!("{:blanks$}{space}{{{}{end}", "", fields.join(","))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

        /// Compares the scan's records with those of serde.
        #[test]
        fn the_scan_reads_what_serde_reads(line in line()) {
            let (mut quick, mut slow) = (Fetch::default(), Fetch::default());
            let by_scan = USUAL.parse(&line, &mut quick).is_ok();
            let by_serde = USUAL.parse_any(&line, &mut slow).is_ok();
            prop_assert_eq!(by_scan, by_serde, "{}", line);
            if by_serde {
                prop_assert_eq!(quick, slow, "{}", line);
            }
        }
    }

    #[test]
    fn plain_lines_need_no_serde() {
        let mut links = Vec::new();
        let line = r#"{"url": "http://a/", "fetched_at": 7, "status": 200, "links": ["b", "c"], "x": "y"}"#;
        assert!(super::read(line, USUAL, &mut links).is_some());
        assert_eq!(links.len(), 2);
    }
}
