//! The encoding of a page, and its text in UTF-8. HTML standard,
//! [13.2.3.2](https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding).

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::prescan::prescan;

/// Finds the encoding: that of a byte order mark, else that which HTTP names (`named`), else that
/// which the page names in its first 1,024 bytes (`is_xml`: in its XML declaration), else UTF-8 if the page is that, else
/// windows-1252. Then decodes, U+FFFD standing for what is wrong.
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

/// A page cut off within a character is UTF-8 all the same.
fn guess(body: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(body) {
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        _ => UTF_8,
    }
}
