//! Common Crawl WAT: the facts that an extractor found in each record of a WARC or ARC file, as JSON in WARC `metadata`
//! records. Specified in `formats/wat.md`.

mod fields;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use memchr::memmem;
use serde::de::DeserializeSeed;
use xxhash_rust::xxh3::xxh3_64;

use fields::{Facts, Key, Walk};

use super::exchange::{Archives, CaptureFacts, Role};
use super::frame::{Frame, WARC, WarcHeader, bare, record_kind};
use super::html;
use super::http::{self, NO_BODY};
use super::json::{self, bytes};
use super::warc::is_web;
use super::{Bad, FormatSpec, Names, ReadResult, Reason, Record, put_time, time, utf8};
use crate::model::{Digest, is_redirect, keep};
use crate::rules::Outlinks;

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

/// Returns the role of an archived record, as its JSON shows.
fn role(header: &WarcHeader<'_>, block: &[u8]) -> Option<Role> {
    header.target.filter(|_| is_wat(header))?;
    // Quotes within a text are escaped, so both can only be names of fields.
    let has = |name: &[u8]| memmem::find(block, name).is_some();
    if has(b"\"HTTP-Request-Metadata\"") {
        return Some(Role::Request);
    }
    has(b"\"HTTP-Response-Metadata\"").then_some(Role::Capture)
}

/// Returns the page of a response if it belongs to another shard and that is certain without parsing the JSON: the
/// record's header and the header in the JSON name the same page.
fn passed_over<'a>(archives: &Archives, frame: &Frame<'a>) -> Option<&'a [u8]> {
    let shard = archives.shard?;
    let (header, block) = frame.parts.as_ref().ok()?;
    let page = header.target.filter(|_| is_wat(header))?;
    // Quotes within a text are escaped, so this can only be a field's name and value.
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

/// Reads a WARC record, but only the URL of one that belongs to another shard. A request that is no GET is noted in
/// `about`.
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
    let mut facts = Facts::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let walk = Walk {
        at: 0,
        facts: &mut facts,
    };
    walk.deserialize(&mut json)?;
    json.end()?;
    Ok(facts)
}

/// Fills `record` like [`read`]. A request sets `not_get`, the report name of its response, if it is not a GET.
fn put<'a>(
    mut facts: Facts<'a>,
    not_get: &mut Option<&'static str>,
    record: &mut Record<'a>,
) -> ReadResult {
    let (kind, url, date) = if facts.has(Key::Warc) {
        let kind = facts.take(Key::Kind);
        let kind = kind.ok_or_else(|| Bad::malformed("no WARC-Type in the envelope"))?;
        (kind, facts.take(Key::Url), facts.take(Key::Date))
    } else if facts.has(Key::Arc) {
        let (url, date) = (facts.take(Key::ArcUrl), facts.take(Key::ArcDate));
        (Cow::Borrowed("response"), url, date)
    } else {
        return Err(Bad::malformed("neither WARC nor ARC header metadata"));
    };
    let revisit = kind.eq_ignore_ascii_case("revisit");
    if !revisit && !kind.eq_ignore_ascii_case("response") {
        let method = facts.take(Key::Method).unwrap_or_default();
        *not_get = http::not_get(method.as_bytes());
        return Ok(Some(record_kind(kind.as_bytes())));
    }
    let lookup = url.as_ref().is_some_and(|url| url.starts_with("dns:"));
    if !facts.has(Key::Response) && (!revisit || lookup) {
        return Ok(Some("no HTTP response"));
    }
    if not_get.is_some() {
        return Ok(*not_get);
    }
    let status: Option<i32> = facts
        .get(Key::Status)
        .and_then(|status| status.trim().parse().ok());
    // The response was to a HEAD, or was cut off.
    let lacks_body =
        matches!(status, Some(200..300)) && facts.get(Key::Length) == Some("0") && facts.announced;
    if !revisit && lacks_body {
        return Ok(Some(NO_BODY));
    }
    record.clear();
    record.url = target(url)?;
    let date = date.as_deref().unwrap_or_default().as_bytes();
    put_time(record, time::read_archive(date, "a time"));
    // A revisit has no body: the extractor's digest is that of nothing.
    let of_body = facts.take(Key::BodyDigest).filter(|_| !revisit);
    let digest = facts.take(Key::Digest).or(of_body);
    if let Some(digest) = digest.filter(|digest| !digest.is_empty()) {
        record.digest = Digest::of_content(xxh3_64(digest.as_bytes()));
    }
    record.status = status;
    if status.is_some_and(is_redirect) {
        record.redirect = facts.take(Key::Location).map(bytes);
    }
    record.revisit = revisit && record.redirect.is_none();
    if !revisit {
        // Links of the head come first, as in the page.
        record.links = std::mem::take(&mut facts.refreshes);
        for link in std::mem::take(&mut facts.links) {
            keep(&mut record.links, link);
        }
        record.base = facts.take(Key::Base).map(attribute);
        if facts.meta_nofollow {
            html::forbid(&mut record.links);
        }
        let refresh = facts
            .take(Key::Refresh)
            .filter(|_| record.redirect.is_none());
        http::put_fields(
            record,
            refresh.unwrap_or_default().as_bytes(),
            facts.nofollow,
        );
    }
    if let Some(other) = facts.take(Key::RefersTo).filter(|_| record.revisit) {
        let other = target(Some(other)).ok();
        record.same_as = other.filter(|other| is_web(other) && *other != record.url);
    }
    Ok(None)
}

/// Removes the angle brackets that some writers put around the page's URL.
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
