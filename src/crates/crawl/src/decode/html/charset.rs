//! Encoding of a page, and its text in UTF-8. HTML standard, 13.2.3.2: [determining the character
//! encoding](https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding), with "prescan a byte
//! stream to determine its encoding" and "get an XML encoding".

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::memmem;

/// Determines the encoding and decodes the page, with U+FFFD for invalid bytes. The encoding is that of the byte order
/// mark, else the one named by HTTP (`named`), else the one declared in the first 1,024 bytes (`is_xml`: in the XML
/// declaration), else UTF-8 if the page is valid UTF-8, else windows-1252.
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
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    (encoding, text)
}

/// Guesses the encoding. A page cut off within a character still counts as UTF-8.
fn guess(body: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(body) {
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        _ => UTF_8,
    }
}

/// Number of bytes that are scanned.
const LOOKED_AT: usize = 1024;

/// Returns the encoding that the page's first bytes declare; in XML, `<meta>` is ignored.
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

/// Returns the encoding declared by a `<meta>`; `None` also if the bytes end first.
fn by_meta(front: &[u8]) -> Option<&'static Encoding> {
    let mut scan = PrescanCursor { front, at: 0 };
    loop {
        scan.at += memchr::memchr(b'<', scan.rest())?;
        let rest = scan.rest();
        if rest.starts_with(b"<!--") {
            // The dashes of `<!--` may also be those of `-->`.
            scan.at += 2 + memmem::find(&rest[2..], b"-->")? + 3;
        } else if is_meta(rest) {
            scan.at += 5;
            if let Some(encoding) = scan.meta()? {
                return Some(encoding);
            }
        } else if is_tag(rest) {
            let end = |byte: &u8| is_blank(*byte) || *byte == b'>';
            scan.at += rest.iter().position(end)?;
            while scan.attribute()?.is_some() {}
        } else if let [b'<', b'!' | b'/' | b'?', ..] = rest {
            scan.at += memchr::memchr(b'>', rest)?;
        } else {
            scan.at += 1;
        }
    }
}

fn is_meta(rest: &[u8]) -> bool {
    let (Some(name), Some(end)) = (rest.get(..5), rest.get(5)) else {
        return false;
    };
    name.eq_ignore_ascii_case(b"<meta") && (is_blank(*end) || *end == b'/')
}

fn is_tag(rest: &[u8]) -> bool {
    match rest {
        [b'<', b'/', letter, ..] | [b'<', letter, ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0C' | b'\r' | b' ')
}

/// Name and value of an attribute, in lower case.
type Pair = (Vec<u8>, Vec<u8>);

/// Scanner over the first bytes. Its methods return `None` where the bytes end.
struct PrescanCursor<'f> {
    front: &'f [u8],
    at: usize,
}

impl PrescanCursor<'_> {
    fn rest(&self) -> &[u8] {
        self.front.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.front.get(self.at).copied()
    }

    /// Returns the encoding that a `<meta>` declares, if any; the scanner stands after `<meta`.
    fn meta(&mut self) -> Option<Option<&'static Encoding>> {
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let (mut is_content_type, mut needs_it, mut found) = (false, None, None);
        while let Some((name, value)) = self.attribute()? {
            if seen.contains(&name) {
                continue;
            }
            match &name[..] {
                b"http-equiv" => is_content_type |= value == b"content-type",
                b"content" if needs_it.is_none() => {
                    if let Some(encoding) = in_content(&value) {
                        (found, needs_it) = (Some(encoding), Some(true));
                    }
                }
                b"charset" => (found, needs_it) = (Encoding::for_label(&value), Some(false)),
                _ => {}
            }
            seen.push(name);
        }
        let counts = needs_it.is_some_and(|needs| !needs || is_content_type);
        Some(found.filter(|_| counts).map(as_meta))
    }

    /// "Get an attribute": returns the tag's next attribute, or `Some(None)` at its end.
    fn attribute(&mut self) -> Option<Option<Pair>> {
        while is_blank(self.peek()?) || self.peek()? == b'/' {
            self.at += 1;
        }
        if self.peek()? == b'>' {
            return Some(None);
        }
        let start = self.at;
        loop {
            match self.peek()? {
                b'=' if self.at > start => break,
                b'/' | b'>' => break,
                byte if is_blank(byte) => break,
                _ => self.at += 1,
            }
        }
        let name = self.front[start..self.at].to_ascii_lowercase();
        self.skip_blanks()?;
        if self.peek()? != b'=' {
            return Some(Some((name, Vec::new())));
        }
        self.at += 1;
        self.skip_blanks()?;
        let value = self.value()?;
        Some(Some((name, value)))
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let first = self.peek()?;
        let quoted = matches!(first, b'"' | b'\'');
        self.at += usize::from(quoted);
        let end = |byte: &u8| {
            if quoted {
                *byte == first
            } else {
                is_blank(*byte) || *byte == b'>'
            }
        };
        let len = self.rest().iter().position(end)?;
        let value = self.rest()[..len].to_ascii_lowercase();
        self.at += len + usize::from(quoted);
        Some(value)
    }

    fn skip_blanks(&mut self) -> Option<()> {
        while is_blank(self.peek()?) {
            self.at += 1;
        }
        Some(())
    }
}

/// Replaces UTF-16, in which a `<meta>` could not have been read, by UTF-8, and x-user-defined by windows-1252.
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
        _ => text.split(|byte| is_blank(*byte) || *byte == b';').next(),
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
