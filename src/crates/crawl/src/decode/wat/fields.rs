//! Fields of extractors' JSON, which varies more than derived types allow: names in any case, `null` and numbers for
//! text, repeated headers as lists, a single object without its list.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::attribute;
use crate::decode::Link;
use crate::decode::html::Meta;
use crate::decode::http;
use crate::decode::json::{Value, value_to};
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

#[derive(Clone, Copy)]
enum Node {
    /// Object, whose presence is noted under the key.
    Object(Option<Key>),
    /// List of objects, or a single object without its list.
    Items,
    /// Text or number, or a list of them.
    Text(Key),
}

use Node::{Items, Object, Text};

/// Fields that are read, each after the object that holds it, with its depth.
const FIELDS: &[(u8, &str, Node)] = &[
    (0, "", Object(None)),
    (1, "Envelope", Object(None)),
    (2, "WARC-Header-Metadata", Object(Some(Key::Warc))),
    (3, "WARC-Type", Text(Key::Kind)),
    (3, "WARC-Target-URI", Text(Key::Url)),
    (3, "WARC-Date", Text(Key::Date)),
    (3, "WARC-Payload-Digest", Text(Key::Digest)),
    (3, "WARC-Refers-To-Target-URI", Text(Key::RefersTo)),
    (2, "ARC-Header-Metadata", Object(Some(Key::Arc))),
    (3, "Target-URI", Text(Key::ArcUrl)),
    (3, "Date", Text(Key::ArcDate)),
    (2, "Payload-Metadata", Object(None)),
    (3, "HTTP-Request-Metadata", Object(None)),
    (4, "Request-Message", Object(None)),
    (5, "Method", Text(Key::Method)),
    (3, "HTTP-Response-Metadata", Object(Some(Key::Response))),
    (4, "Response-Message", Object(None)),
    (5, "Status", Text(Key::Status)),
    (4, "Headers", Object(None)),
    (5, "Location", Text(Key::Location)),
    (5, "Refresh", Text(Key::Refresh)),
    (5, "X-Robots-Tag", Text(Key::Robots)),
    (5, "Content-Length", Text(Key::ContentLength)),
    (5, "Transfer-Encoding", Text(Key::TransferEncoding)),
    (4, "Entity-Length", Text(Key::Length)),
    (4, "Entity-Digest", Text(Key::BodyDigest)),
    (4, "HTML-Metadata", Object(None)),
    (5, "Head", Object(None)),
    (6, "Base", Text(Key::Base)),
    (6, "Metas", Items),
    (7, "http-equiv", Text(Key::HttpEquiv)),
    (7, "name", Text(Key::Name)),
    (7, "content", Text(Key::Content)),
    (5, "Links", Items),
    (6, "path", Text(Key::Path)),
    (6, "url", Text(Key::LinkUrl)),
    (6, "rel", Text(Key::Rel)),
];

/// Returns the index of the field of this name in the object at index `of`.
fn field_in(of: usize, name: &str) -> Option<usize> {
    let depth = FIELDS[of].0;
    let is_field = |&at: &usize| {
        let (level, known, _) = FIELDS[at];
        level == depth + 1 && known.eq_ignore_ascii_case(name)
    };
    let mut inside = (of + 1..FIELDS.len()).take_while(|&at| FIELDS[at].0 > depth);
    inside.find(is_field)
}

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

    /// Takes the texts of an object in this list.
    fn end(&mut self, list: &str) {
        match list {
            "Metas" => {
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
            _ => {
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
    /// Index of the field being read; 0 is the whole.
    pub at: usize,
    pub facts: &'f mut Facts<'a>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match FIELDS[self.at].2 {
            Object(_) | Items => json.deserialize_any(self),
            Text(key) => value_to(|value| self.facts.set(key, value)).deserialize(json),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match FIELDS[self.at].2 {
            Items => "a list of objects",
            _ => "an object",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Walk { at, facts } = self;
        let find = |name: Value<'_>| Ok(field_in(at, name.text()));
        while let Some(known) = map.next_key_seed(value_to(find))? {
            match known {
                Some(at) => map.next_value_seed(Walk { at, facts })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        match FIELDS[at].2 {
            Object(Some(key)) => drop(facts.texts[key as usize].get_or_insert_default()),
            Items => facts.end(FIELDS[at].1),
            _ => {}
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Walk { at, facts } = self;
        if !matches!(FIELDS[at].2, Items) {
            let wrong = Value::List(Vec::new()).wrong_type("an object");
            return Err(A::Error::custom(wrong));
        }
        while seq.next_element_seed(Walk { at, facts })?.is_some() {}
        Ok(())
    }
}
