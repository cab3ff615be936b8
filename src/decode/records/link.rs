//! The links of a record: URLs, or objects with a URL and what the page says of the link.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::names::{Known, LinkField, Names, Seen};
use super::{Key, Link, Text, keep};
use crate::rules::Rel;

/// Reads an array of links in place of what the vector holds; the value is `false`, and the
/// vector untouched, for `null`.
pub(super) struct Links<'r, 'n, 'a> {
    pub names: &'n Names,
    pub links: &'r mut Vec<Link<'a>>,
}

impl<'de> DeserializeSeed<'de> for Links<'_, '_, 'de> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Links<'_, '_, 'de> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of links, or null")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<bool, E> {
        self.links.clear();
        for link in joined(text) {
            keep(self.links, Link::to(link.as_bytes()));
        }
        Ok(true)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        self.links.clear();
        for link in joined(text) {
            keep(self.links, Link::to(link.as_bytes().to_vec()));
        }
        Ok(true)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        self.links.clear();
        while let Some(link) = seq.next_element_seed(One(self.names))? {
            keep(self.links, link);
        }
        Ok(true)
    }
}

/// URLs in one text, as advertools writes them.
pub(super) fn joined(text: &str) -> impl Iterator<Item = &str> {
    text.split("@@").filter(|url| !url.is_empty())
}

/// Reads a link: its URL, or an object.
struct One<'n>(&'n Names);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Link<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Link<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Link<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.0.link_name(LinkField::Url);
        write!(f, "a link: a string, or an object with `{url}`")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Link<'de>, E> {
        Ok(Link::to(text.as_bytes()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Link<'de>, E> {
        Ok(Link::to(text.as_bytes().to_vec()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Link<'de>, A::Error> {
        let One(names) = self;
        let mut url: Option<(u8, Text<'de>)> = None;
        let mut rel = Rel::default();
        let mut seen = Seen::default();
        while let Some(known) = map.next_key_seed(Key(names, Names::link_field))? {
            let Some(Known { field, order }) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.again(order) {
                let name = names.link_name(field);
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            match field {
                LinkField::Url if url.as_ref().is_some_and(|(first, _)| *first < order) => {
                    map.next_value::<IgnoredAny>()?;
                }
                LinkField::Url => url = Some((order, map.next_value()?)),
                LinkField::Rel => rel = rel.with(map.next_value::<Said>()?.0),
                LinkField::Nofollow if map.next_value::<Option<bool>>()? == Some(true) => {
                    rel = rel.with(Rel::NOFOLLOW);
                }
                LinkField::Nofollow => {}
            }
        }
        let Some((_, Text(url))) = url else {
            let name = names.link_name(LinkField::Url);
            return Err(A::Error::custom(format_args!("missing field `{name}`")));
        };
        Ok(Link { url, rel })
    }
}

/// `rel`: the attribute's text, a list of its words, or null.
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
