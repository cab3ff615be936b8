//! WARC: archived HTTP traffic of crawlers. Specified in `formats/warc.md`.
//!
//! A `response` or `revisit` is a *capture*, and becomes a crawl record together with its [exchange](super::exchange):
//! the `request` before or after it, which has the method, and the `metadata` records after it whose outlinks count (for
//! every `revisit`; for a `response` by choice).

use std::borrow::Cow;

use memchr::{memchr, memmem};
use xxhash_rust::xxh3::xxh3_64;

use super::exchange::{Archives, CaptureFacts, Role};
use super::frame::{self, Frame, WarcHeader, without_cr};
use super::http::{self, HttpResponse, NO_BODY};
use super::{
    Bad, FormatSpec, Link, Names, ReadResult, Reason, Record, lower_case, put_time, skips_links,
    time,
};
use crate::model::{Digest, keep};

pub const FORMAT: FormatSpec = FormatSpec {
    name: "warc",
    about: "WARC files of crawlers",
    by: |rules, limits| {
        std::sync::Arc::new(Archives {
            framing: &frame::WARC,
            role,
            has_ids: true,
            outlinks: rules.outlinks,
            limit: limits.line_bytes,
            shard: rules.shard,
            read,
        })
    },
};

fn role(header: &WarcHeader<'_>, _: &[u8]) -> Option<Role> {
    header.target.filter(|target| is_web(target))?;
    match lower_case(header.kind, &mut [0; 8]) {
        b"response" | b"revisit" => Some(Role::Capture),
        b"request" => Some(Role::Request),
        b"metadata" => Some(Role::Metadata),
        _ => None,
    }
}

pub(super) fn read<'a>(
    archives: &Archives,
    frame: Frame<'a>,
    facts: &mut CaptureFacts<'a>,
    record: &mut Record<'a>,
    large: &mut dyn FnMut(),
) -> ReadResult {
    let (header, block) = frame.parts?;
    let is_revisit = header.is("revisit");
    if !is_revisit && !header.is("response") {
        let kind = frame::record_kind(header.kind);
        match kind {
            "request" => facts.not_get = http::not_get(http::method(block)),
            "metadata" => facts.metadata.push(block),
            _ => {}
        }
        let has_links = kind == "metadata" && outlinks(block).next().is_some();
        return Ok(Some(if has_links {
            "metadata with outlinks"
        } else {
            kind
        }));
    }
    record.clear();
    let url = header.target.filter(|url| !url.is_empty());
    let url = url.ok_or_else(|| Bad::new(Reason::BadUrl, "no target URI"))?;
    if !is_web(url) || (!is_revisit && block.trim_ascii().is_empty()) {
        return Ok(Some("no HTTP response"));
    }
    if header.segmented {
        let message = "the record is split into segments, which are not put together";
        return Err(Bad::malformed(message));
    }
    if let Some(kind) = facts.not_get {
        return Ok(Some(kind));
    }
    record.url = Cow::Borrowed(url);
    if skips_links(archives.shard, url, Names::Url) {
        return Ok(None);
    }
    let answer = HttpResponse::read(block);
    if !is_revisit && answer.lacks_body() {
        return Ok(Some(NO_BODY));
    }
    put_time(record, time::read_archive(header.date, "a time"));
    if !header.digest.is_empty() {
        record.digest = Digest::of_content(xxh3_64(header.digest));
    }
    record.status = answer.status;
    record.redirect = answer.redirect();
    let lists_outlinks = archives.lists_outlinks(&header);
    let listed = lists_outlinks.then(|| listed(&facts.metadata)).flatten();
    match listed {
        _ if record.redirect.is_some() => {}
        Some(links) => record.links = links,
        None if is_revisit => {
            record.revisit = true;
            let other = Some(header.refers_to).filter(|other| is_web(other) && *other != url);
            record.same_as = other.map(Cow::Borrowed);
        }
        None => answer.links(record, archives.limit, large)?,
    }
    Ok(None)
}

pub fn is_web(url: &[u8]) -> bool {
    [&b"http://"[..], b"https://"].iter().any(|scheme| {
        let front = url.get(..scheme.len());
        front.is_some_and(|front| front.eq_ignore_ascii_case(scheme))
    })
}

/// Start of the lines `outlink: URL hop context`, by which Heritrix lists outlinks in `metadata` records.
const OUTLINK: &[u8] = b"outlink:";

fn listed<'a>(blocks: &[&'a [u8]]) -> Option<Vec<Link<'a>>> {
    let mut listed: Option<Vec<_>> = None;
    for line in blocks.iter().flat_map(|block| outlinks(block)) {
        let links = listed.get_or_insert_default();
        if let Some(url) = outlink(line) {
            keep(links, Cow::Borrowed(url));
        }
    }
    listed
}

fn outlinks(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    memmem::find_iter(block, OUTLINK).filter_map(|at| {
        let at_line_start = at == 0 || block[at - 1] == b'\n';
        let rest = &block[at + OUTLINK.len()..];
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        at_line_start.then(|| without_cr(line).trim_ascii_start())
    })
}

/// Returns the target if a reader of the page could follow it: hop `L` (link) or `R` (refresh). A link found in an
/// attribute must be of `a` or `area`, because Heritrix reports forms and options as `L`, too.
fn outlink(line: &[u8]) -> Option<&[u8]> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let (url, hop, context) = (parts.next()?, parts.next()?, parts.next().unwrap_or(b""));
    let counts = match hop {
        b"L" => match memmem::find(context, b"/@") {
            Some(slash) => {
                let element = &context[..slash];
                element.eq_ignore_ascii_case(b"a") || element.eq_ignore_ascii_case(b"area")
            }
            None => true,
        },
        b"R" => true,
        _ => false,
    };
    (counts && !url.is_empty()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contexts from Heritrix's own archives, and invented ones.
    #[test]
    fn which_lines_are_links() {
        let block = b"via: http://v/\r\noutlink: http://a/ L a/@href\r\n\
            outlink: http://b/ L AREA/@HREF\noutlink: http://c/ L option/@value\n\
            outlink: http://d/ E img/@src\noutlink: http://e/ X =JS_MISC\noutlink: http://f/ I =INFERRED_MISC\n\
            outlink: http://g/ R meta\noutlink: http://h/ L =NAVLINK_MISC\noutlink: http://i/ L\n\
            x outlink: http://j/ L a/@href\noutlink:  L a/@href\noutlink: http://k/\noutlink: http://l/ L a/@href";
        let links = listed(&[block]).unwrap();
        let urls: Vec<_> = links.into_iter().map(|link| link.url).collect();
        let expected = [
            "http://a/",
            "http://b/",
            "http://g/",
            "http://h/",
            "http://i/",
            "http://l/",
        ];
        assert_eq!(urls, expected.map(|url| Cow::Borrowed(url.as_bytes())));
    }

    #[test]
    fn none_listed_is_not_an_empty_list() {
        for (block, lists) in [
            (&b"via: http://v/\r\nfetchTimeMs: 3\r\n"[..], false),
            (b"outlink: http://a/ E img/@src\r\n", true),
        ] {
            assert_eq!(listed(&[block]), lists.then(Vec::new));
            assert_eq!(outlinks(block).next().is_some(), lists);
        }
    }
}
