//! General path: the WHATWG parser of the `url` crate, and the steps before it.

use std::borrow::Cow;
use std::fmt::Write;

use ::url::{ParseError, Position, Url};

use super::Reject;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    None,
    /// `http` or `https`, then `//`.
    Web,
    /// `http` or `https` alone: `http:x` is relative if the base is `http` too.
    Bare,
    Other,
}

/// Strips blanks (bytes up to 0x20) from both ends of a link, as browsers do.
pub(super) fn trim(raw: &[u8]) -> &[u8] {
    let ink = |byte: &u8| *byte > b' ';
    match (raw.iter().position(ink), raw.iter().rposition(ink)) {
        (Some(first), Some(last)) => &raw[first..=last],
        _ => &[],
    }
}

/// Returns the scheme at the front of a trimmed link. Like the parser, ignores tabs and line ends inside.
pub(super) fn scheme(link: &[u8]) -> Scheme {
    // Few relative links hold a colon.
    if memchr::memchr(b':', link).is_none() || !link[0].is_ascii_alphabetic() {
        return Scheme::None;
    }
    // One byte more than `https`, so that longer names differ.
    let (mut name, mut len) = ([0; 6], 0);
    for (at, byte) in link.iter().enumerate() {
        match byte {
            b'\t' | b'\n' | b'\r' => {}
            b':' => {
                return match &name[..len] {
                    b"http" | b"https" if link[at..].starts_with(b"://") => Scheme::Web,
                    b"http" | b"https" => Scheme::Bare,
                    _ => Scheme::Other,
                };
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.' => {
                if len < name.len() {
                    name[len] = byte.to_ascii_lowercase();
                    len += 1;
                }
            }
            _ => return Scheme::None,
        }
    }
    Scheme::None
}

/// Returns whether a link without scheme begins with two slashes of either kind.
pub(super) fn names_host(link: &[u8]) -> bool {
    let mut seen = link
        .iter()
        .filter(|byte| !matches!(byte, b'\t' | b'\n' | b'\r'));
    let mut slash = || matches!(seen.next(), Some(b'/' | b'\\'));
    slash() && slash()
}

/// Parses `link`, joined to `base`, and appends its canonical form to `out`. On error `out` is unchanged.
pub(super) fn append(link: &[u8], base: Option<&Url>, out: &mut Vec<u8>) -> Result<(), Reject> {
    let url = Url::options()
        .base_url(base)
        .parse(&text(link))
        .map_err(|error| match error {
            ParseError::RelativeUrlWithoutBase => Reject::Relative,
            _ => Reject::Invalid,
        })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Reject::Scheme);
    }
    out.extend_from_slice(url[..Position::AfterQuery].as_bytes());
    Ok(())
}

/// Returns whether a `<base href>` of a scheme other than the web's counts as a base: HTML ignores `data:`,
/// `javascript:` and what is not a URL.
pub(super) fn is_foreign_base(href: &[u8]) -> bool {
    Url::parse(&text(href)).is_ok_and(|url| !matches!(url.scheme(), "data" | "javascript"))
}

/// Converts a URL to text: bytes that are not UTF-8 are percent-encoded, so that none is lost.
pub fn text(raw: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(raw) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(raw.len() + 16);
    for chunk in raw.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}"); // Writing to a String never fails.
        }
    }
    Cow::Owned(text)
}
