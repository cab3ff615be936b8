//! Values of records' fields in all notations of crawlers: texts, times, statuses, lists of URLs, counts; links: URLs, or
//! objects with a URL and attributes of the link; lists with one value per link; and lists that tables without list types
//! write as one text: JSON, or Python's `repr`, which is converted to JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Result as JsonResult;

use super::names::{FieldNameMap, NameBits, NamedField};
use super::{FirstNamed, Link, keep};
use crate::decode::json::{Any, Value, bytes, value_to};
use crate::decode::{Bad, RecordTime, groups, time};
use crate::model::{FetchTotals, LINKS_MAX};
use crate::rules::{FieldName, Rel};

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

/// Reads a list of links, replacing the contents of `links`. For `null` the result is `false`, and `links` is untouched.
pub(super) struct LinksVisitor<'r, 'n, 'a> {
    pub names: &'n FieldNameMap,
    pub links: &'r mut Vec<Link<'a>>,
    /// Positions in the list of values that are not links, because they are null or empty.
    pub nulls: &'r mut Vec<usize>,
}

impl<'a> LinksVisitor<'_, '_, 'a> {
    fn clear(&mut self) {
        self.links.clear();
        self.nulls.clear();
    }

    fn add(&mut self, at: usize, link: Option<Link<'a>>) {
        match link {
            Some(link) => keep(self.links, link),
            None => self.nulls.push(at),
        }
    }

    /// Reads links written as one text.
    fn text<E: Error>(mut self, text: Cow<'a, str>) -> Result<bool, E> {
        if is_missing(&text) {
            return Ok(false);
        }
        self.clear();
        let Some(json) = list_json(&text) else {
            for (at, url) in split_parts(text).into_iter().enumerate() {
                self.add(at, (!url.is_empty()).then(|| Link::to(url)));
            }
            return Ok(true);
        };
        let mut links = Vec::new();
        let list = LinksVisitor {
            names: self.names,
            links: &mut links,
            nulls: self.nulls,
        };
        let read = serde_json::Deserializer::from_str(&json).deserialize_any(list);
        read.map_err(|error| E::custom(format_args!("in the text of a list: {error}")))?;
        let owned = |link: Link<'_>| -> Link<'a> { link.into_owned() };
        self.links.extend(links.into_iter().map(owned));
        Ok(true)
    }
}

impl<'de> Visitor<'de> for LinksVisitor<'_, '_, 'de> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of links, or null")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<bool, E> {
        self.text(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        self.text(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<bool, A::Error> {
        self.clear();
        let mut at = 0;
        while let Some(link) = seq.next_element_seed(Any(One(self.names)))? {
            self.add(at, link);
            at += 1;
        }
        Ok(true)
    }
}

/// Splits values joined by `@@`, as advertools writes them; yields nothing if the text says that there is no list.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let is_none = text.is_empty() || is_missing(text);
    text.split("@@").filter(move |_| !is_none)
}

fn split_parts<'a>(text: Cow<'a, str>) -> Vec<Text<'a>> {
    match text {
        Cow::Borrowed(text) => parts(text).map(|part| part.as_bytes().into()).collect(),
        Cow::Owned(text) => parts(&text)
            .map(|part| part.as_bytes().to_vec().into())
            .collect(),
    }
}

/// Reads each value of a list or of a list's text; `None` if `list` is neither.
pub(super) fn each<T>(
    list: Value<'_>,
    mut read: impl FnMut(Value<'_>) -> JsonResult<T>,
) -> Option<JsonResult<Vec<T>>> {
    Some(match list {
        Value::List(values) => values.into_iter().map(read).collect(),
        Value::Text(text) => match list_json(&text) {
            Some(json) => {
                let values: Vec<Value<'_>> = serde_json::from_str(&json).ok()?;
                values.into_iter().map(read).collect()
            }
            None => parts(&text)
                .map(|part| read(Value::Text(part.into())))
                .collect(),
        },
        _ => return None,
    })
}

/// Reads `links_nofollow`, a list of booleans. `None`: the value is something else, and ignored.
pub(super) fn nofollows(list: Value<'_>) -> Option<Vec<Rel>> {
    let nofollow = |value: Value<'_>| {
        let text = match value {
            Value::Text(ref text) => text.trim().to_ascii_lowercase(),
            _ => String::new(),
        };
        match (value, &*text) {
            (Value::Bool(true) | Value::Int(1) | Value::Float(1.0), _)
            | (Value::Text(_), "true" | "t" | "1" | "nofollow") => Ok(Rel::NOFOLLOW),
            (Value::Null | Value::Bool(false) | Value::Int(0) | Value::Float(0.0), _)
            | (Value::Text(_), "false" | "f" | "0" | "") => Ok(Rel::default()),
            _ => Err(Error::custom("no boolean")),
        }
    };
    each(list, nofollow)?.ok()
}

/// Reads `links_rel`, a list of `rel` attributes. `None`: the value is something else, and ignored.
pub(super) fn rels(list: Value<'_>) -> Option<Vec<Rel>> {
    each(list, rel)?.ok()
}

pub(super) fn weights(list: Value<'_>) -> JsonResult<Option<Vec<u32>>> {
    if matches!(list, Value::Null) {
        return Ok(None);
    }
    let weights = each(list, |value| match value {
        Value::Text(text) if text.trim().is_empty() => Ok(1),
        Value::Text(text) => {
            groups::weight(text.trim().as_bytes()).map_err(|bad| Error::custom(bad.detail))
        }
        value => weight(value),
    });
    weights
        .unwrap_or_else(|| Err(Error::custom("weights are no list")))
        .map(Some)
}

/// Assigns each link its value of a separate list; `nulls` are the positions in the list that have no link.
pub(super) fn put_each<'a, T>(
    links: &mut [Link<'a>],
    nulls: &[usize],
    values: Option<Vec<T>>,
    put: impl Fn(&mut Link<'a>, T),
) -> Result<(), String> {
    let all = links.len() + nulls.len();
    let values = values.unwrap_or_default();
    if all == 0 || values.is_empty() || links.len() > LINKS_MAX {
        return Ok(());
    }
    if values.len() != all {
        return Err(format!("{} values for {all} links", values.len()));
    }
    let of_links = (0..)
        .zip(values)
        .filter(|(at, _)| nulls.binary_search(at).is_err());
    for (link, (_, value)) in links.iter_mut().zip(of_links) {
        put(link, value);
    }
    Ok(())
}

/// Reads one link: a URL or an object; `None` for null.
struct One<'n>(&'n FieldNameMap);

impl<'de> Visitor<'de> for One<'_> {
    type Value = Option<Link<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.0.link.name(FieldName::LinkUrl);
        write!(f, "a link: a string, or an object with `{url}`")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Option<Link<'de>>, E> {
        Ok(Some(Link::to(text.as_bytes())))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<Link<'de>>, E> {
        Ok(Some(Link::to(text.as_bytes().to_vec())))
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Link<'de>>, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Link<'de>>, A::Error> {
        let names = self.0;
        let mut url = FirstNamed::default();
        let mut is_named = false;
        let mut link = Link::to(Cow::default());
        let mut seen = NameBits::default();
        let field = |name: Value<'_>| Ok(names.link.field(name.text()));
        while let Some(known) = map.next_key_seed(value_to(field))? {
            let Some(NamedField { field, order }) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.was_seen(order) {
                let name = names.link.name(field);
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            let value: Value<'de> = map.next_value()?;
            let take = || -> JsonResult<()> {
                match (field, value) {
                    (FieldName::LinkUrl, value) => {
                        url.put(order, text(value)?);
                        is_named = true;
                    }
                    (FieldName::LinkRel, value) => link.rel = link.rel.with(rel(value)?),
                    (FieldName::LinkNofollow, Value::Bool(true)) => {
                        link.rel = link.rel.with(Rel::NOFOLLOW);
                    }
                    (FieldName::LinkNofollow, Value::Bool(false) | Value::Null) => {}
                    (FieldName::LinkNofollow, other) => return Err(other.wrong_type("a boolean")),
                    (FieldName::LinkWeight, value) => link.weight = weight(value)?,
                    _ => {}
                }
                Ok(())
            };
            take().map_err(A::Error::custom)?;
        }
        if !is_named {
            let name = names.link.name(FieldName::LinkUrl);
            return Err(A::Error::custom(format_args!("missing field `{name}`")));
        }
        Ok(url.get().map(|url| Link { url, ..link }))
    }
}

/// Reads a `weight`: a whole number of 32 bits, which may be written as 3.0, or null for 1.
fn weight(value: Value<'_>) -> JsonResult<u32> {
    let expected = || {
        let most = u32::MAX;
        format!("`weight`: a whole number from 0 to {most}, or null")
    };
    let weight = match &value {
        Value::Null => Some(1),
        Value::Int(number) => u32::try_from(*number).ok(),
        Value::Float(number) => Some(*number as u32).filter(|whole| f64::from(*whole) == *number),
        _ => return Err(value.wrong_type(&expected())),
    };
    weight.ok_or_else(|| value.wrong_value(&expected()))
}

/// Reads a `rel`: the text of the attribute, a list of its words, or null.
fn rel(value: Value<'_>) -> JsonResult<Rel> {
    match value {
        Value::Null => Ok(Rel::default()),
        Value::Text(words) => Ok(Rel::of(words.as_bytes())),
        Value::List(words) => words
            .into_iter()
            .try_fold(Rel::default(), |rel, word| match word {
                Value::Text(word) => Ok(rel.with(Rel::of(word.as_bytes()))),
                other => Err(other.wrong_type("a string")),
            }),
        other => Err(other.wrong_type("`rel`: a string, a list of strings, or null")),
    }
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
