//! HTTP answers as archives keep them: a status line, header lines, a blank line, the body.
//!
//! Servers and archivers leave much out and break much; nothing here is ever refused but a body that
//! expands too far. Where an answer is not what its headers say, it is taken as it stands.

mod codings;

use std::borrow::Cow;

use memchr::memchr;

use super::frame::{line_ends, without_cr};
use super::{Bad, Record};
use crate::model::is_redirect;
use codings::Coding;

/// Most codings undone, one over the other. An answer that names more is taken as it stands.
const CODINGS_MAX: usize = 5;
/// Bodies of more bytes are large: see [`Parsed::Large`](super::Parsed::Large).
const LARGE: usize = 4 << 20;

/// One answer, as far as it is read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    /// The status; `None`: there is no status line, or no number in it.
    pub status: Option<i32>,
    /// The first `Location` that is not empty.
    location: &'a [u8],
    /// The first `Content-Type` that is not empty.
    content_type: &'a [u8],
    /// The codings of the body, in the order in which they were applied.
    codings: Vec<Coding>,
    /// The body, still coded.
    body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Reads an answer. Without a status line all is body, as in HTTP/0.9.
    pub fn read(block: &'a [u8]) -> Answer<'a> {
        let mut answer = Answer::default();
        let mut rest = &block[line_ends(block)..];
        let (first, after) = split_line(rest);
        let Some(status) = status_line(first) else {
            answer.body = block;
            return answer;
        };
        answer.status = status;
        rest = after;
        let (mut content, mut transfer) = (Vec::new(), Vec::new());
        // No name begins with `<`: there the blank line is missing, and the text begins.
        while !rest.is_empty() && rest[0] != b'<' {
            let (line, after) = split_line(rest);
            rest = after;
            if line.is_empty() {
                break;
            }
            let Some(colon) = memchr(b':', line) else {
                continue;
            };
            let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"Location") {
                answer.location = first_of(answer.location, value);
            } else if name.eq_ignore_ascii_case(b"Content-Type") {
                answer.content_type = first_of(answer.content_type, value);
            } else if name.eq_ignore_ascii_case(b"Content-Encoding") {
                content.extend(Coding::list(value));
            } else if name.eq_ignore_ascii_case(b"Transfer-Encoding") {
                transfer.extend(Coding::list(value));
            }
        }
        content.append(&mut transfer);
        answer.codings = content;
        answer.body = rest;
        answer
    }

    /// Where a redirect points; `None`: it is none, or does not say where to.
    pub fn redirect(&self) -> Option<Cow<'a, [u8]>> {
        let moved = self.status.is_some_and(is_redirect) && !self.location.is_empty();
        moved.then(|| match std::str::from_utf8(self.location) {
            Ok(_) => Cow::Borrowed(self.location),
            // As browsers do: Latin-1.
            Err(_) => {
                let text: String = self.location.iter().map(|&byte| byte as char).collect();
                Cow::Owned(text.into_bytes())
            }
        })
    }

    /// Adds the links of the body to `record`, if it is HTML and an answer whose links count: of a page that
    /// is gone or failed nothing is learned. Calls `large` before a large body is held.
    ///
    /// # Errors
    /// If the body expands beyond `most` bytes.
    pub fn links(
        &self,
        record: &mut Record<'_>,
        most: u64,
        large: &mut dyn FnMut(),
    ) -> Result<(), Bad> {
        let counts = matches!(self.status, None | Some(200..=303 | 305..=399));
        let (media_type, charset) = media_type(self.content_type);
        let html = [&b"text/html"[..], b"application/xhtml+xml"];
        let named = html
            .iter()
            .any(|html| media_type.eq_ignore_ascii_case(html));
        if !counts || !(named || media_type.is_empty()) {
            return Ok(());
        }
        let body = self.body(most, large)?;
        if body.len() > LARGE {
            large();
        }
        if named || begins_as_html(&body) {
            super::html::read(&body, charset, record);
        }
        Ok(())
    }

    /// The body without its codings.
    fn body(&self, most: u64, large: &mut dyn FnMut()) -> Result<Cow<'a, [u8]>, Bad> {
        let mut body = Cow::Borrowed(self.body);
        if self.codings.len() > CODINGS_MAX {
            return Ok(body);
        }
        for coding in self.codings.iter().rev() {
            if let Some(decoded) = coding.undo(&body, most, large)? {
                body = Cow::Owned(decoded);
            }
        }
        Ok(body)
    }
}

/// Splits off the first line; without its end.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', text) {
        Some(lf) => (without_cr(&text[..lf]), &text[lf + 1..]),
        None => (without_cr(text), &[]),
    }
}

/// The status in a status line: `HTTP/1.1 200 OK`, `ICY 200 OK`; `None`: it is none.
#[expect(clippy::option_option, reason = "a status line may lack its status")]
fn status_line(line: &[u8]) -> Option<Option<i32>> {
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty());
    let protocol = words.next()?;
    let http = protocol
        .get(..4)
        .is_some_and(|name| name.eq_ignore_ascii_case(b"HTTP"));
    if !http && !protocol.eq_ignore_ascii_case(b"ICY") {
        return None;
    }
    // Some lack the space behind the status.
    let digits = words.next().and_then(|word| word.first_chunk::<3>());
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let number = digits.and_then(|digits| digits.parse().ok());
    Some(number.filter(|status| (100..1000).contains(status)))
}

fn first_of<'a>(known: &'a [u8], value: &'a [u8]) -> &'a [u8] {
    if known.is_empty() { value } else { known }
}

/// The type without parameters, and its `charset`.
fn media_type(value: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut parts = value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let media_type = parts.next().unwrap_or_default();
    let charset = parts.find_map(|part| {
        let equals = memchr(b'=', part)?;
        let (name, value) = (part[..equals].trim_ascii(), part[equals + 1..].trim_ascii());
        let quoted = |quote: u8| value.strip_prefix(&[quote])?.strip_suffix(&[quote]);
        let value = quoted(b'"').or_else(|| quoted(b'\'')).unwrap_or(value);
        (name.eq_ignore_ascii_case(b"charset") && !value.is_empty()).then_some(value)
    });
    (media_type, charset)
}

/// Returns whether a body of which no type is known is HTML.
fn begins_as_html(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let body = body.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"].iter().any(|start| {
        let front = body.get(..start.len());
        front.is_some_and(|front| front.eq_ignore_ascii_case(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines() {
        for (line, status) in [
            ("HTTP/1.1 200 OK", Some(Some(200))),
            ("http/2  404", Some(Some(404))),
            ("HTTPX/1.1\t301 Moved", Some(Some(301))),
            ("ICY 200 OK", Some(Some(200))),
            ("HTTP/1.0 302Found", Some(Some(302))),
            ("HTTP/1.1 ok", Some(None)),
            ("HTTP/1.1 099", Some(None)),
            ("HTTP/1.1 20", Some(None)),
            ("HTTP/1.1", Some(None)),
            ("ICYCLE 200", None),
            ("<html>", None),
            ("", None),
        ] {
            assert_eq!(status_line(line.as_bytes()), status, "{line}");
        }
    }

    #[test]
    fn types_and_charsets() {
        for (value, media_type_, charset) in [
            ("text/html", "text/html", None),
            ("text/html;charset=utf-8", "text/html", Some("utf-8")),
            (
                "text/html ; x=y; CharSet = \"EUC-JP\" ; z",
                "text/html",
                Some("EUC-JP"),
            ),
            ("text/html; charset='big5'", "text/html", Some("big5")),
            ("text/html; charset=", "text/html", None),
            ("; charset=gbk", "", Some("gbk")),
            ("", "", None),
        ] {
            let expected = (media_type_.as_bytes(), charset.map(str::as_bytes));
            assert_eq!(media_type(value.as_bytes()), expected, "{value}");
        }
    }

    /// Browsers read a `Location` as UTF-8, and else as Latin-1.
    #[test]
    fn locations_in_either_encoding() {
        for (bytes, text) in [(&b"/caf\xe9"[..], "/café"), ("/café".as_bytes(), "/café")] {
            let block = [
                b"HTTP/1.1 301 x\r\nLocation:\r\nLocation: ",
                bytes,
                b"\r\n\r\n",
            ]
            .concat();
            let answer = Answer::read(&block);
            assert_eq!(answer.redirect().as_deref(), Some(text.as_bytes()));
        }
    }

    /// A header may name any number of codings; a bomb within bombs is not opened.
    #[test]
    fn many_codings_are_left_as_they_stand() {
        let coded = b"4\r\n<a>\n\r\n0\r\n\r\n";
        for (count, undone) in [(1, true), (5, true), (6, false), (1000, false)] {
            let header = "Content-Encoding: gzip\n".repeat(count - 1);
            let block = format!("HTTP/1.1 200\n{header}Transfer-Encoding: chunked\n\n");
            let block = [block.as_bytes(), coded].concat();
            let body = Answer::read(&block).body(1 << 20, &mut || ());
            let body = body.unwrap().into_owned();
            assert_eq!(body == b"<a>\n", undone, "{count}");
            assert_eq!(body == coded, !undone, "{count}");
        }
    }
}
