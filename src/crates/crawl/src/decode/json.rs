//! Helpers of the JSON formats: text borrowed where possible, errors on one short line, and repair of unpaired
//! surrogates.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Maximum length of an error's detail: serde quotes the offending value in full.
const DETAIL_MAX: usize = 200;

/// JSON string, borrowed from the input unless it has escapes.
pub(super) struct JsonText<'a>(pub Cow<'a, [u8]>);

impl<'de> Deserialize<'de> for JsonText<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = JsonText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(JsonText(Cow::Borrowed(text.as_bytes())))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(JsonText(Cow::Owned(text.as_bytes().to_vec())))
    }
}

/// Appends a string in JSON. Bytes that are not UTF-8 are kept, so that the reader rejects the record because of them.
pub fn put_string(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut rest = text;
    let special = |byte: &u8| *byte < b' ' || matches!(*byte, b'"' | b'\\');
    while let Some(at) = rest.iter().position(special) {
        out.extend_from_slice(&rest[..at]);
        let byte = rest[at];
        if byte < b' ' {
            out.extend_from_slice(b"\\u00");
            out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        } else {
            out.extend([b'\\', byte]);
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Returns serde's message without the line number (texts are parsed one by one), cut to a length that fits an error.
pub(super) fn detail(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    if message.ends_with(&place) {
        message.truncate(message.len() - place.len());
    }
    if message.len() > DETAIL_MAX {
        let cut = (0..=DETAIL_MAX)
            .rev()
            .find(|&at| message.is_char_boundary(at));
        message.truncate(cut.unwrap_or(0));
        message.push('…');
    }
    let message = message.replace(['\n', '\r'], " ");
    format!("{message}, at byte {}", error.column())
}

/// Replaces every escape of an unpaired surrogate (`\ud83d` alone) by `\ufffd`, as browsers do when they parse such a
/// URL. `None` if there is none.
///
/// JSON permits them and some crawlers write them; serde rejects them in fields that are read.
pub(super) fn repair_surrogates(text: &str) -> Option<String> {
    let mut fixed = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        let escape = at + found;
        at = match (surrogate(text, escape), surrogate(text, escape + 6)) {
            (Some(SurrogateHalf::High), Some(SurrogateHalf::Low)) => escape + 12,
            (Some(_), _) => {
                fixed.push_str(&text[copied..escape]);
                fixed.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
            // Skips the escaped byte, which may be a backslash. A character beyond ASCII here is not an escape, and its
            // next byte not a backslash.
            (None, _) => (escape + 2).min(text.len()),
        };
    }
    if copied == 0 {
        return None;
    }
    fixed.push_str(&text[copied..]);
    Some(fixed)
}

enum SurrogateHalf {
    High,
    Low,
}

/// Returns which half of a surrogate pair is escaped at `at`; `None` if none is.
fn surrogate(text: &str, at: usize) -> Option<SurrogateHalf> {
    let digits = text.as_bytes().get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..0xDC00 => Some(SurrogateHalf::High),
        0xDC00..0xE000 => Some(SurrogateHalf::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unpaired_surrogates_are_replaced() {
        let fixed = |text| repair_surrogates(text);
        assert_eq!(fixed(r#""plain \n \u00e9 \\ud83d""#), None);
        assert_eq!(fixed(r#""\ud83d\ude00""#), None);
        assert_eq!(fixed(r#""\ud83d""#).unwrap(), r#""\ufffd""#);
        assert_eq!(fixed(r#""a\ude00b""#).unwrap(), r#""a\ufffdb""#);
        let two_high = fixed(r#""\uD83D\ud83d\ude00é""#).unwrap();
        assert_eq!(two_high, r#""\ufffd\ud83d\ude00é""#);
        let escaped = fixed(r#""\\\ud83d\\ud83d""#).unwrap();
        assert_eq!(escaped, r#""\\\ufffd\\ud83d""#);
    }

    #[test]
    fn odd_ends_do_not_panic() {
        for text in [
            "\\",
            "\\u",
            "\\ud83",
            "\\é\\",
            "\\ud83d\\",
            "\\ud83d\\ud8",
            "\\u+d83",
        ] {
            repair_surrogates(text);
        }
    }

    #[test]
    fn details_are_one_short_line() {
        let long = format!("[\"{}\"]", "é\\n".repeat(1000));
        let error = serde_json::from_str::<Vec<u8>>(&long).unwrap_err();
        let detail = detail(&error);
        assert!(detail.len() < 300 && !detail.contains('\n'), "{detail}");
        let error = serde_json::from_str::<Vec<u8>>("[1,}").unwrap_err();
        assert_eq!(super::detail(&error), "expected value, at byte 4");
    }
}
