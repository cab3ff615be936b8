//! Common Crawl WAT: the facts that an extractor found in each record of a WARC or ARC file, as JSON in WARC `metadata`
//! records. Specified in `formats/wat.md`.
//!
//! The JSON varies more than derived types allow: names in any case, `null` and numbers for text, repeated headers as
//! lists, a single object without its list.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use memchr::memmem;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use xxhash_rust::xxh3::xxh3_64;

use super::exchange::{Archives, CaptureFacts, Role};
use super::frame::{Frame, WARC, WarcHeader, bare, record_kind};
use super::html::{self, Meta};
use super::http::{self, NO_BODY};
use super::json::{self, Value, bytes, value_to};
use super::warc::is_web;
use super::{Bad, FormatSpec, Link, Names, ReadResult, Reason, Record, put_time, time, utf8};
use crate::model::{Digest, is_redirect, keep};
use crate::rules::{Outlinks, Rel};

pub const FORMAT: FormatSpec = FormatSpec {
    name: "wat",
    about: "Common Crawl WAT: the metadata of pages, with their links",
    by: |rules, limits| {
        std::sync::Arc::new(Archives {
            framing: &WARC,
            role,
            has_ids: false,
            outlinks: Outlinks::Html,
            limit: limits.line_bytes,
            shard: rules.shard,
            read,
        })
    },
};

fn role(header: &WarcHeader<'_>, block: &[u8]) -> Option<Role> {
    header.target.filter(|_| is_wat(header))?;
    // Quotes within a text are escaped, so both can only be names of fields.
    let has = |name: &[u8]| memmem::find(block, name).is_some();
    if has(b"\"HTTP-Request-Metadata\"") {
        return Some(Role::Request);
    }
    has(b"\"HTTP-Response-Metadata\"").then_some(Role::Capture)
}

/// Returns the page of a response if it belongs to another shard, by both the record's header and the JSON.
fn passed_over<'a>(archives: &Archives, frame: &Frame<'a>) -> Option<&'a [u8]> {
    let shard = archives.shard?;
    let (header, block) = frame.parts.as_ref().ok()?;
    let page = header.target.filter(|_| is_wat(header))?;
    let name = b"\"WARC-Target-URI\":\"";
    let at = memmem::find(block, name)? + name.len();
    let is_same = block[at..]
        .strip_prefix(page)
        .is_some_and(|rest| rest.starts_with(b"\""));
    let is_answer = memmem::find(block, b"\"HTTP-Response-Metadata\"").is_some();
    (is_same && is_answer && shard.passes_over(page, Names::Url)).then_some(page)
}

pub fn is_wat(header: &WarcHeader<'_>) -> bool {
    let json = b"application/json";
    let front = header.content_type.get(..json.len());
    header.is("metadata")
        && (header.content_type.is_empty()
            || front.is_some_and(|front| front.eq_ignore_ascii_case(json)))
}

fn read<'a>(
    archives: &Archives,
    frame: Frame<'a>,
    about: &mut CaptureFacts<'a>,
    record: &mut Record<'a>,
    _: &mut dyn FnMut(),
) -> ReadResult {
    if let Some(page) = passed_over(archives, &frame) {
        record.clear();
        record.url = Cow::Borrowed(page);
        return Ok(None);
    }
    let (header, block) = frame.parts?;
    if !is_wat(&header) {
        let is_info = header.is("warcinfo");
        return Ok(Some(if is_info { "warcinfo" } else { "no WAT record" }));
    }
    let text = utf8(block).map_err(Bad::utf8)?;
    let malformed = |error| Bad::malformed(json::detail(&error));
    let error = match facts(text) {
        Ok(facts) => return put(facts, &mut about.not_get, record),
        Err(error) => error,
    };
    let Some(text) = json::repair_surrogates(text) else {
        return Err(malformed(error));
    };
    let mut repaired = Record::default();
    let read = put(
        facts(&text).map_err(malformed)?,
        &mut about.not_get,
        &mut repaired,
    )?;
    *record = repaired.into_owned();
    Ok(read)
}

fn facts(text: &str) -> serde_json::Result<Facts<'_>> {
    let mut facts = Facts {
        texts: vec![None; FIELDS.len()],
        ..Facts::default()
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let walk = Walk {
        at: 0,
        facts: &mut facts,
    };
    walk.deserialize(&mut json)?;
    json.end()?;
    Ok(facts)
}

/// Fills the record. A request sets `not_get`, the report name of its response, if it is not a GET.
fn put<'a>(
    mut facts: Facts<'a>,
    not_get: &mut Option<&'static str>,
    record: &mut Record<'a>,
) -> ReadResult {
    let (kind, url, date) = if facts.take("WARC-Header-Metadata").is_some() {
        let kind = facts.take("WARC-Type");
        let kind = kind.ok_or_else(|| Bad::malformed("no WARC-Type in the envelope"))?;
        (kind, facts.take("WARC-Target-URI"), facts.take("WARC-Date"))
    } else if facts.take("ARC-Header-Metadata").is_some() {
        let (url, date) = (facts.take("Target-URI"), facts.take("Date"));
        (Cow::Borrowed("response"), url, date)
    } else {
        return Err(Bad::malformed("neither WARC nor ARC header metadata"));
    };
    let revisit = kind.eq_ignore_ascii_case("revisit");
    if !revisit && !kind.eq_ignore_ascii_case("response") {
        let method = facts.take("Method").unwrap_or_default();
        *not_get = http::not_get(method.as_bytes());
        return Ok(Some(record_kind(kind.as_bytes())));
    }
    let lookup = url.as_ref().is_some_and(|url| url.starts_with("dns:"));
    if facts.take("HTTP-Response-Metadata").is_none() && (!revisit || lookup) {
        return Ok(Some("no HTTP response"));
    }
    if not_get.is_some() {
        return Ok(*not_get);
    }
    let status = facts.take("Status");
    let status: Option<i32> = status.and_then(|status| status.trim().parse().ok());
    // The response was to a HEAD, or was cut off.
    let is_empty = facts.take("Entity-Length").as_deref() == Some("0");
    let lacks_body = matches!(status, Some(200..300)) && is_empty && facts.announced;
    if !revisit && lacks_body {
        return Ok(Some(NO_BODY));
    }
    record.clear();
    record.url = target(url)?;
    let date = date.as_deref().unwrap_or_default().as_bytes();
    put_time(record, time::read_archive(date, "a time"));
    // A revisit has no body: the extractor's digest is that of nothing.
    let of_body = facts.take("Entity-Digest").filter(|_| !revisit);
    let digest = facts.take("WARC-Payload-Digest").or(of_body);
    if let Some(digest) = digest.filter(|digest| !digest.is_empty()) {
        record.digest = Digest::of_content(xxh3_64(digest.as_bytes()));
    }
    record.status = status;
    if status.is_some_and(is_redirect) {
        record.redirect = facts.take("Location").map(bytes);
    }
    record.revisit = revisit && record.redirect.is_none();
    if !revisit {
        // Links of the head come first, as in the page.
        record.links = std::mem::take(&mut facts.refreshes);
        for link in std::mem::take(&mut facts.links) {
            keep(&mut record.links, link);
        }
        record.base = facts.take("Base").map(attribute);
        if facts.meta_nofollow {
            html::forbid(&mut record.links);
        }
        let refresh = facts.take("Refresh").filter(|_| record.redirect.is_none());
        http::put_fields(
            record,
            refresh.unwrap_or_default().as_bytes(),
            facts.nofollow,
        );
    }
    if let Some(other) = facts
        .take("WARC-Refers-To-Target-URI")
        .filter(|_| record.revisit)
    {
        let other = target(Some(other)).ok();
        record.same_as = other.filter(|other| is_web(other) && *other != record.url);
    }
    Ok(None)
}

fn target(url: Option<Cow<'_, str>>) -> Result<Cow<'_, [u8]>, Bad> {
    let no_url = |what| Bad::new(Reason::BadUrl, what);
    let url = match bytes(url.ok_or_else(|| no_url("no target URI"))?) {
        Cow::Borrowed(url) => Cow::Borrowed(bare(url)),
        Cow::Owned(url) => Cow::Owned(bare(&url).to_vec()),
    };
    if url.is_empty() {
        return Err(no_url("the target URI is empty"));
    }
    Ok(url)
}

/// Decodes the value of an attribute: extractors leave character references as they are in the HTML.
fn attribute(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match bytes(text) {
        Cow::Borrowed(raw) => html::decoded(raw),
        Cow::Owned(raw) => Cow::Owned(html::decoded(&raw).into_owned()),
    }
}

#[derive(Clone, Copy)]
enum Node {
    Object,
    /// List of objects, or a single object without its list.
    Items,
    /// Text or number, or a list of them.
    Text,
}

use Node::{Items, Object, Text};

/// Fields that are read, each after the object that holds it, with its depth. No two have the same name.
const FIELDS: &[(u8, &str, Node)] = &[
    (0, "", Object),
    (1, "Envelope", Object),
    (2, "WARC-Header-Metadata", Object),
    (3, "WARC-Type", Text),
    (3, "WARC-Target-URI", Text),
    (3, "WARC-Date", Text),
    (3, "WARC-Payload-Digest", Text),
    (3, "WARC-Refers-To-Target-URI", Text),
    (2, "ARC-Header-Metadata", Object),
    (3, "Target-URI", Text),
    (3, "Date", Text),
    (2, "Payload-Metadata", Object),
    (3, "HTTP-Request-Metadata", Object),
    (4, "Request-Message", Object),
    (5, "Method", Text),
    (3, "HTTP-Response-Metadata", Object),
    (4, "Response-Message", Object),
    (5, "Status", Text),
    (4, "Headers", Object),
    (5, "Location", Text),
    (5, "Refresh", Text),
    (5, "X-Robots-Tag", Text),
    (5, "Content-Length", Text),
    (5, "Transfer-Encoding", Text),
    (4, "Entity-Length", Text),
    // Digest of the body, computed by the extractor.
    (4, "Entity-Digest", Text),
    (4, "HTML-Metadata", Object),
    (5, "Head", Object),
    (6, "Base", Text),
    (6, "Metas", Items),
    (7, "http-equiv", Text),
    (7, "name", Text),
    (7, "content", Text),
    (5, "Links", Items),
    (6, "path", Text),
    (6, "url", Text),
    (6, "rel", Text),
];

/// Returns the index of a field in the object at index `of`.
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
struct Facts<'a> {
    /// Texts of [`FIELDS`]; an empty one for an object that is there.
    texts: Vec<Option<Cow<'a, str>>>,
    links: Vec<Link<'a>>,
    refreshes: Vec<Link<'a>>,
    /// True if a `<meta>` makes all links `nofollow`.
    meta_nofollow: bool,
    /// True if an `X-Robots-Tag` makes all links `nofollow`.
    nofollow: bool,
    /// True if a body of at least one byte was announced.
    announced: bool,
}

impl<'a> Facts<'a> {
    fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let at = FIELDS.iter().position(|field| field.1 == name)?;
        self.texts[at].take()
    }

    /// Stores a text or number, or those of a list. The first counts; of a header, the first that is not blank.
    fn set(&mut self, at: usize, value: Value<'a>) -> serde_json::Result<()> {
        let text: Cow<'a, str> = match value {
            Value::Null => return Ok(()),
            Value::Text(text) => text,
            Value::Int(number) => number.to_string().into(),
            Value::Float(number) => number.to_string().into(),
            Value::List(values) => {
                let mut values = values.into_iter();
                return values.try_for_each(|value| self.set(at, value));
            }
            other => return Err(other.wrong_type("a text, a number, or a list of them")),
        };
        match FIELDS[at].1 {
            "X-Robots-Tag" => self.nofollow |= http::is_nofollow(text.as_bytes()),
            "Content-Length" => self.announced |= !matches!(text.trim(), "" | "0"),
            "Transfer-Encoding" => {
                self.announced |= text.to_ascii_lowercase().contains("chunked");
            }
            "Location" | "Refresh" if text.trim().is_empty() => {}
            _ => drop(self.texts[at].get_or_insert(text)),
        }
        Ok(())
    }

    /// Takes the texts of an object in the list at this index.
    fn end(&mut self, list: usize) {
        let texts = [1, 2, 3].map(|field| self.texts[list + field].take());
        if FIELDS[list].1 == "Metas" {
            let [http_equiv, name, content] = texts.map(|text| text.map(attribute));
            let meta = Meta {
                http_equiv,
                name,
                content,
            };
            if let Some(url) = meta.refresh() {
                keep(&mut self.refreshes, Link::to(url.to_vec()));
            }
            self.meta_nofollow |= meta.is_nofollow();
            return;
        }
        let [path, url, rel] = texts;
        // Only anchors and areas of image maps are links.
        let is_link = matches!(path.as_deref(), Some("A@/href" | "AREA@/href"));
        if let (true, Some(url)) = (is_link, url) {
            let rel = rel.map(|rel| Rel::of(&attribute(rel))).unwrap_or_default();
            let link = Link::to(attribute(url));
            keep(&mut self.links, Link { rel, ..link });
        }
    }
}

struct Walk<'f, 'a> {
    /// Index of the field being read; 0 is the whole.
    at: usize,
    facts: &'f mut Facts<'a>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match FIELDS[self.at].2 {
            Object | Items => json.deserialize_any(self),
            Text => value_to(|value| self.facts.set(self.at, value)).deserialize(json),
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
            Items => facts.end(at),
            _ => facts.texts[at] = Some(Cow::default()),
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
