//! Fast path for plain records, read in one scan: no escapes, no tabs, whole numbers, links as strings. Most are plain.
//!
//! The scan returns what serde would, or `None`, after which serde decides. It therefore affects speed only: whatever
//! is rare or wrong yields `None`, and all errors are serde's.

use std::borrow::Cow;

use memchr::memchr;

use super::names::NameBits;
use super::{FieldName, Link, RawRecord, RecordReader, Value, keep};

pub(super) fn read<'a>(
    text: &'a str,
    reader: RecordReader<'_>,
    links: &mut Vec<Link<'a>>,
) -> Option<RawRecord<'a>> {
    // Without escapes a string ends at the next quote. A loop without an early exit can be vectorised.
    let is_odd = |odd, byte| odd | (byte < b' ') | (byte == b'\\');
    if text.bytes().fold(false, is_odd) {
        return None;
    }
    let mut scan = PlainScan { text, at: 0 };
    let mut raw = RawRecord::default();
    let mut seen = NameBits::default();
    let mut has_links = false;
    scan.token(b'{')?;
    loop {
        scan.token(b'"')?;
        let name = scan.rest_of_string()?;
        scan.token(b':')?;
        match reader.by.names.record.field(name) {
            Some(known) => {
                // Serde decides which of two link fields counts.
                let is_second =
                    known.field == FieldName::Links && std::mem::replace(&mut has_links, true);
                if seen.was_seen(known.order) || is_second {
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
            None => drop(scan.value()?),
        }
        match scan.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    scan.next().is_none().then_some(raw)
}

struct PlainScan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> PlainScan<'a> {
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

    /// Returns the string after whose opening quote the scan is.
    #[inline]
    fn rest_of_string(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?;
        let len = memchr(b'"', rest.as_bytes())?;
        self.at += len + 1;
        rest.get(..len)
    }

    /// Reads a string, or a whole number without sign.
    fn value(&mut self) -> Option<Value<'a>> {
        if self.next()? == b'"' {
            return Some(Value::Text(Cow::Borrowed(self.rest_of_string()?)));
        }
        self.at -= 1;
        let rest = self.text.get(self.at..)?;
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        self.at += len;
        let digits = rest.get(..len)?;
        let is_plain = len == 1 || !digits.starts_with('0');
        digits.parse().ok().filter(|_| is_plain).map(Value::Int)
    }

    fn links(&mut self, mut each: impl FnMut(&'a [u8])) -> Option<()> {
        self.token(b'[')?;
        match self.next()? {
            b']' => return Some(()),
            b'"' => {}
            _ => return None,
        }
        loop {
            each(self.rest_of_string()?.as_bytes());
            match self.next()? {
                b',' => self.token(b'"')?,
                b']' => return Some(()),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fetch, RecordReader, tests::USUAL};
    use proptest::prelude::*;

    fn usual() -> RecordReader<'static> {
        RecordReader {
            by: &USUAL,
            shard: None,
            terminated: true,
        }
    }

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
        let parts = (prop::collection::vec(field, 0..5), space, end);
        parts.prop_map(|(fields, space, end)| format!("{space}{{{}{end}", fields.join(",")))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

        /// Compares the scan's records with those of serde.
        #[test]
        fn the_scan_reads_what_serde_reads(line in line()) {
            let (mut quick, mut slow) = (Fetch::default(), Fetch::default());
            let by_scan = usual().parse(&line, &mut quick).is_ok();
            let by_serde = usual().parse_any(&line, &mut slow).is_ok();
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
        assert!(super::read(line, usual(), &mut links).is_some());
        assert_eq!(links.len(), 2);
    }
}
