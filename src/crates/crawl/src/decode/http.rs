//! HTTP responses as archives keep them: a status line, header lines, a blank line, the body.
//!
//! Servers and archivers omit and break much of this; the only error is a body that expands too far. A response that
//! contradicts its headers is taken as it is.

mod codings;
mod mime;

use std::borrow::Cow;

use memchr::memchr;

use super::frame::{line_ends, without_cr};
use super::{Bad, Link, Record, html, lower_case};
use crate::model::{LINKS_MAX, has_page, is_redirect};
use crate::url::{self, LinkBase};
use codings::Coding;
use mime::MediaType;

/// Maximum number of nested codings. The body of a response that names more stays encoded.
const CODINGS_MAX: usize = 5;
/// Size above which a body is large: see [`Parsed::Large`](super::Parsed::Large).
const LARGE: usize = 4 << 20;
pub(super) const NO_BODY: &str = "answer without its body";

/// Methods, with the report name of a response to each.
const METHODS: [(&str, Option<&str>); 9] = [
    ("GET", None),
    ("HEAD", Some("answer to HEAD")),
    ("POST", Some("answer to POST")),
    ("PUT", Some("answer to PUT")),
    ("DELETE", Some("answer to DELETE")),
    ("OPTIONS", Some("answer to OPTIONS")),
    ("PATCH", Some("answer to PATCH")),
    ("TRACE", Some("answer to TRACE")),
    ("CONNECT", Some("answer to CONNECT")),
];

/// Returns the report name of a response to a method other than GET, which does not count as a visit of the page.
pub(super) fn not_get(method: &[u8]) -> Option<&'static str> {
    let method = method.trim_ascii();
    let is = |(name, _): &&(&str, _)| name.as_bytes().eq_ignore_ascii_case(method);
    if let Some((_, kind)) = METHODS.iter().find(is) {
        return *kind;
    }
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-';
    let is_method =
        method.first().is_some_and(u8::is_ascii_uppercase) && method.iter().all(is_part);
    is_method.then_some("answer to another method")
}

pub(super) fn method(request: &[u8]) -> &[u8] {
    let (line, _) = split_line(&request[line_ends(request)..]);
    let end = memchr(b' ', line).unwrap_or(0);
    &line[..end]
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HttpResponse<'a> {
    pub status: Option<i32>,
    location: Cow<'a, [u8]>,
    refresh: Cow<'a, [u8]>,
    content_types: Vec<Cow<'a, [u8]>>,
    nosniff: bool,
    nofollow: bool,
    /// Codings of the body, in the order in which they were applied.
    codings: Vec<Coding>,
    /// True if the header announces a body of at least one byte.
    announced: bool,
    body: &'a [u8],
}

impl<'a> HttpResponse<'a> {
    /// Skips interim responses (1xx) if another follows. Without a status line, all is body, as in HTTP/0.9.
    pub fn read(block: &'a [u8]) -> HttpResponse<'a> {
        let body = || HttpResponse {
            body: block,
            ..HttpResponse::default()
        };
        let mut answer = HttpResponse::head(block).unwrap_or_else(body);
        while answer.status.is_some_and(|status| status < 200) {
            match HttpResponse::head(answer.body) {
                Some(next) => answer = next,
                None => break,
            }
        }
        answer
    }

    /// Returns `None` if there is no status line.
    fn head(block: &'a [u8]) -> Option<HttpResponse<'a>> {
        let (first, mut rest) = split_line(&block[line_ends(block)..]);
        let mut answer = HttpResponse {
            status: status_line(first)?,
            ..HttpResponse::default()
        };
        let (mut content, mut transfer) = (Vec::new(), Vec::new());
        let mut options = Cow::default();
        while let Some((name, value)) = field(&mut rest) {
            match lower_case(name, &mut [0; 32]) {
                b"location" => first_of(&mut answer.location, value),
                b"refresh" => first_of(&mut answer.refresh, value),
                b"content-type" => answer.content_types.push(value),
                b"content-encoding" => content.extend(Coding::list(&value)),
                b"transfer-encoding" => transfer.extend(Coding::list(&value)),
                b"content-length" => {
                    let zero = |byte: &u8| matches!(byte, b'0' | b' ' | b'\t' | b',');
                    answer.announced |= !value.iter().all(zero);
                }
                b"x-robots-tag" => answer.nofollow |= is_nofollow(&value),
                b"x-content-type-options" => first_of(&mut options, value),
                _ => {}
            }
        }
        let option = options.split(|&byte| byte == b',').next();
        answer.nosniff =
            option.is_some_and(|option| option.trim_ascii().eq_ignore_ascii_case(b"nosniff"));
        answer.announced |= transfer.contains(&Coding::Chunked);
        content.append(&mut transfer);
        answer.codings = content;
        answer.body = rest;
        Some(answer)
    }

    /// Returns whether the page's body is missing: the response was to a HEAD, or was cut off.
    pub fn lacks_body(&self) -> bool {
        let there = matches!(self.status, Some(200..300));
        there && self.announced && self.body.is_empty()
    }

    pub fn redirect(&self) -> Option<Cow<'a, [u8]>> {
        let moved = self.status.is_some_and(is_redirect) && !self.location.is_empty();
        moved.then(|| text(self.location.clone()))
    }

    /// Adds the links of a page to `record`: the target of its `Refresh`, and those of its HTML body; none if the
    /// response lacks the page. Calls `large` before it holds a large body, and fails if that takes over `most` bytes.
    pub fn links(
        &self,
        record: &mut Record<'_>,
        most: u64,
        large: &mut dyn FnMut(),
    ) -> Result<(), Bad> {
        if !self.status.is_none_or(has_page) {
            return Ok(());
        }
        let media_type = MediaType::extract(&self.content_types);
        let markup = media_type.as_ref().map(MediaType::markup);
        let sniffs = markup.is_none() && !self.nosniff;
        if sniffs || markup.flatten().is_some() {
            let body = self.body(most, large)?;
            if body.len() > LARGE {
                large();
            }
            let markup = markup.unwrap_or_else(|| mime::sniff(&body));
            let charset = media_type.and_then(|found| found.charset);
            if let Some(markup) = markup {
                html::read_as(markup, &body, charset.as_deref(), record);
            }
        }
        put_fields(record, &text(self.refresh.clone()), self.nofollow);
        Ok(())
    }

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

fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', text) {
        Some(lf) => (without_cr(&text[..lf]), &text[lf + 1..]),
        None => (without_cr(text), &[]),
    }
}

/// Returns the status of a status line (`HTTP/1.1 200 OK`, `ICY 200 OK`); `None` if the line is not one.
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
    // Some status lines lack the space after the status.
    let digits = words.next().and_then(|word| word.first_chunk::<3>());
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let number = digits.and_then(|digits| digits.parse().ok());
    Some(number.filter(|status| (100..1000).contains(status)))
}

/// Reads the next header field, with folded lines joined by blanks. `None`: the header has ended.
fn field<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Cow<'a, [u8]>)> {
    let is_folded = |rest: &[u8]| matches!(rest.first(), Some(b' ' | b'\t'));
    loop {
        // A name never begins with `<`: the blank line is missing, and the body begins here.
        if matches!(rest.first(), None | Some(b'<')) {
            return None;
        }
        let continues = is_folded(rest);
        let (line, after) = split_line(rest);
        *rest = after;
        if line.is_empty() {
            return None;
        }
        let Some(colon) = memchr(b':', line).filter(|_| !continues) else {
            continue;
        };
        let mut value = Cow::Borrowed(line[colon + 1..].trim_ascii());
        while is_folded(rest) {
            let (line, after) = split_line(rest);
            *rest = after;
            let value = value.to_mut();
            value.push(b' ');
            value.extend_from_slice(line.trim_ascii());
        }
        if let Cow::Owned(folded) = &value {
            value = Cow::Owned(folded.trim_ascii().to_vec());
        }
        return Some((line[..colon].trim_ascii(), value));
    }
}

fn first_of<'a>(known: &mut Cow<'a, [u8]>, value: Cow<'a, [u8]>) {
    if known.is_empty() {
        *known = value;
    }
}

/// Decodes a field's value as browsers do: as UTF-8, else as Latin-1.
fn text(value: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if std::str::from_utf8(&value).is_ok() {
        return value;
    }
    let text: String = value.iter().map(|&byte| byte as char).collect();
    Cow::Owned(text.into_bytes())
}

/// Adds the target of the header `Refresh` to a page's links, and makes all of them `nofollow` if the header says so. A
/// URL in a header is relative to the page, whatever its `<base href>`.
pub(super) fn put_fields(record: &mut Record<'_>, refresh: &[u8], nofollow: bool) {
    if let Some(to) = html::refresh(refresh) {
        let page = LinkBase::new(&record.url, None);
        let to = match record.base {
            Some(_) => url::name_of(to, Some(&page), usize::MAX).unwrap_or_else(|_| to.to_vec()),
            None => to.to_vec(),
        };
        record.links.insert(0, Link::to(to));
        record.links.truncate(LINKS_MAX + 1);
    }
    if nofollow {
        html::forbid(&mut record.links);
    }
}

/// Rules of `X-Robots-Tag` that have a value after a colon.
const WITH_VALUE: [&[u8]; 4] = [
    b"unavailable_after",
    b"max-snippet",
    b"max-image-preview",
    b"max-video-preview",
];

/// Returns whether an `X-Robots-Tag` has the rule `nofollow` or `none` for all robots. By [Google's
/// description](https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag), commas separate the rules,
/// and a robot's name and a colon precede those for that robot only.
pub(super) fn is_nofollow(value: &[u8]) -> bool {
    let mut for_all = true;
    value.split(|&byte| byte == b',').any(|rule| {
        let mut rule = rule.trim_ascii();
        if let Some(colon) = memchr(b':', rule) {
            let (name, rest) = (rule[..colon].trim_ascii(), &rule[colon + 1..]);
            if name.contains(&b' ')
                || WITH_VALUE
                    .iter()
                    .any(|with| name.eq_ignore_ascii_case(with))
            {
                return false;
            }
            // A robot's name applies to the rules up to the next name.
            for_all = name == b"*";
            rule = rest;
        }
        for_all && html::forbids(rule)
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
    fn locations_in_either_encoding() {
        for (bytes, text) in [(&b"/caf\xe9"[..], "/café"), ("/café".as_bytes(), "/café")] {
            let block = [
                b"HTTP/1.1 301 x\r\nLocation:\r\nLocation: ",
                bytes,
                b"\r\n\r\n",
            ]
            .concat();
            let answer = HttpResponse::read(&block);
            assert_eq!(answer.redirect().as_deref(), Some(text.as_bytes()));
        }
    }

    /// A header may name any number of codings; a bomb within bombs is not decoded.
    #[test]
    fn many_codings_are_left_as_they_stand() {
        let coded = b"4\r\n<a>\n\r\n0\r\n\r\n";
        for (count, undone) in [(1, true), (5, true), (6, false), (1000, false)] {
            let header = "Content-Encoding: gzip\n".repeat(count - 1);
            let block = format!("HTTP/1.1 200\n{header}Transfer-Encoding: chunked\n\n");
            let block = [block.as_bytes(), coded].concat();
            let body = HttpResponse::read(&block).body(1 << 20, &mut || ());
            let body = body.unwrap().into_owned();
            assert_eq!(body == b"<a>\n", undone, "{count}");
            assert_eq!(body == coded, !undone, "{count}");
        }
    }

    /// Any number of interim responses may precede the final one (RFC 9110, 15.2).
    #[test]
    fn interim_answers_are_passed_over() {
        let hints = "HTTP/1.1 103 Early Hints\r\nLocation: /no\r\n\r\n";
        for (block, status, body) in [
            (format!("{hints}HTTP/1.1 200 OK\r\n\r\nx"), Some(200), "x"),
            (
                format!("{hints}\r\n{hints}HTTP/1.1 404 x\n\ny"),
                Some(404),
                "y",
            ),
            (hints.to_owned(), Some(103), ""),
            (format!("{hints}<a>"), Some(103), "<a>"),
            (
                "HTTP/1.1 101 Switching\r\n\r\n\x01".to_owned(),
                Some(101),
                "\x01",
            ),
        ] {
            let answer = HttpResponse::read(block.as_bytes());
            assert_eq!(
                (answer.status, answer.body),
                (status, body.as_bytes()),
                "{block:?}"
            );
            assert_eq!(answer.redirect(), None);
        }
    }

    /// Folding is by RFC 9112, 5.2; the first non-empty `Location` and `Refresh` count.
    #[test]
    fn fields_are_folded_and_repeated() {
        let head = "HTTP/1.1 200 OK\r\n folded to nothing: x\r\nContent-Type :\r\n text/html;\r\n\tcharset=gbk\r\n\
            no colon\r\nREFRESH:\r\nRefresh: 0;\r\n   url=/a\r\nRefresh: 0; url=/b\r\nX-Robots-Tag: noindex\r\n\
            X-Robots-Tag: nofollow\r\nX-Content-Type-Options: nosniff\r\n\r\n";
        let answer = HttpResponse::read(head.as_bytes());
        assert_eq!(answer.content_types, [&b"text/html; charset=gbk"[..]]);
        assert_eq!(&*answer.refresh, b"0; url=/a");
        assert!(answer.nofollow && answer.nosniff);
        let text = b"HTTP/1.1 200 OK\r\nLink: </a>,\r\n </b>\r\nContent-Type: text/html\r\n<html>";
        let answer = HttpResponse::read(text);
        assert_eq!(answer.content_types, [&b"text/html"[..]]);
        assert_eq!(answer.body, b"<html>");
    }

    #[test]
    fn methods() {
        for (request, expected) in [
            ("GET / HTTP/1.1\r\n", None),
            ("\r\nget / HTTP/1.1", None),
            ("HEAD / HTTP/1.1\r\n", Some("answer to HEAD")),
            ("QUERY / HTTP/1.1\r\n", Some("answer to another method")),
            ("M-SEARCH * HTTP/1.1\r\n", Some("answer to another method")),
            ("HEAD\r\n", None),
            ("- / HTTP/1.1\r\n", None),
            ("a request", None),
            ("", None),
        ] {
            assert_eq!(not_get(method(request.as_bytes())), expected, "{request}");
        }
    }

    #[test]
    fn rules_for_all_robots_count() {
        for (value, expected) in [
            ("nofollow", true),
            ("noindex, NoFollow", true),
            ("NONE", true),
            ("noindex nofollow", true),
            ("*: nofollow", true),
            ("noindex", false),
            ("", false),
            ("nofollowing", false),
            ("googlebot: nofollow", false),
            ("googlebot: noindex, nofollow", false),
            ("nofollow, googlebot: noindex", true),
            ("googlebot: none, *: nofollow", true),
            (
                "unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow",
                true,
            ),
            (
                "unavailable_after: Friday, 25-Jun-10 15:00:00 PST, nofollow",
                true,
            ),
            ("max-snippet: 20, nofollow", true),
            ("max-image-preview:none", false),
        ] {
            assert_eq!(is_nofollow(value.as_bytes()), expected, "{value}");
        }
    }
}
