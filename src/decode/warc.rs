//! WARC: what crawlers archive of HTTP. Specified in `formats/warc.md`.
//!
//! A `response` or `revisit` is a *capture*, and becomes a crawl record together with the records beside it: the `request`,
//! which names the method, before or behind it, and, where the outlinks that crawlers list in `metadata` records count (of
//! every `revisit`; of a `response` by choice), those behind it. They are handed out just before it, without moving the
//! offset: the capture counts as read only with them.

mod group;
mod outlinks;

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::frame::{self, Frame, Header};
use super::http::{self, Answer, NO_BODY};
use super::{
    Bad, Decoder, FormatSpec, Link, Names, Parsed, Reason, Record, RecordTime, Sink, Skipper,
    put_time, skips_links, time,
};
use crate::model::{Digest, LINE_BYTES};
use crate::rules::{Outlinks, Shard};
use group::{Group, GroupSkipper};

/// The format's name, help and decoder.
pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "warc",
    about: "WARC files of crawlers",
    is_grouped: false,
    caveat: None,
    usual: &Warc {
        outlinks: Outlinks::Html,
        body_bytes: LINE_BYTES,
        shard: None,
    },
    by: |rules, limits| {
        std::sync::Arc::new(Warc {
            outlinks: rules.outlinks,
            body_bytes: limits.line_bytes,
            shard: rules.shard,
        })
    },
};

/// See the module.
pub(crate) struct Warc {
    /// Where the links of a `response` come from.
    pub outlinks: Outlinks,
    /// Most bytes that the body of an answer may take once it is decoded.
    pub body_bytes: u64,
    /// Whose captures are read, beyond their headers; `None`: all.
    pub shard: Option<Shard>,
}

impl Decoder for Warc {
    fn names(&self) -> Names {
        Names::Url
    }

    /// Up to the last group that may go on.
    fn whole(&self, buf: &[u8], at_end: bool) -> usize {
        if at_end {
            return buf.len();
        }
        let mut end = 0;
        while let Some(group) = Group::first(&buf[end..], self.outlinks, false) {
            end += group.end;
        }
        // The line ends behind it come before the next record's tail: see where that is handed out.
        end
    }

    /// A request is cut whose answer is missing, and a capture whose links may be in its tail, as long as no `metadata`
    /// follows it. A response is not: where no requests are kept, the last one of each stream would be.
    fn is_cut(&self, rest: &[u8]) -> bool {
        let (mut at, mut waits) = (0, false);
        while let Some(frame) = frame::first(&rest[at..], true) {
            let Ok((header, _)) = &frame.parts else {
                return true;
            };
            let is = |kind: &[u8]| header.kind.eq_ignore_ascii_case(kind);
            waits = match Capture::of(header) {
                Some(capture) => group::are_listed(capture, self.outlinks),
                None if at == 0 => is(b"request"),
                None => waits && !is(b"metadata"),
            };
            at += frame.end;
        }
        waits
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(GroupSkipper::new(self.outlinks))
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        let mut done = 0;
        while let Some(group) = Group::first(&chunk[done..], self.outlinks, true) {
            let (mut rest, end) = (
                &chunk[done + group.tail..done + group.end],
                done + group.end,
            );
            let mut beside = Beside::default();
            let behind = std::iter::from_fn(|| {
                let frame = frame::first(rest, true)?;
                rest = &rest[frame.end..];
                Some(frame)
            });
            for frame in group.request.into_iter().chain(behind) {
                if let Ok((header, block)) = &frame.parts {
                    beside.see(header, block);
                }
                if !sink(done, other(frame)) {
                    return;
                }
            }
            let read = self.read(group.frame, beside, &mut record, &mut || {
                sink(done, Parsed::Large);
            });
            done = end;
            if !sink(done, Parsed::of(read, &record)) {
                return;
            }
        }
    }
}

/// What the records beside a capture tell of it.
#[derive(Default)]
struct Beside<'a> {
    /// What it is, if it is no answer to a GET.
    not_get: Option<&'static str>,
    /// The outlinks that the crawler lists; `None`: it lists none.
    listed: Option<Vec<Link<'a>>>,
}

impl<'a> Beside<'a> {
    fn see(&mut self, header: &Header<'a>, block: &'a [u8]) {
        if header.kind.eq_ignore_ascii_case(b"request") {
            self.not_get = http::not_get(http::method(block));
        }
        outlinks::add(header, block, &mut self.listed);
    }
}

impl Warc {
    /// Reads a WARC record, with what is told `beside` it, into `record`; `Some(kind)`: it is not a crawl record, and need
    /// not be.
    fn read<'a>(
        &self,
        frame: Frame<'a>,
        beside: Beside<'a>,
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
        let answer = Answer::read(block);
        if capture == Capture::Response && answer.lacks_body() {
            return Ok(Some(NO_BODY));
        }
        put_time(record, read_time(header.date));
        if !header.digest.is_empty() {
            record.digest = Digest::of_content(xxh3_64(header.digest));
        }
        record.status = answer.status;
        record.redirect = answer.redirect();
        let listed = beside
            .listed
            .filter(|_| group::are_listed(capture, self.outlinks));
        match (capture, listed) {
            _ if record.redirect.is_some() => {}
            (_, Some(links)) => record.links = links,
            (Capture::Revisit, None) => {
                record.revisit = true;
                let other = Some(header.refers_to).filter(|other| is_web(other) && *other != url);
                record.same_as = other.map(Cow::Borrowed);
            }
            (Capture::Response, None) => answer.links(record, self.body_bytes, large)?,
        }
        Ok(None)
    }
}

/// The records that tell of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capture {
    Response,
    Revisit,
}

impl Capture {
    fn of(header: &Header<'_>) -> Option<Capture> {
        let is = |name: &[u8]| header.kind.eq_ignore_ascii_case(name);
        match () {
            () if is(b"response") => Some(Capture::Response),
            () if is(b"revisit") => Some(Capture::Revisit),
            () => None,
        }
    }
}

/// Returns whether a target was fetched by HTTP.
pub(crate) fn is_web(url: &[u8]) -> bool {
    [&b"http://"[..], b"https://"].iter().any(|scheme| {
        let front = url.get(..scheme.len());
        front.is_some_and(|front| front.eq_ignore_ascii_case(scheme))
    })
}

/// The result for a record of a tail.
fn other(frame: Frame<'_>) -> Parsed<'_, '_> {
    match frame.parts {
        Ok((header, block)) => Parsed::Other {
            kind: kind(&header, block),
        },
        Err(bad) => bad.into(),
    }
}

/// The name of a record that is no capture.
fn kind(header: &Header<'_>, block: &[u8]) -> &'static str {
    let known = [
        "warcinfo",
        "request",
        "metadata",
        "resource",
        "conversion",
        "continuation",
    ];
    let is = |known: &&&str| header.kind.eq_ignore_ascii_case(known.as_bytes());
    match known.iter().find(is) {
        Some(&"metadata") if outlinks::are_in(block) => "metadata with outlinks",
        Some(known) => known,
        None => "unknown WARC-Type",
    }
}

/// The time of a fetch; `None`: none is given.
pub(crate) fn read_time(text: &[u8]) -> RecordTime {
    if text.is_empty() {
        return Ok(None);
    }
    let time = std::str::from_utf8(text).ok().and_then(time::from_archive);
    time.map(Some).ok_or_else(|| {
        let message: String = String::from_utf8_lossy(text).chars().take(40).collect();
        format!("{message:?} is not a time")
    })
}
