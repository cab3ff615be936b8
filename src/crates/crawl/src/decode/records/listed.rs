//! Lists written as one text, by tables without list types: JSON, or Python's `repr`, which is converted to JSON.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// Returns whether a text says that there is no value, as pandas, NumPy, Python, JSON and SQL write it.
pub(super) fn is_missing(text: &str) -> bool {
    matches!(
        text.trim(),
        "nan" | "NaN" | "<NA>" | "None" | "null" | "NULL"
    )
}

/// Converts the text of a list to JSON, which is invalid if the text is neither; `None` if the text is not a list.
pub(super) fn json(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim();
    let is_between = |open, close| text.starts_with(open) && text[1..].ends_with(close);
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let is_list = is_between('[', ']');
    if is_list && is_json(text) {
        return Some(Cow::Borrowed(text));
    }
    let python = || python(text).filter(|python| is_json(python));
    match (is_list || is_between('(', ')')).then(python)? {
        Some(python) => Some(Cow::Owned(python)),
        None => is_list.then_some(Cow::Borrowed(text)),
    }
}

/// Converts the text of a Python list of strings, numbers, lists and dictionaries; `None` for other text. The items of
/// a NumPy array have no commas between them.
fn python(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|char: char| !(char.is_ascii_alphanumeric() || "+-._".contains(char)));
        let (word, after) = rest.split_at(word.unwrap_or(rest.len()));
        rest = match first {
            '\'' | '"' => {
                if out.ends_with('"') {
                    out.push(',');
                }
                string(&rest[1..], first, &mut out)?
            }
            ']' | ')' | '}' => {
                if out.ends_with(',') {
                    out.pop();
                }
                out.push(if first == '}' { '}' } else { ']' });
                &rest[1..]
            }
            _ if word.is_empty() => {
                match first {
                    '(' => out.push('['),
                    '[' | '{' | ',' | ':' => out.push(first),
                    first if first.is_whitespace() => {}
                    _ => return None,
                }
                &rest[first.len_utf8()..]
            }
            _ => {
                out.push_str(match word {
                    "True" => "true",
                    "False" => "false",
                    "None" | "nan" | "NaN" => "null",
                    "u" | "b" if after.starts_with(['\'', '"']) => "",
                    number => number,
                });
                after
            }
        };
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
    use super::json;

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
            (
                "[{'url': 'http://b/', 'nofollow': True}, {'url': '/c'}]",
                Some(r#"[{"url":"http://b/","nofollow":true},{"url":"/c"}]"#),
            ),
            ("[http://b/, /c]", Some("[http://b/, /c]")),
            ("[", None),
            ("{http://b/,/c}", None),
            ("array(['/c'], dtype=object)", None),
            ("http://b/@@/c", None),
            ("", None),
            ("{{url}}", None),
            ("(function)", None),
            ("/x[1]", None),
        ] {
            assert_eq!(json(text).as_deref(), expected, "{text}");
        }
    }
}
