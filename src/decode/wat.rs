//! Common Crawl WAT: what an extractor found in each record of a WARC or ARC file, as JSON in
//! WARC `metadata` records. Specified in `formats/wat.md`.

mod fields;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use xxhash_rust::xxh3::xxh3_64;

use fields::{Each, First, Name, Object, Pick, Values};

use super::frame::{self, Frame, FrameSkipper, Header};
use super::html::{self, Meta};
use super::json;
use super::warc::read_time;
use super::{Bad, Decoder, FormatSpec, Link, Names, Reason, Record, Sink, Skipper, put_time, utf8};
use crate::model::{Digest, is_redirect, keep};
use crate::rules::Rel;

/// The format's name, help and decoder.
pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "wat",
    about: "Common Crawl WAT: the metadata of pages, with their links",
    is_grouped: false,
    caveat: None,
    usual: &Wat,
    by: |_, _| std::sync::Arc::new(Wat),
};

/// See the module.
pub(crate) struct Wat;

impl Decoder for Wat {
    fn names(&self) -> Names {
        Names::Url
    }

    fn whole(&self, buf: &[u8], at_end: bool) -> usize {
        frame::whole(buf, at_end, frame::first)
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(FrameSkipper::Header)
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        frame::decode(chunk, sink, frame::first, |frame, record, _| {
            read(frame, record)
        });
    }
}

/// Returns whether the record holds an extractor's JSON.
pub(crate) fn is_wat(header: &Header<'_>) -> bool {
    let json = b"application/json";
    let front = header.content_type.get(..json.len());
    header.kind.eq_ignore_ascii_case(b"metadata")
        && (header.content_type.is_empty()
            || front.is_some_and(|front| front.eq_ignore_ascii_case(json)))
}

/// Reads a WARC record into `record`; `Some(kind)`: it is not a crawl record, and need not be.
fn read<'a>(frame: Frame<'a>, record: &mut Record<'a>) -> Result<Option<&'static str>, Bad> {
    let (header, block) = frame.parts?;
    if !is_wat(&header) {
        return Ok(Some(if header.kind.eq_ignore_ascii_case(b"warcinfo") {
            "warcinfo"
        } else {
            "no WAT record"
        }));
    }
    let text = utf8(block).map_err(Bad::utf8)?;
    let malformed = |error| Bad::malformed(json::detail(&error));
    let error = match serde_json::from_str::<Object<Body<'_>>>(text) {
        Ok(Object(body)) => return body.envelope.0.put(record),
        Err(error) => error,
    };
    let Some(text) = json::repair_surrogates(text) else {
        return Err(malformed(error));
    };
    let Object(body): Object<Body<'_>> = serde_json::from_str(&text).map_err(malformed)?;
    let mut repaired = Record::default();
    let kind = body.envelope.0.put(&mut repaired)?;
    *record = repaired.into_owned();
    Ok(kind)
}

/// The record's JSON, as far as it is read.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(rename = "Envelope", borrow)]
    envelope: Object<Envelope<'a>>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    /// Type, target, date, digest of the payload.
    #[serde(
        rename = "WARC-Header-Metadata",
        default,
        borrow,
        deserialize_with = "warc_header"
    )]
    warc: Option<Values<'a, 4>>,
    /// Target, date.
    #[serde(
        rename = "ARC-Header-Metadata",
        default,
        borrow,
        deserialize_with = "arc_header"
    )]
    arc: Option<Values<'a, 2>>,
    #[serde(rename = "Payload-Metadata", default, borrow)]
    payload: Option<Object<Payload<'a>>>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(rename = "HTTP-Response-Metadata", default, borrow)]
    response: Option<Object<Response<'a>>>,
}

#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(
        rename = "Response-Message",
        default,
        borrow,
        deserialize_with = "message"
    )]
    message: Option<Values<'a, 1>>,
    #[serde(rename = "Headers", default, borrow, deserialize_with = "http_headers")]
    headers: Option<Values<'a, 1>>,
    #[serde(rename = "HTML-Metadata", default, borrow)]
    html: Option<Object<Html<'a>>>,
    /// The extractor's digest of the body.
    #[serde(rename = "Entity-Digest", default, borrow, deserialize_with = "first")]
    digest: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Html<'a> {
    #[serde(rename = "Head", default, borrow, deserialize_with = "head")]
    head: Head<'a>,
    #[serde(rename = "Links", default, borrow, deserialize_with = "links")]
    links: Vec<Link<'a>>,
}

/// Base, refreshes and `nofollow` of a page's head.
#[derive(Default)]
struct Head<'a> {
    base: Option<Cow<'a, [u8]>>,
    /// Where its `<meta>`s send the reader.
    refreshes: Vec<Link<'a>>,
    /// Whether one of them vouches for no link.
    nofollow: bool,
}

impl<'a> Envelope<'a> {
    /// Fills `record`; `Some(kind)`: there is none, and need not be.
    fn put(self, record: &mut Record<'a>) -> Result<Option<&'static str>, Bad> {
        let (kind, url, date, digest) = match (self.warc, self.arc) {
            (Some([kind, url, date, digest]), _) => (kind, url, date, digest),
            (None, Some([url, date])) => (Some(Cow::Borrowed("response")), url, date, None),
            (None, None) => return Err(Bad::malformed("neither WARC nor ARC header metadata")),
        };
        let kind = kind.ok_or_else(|| Bad::malformed("no WARC-Type in the envelope"))?;
        let revisit = kind.eq_ignore_ascii_case("revisit");
        if !revisit && !kind.eq_ignore_ascii_case("response") {
            return Ok(Some(other(&kind)));
        }
        let response = self.payload.and_then(|Object(payload)| payload.response);
        let lookup = url.as_ref().is_some_and(|url| url.starts_with("dns:"));
        if response.is_none() && (!revisit || lookup) {
            return Ok(Some("no HTTP response"));
        }
        record.clear();
        record.url = target(url)?;
        put_time(
            record,
            read_time(date.as_deref().unwrap_or_default().as_bytes()),
        );
        let Object(mut response) = response.unwrap_or_default();
        // A revisit has no body, and the extractor's digest is of nothing.
        let of_body = response.digest.take().filter(|_| !revisit);
        if let Some(digest) = digest.or(of_body).filter(|digest| !digest.is_empty()) {
            record.digest = Digest::of_content(xxh3_64(digest.as_bytes()));
        }
        response.put(revisit, record);
        Ok(None)
    }
}

impl<'a> Response<'a> {
    fn put(self, revisit: bool, record: &mut Record<'a>) {
        let status = self.message.and_then(|[status]| status);
        record.status = status.and_then(|status| status.trim().parse().ok());
        if record.status.is_some_and(is_redirect) {
            let location = self.headers.and_then(|[location]| location);
            record.redirect = location.filter(|to| !to.is_empty()).map(bytes);
        }
        record.revisit = revisit && record.redirect.is_none();
        if !revisit {
            let Object(html) = self.html.unwrap_or_default();
            // The head comes before the links, as it does in the page.
            record.links = html.head.refreshes;
            for link in html.links {
                keep(&mut record.links, link);
            }
            record.base = html.head.base;
            if html.head.nofollow {
                html::forbid(&mut record.links);
            }
        }
    }
}

/// The name of an archived record that is no answer.
fn other(kind: &str) -> &'static str {
    let known = ["warcinfo", "request", "metadata", "resource", "conversion"];
    let known = known
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(kind));
    known.unwrap_or("unknown WARC-Type")
}

/// The page's URL, out of the angle brackets that some writers put around it.
fn target(url: Option<Cow<'_, str>>) -> Result<Cow<'_, [u8]>, Bad> {
    let inner = |url: &str| {
        let inside = url.strip_prefix('<').and_then(|url| url.strip_suffix('>'));
        inside.unwrap_or(url).len()
    };
    match url {
        None => Err(Bad::new(Reason::BadUrl, "no target URI")),
        Some(url) if inner(&url) == 0 => Err(Bad::new(Reason::BadUrl, "the target URI is empty")),
        Some(url) if inner(&url) == url.len() => Ok(bytes(url)),
        Some(Cow::Borrowed(url)) => Ok(Cow::Borrowed(&url.as_bytes()[1..url.len() - 1])),
        Some(Cow::Owned(url)) => Ok(Cow::Owned(url.as_bytes()[1..url.len() - 1].to_vec())),
    }
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn warc_header<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Values<'de, 4>>, D::Error> {
    json.deserialize_option(Pick([
        "WARC-Type",
        "WARC-Target-URI",
        "WARC-Date",
        "WARC-Payload-Digest",
    ]))
}

fn arc_header<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Values<'de, 2>>, D::Error> {
    json.deserialize_option(Pick(["Target-URI", "Date"]))
}

fn message<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Values<'de, 1>>, D::Error> {
    json.deserialize_option(Pick(["Status"]))
}

fn http_headers<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Values<'de, 1>>, D::Error> {
    json.deserialize_option(Pick(["Location"]))
}

fn first<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    First::deserialize(json).map(|First(text)| text)
}

fn head<'de, D: Deserializer<'de>>(json: D) -> Result<Head<'de>, D::Error> {
    json.deserialize_any(HeadVisitor)
}

fn links<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Link<'de>>, D::Error> {
    let mut links = Vec::new();
    json.deserialize_any(Each(Pick(["path", "url", "rel"]), |link| {
        keep_link(link, &mut links);
    }))?;
    Ok(links)
}

/// Keeps the target of an anchor or of an image map's area.
fn keep_link<'a>([path, url, rel]: Values<'a, 3>, links: &mut Vec<Link<'a>>) {
    let is_link = matches!(path.as_deref(), Some("A@/href" | "AREA@/href"));
    if let (true, Some(url)) = (is_link, url) {
        let rel = rel.map(attribute);
        let rel = rel.map(|rel| Rel::of(&rel)).unwrap_or_default();
        let url = attribute(url);
        keep(links, Link { url, rel });
    }
}

/// The value of an attribute. Extractors leave character references as they are in the HTML.
fn attribute(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match bytes(text) {
        Cow::Borrowed(raw) => html::decoded(raw),
        Cow::Owned(raw) => Cow::Owned(html::decoded(&raw).into_owned()),
    }
}

/// Reads `Head`.
struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `Base` and `Metas`")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Head::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut head = Head::default();
        let mut has_metas = false;
        while let Some(known) = map.next_key_seed(Name(&["Base", "Metas"]))? {
            match known {
                Some(0) if head.base.is_none() => {
                    let First(base) = map.next_value()?;
                    head.base = base.map(attribute);
                }
                Some(1) if !std::mem::replace(&mut has_metas, true) => {
                    map.next_value_seed(Each(Pick(["http-equiv", "name", "content"]), |meta| {
                        head.see(meta)
                    }))?
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(head)
    }
}

impl Head<'_> {
    /// Looks at one of its `<meta>`s.
    fn see(&mut self, meta: Values<'_, 3>) {
        let [http_equiv, name, content] = meta.map(|value| value.map(attribute));
        let meta = Meta {
            http_equiv,
            name,
            content,
        };
        if let Some(url) = meta.refresh() {
            keep(&mut self.refreshes, Link::to(url.to_vec()));
        }
        self.nofollow |= meta.is_nofollow();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Parsed;

    /// The one record whose response metadata is `http`.
    fn one(http: &str) -> Result<Record<'static>, Reason> {
        with(r#""WARC-Type":"response""#, http)
    }

    /// The one record with these fields in its header, beside the target.
    fn with(header: &str, http: &str) -> Result<Record<'static>, Reason> {
        let json = format!(
            r#"{{"Envelope":{{"WARC-Header-Metadata":{{{header},"WARC-Target-URI":"u"}},
            "Payload-Metadata":{{"HTTP-Response-Metadata":{http}}}}}}}"#
        );
        let head = format!(
            "WARC/1.0\nWARC-Type: metadata\nContent-Length: {}\n\n",
            json.len()
        );
        let mut found = None;
        Wat.decode((head + &json).as_bytes(), &mut |_, parsed| {
            found = Some(match parsed {
                Parsed::Record(record) => Ok(record.clone().into_owned()),
                Parsed::Bad { reason, .. } => Err(reason),
                other => panic!("{other:?}"),
            });
            true
        });
        found.unwrap()
    }

    #[test]
    fn arrays_are_no_objects() {
        assert!(one("{}").is_ok());
        for http in [
            "[]",
            r#"[null,null,null]"#,
            r#"{"HTML-Metadata":[]}"#,
            r#"{"Headers":[]}"#,
        ] {
            assert_eq!(one(http), Err(Reason::Malformed), "{http}");
        }
    }

    #[test]
    fn the_digest_is_the_archives_else_the_extractors() {
        let digest = |header: &str, http: &str| with(header, http).unwrap().digest;
        let of = |text: &str| Digest::of_content(xxh3_64(text.as_bytes()));
        let response = r#""WARC-Type":"response""#;
        let both = r#""WARC-Type":"response","WARC-Payload-Digest":"sha1:A""#;
        let entity = r#"{"Entity-Digest":"sha1:B"}"#;
        assert_eq!(digest(both, entity), of("sha1:A"));
        assert_eq!(digest(response, entity), of("sha1:B"));
        assert_eq!(digest(both, "{}"), of("sha1:A"));
        for none in ["{}", r#"{"Entity-Digest":""}"#, r#"{"Entity-Digest":null}"#] {
            assert_eq!(digest(response, none), Digest::NONE, "{none}");
        }
        // The body of a revisit is not there.
        assert_eq!(digest(r#""WARC-Type":"revisit""#, entity), Digest::NONE);
        let revisit = r#""WARC-Type":"revisit","WARC-Payload-Digest":"sha1:A""#;
        assert_eq!(digest(revisit, entity), of("sha1:A"));
    }

    #[test]
    fn deep_nesting_is_no_stack_overflow() {
        let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        assert!(one(&format!(r#"{{"x":{deep}}}"#)).is_ok());
        for http in [
            format!(r#"{{"HTML-Metadata":{{"Links":{deep}}}}}"#),
            format!(r#"{{"Headers":{{"Location":{deep}}}}}"#),
        ] {
            assert_eq!(one(&http), Err(Reason::Malformed));
        }
    }
}
