//! Common Crawl WAT: what an extractor found in each record of a WARC or ARC file, as JSON in WARC `metadata` records.
//! Specified in `formats/wat.md`.

mod fields;
mod pair;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use memchr::memmem;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use xxhash_rust::xxh3::xxh3_64;

use fields::{Each, FirstValue, Name, NamedFields, ObjectOnly, Pick, Values};
use pair::{ExchangePair, PairSkipper};

use super::frame::{Frame, WarcHeader};
use super::html::{self, Meta};
use super::http::{self, NO_BODY};
use super::json;
use super::warc::{is_web, read_time};
use super::{
    Bad, Decoder, FormatSpec, Link, Names, Parsed, Reason, Record, Sink, Skipper, parsed, put_time,
    utf8,
};
use crate::model::{Digest, is_redirect, keep};
use crate::rules::{Rel, Shard};

pub const FORMAT: FormatSpec = FormatSpec {
    name: "wat",
    about: "Common Crawl WAT: the metadata of pages, with their links",
    is_grouped: false,
    caveat: None,
    usual: &Wat { shard: None },
    by: |rules, _| std::sync::Arc::new(Wat { shard: rules.shard }),
};

/// Decoder of WAT files.
pub struct Wat {
    shard: Option<Shard>,
}

impl Decoder for Wat {
    fn names(&self) -> Names {
        Names::Url
    }

    fn whole(&self, buf: &[u8], at_end: bool) -> usize {
        if at_end {
            return buf.len();
        }
        let mut end = 0;
        while let Some(pair) = ExchangePair::first(&buf[end..], false) {
            end += pair.end;
        }
        // The line ends after it precede a request that may be the pair's other half.
        end
    }

    /// Returns whether `rest` ends in a request without its response.
    fn is_cut(&self, rest: &[u8]) -> bool {
        let mut cut = false;
        self.decode(rest, &mut |_, parsed| {
            cut = matches!(
                parsed,
                Parsed::Bad { .. } | Parsed::Other { kind: "request" }
            );
            true
        });
        cut
    }

    /// Returns whether `rest` is an answer without its request.
    fn may_lack_request(&self, rest: &[u8]) -> bool {
        let pair = ExchangePair::first(rest, true);
        pair.is_some_and(|pair| pair.request.is_none() && pair.frame.parts.is_ok())
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(PairSkipper::default())
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        let mut done = 0;
        while let Some(pair) = ExchangePair::first(&chunk[done..], true) {
            let mut not_get = None;
            if let Some(request) = pair.request {
                let read = read(request, None, &mut record);
                not_get = read.as_ref().ok().and_then(|read| read.not_get);
                if !sink(done, parsed(read.map(|read| read.kind), &record)) {
                    return;
                }
            }
            done += pair.end;
            let read = match self.passed_over(&pair.frame) {
                Some(page) => {
                    record.clear();
                    record.url = Cow::Borrowed(page);
                    Ok(None)
                }
                None => read(pair.frame, not_get, &mut record).map(|read| read.kind),
            };
            if !sink(done, parsed(read, &record)) {
                return;
            }
        }
    }
}

impl Wat {
    /// Returns the page of a response if it belongs to another shard and that is certain without parsing the JSON: its
    /// header and the header in the JSON name the same page.
    fn passed_over<'a>(&self, frame: &Frame<'a>) -> Option<&'a [u8]> {
        let shard = self.shard?;
        let (header, block) = frame.parts.as_ref().ok()?;
        let page = header.target.filter(|_| is_wat(header))?;
        // Quotes within a text are escaped: this can only be a field's name and value.
        let name = b"\"WARC-Target-URI\":\"";
        let at = memmem::find(block, name)? + name.len();
        let is_same = block[at..]
            .strip_prefix(page)
            .is_some_and(|rest| rest.starts_with(b"\""));
        let is_answer = memmem::find(block, b"\"HTTP-Response-Metadata\"").is_some();
        (is_same && is_answer && shard.passes_over(page, Names::Url)).then_some(page)
    }
}

/// Returns whether the record holds an extractor's JSON.
pub fn is_wat(header: &WarcHeader<'_>) -> bool {
    let json = b"application/json";
    let front = header.content_type.get(..json.len());
    header.kind.eq_ignore_ascii_case(b"metadata")
        && (header.content_type.is_empty()
            || front.is_some_and(|front| front.eq_ignore_ascii_case(json)))
}

#[derive(Default)]
struct ReadOutcome {
    /// Kind of the record, if it is valid but not a crawl record.
    kind: Option<&'static str>,
    /// Report name of the response, for a request whose method is not GET.
    not_get: Option<&'static str>,
}

/// Reads a WARC record into `record`. `not_get`: report name of the response if the accompanying request is not a GET.
fn read<'a>(
    frame: Frame<'a>,
    not_get: Option<&'static str>,
    record: &mut Record<'a>,
) -> Result<ReadOutcome, Bad> {
    let (header, block) = frame.parts?;
    if !is_wat(&header) {
        let kind = if header.kind.eq_ignore_ascii_case(b"warcinfo") {
            "warcinfo"
        } else {
            "no WAT record"
        };
        return Ok(ReadOutcome {
            kind: Some(kind),
            not_get: None,
        });
    }
    let text = utf8(block).map_err(Bad::utf8)?;
    let malformed = |error| Bad::malformed(json::detail(&error));
    let error = match serde_json::from_str::<ObjectOnly<Body<'_>>>(text) {
        Ok(ObjectOnly(body)) => return body.envelope.0.put(not_get, record),
        Err(error) => error,
    };
    let Some(text) = json::repair_surrogates(text) else {
        return Err(malformed(error));
    };
    let ObjectOnly(body): ObjectOnly<Body<'_>> = serde_json::from_str(&text).map_err(malformed)?;
    let mut repaired = Record::default();
    let read = body.envelope.0.put(not_get, &mut repaired)?;
    *record = repaired.into_owned();
    Ok(read)
}

/// JSON of a record, as far as it is read.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(rename = "Envelope", borrow)]
    envelope: ObjectOnly<Envelope<'a>>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    /// Type, target, date, digest of the payload, and target of the page with the same content.
    #[serde(
        rename = "WARC-Header-Metadata",
        default,
        borrow,
        deserialize_with = "warc_header"
    )]
    warc: Option<Values<'a, 5>>,
    /// Target and date of the record.
    #[serde(
        rename = "ARC-Header-Metadata",
        default,
        borrow,
        deserialize_with = "arc_header"
    )]
    arc: Option<Values<'a, 2>>,
    #[serde(rename = "Payload-Metadata", default, borrow)]
    payload: Option<ObjectOnly<Payload<'a>>>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(rename = "HTTP-Request-Metadata", default, borrow)]
    request: Option<ObjectOnly<Request<'a>>>,
    #[serde(rename = "HTTP-Response-Metadata", default, borrow)]
    response: Option<ObjectOnly<Response<'a>>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(
        rename = "Request-Message",
        default,
        borrow,
        deserialize_with = "request_message"
    )]
    message: Option<Values<'a, 1>>,
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
    headers: HttpFields<'a>,
    /// Length of the body.
    #[serde(rename = "Entity-Length", default, borrow, deserialize_with = "first")]
    length: Option<Cow<'a, str>>,
    #[serde(rename = "HTML-Metadata", default, borrow)]
    html: Option<ObjectOnly<Html<'a>>>,
    /// Digest of the body, computed by the extractor.
    #[serde(rename = "Entity-Digest", default, borrow, deserialize_with = "first")]
    digest: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Html<'a> {
    #[serde(rename = "Head", default, borrow, deserialize_with = "head")]
    head: HtmlHead<'a>,
    #[serde(rename = "Links", default, borrow, deserialize_with = "links")]
    links: Vec<Link<'a>>,
}

/// Base, refreshes and `nofollow` of a page's head.
#[derive(Default)]
struct HtmlHead<'a> {
    base: Option<Cow<'a, [u8]>>,
    /// Targets of refreshes in `<meta>`.
    refreshes: Vec<Link<'a>>,
    /// True if a `<meta>` makes all links `nofollow`.
    nofollow: bool,
}

impl<'a> Envelope<'a> {
    /// Fills `record`, if there is one.
    fn put(
        self,
        not_get: Option<&'static str>,
        record: &mut Record<'a>,
    ) -> Result<ReadOutcome, Bad> {
        let other = |kind| ReadOutcome {
            kind: Some(kind),
            not_get: None,
        };
        let (kind, url, date, digest, refers_to) = match (self.warc, self.arc) {
            (Some([kind, url, date, digest, refers_to]), _) => (kind, url, date, digest, refers_to),
            (None, Some([url, date])) => (Some(Cow::Borrowed("response")), url, date, None, None),
            (None, None) => return Err(Bad::malformed("neither WARC nor ARC header metadata")),
        };
        let kind = kind.ok_or_else(|| Bad::malformed("no WARC-Type in the envelope"))?;
        let revisit = kind.eq_ignore_ascii_case("revisit");
        let (request, response) = match self.payload {
            Some(ObjectOnly(payload)) => (payload.request, payload.response),
            None => (None, None),
        };
        if !revisit && !kind.eq_ignore_ascii_case("response") {
            let method = request.and_then(|ObjectOnly(request)| request.message);
            let method = method.and_then(|[method]| method).unwrap_or_default();
            return Ok(ReadOutcome {
                kind: Some(name_of(&kind)),
                not_get: http::not_get(method.as_bytes()),
            });
        }
        let lookup = url.as_ref().is_some_and(|url| url.starts_with("dns:"));
        if response.is_none() && (!revisit || lookup) {
            return Ok(other("no HTTP response"));
        }
        if let Some(kind) = not_get {
            return Ok(other(kind));
        }
        if !revisit
            && response
                .as_ref()
                .is_some_and(|ObjectOnly(response)| response.lacks_body())
        {
            return Ok(other(NO_BODY));
        }
        record.clear();
        record.url = target(url)?;
        put_time(
            record,
            read_time(date.as_deref().unwrap_or_default().as_bytes()),
        );
        let ObjectOnly(mut response) = response.unwrap_or_default();
        // A revisit has no body: the extractor's digest is that of nothing.
        let of_body = response.digest.take().filter(|_| !revisit);
        if let Some(digest) = digest.or(of_body).filter(|digest| !digest.is_empty()) {
            record.digest = Digest::of_content(xxh3_64(digest.as_bytes()));
        }
        response.put(revisit, record);
        if record.revisit && refers_to.is_some() {
            let other = target(refers_to).ok();
            record.same_as = other.filter(|other| is_web(other) && *other != record.url);
        }
        Ok(ReadOutcome::default())
    }
}

impl<'a> Response<'a> {
    fn status(&self) -> Option<i32> {
        let status = self.message.as_ref().and_then(|[status]| status.as_ref());
        status.and_then(|status| status.trim().parse().ok())
    }

    /// Returns whether the page's body is missing: the response was to a HEAD, or was cut off.
    fn lacks_body(&self) -> bool {
        let there = matches!(self.status(), Some(200..300));
        there && self.length.as_deref() == Some("0") && self.headers.announced
    }

    fn put(self, revisit: bool, record: &mut Record<'a>) {
        record.status = self.status();
        let fields = self.headers;
        if record.status.is_some_and(is_redirect) {
            record.redirect = fields.location.filter(|to| !to.is_empty()).map(bytes);
        }
        record.revisit = revisit && record.redirect.is_none();
        if !revisit {
            let ObjectOnly(html) = self.html.unwrap_or_default();
            // Links of the head come first, as in the page.
            record.links = html.head.refreshes;
            for link in html.links {
                keep(&mut record.links, link);
            }
            record.base = html.head.base;
            if html.head.nofollow {
                html::forbid(&mut record.links);
            }
            let refresh = fields.refresh.filter(|_| record.redirect.is_none());
            let refresh = refresh.unwrap_or_default();
            http::put_fields(record, refresh.as_bytes(), fields.nofollow);
        }
    }
}

/// Names the kind of an archived record that is not a response.
fn name_of(kind: &str) -> &'static str {
    let known = ["warcinfo", "request", "metadata", "resource", "conversion"];
    let known = known
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(kind));
    known.unwrap_or("unknown WARC-Type")
}

/// Returns the page's URL without the angle brackets that some writers put around it.
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

fn warc_header<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Values<'de, 5>>, D::Error> {
    json.deserialize_option(Pick([
        "WARC-Type",
        "WARC-Target-URI",
        "WARC-Date",
        "WARC-Payload-Digest",
        "WARC-Refers-To-Target-URI",
    ]))
}

fn arc_header<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Values<'de, 2>>, D::Error> {
    json.deserialize_option(Pick(["Target-URI", "Date"]))
}

fn message<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Values<'de, 1>>, D::Error> {
    json.deserialize_option(Pick(["Status"]))
}

fn request_message<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Values<'de, 1>>, D::Error> {
    json.deserialize_option(Pick(["Method"]))
}

/// Relevant fields of a response's header.
#[derive(Default)]
struct HttpFields<'a> {
    /// First `Location` that is not empty.
    location: Option<Cow<'a, str>>,
    /// First `Refresh` that is not empty.
    refresh: Option<Cow<'a, str>>,
    /// True if an `X-Robots-Tag` makes all links `nofollow`.
    nofollow: bool,
    /// True if a body of at least one byte was announced.
    announced: bool,
}

fn http_headers<'de, D: Deserializer<'de>>(json: D) -> Result<HttpFields<'de>, D::Error> {
    const NAMES: [&str; 5] = [
        "Location",
        "Refresh",
        "X-Robots-Tag",
        "Content-Length",
        "Transfer-Encoding",
    ];
    let mut fields = HttpFields::default();
    json.deserialize_any(NamedFields(
        NAMES,
        |name: usize, value: Cow<'de, str>| match name {
            _ if value.trim().is_empty() => {}
            0 => drop(fields.location.get_or_insert(value)),
            1 => drop(fields.refresh.get_or_insert(value)),
            2 => fields.nofollow |= http::is_nofollow(value.as_bytes()),
            3 => fields.announced |= value.trim() != "0",
            _ => fields.announced |= value.to_ascii_lowercase().contains("chunked"),
        },
    ))?;
    Ok(fields)
}

fn first<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    FirstValue::deserialize(json).map(|FirstValue(text)| text)
}

fn head<'de, D: Deserializer<'de>>(json: D) -> Result<HtmlHead<'de>, D::Error> {
    json.deserialize_any(HeadVisitor)
}

fn links<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Link<'de>>, D::Error> {
    let mut links = Vec::new();
    json.deserialize_any(Each(Pick(["path", "url", "rel"]), |link| {
        keep_link(link, &mut links);
    }))?;
    Ok(links)
}

/// Appends the target of an anchor or of an image map's area.
fn keep_link<'a>([path, url, rel]: Values<'a, 3>, links: &mut Vec<Link<'a>>) {
    let is_link = matches!(path.as_deref(), Some("A@/href" | "AREA@/href"));
    if let (true, Some(url)) = (is_link, url) {
        let rel = rel.map(attribute);
        let rel = rel.map(|rel| Rel::of(&rel)).unwrap_or_default();
        let url = attribute(url);
        keep(
            links,
            Link {
                rel,
                ..Link::to(url)
            },
        );
    }
}

/// Decodes the value of an attribute: extractors leave character references as they are in the HTML.
fn attribute(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match bytes(text) {
        Cow::Borrowed(raw) => html::decoded(raw),
        Cow::Owned(raw) => Cow::Owned(html::decoded(&raw).into_owned()),
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = HtmlHead<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `Base` and `Metas`")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(HtmlHead::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut head = HtmlHead::default();
        let mut has_metas = false;
        while let Some(known) = map.next_key_seed(Name(&["Base", "Metas"]))? {
            match known {
                Some(0) if head.base.is_none() => {
                    let FirstValue(base) = map.next_value()?;
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

impl HtmlHead<'_> {
    /// Reads one `<meta>` of the head.
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
