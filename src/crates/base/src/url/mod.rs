//! Canonical form of URLs: the name under which a page is known.
//!
//! `formats/url.md` specifies it: the form of the WHATWG URL standard without the fragment, `http` and `https` only. Most
//! URLs of a crawl are canonical, so [`canonical`] first tries to prove that by one scan of the bytes (`scan`). The fast
//! paths give the same bytes as the parser of the `url` crate, or fall back to it. Nothing here panics, whatever the bytes.

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod host;
mod join;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write;

use ::url::{ParseError, Position, Url};

pub use host::{domain, host, host_and_path, is_web, without_www};
pub use join::LinkBase;
pub use scan::is_canonical;
pub(crate) use scan::is_dots;

/// Version of the rules in `formats/url.md`. It changes whenever some URL's canonical form does; names made under
/// different versions must not be mixed.
pub const RULES: u32 = 1;

/// Location of a URL's canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanonicalForm {
    /// The input as a whole is canonical.
    AsIs,
    /// The first `n` of the given bytes are the canonical form; a fragment or blanks follow.
    Prefix(usize),
    /// The canonical form was appended to `out`.
    Rewritten,
}

impl CanonicalForm {
    /// Returns the canonical form: `raw` is the input of [`canonical`], `appended` what it appended.
    pub fn text<'t>(self, raw: &'t [u8], appended: &'t [u8]) -> &'t [u8] {
        match self {
            CanonicalForm::AsIs => raw,
            CanonicalForm::Prefix(len) => raw.get(..len).unwrap_or_default(),
            CanonicalForm::Rewritten => appended,
        }
    }
}

/// Reason why a URL has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Reject {
    /// Not a link to a page: `mailto:`, `javascript:`, `data:`, `ftp:` and the like.
    #[error("neither http nor https")]
    Scheme,
    /// Only blanks, and no base.
    #[error("empty")]
    Empty,
    /// Relative, and no base to join it to.
    #[error("relative, without a base")]
    Relative,
    /// Longer than the limit: as read, in canonical form, or the base it is joined to.
    #[error("longer than the limit")]
    TooLong,
    /// The parser finds no URL in it: an invalid host or port, for example.
    #[error("not a URL")]
    Invalid,
}

/// Brings `raw`, any bytes, to canonical form. A relative URL is joined to `base`; `limit` is the maximum length in
/// bytes, both as read and in canonical form. Only [`CanonicalForm::Rewritten`] changes `out`, by appending.
pub fn canonical(
    raw: &[u8],
    base: Option<&LinkBase<'_>>,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<CanonicalForm, Reject> {
    if let Some(len) = scan::front(raw) {
        return if raw.len() > limit && trim(raw).len() > limit {
            Err(Reject::TooLong)
        } else if len == raw.len() {
            Ok(CanonicalForm::AsIs)
        } else {
            Ok(CanonicalForm::Prefix(len))
        };
    }
    let link = trim(raw);
    let scheme = scheme(link);
    if scheme == Scheme::Other {
        return Err(Reject::Scheme);
    }
    if link.len() > limit {
        return Err(Reject::TooLong);
    }
    let start = out.len();
    let written = append(scheme, link, base, limit, out);
    let len = out.len() - start;
    let found = match written {
        Err(reject) => Err(reject),
        Ok(()) if len > limit => Err(Reject::TooLong),
        // Some URLs that the scan cannot prove are canonical, for example with a host in punycode.
        Ok(()) if raw == &out[start..] => Ok(CanonicalForm::AsIs),
        Ok(()) if raw.starts_with(&out[start..]) => Ok(CanonicalForm::Prefix(len)),
        Ok(()) => return Ok(CanonicalForm::Rewritten),
    };
    out.truncate(start);
    found
}

/// Returns the canonical form of `raw` as [`canonical`] finds it.
pub fn name_of(raw: &[u8], base: Option<&LinkBase<'_>>, limit: usize) -> Result<Vec<u8>, Reject> {
    let mut out = Vec::new();
    let form = canonical(raw, base, limit, &mut out)?;
    Ok(match form {
        CanonicalForm::Rewritten => out,
        form => form.text(raw, &[]).to_vec(),
    })
}

/// Appends the canonical form of the trimmed `link` to `out`. On error `out` is unchanged.
fn append(
    scheme: Scheme,
    link: &[u8],
    base: Option<&LinkBase<'_>>,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Reject> {
    match (scheme, base) {
        (Scheme::None, None) if link.is_empty() => Err(Reject::Empty),
        (Scheme::None, None) => Err(Reject::Relative),
        (Scheme::None, Some(base)) => base.join(link, limit, out),
        (Scheme::Bare, Some(base)) => base.join_bare(link, limit, out),
        (Scheme::Web, _) if append_plain(link, out) => Ok(()),
        _ => append_parsed(link, None, out),
    }
}

/// Appends `link`, or `link` and a `/`, up to the fragment, if that is canonical; else leaves `out` unchanged.
fn append_plain(link: &[u8], out: &mut Vec<u8>) -> bool {
    if let Some(len) = scan::front(link) {
        out.extend_from_slice(&link[..len]); // Blanks stood before it.
        return true;
    }
    let start = out.len();
    out.extend_from_slice(link);
    out.push(b'/');
    let canonical = is_canonical(&out[start..]);
    if !canonical {
        out.truncate(start);
    }
    canonical
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    None,
    /// `http` or `https`, then `//`.
    Web,
    /// `http` or `https` alone: `http:x` is relative if the base is `http` too.
    Bare,
    Other,
}

/// Strips blanks (bytes up to 0x20) from both ends of a link, as browsers do.
fn trim(raw: &[u8]) -> &[u8] {
    let ink = |byte: &u8| *byte > b' ';
    match (raw.iter().position(ink), raw.iter().rposition(ink)) {
        (Some(first), Some(last)) => &raw[first..=last],
        _ => &[],
    }
}

/// Returns the scheme at the front of a trimmed link. Like the parser, ignores tabs and line ends inside.
fn scheme(link: &[u8]) -> Scheme {
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
fn names_host(link: &[u8]) -> bool {
    let mut seen = link
        .iter()
        .filter(|byte| !matches!(byte, b'\t' | b'\n' | b'\r'));
    let mut slash = || matches!(seen.next(), Some(b'/' | b'\\'));
    slash() && slash()
}

/// Parses `link`, joined to `base`, and appends its canonical form to `out`. On error `out` is unchanged.
fn append_parsed(link: &[u8], base: Option<&Url>, out: &mut Vec<u8>) -> Result<(), Reject> {
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

/// Returns whether a `<base href>` of a scheme other than the web's counts as a base, as in HTML.
fn is_foreign_base(href: &[u8]) -> bool {
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
