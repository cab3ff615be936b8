//! Helpers of the JSON formats: borrowed values, errors as one short line, and repair of unpaired surrogates.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Unexpected, Visitor,
};

/// Maximum length of an error's detail in bytes: serde quotes the offending value in full.
const DETAIL_MAX: usize = 200;

/// JSON value. The fields of objects are skipped, and the values of lists nested deeper than [`LIST_DEPTH`].
#[derive(Debug, Default)]
pub(super) enum Value<'a> {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// Number with a fraction, or beyond `i64`.
    Float(f64),
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Object,
}

impl Value<'_> {
    pub fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            _ => "",
        }
    }

    pub fn wrong_type(&self, expected: &str) -> serde_json::Error {
        Error::invalid_type(self.unexpected(), &expected)
    }

    /// Returns the error for a value that has the expected type but is not permitted.
    pub fn wrong_value(&self, expected: &str) -> serde_json::Error {
        Error::invalid_value(self.unexpected(), &expected)
    }

    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Int(number) => Unexpected::Signed(*number),
            Value::Float(number) => Unexpected::Float(*number),
            Value::Text(text) => Unexpected::Str(text),
            Value::List(_) => Unexpected::Seq,
            Value::Object => Unexpected::Map,
        }
    }
}

const LIST_DEPTH: u8 = 2;

pub(super) struct Any<V>(pub V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Any<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        json.deserialize_any(self.0)
    }
}

/// Reads any value, or the name of a field, and passes it to a function, whose errors get the value's position.
pub(super) fn value_to<F>(take: F) -> Any<ValueVisitor<F>> {
    let depth = LIST_DEPTH;
    Any(ValueVisitor { take, depth })
}

pub(super) struct ValueVisitor<F> {
    take: F,
    depth: u8,
}

impl<F> ValueVisitor<F> {
    fn take<'a, T, E: Error>(self, value: Value<'a>) -> Result<T, E>
    where
        F: FnOnce(Value<'a>) -> serde_json::Result<T>,
    {
        (self.take)(value).map_err(E::custom)
    }
}

impl<'de, T, F: FnOnce(Value<'de>) -> serde_json::Result<T>> Visitor<'de> for ValueVisitor<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        self.take(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        self.take(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.take(Value::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.take(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.take(Value::Float(number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<T, E> {
        self.take(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.take(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        let mut values = Vec::new();
        if let Some(depth) = self.depth.checked_sub(1) {
            while let Some(value) = seq.next_element_seed(Any(ValueVisitor { take: Ok, depth }))? {
                values.push(value);
            }
        } else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
        }
        self.take(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.take(Value::Object)
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        value_to(Ok).deserialize(json)
    }
}

pub(super) fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// Appends a string in JSON. Keeps bytes that are not UTF-8, so that the reader rejects the record because of them.
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

/// Returns serde's message, shortened, and without the line number: texts are parsed one by one.
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

/// Replaces every escape of an unpaired surrogate, which serde rejects, by `\ufffd`; `None` if there is none.
pub(super) fn repair_surrogates(text: &str) -> Option<String> {
    let mut fixed = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        let escape = at + found;
        let [first, second] = [escape, escape + 6].map(|at| is_high_surrogate(text, at));
        at = match (first, second) {
            (Some(true), Some(false)) => escape + 12,
            (Some(_), _) => {
                fixed.push_str(&text[copied..escape]);
                fixed.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
            // Skips the escaped byte, which may be a backslash.
            (None, _) => (escape + 2).min(text.len()),
        };
    }
    if copied == 0 {
        return None;
    }
    fixed.push_str(&text[copied..]);
    Some(fixed)
}

/// Returns whether `at` escapes the first half of a surrogate pair; `None` if it does not escape a half.
fn is_high_surrogate(text: &str, at: usize) -> Option<bool> {
    let digits = text.as_bytes().get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..0xDC00 => Some(true),
        0xDC00..0xE000 => Some(false),
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
