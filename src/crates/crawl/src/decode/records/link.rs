//! Links of a record: URLs, or objects with a URL and attributes of the link.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde_json::Value;

use super::names::{FieldNameMap, LinkField, NameBits, NamedField};
use super::{FieldKey, FirstNamed, JsonText, Link, keep, listed};
use crate::decode::groups;
use crate::model::LINKS_MAX;
use crate::rules::Rel;

/// Reads links, replacing the contents of `links`. The value is `false`, with `links` untouched, for `null`.
pub(super) struct LinksSeed<'r, 'n, 'a> {
    pub names: &'n FieldNameMap,
    pub links: &'r mut Vec<Link<'a>>,
    /// Positions in the list of values that are not links, because they are null or empty.
    pub nulls: &'r mut Vec<usize>,
}

impl<'a> LinksSeed<'_, '_, 'a> {
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

    /// Reads the text of a list; returns `false` if it is not one.
    fn list<E: Error>(&mut self, text: &str) -> Result<bool, E> {
        let Some(json) = listed::json(text) else {
            return Ok(false);
        };
        let mut links = Vec::new();
        let list = LinksSeed {
            names: self.names,
            links: &mut links,
            nulls: self.nulls,
        };
        let read = list.deserialize(&mut serde_json::Deserializer::from_str(&json));
        read.map_err(|error| E::custom(format_args!("in the text of a list: {error}")))?;
        let owned = links.into_iter().map(|link| Link {
            url: Cow::Owned(link.url.into_owned()),
            rel: link.rel,
            weight: link.weight,
        });
        self.links.extend(owned);
        Ok(true)
    }
}

impl<'de> DeserializeSeed<'de> for LinksSeed<'_, '_, 'de> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LinksSeed<'_, '_, 'de> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of links, or null")
    }

    fn visit_borrowed_str<E: Error>(mut self, text: &'de str) -> Result<bool, E> {
        if listed::is_missing(text) {
            return Ok(false);
        }
        self.clear();
        if !self.list(text)? {
            for (at, url) in parts(text).enumerate() {
                self.add(at, (!url.is_empty()).then(|| Link::to(url.as_bytes())));
            }
        }
        Ok(true)
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<bool, E> {
        if listed::is_missing(text) {
            return Ok(false);
        }
        self.clear();
        if !self.list(text)? {
            for (at, url) in parts(text).enumerate() {
                self.add(
                    at,
                    (!url.is_empty()).then(|| Link::to(url.as_bytes().to_vec())),
                );
            }
        }
        Ok(true)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<bool, A::Error> {
        self.clear();
        let mut at = 0;
        while let Some(link) = seq.next_element_seed(One(self.names))? {
            self.add(at, link);
            at += 1;
        }
        Ok(true)
    }
}

/// Splits values joined by `@@`, as advertools writes them; yields nothing if the text says that there is no list.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let is_none = text.is_empty() || listed::is_missing(text);
    text.split("@@").filter(move |_| !is_none)
}

/// Returns the values of a list, or of the text of one; `None` if it is something else.
fn values(list: Value) -> Option<Vec<Value>> {
    match list {
        Value::Array(values) => Some(values),
        Value::String(text) => match listed::json(&text) {
            Some(json) => serde_json::from_str(&json).ok(),
            None => Some(parts(&text).map(Value::from).collect()),
        },
        _ => None,
    }
}

/// Returns the URLs in a text: a list, or URLs joined by `@@`.
pub(super) fn urls(text: &str) -> Vec<Cow<'_, str>> {
    let list = listed::json(text);
    match list.and_then(|json| serde_json::from_str::<Vec<Option<String>>>(&json).ok()) {
        Some(urls) => urls.into_iter().flatten().map(Cow::Owned).collect(),
        None => parts(text).map(Cow::Borrowed).collect(),
    }
}

/// Attributes of a record's links, given in a separate list.
pub(super) struct Marks(pub Vec<Rel>);

impl Marks {
    /// Reads `links_nofollow`, a list of booleans. `None`: it is something else and ignored.
    pub fn nofollow(value: Value) -> Option<Marks> {
        Marks::of(value, |value| {
            let is_true = match &value {
                Value::Null => false,
                Value::Bool(is_true) => *is_true,
                Value::Number(number) => match number.as_f64()? {
                    0.0 => false,
                    1.0 => true,
                    _ => return None,
                },
                Value::String(text) => match &*text.trim().to_ascii_lowercase() {
                    "true" | "t" | "1" | "nofollow" => true,
                    "false" | "f" | "0" | "" => false,
                    _ => return None,
                },
                _ => return None,
            };
            Some(if is_true {
                Rel::NOFOLLOW
            } else {
                Rel::default()
            })
        })
    }

    /// Reads `links_rel`, a list of `rel` attributes. `None`: it is something else and ignored.
    pub fn rel(value: Value) -> Option<Marks> {
        Marks::of(value, |value| {
            serde_json::from_value(value).ok().map(|Said(rel)| rel)
        })
    }

    fn of(value: Value, mark: impl Fn(Value) -> Option<Rel>) -> Option<Marks> {
        values(value)?
            .into_iter()
            .map(mark)
            .collect::<Option<_>>()
            .map(Marks)
    }

    /// Adds each mark to its link; `nulls` are the positions that are not links. Fails if the counts differ.
    pub fn put(&self, links: &mut [Link<'_>], nulls: &[usize]) -> Result<(), String> {
        put_each(links, nulls, &self.0, |link, mark| {
            link.rel = link.rel.with(*mark)
        })
    }
}

/// Weights of a record's links, given in a separate list.
pub(super) struct LinkWeights(pub Vec<u32>);

impl<'de> Deserialize<'de> for LinkWeights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LinkWeights, D::Error> {
        let list = Value::deserialize(deserializer)?;
        let weights = values(list).ok_or_else(|| D::Error::custom("weights are no list"))?;
        let weight = |value| match value {
            Value::String(text) if text.trim().is_empty() => Ok(1),
            Value::String(text) => groups::weight(text.trim().as_bytes()).map_err(|bad| bad.detail),
            value => Weight::deserialize(value)
                .map(|Weight(weight)| weight)
                .map_err(|error| error.to_string()),
        };
        let weights: Result<Vec<u32>, String> = weights.into_iter().map(weight).collect();
        weights.map(LinkWeights).map_err(D::Error::custom)
    }
}

/// Assigns each link its value of a separate list; `nulls` are the positions that are not links. Fails if the counts
/// differ.
pub(super) fn put_each<'a, T>(
    links: &mut [Link<'a>],
    nulls: &[usize],
    values: &[T],
    put: impl Fn(&mut Link<'a>, &T),
) -> Result<(), String> {
    let all = links.len() + nulls.len();
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

/// Reads one link: a URL or an object; null yields none.
struct One<'n>(&'n FieldNameMap);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Option<Link<'de>>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Option<Link<'de>>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Option<Link<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.0.link_name(LinkField::Url);
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
        let One(names) = self;
        let mut url = FirstNamed::default();
        let mut is_named = false;
        let mut rel = Rel::default();
        let mut weight = 1;
        let mut seen = NameBits::default();
        while let Some(known) = map.next_key_seed(FieldKey(names, FieldNameMap::link_field))? {
            let Some(NamedField { field, order }) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.again(order) {
                let name = names.link_name(field);
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            match field {
                LinkField::Url => {
                    url.put(order, map.next_value()?);
                    is_named = true;
                }
                LinkField::Rel => rel = rel.with(map.next_value::<Said>()?.0),
                LinkField::Nofollow if map.next_value::<Option<bool>>()? == Some(true) => {
                    rel = rel.with(Rel::NOFOLLOW);
                }
                LinkField::Nofollow => {}
                LinkField::Weight => weight = map.next_value::<Weight>()?.0,
            }
        }
        if !is_named {
            let name = names.link_name(LinkField::Url);
            return Err(A::Error::custom(format_args!("missing field `{name}`")));
        }
        Ok(url.get().map(|JsonText(url)| Link { url, rel, weight }))
    }
}

/// `weight`: a whole number of 32 bits, also written as 3.0, or null for 1.
struct Weight(u32);

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Weight, D::Error> {
        deserializer.deserialize_any(WeightVisitor)
    }
}

struct WeightVisitor;

impl Visitor<'_> for WeightVisitor {
    type Value = Weight;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`weight`: a whole number from 0 to {}, or null",
            u32::MAX
        )
    }

    fn visit_unit<E: Error>(self) -> Result<Weight, E> {
        Ok(Weight(1))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Weight, E> {
        let wrong = || E::invalid_value(Unexpected::Unsigned(number), &self);
        u32::try_from(number).map(Weight).map_err(|_| wrong())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Weight, E> {
        let wrong = || E::invalid_value(Unexpected::Signed(number), &self);
        u32::try_from(number).map(Weight).map_err(|_| wrong())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Weight, E> {
        if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) {
            Ok(Weight(number as u32))
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }
}

/// `rel`: the text of the attribute, a list of its words, or null.
struct Said(Rel);

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Said, D::Error> {
        deserializer.deserialize_any(SaidVisitor)
    }
}

struct SaidVisitor;

impl<'de> Visitor<'de> for SaidVisitor {
    type Value = Said;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`rel`: a string, a list of strings, or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Said, E> {
        Ok(Said(Rel::default()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Said, E> {
        Ok(Said(Rel::of(text.as_bytes())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Said, A::Error> {
        let mut rel = Rel::default();
        while let Some(word) = seq.next_element::<Cow<'_, str>>()? {
            rel = rel.with(Rel::of(word.as_bytes()));
        }
        Ok(Said(rel))
    }
}
