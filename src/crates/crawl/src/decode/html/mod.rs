//! Links of an HTML page, by the HTML standard, as a crawler without scripting sees them. See `formats/html.md`.
//!
//! Tags are found where the standard's tokenizer finds them (`tags`); no tree is built. Text is decoded first, so that links
//! are UTF-8 whatever the page's encoding: as in "[determining the character
//! encoding](https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding)", except that a
//! `<meta>` in the text of a title or script does not count.

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
#[cfg(test)]
mod oracle_tests;
mod tags;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write;

use encoding_rs::{
    EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED,
};
use memchr::memmem;

use super::Record;
use super::json::bytes;
use crate::model::{Link, keep};
use crate::rules::Rel;
pub(super) use tags::decoded;
use tags::{Attributes, Tag};

/// Reads a page: appends its links to `record.links` in document order, and stores its `<base href>` in `record.base`.
/// Both are UTF-8. Never fails, whatever the bytes. `charset` is the one named by the HTTP header `Content-Type`, if
/// any.
pub fn read(body: &[u8], charset: Option<&[u8]>, record: &mut Record<'_>) {
    read_as(Markup::Html, body, charset, record);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Markup {
    Html,
    /// XML of type `application/xhtml+xml`.
    Xhtml,
    /// XML of another type: a page if its root is `html` in the XHTML namespace.
    Xml,
}

pub(super) fn read_as(
    markup: Markup,
    body: &[u8],
    charset: Option<&[u8]>,
    record: &mut Record<'_>,
) {
    let (encoding, text) = decode(body, charset, markup != Markup::Html);
    let first = record.links.len();
    record.base = None;
    let mut nofollow = false;
    let seen = |tag: Tag, attributes: &Attributes<'_>| match tag {
        Tag::A | Tag::Area => record_link(attributes, encoding, record),
        Tag::Base => {
            let href = attributes.href.map(|href| decoded(href).into_owned());
            record.base = record.base.take().or(href.map(Cow::Owned));
        }
        Tag::Meta => {
            let meta = Meta::of(attributes);
            if let Some(url) = meta.refresh() {
                let url = with_query(url.to_vec(), encoding);
                keep(&mut record.links, Link::to(url));
            }
            nofollow |= meta.is_nofollow();
        }
    };
    tags::each(markup, &text, seen);
    if nofollow {
        forbid(&mut record.links[first..]);
    }
}

pub(super) fn forbid(links: &mut [Link<'_>]) {
    for link in links {
        link.rel = link.rel.with(Rel::NOFOLLOW);
    }
}

pub(super) fn forbids(rules: &[u8]) -> bool {
    let mut words = rules.split(|byte| *byte == b',' || byte.is_ascii_whitespace());
    words.any(|word| word.eq_ignore_ascii_case(b"nofollow") || word.eq_ignore_ascii_case(b"none"))
}

#[derive(Default)]
pub(super) struct Meta<'t> {
    pub http_equiv: Option<Cow<'t, [u8]>>,
    pub name: Option<Cow<'t, [u8]>>,
    pub content: Option<Cow<'t, [u8]>>,
}

impl<'t> Meta<'t> {
    fn of(attributes: &Attributes<'t>) -> Meta<'t> {
        Meta {
            http_equiv: attributes.http_equiv.map(decoded),
            name: attributes.name.map(decoded),
            content: attributes.content.map(decoded),
        }
    }

    pub(super) fn refresh(&self) -> Option<&[u8]> {
        refresh(self.content_if(&self.http_equiv, b"refresh")?)
    }

    pub(super) fn is_nofollow(&self) -> bool {
        forbids(self.content_if(&self.name, b"robots").unwrap_or_default())
    }

    /// Returns the content if `attribute` has this value, ignoring case.
    fn content_if(&self, attribute: &Option<Cow<'_, [u8]>>, value: &[u8]) -> Option<&[u8]> {
        let found = attribute.as_ref()?;
        let content = self.content.as_deref();
        content.filter(|_| found.eq_ignore_ascii_case(value))
    }
}

fn record_link(attributes: &Attributes<'_>, encoding: &'static Encoding, record: &mut Record<'_>) {
    if let Some(href) = attributes.href {
        let url = with_query(decoded(href).into_owned(), encoding);
        let rel = attributes.rel.map(|rel| Rel::of(&decoded(rel)));
        let link = Link {
            rel: rel.unwrap_or_default(),
            ..Link::to(url)
        };
        keep(&mut record.links, link);
    }
}

/// Returns the URL of a refresh, by the HTML standard's "shared declarative refresh steps", ignoring the time.
pub(super) fn refresh(content: &[u8]) -> Option<&[u8]> {
    let rest = content.trim_ascii_start();
    let time = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if time == 0 && rest.first() != Some(&b'.') {
        return None;
    }
    let is_time = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
    let rest = &rest[rest.iter().take_while(is_time).count()..];
    let rest = match rest {
        [b';' | b',', rest @ ..] => rest,
        [blank, ..] if blank.is_ascii_whitespace() => match rest.trim_ascii_start() {
            [b';' | b',', rest @ ..] => rest,
            rest => rest,
        },
        _ => return None,
    };
    let rest = rest.trim_ascii_start();
    let url = named(rest).map_or(rest, unquoted);
    (!url.trim_ascii().is_empty()).then_some(url)
}

/// Returns the text after `url=`, or the whole text if it does not begin with a `u`.
fn named(rest: &[u8]) -> Option<&[u8]> {
    if !rest
        .first()
        .is_some_and(|byte| byte.eq_ignore_ascii_case(&b'u'))
    {
        return Some(rest);
    }
    let (word, rest) = rest.split_at_checked(3)?;
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?;
    word.eq_ignore_ascii_case(b"url")
        .then(|| rest.trim_ascii_start())
}

/// Removes the quotes around a URL; the closing quote may be missing.
fn unquoted(url: &[u8]) -> &[u8] {
    match url {
        [quote @ (b'\'' | b'"'), rest @ ..] => {
            rest.split(|byte| byte == quote).next().unwrap_or(rest)
        }
        _ => url,
    }
}

/// Percent-encodes the query of a link in the page's encoding ([URL
/// standard](https://url.spec.whatwg.org/#query-state)).
fn with_query(link: Vec<u8>, page: &'static Encoding) -> Vec<u8> {
    let encoding = page.output_encoding();
    if encoding == UTF_8 || link.is_ascii() {
        return link;
    }
    match split_query(&link) {
        Some((front, query, fragment)) if !query.is_ascii() => {
            let query = encoded_query(query, encoding);
            [front.as_bytes(), query.as_bytes(), fragment.as_bytes()].concat()
        }
        _ => link,
    }
}

/// Splits a link into the part up to the `?`, the query, and the rest; `None` without a query.
fn split_query(link: &[u8]) -> Option<(&str, &str, &str)> {
    let link = std::str::from_utf8(link).ok()?;
    // The URL parser drops trailing blanks, but not percent-encoded ones.
    let link = link.trim_end_matches(|c| c <= ' ');
    let (before, fragment) = link.split_at(link.find('#').unwrap_or(link.len()));
    let (front, query) = before.split_at(before.find('?')? + 1);
    Some((front, query, fragment))
}

fn encoded_query(query: &str, encoding: &'static Encoding) -> String {
    // The URL parser removes these characters first.
    let query = query.replace(['\t', '\n', '\r'], "");
    let mut encoder = encoding.new_encoder();
    let mut out = String::with_capacity(query.len() * 2);
    let mut rest = &query[..];
    let mut bytes = [0; 1024];
    loop {
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        for &byte in &bytes[..written] {
            push_escaped(byte, &mut out);
        }
        match result {
            EncoderResult::InputEmpty => return out,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(char) => {
                let _ = write!(out, "%26%23{}%3B", u32::from(char)); // Writing to a String never fails.
            }
        }
    }
}

/// Appends a byte, escaped if it is in the URL standard's special-query percent-encode set.
fn push_escaped(byte: u8, out: &mut String) {
    let stays = matches!(byte, 0x21..=0x7E) && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\'');
    if stays {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "%{byte:02X}");
    }
}

/// Determines the encoding and decodes the page, with U+FFFD for invalid bytes. The encoding is that of the byte order
/// mark, else the one named by HTTP (`named`), else the one declared in the first 1,024 bytes (if `is_xml`, only by the
/// XML declaration), else UTF-8 if the page is valid UTF-8, else windows-1252.
fn decode<'b>(
    body: &'b [u8],
    named: Option<&[u8]>,
    is_xml: bool,
) -> (&'static Encoding, Cow<'b, [u8]>) {
    let (encoding, body) = match Encoding::for_bom(body) {
        Some((encoding, len)) => (encoding, &body[len..]),
        None => {
            let named = named
                .and_then(Encoding::for_label)
                .or_else(|| prescan(body, is_xml));
            (named.unwrap_or_else(|| guess(body)), body)
        }
    };
    let (text, _) = encoding.decode_without_bom_handling(body);
    (encoding, bytes(text))
}

fn guess(body: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(body) {
        // A page cut off within a character is still UTF-8.
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        _ => UTF_8,
    }
}

const LOOKED_AT: usize = 1024;

fn prescan(body: &[u8], is_xml: bool) -> Option<&'static Encoding> {
    let front = &body[..body.len().min(LOOKED_AT)];
    if front.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if front.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let by_meta = if is_xml { None } else { by_meta(front) };
    by_meta.or_else(|| by_xml(front))
}

fn by_meta(front: &[u8]) -> Option<&'static Encoding> {
    let mut found = None;
    tags::each(Markup::Html, front, |tag, attributes| {
        if tag == Tag::Meta && found.is_none() {
            found = of_meta(attributes).map(as_meta);
        }
    });
    found
}

/// Returns the encoding that `charset` names or, in its absence, `content` with `http-equiv=content-type`.
fn of_meta(attributes: &Attributes<'_>) -> Option<&'static Encoding> {
    if let Some(label) = attributes.charset {
        return Encoding::for_label(&decoded(label));
    }
    let meta = Meta::of(attributes);
    let content = meta.content_if(&meta.http_equiv, b"content-type")?;
    in_content(&content.to_ascii_lowercase())
}

/// Replaces UTF-16, in which a `<meta>` cannot be read as ASCII, by UTF-8, and x-user-defined by windows-1252.
fn as_meta(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16BE || encoding == UTF_16LE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

/// "Extracting a character encoding from a meta element". `content` is in lower case.
fn in_content(content: &[u8]) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        rest = &rest[memmem::find(rest, b"charset")? + 7..];
        if let Some(label) = rest.trim_ascii_start().strip_prefix(b"=") {
            return Encoding::for_label(label_at(label.trim_ascii_start())?);
        }
    }
}

fn label_at(text: &[u8]) -> Option<&[u8]> {
    match text {
        [quote @ (b'"' | b'\''), rest @ ..] => {
            let end = memchr::memchr(*quote, rest)?;
            Some(&rest[..end])
        }
        _ => text
            .split(|byte| byte.is_ascii_whitespace() || *byte == b';')
            .next(),
    }
}

/// "Get an XML encoding": returns the encoding of the XML declaration.
fn by_xml(front: &[u8]) -> Option<&'static Encoding> {
    if !front.starts_with(b"<?xml") {
        return None;
    }
    let declaration = &front[..memchr::memchr(b'>', front)?];
    let rest = &declaration[memmem::find(declaration, b"encoding")? + 8..];
    let rest = skip_controls(rest).strip_prefix(b"=")?;
    let (quote, rest) = skip_controls(rest).split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let label = &rest[..memchr::memchr(*quote, rest)?];
    if label.iter().any(|byte| *byte <= b' ') {
        return None;
    }
    Encoding::for_label(label).map(|encoding| match encoding {
        utf_16 if utf_16 == UTF_16BE || utf_16 == UTF_16LE => UTF_8,
        encoding => encoding,
    })
}

fn skip_controls(text: &[u8]) -> &[u8] {
    let controls = text.iter().take_while(|byte| **byte <= b' ').count();
    &text[controls..]
}
