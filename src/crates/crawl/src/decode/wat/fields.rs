//! Fields of extractors' JSON, which varies more than derived types allow: names in any case, `null` and numbers for
//! text, repeated headers as lists, a single object without its list.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::attribute;
use crate::decode::Link;
use crate::decode::html::Meta;
use crate::decode::http;
use crate::decode::json::{Value, ValueSeed};
use crate::model::keep;
use crate::rules::Rel;

/// Name of a text, or of an object whose presence counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    /// Presence of the header of a WARC record.
    Warc,
    Kind,
    Url,
    Date,
    Digest,
    RefersTo,
    /// Presence of the header of an ARC record.
    Arc,
    ArcUrl,
    ArcDate,
    Method,
    Response,
    Status,
    Length,
    /// Digest of the body, computed by the extractor.
    BodyDigest,
    Location,
    Refresh,
    Robots,
    ContentLength,
    TransferEncoding,
    Base,
    HttpEquiv,
    Name,
    Content,
    Path,
    LinkUrl,
    Rel,
}

const KEYS: usize = Key::Rel as usize + 1;

enum Node {
    /// Object with these fields; its presence is noted under the key.
    Object(Option<Key>, &'static [(&'static str, Node)]),
    /// List of objects, or a single object without its list: links, or `<meta>`s.
    Items(ItemKind, &'static [(&'static str, Node)]),
    /// Text or number, or a list of them.
    Text(Key),
}

#[derive(Clone, Copy)]
enum ItemKind {
    Link,
    Meta,
}

use Node::{Items, Object, Text};

static RECORD: Node = Object(None, &[("Envelope", Object(None, ENVELOPE))]);

const ENVELOPE: &[(&str, Node)] = &[
    ("WARC-Header-Metadata", Object(Some(Key::Warc), WARC)),
    ("ARC-Header-Metadata", Object(Some(Key::Arc), ARC)),
    ("Payload-Metadata", Object(None, PAYLOAD)),
];

const WARC: &[(&str, Node)] = &[
    ("WARC-Type", Text(Key::Kind)),
    ("WARC-Target-URI", Text(Key::Url)),
    ("WARC-Date", Text(Key::Date)),
    ("WARC-Payload-Digest", Text(Key::Digest)),
    ("WARC-Refers-To-Target-URI", Text(Key::RefersTo)),
];

const ARC: &[(&str, Node)] = &[
    ("Target-URI", Text(Key::ArcUrl)),
    ("Date", Text(Key::ArcDate)),
];

const PAYLOAD: &[(&str, Node)] = &[
    ("HTTP-Request-Metadata", Object(None, REQUEST)),
    (
        "HTTP-Response-Metadata",
        Object(Some(Key::Response), RESPONSE),
    ),
];

const REQUEST: &[(&str, Node)] = &[(
    "Request-Message",
    Object(None, &[("Method", Text(Key::Method))]),
)];

const RESPONSE: &[(&str, Node)] = &[
    (
        "Response-Message",
        Object(None, &[("Status", Text(Key::Status))]),
    ),
    ("Headers", Object(None, HEADERS)),
    ("Entity-Length", Text(Key::Length)),
    ("Entity-Digest", Text(Key::BodyDigest)),
    ("HTML-Metadata", Object(None, HTML)),
];

const HEADERS: &[(&str, Node)] = &[
    ("Location", Text(Key::Location)),
    ("Refresh", Text(Key::Refresh)),
    ("X-Robots-Tag", Text(Key::Robots)),
    ("Content-Length", Text(Key::ContentLength)),
    ("Transfer-Encoding", Text(Key::TransferEncoding)),
];

const HTML: &[(&str, Node)] = &[
    ("Head", Object(None, HEAD)),
    ("Links", Items(ItemKind::Link, LINK)),
];

const HEAD: &[(&str, Node)] = &[
    ("Base", Text(Key::Base)),
    ("Metas", Items(ItemKind::Meta, META)),
];

const META: &[(&str, Node)] = &[
    ("http-equiv", Text(Key::HttpEquiv)),
    ("name", Text(Key::Name)),
    ("content", Text(Key::Content)),
];

const LINK: &[(&str, Node)] = &[
    ("path", Text(Key::Path)),
    ("url", Text(Key::LinkUrl)),
    ("rel", Text(Key::Rel)),
];

#[derive(Default)]
pub(super) struct Facts<'a> {
    texts: [Option<Cow<'a, str>>; KEYS],
    pub links: Vec<Link<'a>>,
    pub refreshes: Vec<Link<'a>>,
    /// True if a `<meta>` makes all links `nofollow`.
    pub meta_nofollow: bool,
    /// True if an `X-Robots-Tag` makes all links `nofollow`.
    pub nofollow: bool,
    /// True if a body of at least one byte was announced.
    pub announced: bool,
}

impl<'a> Facts<'a> {
    pub fn has(&self, key: Key) -> bool {
        self.texts[key as usize].is_some()
    }

    pub fn get(&self, key: Key) -> Option<&str> {
        self.texts[key as usize].as_deref()
    }

    pub fn take(&mut self, key: Key) -> Option<Cow<'a, str>> {
        self.texts[key as usize].take()
    }

    /// Stores a text or number, or those of a list. The first counts; of a header, the first that is not blank.
    fn set(&mut self, key: Key, value: Value<'a>) -> serde_json::Result<()> {
        let text: Cow<'a, str> = match value {
            Value::Null => return Ok(()),
            Value::Text(text) => text,
            Value::Int(number) => number.to_string().into(),
            Value::Unsigned(number) => number.to_string().into(),
            Value::Float(number) => number.to_string().into(),
            Value::List(values) => {
                let mut values = values.into_iter();
                return values.try_for_each(|value| self.set(key, value));
            }
            other => return Err(other.wrong_type("a text, a number, or a list of them")),
        };
        match key {
            Key::Robots => self.nofollow |= http::is_nofollow(text.as_bytes()),
            Key::ContentLength => self.announced |= !matches!(text.trim(), "" | "0"),
            Key::TransferEncoding => {
                self.announced |= text.to_ascii_lowercase().contains("chunked");
            }
            Key::Location | Key::Refresh if text.trim().is_empty() => {}
            _ => drop(self.texts[key as usize].get_or_insert(text)),
        }
        Ok(())
    }

    fn end(&mut self, item: ItemKind) {
        match item {
            ItemKind::Meta => {
                let [http_equiv, name, content] = [Key::HttpEquiv, Key::Name, Key::Content]
                    .map(|key| self.take(key).map(attribute));
                let meta = Meta {
                    http_equiv,
                    name,
                    content,
                };
                if let Some(url) = meta.refresh() {
                    keep(&mut self.refreshes, Link::to(url.to_vec()));
                }
                self.meta_nofollow |= meta.is_nofollow();
            }
            ItemKind::Link => {
                let [path, url, rel] =
                    [Key::Path, Key::LinkUrl, Key::Rel].map(|key| self.take(key));
                // Only anchors and areas of image maps are links.
                let is_link = matches!(path.as_deref(), Some("A@/href" | "AREA@/href"));
                if let (true, Some(url)) = (is_link, url) {
                    let rel = rel.map(|rel| Rel::of(&attribute(rel))).unwrap_or_default();
                    let link = Link::to(attribute(url));
                    keep(&mut self.links, Link { rel, ..link });
                }
            }
        }
    }
}

pub(super) struct Walk<'f, 'a> {
    node: &'static Node,
    facts: &'f mut Facts<'a>,
}

impl<'f, 'a> Walk<'f, 'a> {
    pub fn of(facts: &'f mut Facts<'a>) -> Walk<'f, 'a> {
        let node = &RECORD;
        Walk { node, facts }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let Walk { node, facts } = self;
        match node {
            Object(..) | Items(..) => json.deserialize_any(Walk { node, facts }),
            Text(key) => ValueSeed::to(|value| facts.set(*key, value)).deserialize(json),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.node {
            Items(..) => "a list of objects",
            _ => "an object",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Walk { node, facts } = self;
        let (Object(_, fields) | Items(_, fields)) = node else {
            return Ok(());
        };
        let find = |name: Value<'_>| {
            let is = |(known, _): &&(&str, _)| known.eq_ignore_ascii_case(name.text());
            Ok(fields.iter().find(is))
        };
        while let Some(known) = map.next_key_seed(ValueSeed::to(find))? {
            match known {
                Some((_, node)) => map.next_value_seed(Walk { node, facts })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match node {
            Object(Some(key), _) => drop(facts.texts[*key as usize].get_or_insert_default()),
            Items(item, _) => facts.end(*item),
            _ => {}
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Walk { node, facts } = self;
        if !matches!(node, Items(..)) {
            let wrong = Value::List(Vec::new()).wrong_type("an object");
            return Err(A::Error::custom(wrong));
        }
        while seq.next_element_seed(Walk { node, facts })?.is_some() {}
        Ok(())
    }
}
