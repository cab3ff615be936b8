//! Values of records' fields in all notations of crawlers: texts, times, statuses, lists of URLs, counts; and lists that
//! tables without list types write as one text: JSON, or Python's `repr`, which is converted to JSON.

use std::borrow::Cow;

use serde::de::{Error, IgnoredAny};
use serde_json::Result as JsonResult;

use super::link::each;
use crate::decode::json::{Value, bytes};
use crate::decode::{Bad, RecordTime, time};
use crate::model::FetchTotals;
use crate::rules::FieldName;

pub(super) type Text<'a> = Cow<'a, [u8]>;

pub(super) fn some(value: Value<'_>) -> Option<Value<'_>> {
    (!matches!(value, Value::Null)).then_some(value)
}

pub(super) fn text(value: Value<'_>) -> JsonResult<Option<Text<'_>>> {
    match value {
        Value::Null => Ok(None),
        Value::Text(text) => Ok(Some(bytes(text))),
        other => Err(other.wrong_type("a string")),
    }
}

/// Marks a time as UTC if it is a text without an offset.
pub(super) fn in_utc(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Text(text) if time::from_text(&text).is_none() => {
            let utc = format!("{text}Z");
            Value::Text(match time::from_text(&utc) {
                Some(_) => Cow::Owned(utc),
                None => text,
            })
        }
        other => other,
    }
}

/// Reads a time, once its field is certain to count: an invalid `timestamp` next to `fetched_at` does no harm.
pub(super) fn read_time(value: &Value<'_>) -> RecordTime {
    let time = match value {
        Value::Int(seconds) => time::from_seconds(*seconds),
        Value::Float(seconds) => time::from_fraction(*seconds),
        Value::Text(text) => time::from_text(text),
        _ => None,
    };
    time.map(Some).ok_or_else(|| {
        let shown = match value {
            Value::Int(seconds) => seconds.to_string(),
            Value::Float(seconds) => seconds.to_string(),
            Value::Text(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
            Value::Bool(_) => "a boolean".to_owned(),
            Value::List(_) => "an array".to_owned(),
            Value::Null | Value::Object => "an object".to_owned(),
        };
        format!("{shown} is neither RFC 3339 nor seconds since 1970 (milliseconds?)")
    })
}

/// Reads requested URLs, of which each redirected to the next, the last to the record's: one text or more, or a list.
pub(super) fn urls<'a>(value: Value<'a>) -> JsonResult<Option<Vec<Text<'a>>>> {
    let owned = |value: Value<'_>| -> JsonResult<Option<Text<'a>>> {
        Ok(text(value)?.map(|url| Cow::Owned(url.into_owned())))
    };
    let urls = match value {
        Value::Null => return Ok(None),
        list @ (Value::Text(_) | Value::List(_)) => {
            let no_list = || Error::custom("requested URLs are no list");
            each(list, owned).ok_or_else(no_list)??
        }
        other => return Err(other.wrong_type("a URL that was asked for, or a list of them")),
    };
    let urls = urls.into_iter().flatten();
    Ok(Some(urls.filter(|url| !url.is_empty()).collect()))
}

/// Reads a status: a whole number, which may be written as `200.0` or `"200"`.
pub(super) fn status(value: Value<'_>) -> JsonResult<Option<i32>> {
    const EXPECTED: &str = "a status: a whole number of at most 32 bits, or its digits";
    let status = match &value {
        Value::Null => return Ok(None),
        Value::Int(status) => i32::try_from(*status).ok(),
        Value::Float(status) => Some(*status as i32).filter(|whole| f64::from(*whole) == *status),
        Value::Text(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number)
        }
        _ => return Err(value.wrong_type(EXPECTED)),
    };
    let wrong = || value.wrong_value(EXPECTED);
    status.map(Some).ok_or_else(wrong)
}

pub(super) const TOTALS: usize = FieldName::Watched as usize - FieldName::Visits as usize + 1;

pub(super) fn totals(values: &[Option<Value<'_>>; TOTALS]) -> Result<Option<FetchTotals>, Bad> {
    let [visits, failed, last_failed, compared, changed, watched] = values;
    if visits.is_none() {
        return Ok(None);
    }
    let count = |name: &str, value: &Option<Value<'_>>| {
        let number = match value {
            None => Some(0),
            Some(Value::Int(number)) => u32::try_from(*number).ok(),
            Some(_) => None,
        };
        let most = u32::MAX;
        number.ok_or_else(|| {
            Bad::malformed(format!(
                "`{name}`: expected a whole number from 0 to {most}"
            ))
        })
    };
    let last_failed = last_failed.as_ref().map_or(Ok(None), read_time);
    let totals = FetchTotals {
        visits: count("visits", visits)?,
        failed: count("failed", failed)?,
        last_failed: last_failed
            .map_err(|what| Bad::malformed(format!("`last_failed`: {what}")))?,
        compared: count("compared", compared)?,
        changed: count("changed", changed)?,
        watched_s: count("watched_s", watched)?,
    };
    if totals.changed > totals.compared {
        return Err(Bad::malformed("`changed` is more than `compared`"));
    }
    Ok(Some(totals))
}

/// Returns whether a text says that there is no value, as pandas and others write it.
pub(super) fn is_missing(text: &str) -> bool {
    matches!(
        text.trim(),
        "nan" | "NaN" | "<NA>" | "None" | "null" | "NULL"
    )
}

/// Converts the text of a list to JSON, invalid if it cannot be read; `None` if the text is not a list.
pub(super) fn list_json(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let is_between = |open, close| text.starts_with(open) && text[1..].ends_with(close);
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let is_list = is_between('[', ']');
    if is_list && is_json(text) {
        return Some(Cow::Borrowed(text));
    }
    let python = || python(text).filter(|python| is_json(python));
    // Texts in braces and in `array(...)` are not read, and are no URLs either. `{{url}}` is what templates leave.
    let is_unread = is_between('{', '}') && !text.starts_with("{{") || text.starts_with("array(");
    if is_unread {
        return Some(Cow::Borrowed(text));
    }
    match (is_list || is_between('(', ')')).then(python)? {
        Some(python) => Some(Cow::Owned(python)),
        None => is_list.then_some(Cow::Borrowed(text)),
    }
}

/// Converts the text of a Python list, or of a NumPy array, which has no commas; `None` for other text.
fn python(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.trim_start();
    // True if a value has just ended, and no comma or colon followed it.
    let mut after_value = false;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|char: char| !(char.is_ascii_alphanumeric() || "+-._".contains(char)));
        let (word, after) = rest.split_at(word.unwrap_or(rest.len()));
        if matches!(word, "u" | "b") && after.starts_with(['\'', '"']) {
            rest = after;
            continue;
        }
        if after_value && !matches!(first, ',' | ':' | ']' | ')' | '}') {
            out.push(',');
        }
        after_value = !matches!(first, ',' | ':' | '[' | '(' | '{');
        let after = match first {
            '\'' | '"' => string(&rest[1..], first, &mut out)?,
            ']' | ')' | '}' => {
                if out.ends_with(',') {
                    out.pop();
                }
                out.push(if first == '}' { '}' } else { ']' });
                &rest[1..]
            }
            '(' | '[' | '{' | ',' | ':' => {
                out.push(if first == '(' { '[' } else { first });
                &rest[1..]
            }
            _ if word.is_empty() => return None,
            _ => {
                out.push_str(match word {
                    "True" => "true",
                    "False" => "false",
                    "None" | "nan" | "NaN" => "null",
                    number => number,
                });
                after
            }
        };
        rest = after.trim_start();
    }
    Some(out)
}

/// Converts a string that ends with this quote; returns the text after it.
fn string<'t>(text: &'t str, quote: char, out: &mut String) -> Option<&'t str> {
    out.push('"');
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next()? {
                '\'' => out.push('\''),
                'x' => out.push_str("\\u00"),
                'U' => {
                    let code = u32::from_str_radix(chars.as_str().get(..8)?, 16);
                    out.push(char::from_u32(code.ok()?)?);
                    chars.nth(7);
                }
                // JSON has the other escapes, too.
                escaped => out.extend(['\\', escaped]),
            },
            end if end == quote => {
                out.push('"');
                return Some(chars.as_str());
            }
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::list_json;

    /// Texts of lists as printed by Python 3, NumPy 2 and pandas.
    #[test]
    fn lists_of_other_programs_become_json() {
        for (text, expected) in [
            (r#"["http://b/","/c"]"#, Some(r#"["http://b/","/c"]"#)),
            (" [] ", Some("[]")),
            ("['http://b/', '/c']", Some(r#"["http://b/","/c"]"#)),
            (r#"["it's", 'say "x"']"#, Some(r#"["it's","say \"x\""]"#)),
            (
                r"['a\'b', 'c\\d', '\xe9', '\u20ac', '\n']",
                Some(r#"["a'b","c\\d","\u00e9","\u20ac","\n"]"#),
            ),
            ("['a', None, nan]", Some(r#"["a",null,null]"#)),
            ("('a', 'b')", Some(r#"["a","b"]"#)),
            ("('a',)", Some(r#"["a"]"#)),
            ("[True, False]", Some("[true,false]")),
            ("[1, -2.5]", Some("[1, -2.5]")),
            ("[u'a']", Some(r#"["a"]"#)),
            ("['a' 'b'\n 'c']", Some(r#"["a","b","c"]"#)),
            ("[b'a' b'b']", Some(r#"["a","b"]"#)),
            ("['a' None]", Some(r#"["a",null]"#)),
            ("[3 4]", Some("[3,4]")),
            ("[ True False]", Some("[true,false]")),
            ("[[1 2]\n [3 4]]", Some("[[1,2],[3,4]]")),
            (
                "[{'url': 'http://b/'} {'url': 'http://c/'}]",
                Some(r#"[{"url":"http://b/"},{"url":"http://c/"}]"#),
            ),
            (
                "[{'url': 'http://b/', 'nofollow': True}, {'url': '/c'}]",
                Some(r#"[{"url":"http://b/","nofollow":true},{"url":"/c"}]"#),
            ),
            ("[http://b/, /c]", Some("[http://b/, /c]")),
            ("[", None),
            ("{http://b/,/c}", Some("{http://b/,/c}")),
            (
                "array(['/c'], dtype=object)",
                Some("array(['/c'], dtype=object)"),
            ),
            ("http://b/@@/c", None),
            ("", None),
            ("{{url}}", None),
            ("(function)", None),
            ("/x[1]", None),
        ] {
            assert_eq!(list_json(text).as_deref(), expected, "{text}");
        }
    }
}
