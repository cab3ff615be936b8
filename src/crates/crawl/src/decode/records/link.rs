//! Links of a record: URLs, or objects with a URL and attributes of the link; and lists with one value per link.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Result as JsonResult;

use super::names::{FieldNameMap, NameBits, NamedField};
use super::values::{Text, is_missing, list_json, text};
use super::{FirstNamed, Link, keep};
use crate::decode::groups;
use crate::decode::json::{Any, Value, value_to};
use crate::model::LINKS_MAX;
use crate::rules::{FieldName, Rel};

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

/// Assigns each link its value of a separate list, if there is one; `nulls` are the positions in the list that have no
/// link. Fails if the counts differ.
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
            if seen.again(order) {
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
