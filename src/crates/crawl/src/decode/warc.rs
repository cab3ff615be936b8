//! WARC: archived HTTP traffic of crawlers. Specified in `formats/warc.md`.
//!
//! A `response` or `revisit` is a *capture*, and becomes a crawl record together with its [exchange](super::exchange):
//! the `request` before or after it, which has the method, and the `metadata` records after it whose outlinks count (for
//! every `revisit`; for a `response` by choice). These records are emitted just before the capture without moving the
//! offset, so the capture counts as read only together with them.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use xxhash_rust::xxh3::xxh3_64;

use super::exchange::{ExchangeRules, Role};
use super::frame::{self, Frame, FrameSkipper, WarcFraming, WarcHeader, without_cr};
use super::http::{self, HttpResponse, NO_BODY};
use super::{
    Bad, Decoder, FormatSpec, Link, Names, Parsed, Reason, Record, Sink, Skipper, parsed, put_time,
    skips_links, time, whole_by,
};
use crate::model::{Digest, keep};
use crate::rules::Shard;

pub const FORMAT: FormatSpec = FormatSpec {
    name: "warc",
    about: "WARC files of crawlers",
    by: |rules, limits| {
        std::sync::Arc::new(Warc {
            exchanges: ExchangeRules {
                role,
                has_ids: true,
                outlinks: rules.outlinks,
                limit: limits.line_bytes,
            },
            shard: rules.shard,
        })
    },
};

pub struct Warc {
    /// Rules of exchanges; their limit is also the maximum size of a decoded body, in bytes.
    exchanges: ExchangeRules,
    /// Shard whose captures are decoded beyond their headers; `None`: all captures are.
    shard: Option<Shard>,
}

fn role(header: &WarcHeader<'_>, _: &[u8]) -> Option<Role> {
    let is = |name: &[u8]| header.kind.eq_ignore_ascii_case(name);
    let role = match Capture::of(header) {
        Some(_) => Role::Capture,
        None if is(b"request") => Role::Request,
        None if is(b"metadata") => Role::Metadata,
        None => return None,
    };
    header.target.filter(|target| is_web(target)).map(|_| role)
}

impl Decoder for Warc {
    /// Stops before the last exchange, which may continue.
    fn whole(&self, buf: &[u8]) -> usize {
        // The line ends after the last exchange precede the next record's tail: see `decode`.
        whole_by(buf, |rest| Some(self.exchanges.first(rest, false)?.end))
    }

    fn is_cut(&self, rest: &[u8]) -> bool {
        self.exchanges.is_cut(rest)
    }

    fn may_lack_request(&self, rest: &[u8]) -> bool {
        self.exchanges.may_lack_request(rest)
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(FrameSkipper::<WarcFraming>::default())
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        let mut done = 0;
        while let Some(exchange) = self.exchanges.first(&chunk[done..], true) {
            let mut beside = CaptureFacts::default();
            for (_, frame) in exchange.beside {
                let read = frame.parts.map(|(header, block)| {
                    beside.see(&header, block);
                    Some(kind(&header, block))
                });
                if !sink(done, parsed(read, &record)) {
                    return;
                }
            }
            let read = self.read(exchange.frame, beside, &mut record, &mut || {
                sink(done, Parsed::Large);
            });
            done += exchange.end;
            if !sink(done, parsed(read, &record)) {
                return;
            }
        }
    }
}

/// Facts about a capture from its accompanying records.
#[derive(Default)]
struct CaptureFacts<'a> {
    /// Report name of the capture, if it is not a response to GET.
    not_get: Option<&'static str>,
    /// Outlinks that the crawler listed; `None` if it listed none.
    listed: Option<Vec<Link<'a>>>,
}

impl<'a> CaptureFacts<'a> {
    fn see(&mut self, header: &WarcHeader<'a>, block: &'a [u8]) {
        if header.kind.eq_ignore_ascii_case(b"request") {
            self.not_get = http::not_get(http::method(block));
        }
        add_outlinks(header, block, &mut self.listed);
    }
}

impl Warc {
    /// Reads a WARC record and the facts `beside` it into `record`. `Some(kind)`: it is valid, but not a crawl record.
    fn read<'a>(
        &self,
        frame: Frame<'a>,
        beside: CaptureFacts<'a>,
        record: &mut Record<'a>,
        large: &mut dyn FnMut(),
    ) -> Result<Option<&'static str>, Bad> {
        let (header, block) = frame.parts?;
        let Some(capture) = Capture::of(&header) else {
            return Ok(Some(kind(&header, block)));
        };
        record.clear();
        let url = header.target.filter(|url| !url.is_empty());
        let url = url.ok_or_else(|| Bad::new(Reason::BadUrl, "no target URI"))?;
        if !is_web(url) || (capture == Capture::Response && block.trim_ascii().is_empty()) {
            return Ok(Some("no HTTP response"));
        }
        if header.segmented {
            let message = "the record is split into segments, which are not put together";
            return Err(Bad::malformed(message));
        }
        if let Some(kind) = beside.not_get {
            return Ok(Some(kind));
        }
        record.url = Cow::Borrowed(url);
        if skips_links(self.shard, url, Names::Url) {
            return Ok(None);
        }
        let answer = HttpResponse::read(block);
        if capture == Capture::Response && answer.lacks_body() {
            return Ok(Some(NO_BODY));
        }
        put_time(record, time::read_archive(header.date, "a time"));
        if !header.digest.is_empty() {
            record.digest = Digest::of_content(xxh3_64(header.digest));
        }
        record.status = answer.status;
        record.redirect = answer.redirect();
        let listed = beside
            .listed
            .filter(|_| self.exchanges.lists_outlinks(&header));
        match (capture, listed) {
            _ if record.redirect.is_some() => {}
            (_, Some(links)) => record.links = links,
            (Capture::Revisit, None) => {
                record.revisit = true;
                let other = Some(header.refers_to).filter(|other| is_web(other) && *other != url);
                record.same_as = other.map(Cow::Borrowed);
            }
            (Capture::Response, None) => answer.links(record, self.exchanges.limit, large)?,
        }
        Ok(None)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capture {
    Response,
    Revisit,
}

impl Capture {
    fn of(header: &WarcHeader<'_>) -> Option<Capture> {
        let is = |name: &[u8]| header.kind.eq_ignore_ascii_case(name);
        match () {
            () if is(b"response") => Some(Capture::Response),
            () if is(b"revisit") => Some(Capture::Revisit),
            () => None,
        }
    }
}

pub fn is_web(url: &[u8]) -> bool {
    [&b"http://"[..], b"https://"].iter().any(|scheme| {
        let front = url.get(..scheme.len());
        front.is_some_and(|front| front.eq_ignore_ascii_case(scheme))
    })
}

fn kind(header: &WarcHeader<'_>, block: &[u8]) -> &'static str {
    match frame::record_kind(header.kind) {
        "metadata" if outlinks(block).next().is_some() => "metadata with outlinks",
        kind => kind,
    }
}

/// Start of the lines by which Heritrix lists outlinks in `metadata` records: `outlink: URL hop context`.
const OUTLINK: &[u8] = b"outlink:";

/// Adds the links of a record in a capture's tail. `listed` stays `None` unless a record lists outlinks.
fn add_outlinks<'a>(header: &WarcHeader<'a>, block: &'a [u8], listed: &mut Option<Vec<Link<'a>>>) {
    if !header.kind.eq_ignore_ascii_case(b"metadata") {
        return;
    }
    for line in outlinks(block) {
        let links = listed.get_or_insert_default();
        if let Some(url) = outlink(line) {
            keep(links, Cow::Borrowed(url));
        }
    }
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
/// attribute must be of `a` or `area`, as in HTML, because Heritrix reports forms and options as `L`, too. `E` marks
/// embedded resources; `X` and `I` mark guesses.
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
        let header = WarcHeader {
            kind: b"metadata",
            ..WarcHeader::default()
        };
        let mut listed = None;
        add_outlinks(&header, block, &mut listed);
        let urls: Vec<_> = listed.unwrap().into_iter().map(|link| link.url).collect();
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
        let header = WarcHeader {
            kind: b"metadata",
            ..WarcHeader::default()
        };
        for (block, lists) in [
            (&b"via: http://v/\r\nfetchTimeMs: 3\r\n"[..], false),
            (b"outlink: http://a/ E img/@src\r\n", true),
        ] {
            let mut listed = None;
            add_outlinks(&header, block, &mut listed);
            assert_eq!(listed, lists.then(Vec::new));
            assert_eq!(outlinks(block).next().is_some(), lists);
        }
    }
}
