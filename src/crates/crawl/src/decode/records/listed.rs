//! Lists written as one text, by tables without list types: JSON; Python's `repr`, also of NumPy arrays; bare values in
//! brackets (Athena) or braces (PostgreSQL). All are converted to JSON.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;

/// Returns whether a text says that there is no value, as pandas, NumPy, Python, JSON and SQL write it.
pub(super) fn is_missing(text: &str) -> bool {
    matches!(
        text.trim(),
        "nan" | "NaN" | "<NA>" | "None" | "null" | "NULL"
    )
}

/// Returns the list in the `repr` of a NumPy array: `array([...], dtype=object)`.
fn of_array(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("array(")?.strip_suffix(')')?;
    let (list, kind) = inside.split_at(inside.rfind(']')? + 1);
    let is_kind = kind.is_empty()
        || kind
            .trim_start_matches([',', ' ', '\n'])
            .starts_with("dtype=");
    is_kind.then_some(list)
}

/// Converts the text of a list to JSON; `None` if the text is not a list.
pub(super) fn json(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let text = of_array(text).unwrap_or(text);
    let is_between =
        |open, close| text.len() > 1 && text.starts_with(open) && text.ends_with(close);
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_between('[', ']') {
        if is_json(text) {
            return Some(Cow::Borrowed(text));
        }
        let python = python(text).filter(|python| is_json(python));
        return Some(Cow::Owned(python.unwrap_or_else(|| bare(text))));
    }
    if is_between('(', ')') {
        return python(text)
            .filter(|python| is_json(python))
            .map(Cow::Owned);
    }
    (is_between('{', '}') && !text.starts_with("{{")).then(|| Cow::Owned(bare(text)))
}

/// Converts bare or quoted values between commas; an empty or missing value becomes null. A comma not followed by a
/// blank, quote or URL belongs to the value: URLs may hold commas.
fn bare(text: &str) -> String {
    let mut rest = text[1..text.len() - 1].trim_start();
    let mut values = Vec::new();
    while !rest.is_empty() {
        let value;
        (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_value(quoted),
            None => {
                let end = bare_end(rest);
                let value = match rest[..end].trim_end() {
                    value if value.is_empty() || is_missing(value) => Value::Null,
                    value => Value::String(value.to_owned()),
                };
                (value, &rest[end..])
            }
        };
        values.push(value);
        rest = rest.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Value::Array(values).to_string()
}

fn bare_end(text: &str) -> usize {
    let ends = |&(at, _): &(usize, &str)| {
        let next = &text[at + 1..];
        let value = next.trim_start();
        let front = ["http:", "https:", "/", "NULL"];
        value.len() < next.len()
            || value.is_empty()
            || front.iter().any(|front| value.starts_with(front))
            || value.starts_with(['"', ','])
    };
    let comma = text.match_indices(',').find(ends);
    comma.map_or(text.len(), |(at, _)| at)
}

/// Reads a quoted value from after its quote; returns it and the rest. A backslash escapes any next character.
fn quoted_value(text: &str) -> (Value, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (Value::String(value), &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, char)| char)),
            char => value.push(char),
        }
    }
    (Value::String(value), "")
}

/// Converts the text of a Python list of strings, numbers, lists and dictionaries to JSON; `None` for other text.
fn python(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    // True if a value has just ended. Another follows directly only in a NumPy array, which has no commas.
    let mut after_value = false;
    while let Some(first) = rest.chars().next() {
        match first {
            first if first.is_whitespace() => rest = &rest[first.len_utf8()..],
            '[' | '(' | '{' | '\'' | '"' | '-' | '0'..='9' | 'a'..='z' | 'A'..='Z' => {
                if after_value {
                    out.push(',');
                }
                after_value = !matches!(first, '[' | '(' | '{');
                rest = value(rest, &mut out)?;
            }
            ']' | ')' | '}' => {
                if out.ends_with(',') {
                    out.pop();
                }
                out.push(if first == '}' { '}' } else { ']' });
                (rest, after_value) = (&rest[1..], true);
            }
            ',' | ':' => {
                out.push(first);
                (rest, after_value) = (&rest[1..], false);
            }
            _ => return None,
        }
    }
    Some(out)
}

fn value<'t>(text: &'t str, out: &mut String) -> Option<&'t str> {
    let word = text
        .find(|char: char| !(char.is_ascii_alphanumeric() || "+-._".contains(char)))
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(word);
    let quote = rest
        .chars()
        .next()
        .filter(|char| matches!(char, '\'' | '"'));
    match (word, quote) {
        ("" | "u" | "b", Some(quote)) => {
            let (string, rest) = string(&rest[1..], quote)?;
            out.push_str(&Value::String(string).to_string());
            return Some(rest);
        }
        ("True", _) => out.push_str("true"),
        ("False", _) => out.push_str("false"),
        ("None" | "nan" | "NaN", _) => out.push_str("null"),
        ("", _) => {
            out.push(if rest.starts_with('{') { '{' } else { '[' });
            return Some(&rest[1..]);
        }
        (number, _) => out.push_str(number),
    }
    Some(rest)
}

fn string(text: &str, quote: char) -> Option<(String, &str)> {
    let mut string = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        if char == quote {
            return Some((string, &text[at + 1..]));
        }
        if char != '\\' {
            string.push(char);
            continue;
        }
        let (at, escaped) = chars.next()?;
        let digits = match escaped {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => {
                string.push(match other {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                });
                continue;
            }
        };
        let code = u32::from_str_radix(text.get(at + 1..at + 1 + digits)?, 16).ok()?;
        string.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        chars.nth(digits - 1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::json;

    /// Texts of lists as printed by Python 3, NumPy 2, pandas, PostgreSQL 16 and Athena.
    #[test]
    fn lists_of_other_programs_become_json() {
        for (text, expected) in [
            (r#"["http://b/","/c"]"#, Some(r#"["http://b/","/c"]"#)),
            (" [] ", Some("[]")),
            ("['http://b/', '/c']", Some(r#"["http://b/","/c"]"#)),
            (r#"["it's", 'say "x"']"#, Some(r#"["it's","say \"x\""]"#)),
            (
                r"['a\'b', 'c\\d', '\xe9', '\u20ac', '\n']",
                Some(r#"["a'b","c\\d","é","€","\n"]"#),
            ),
            ("['a', None, nan]", Some(r#"["a",null,null]"#)),
            ("('a', 'b')", Some(r#"["a","b"]"#)),
            ("('a',)", Some(r#"["a"]"#)),
            ("[True, False]", Some("[true,false]")),
            ("[1, -2.5]", Some("[1, -2.5]")),
            ("[u'a']", Some(r#"["a"]"#)),
            ("['a' 'b'\n 'c']", Some(r#"["a","b","c"]"#)),
            (
                "[{'url': 'http://b/', 'nofollow': True}, {'url': '/c'}]",
                Some(r#"[{"url":"http://b/","nofollow":true},{"url":"/c"}]"#),
            ),
            (
                "[http://b/, http://c/x,y]",
                Some(r#"["http://b/","http://c/x,y"]"#),
            ),
            ("{http://b/,/c,NULL}", Some(r#"["http://b/","/c",null]"#)),
            (
                r#"{"http://b/x,y","a\"b"}"#,
                Some(r#"["http://b/x,y","a\"b"]"#),
            ),
            // PostgreSQL writes a backslash before quotes and backslashes only, and reads it before any character.
            (
                r#"{"http://b/\x","http://c/"}"#,
                Some(r#"["http://b/x","http://c/"]"#),
            ),
            ("{}", Some("[]")),
            // `repr` of numpy.array([...], dtype=object), and of an array of strings.
            (
                "array(['/c', 'http://b/x],y'], dtype=object)",
                Some(r#"["/c","http://b/x],y"]"#),
            ),
            (
                "array(['/c',\n       '/d'],\n      dtype='<U2')",
                Some(r#"["/c","/d"]"#),
            ),
            ("array([], dtype=object)", Some("[]")),
            ("[http://b/, nan, None]", Some(r#"["http://b/",null,null]"#)),
            ("array(x)", None),
            ("http://b/@@/c", None),
            ("", None),
            ("[", None),
            ("{{url}}", None),
            ("(function)", None),
            ("/x[1]", None),
        ] {
            assert_eq!(json(text).as_deref(), expected, "{text}");
        }
    }
}
