//! Decodes a page to UTF-8 from its encoding. HTML standard, 13.2.3.2: [determining the character
//! encoding](https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding), with "get an XML
//! encoding". Unlike in the standard's "prescan a byte stream", a `<meta>` counts only where the tokenizer finds its
//! tag, so not in the text of a title or script.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::memmem;

use super::tags::{self, Attributes, Tag, decoded};
use super::{Markup, Meta};
use crate::decode::json::bytes;

/// Determines the encoding and decodes the page, with U+FFFD for invalid bytes. The encoding is that of the byte order
/// mark, else the one named by HTTP (`named`), else the one declared in the first 1,024 bytes (if `is_xml`, only by the
/// XML declaration), else UTF-8 if the page is valid UTF-8, else windows-1252.
pub(super) fn decode<'b>(
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

pub(super) fn prescan(body: &[u8], is_xml: bool) -> Option<&'static Encoding> {
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
