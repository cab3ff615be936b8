//! Encoding of a page, and its text in UTF-8. HTML standard,
//! [13.2.3.2](https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding).

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::prescan::prescan;

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
