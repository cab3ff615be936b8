//! WARC: what crawlers archive of HTTP. Specified in `formats/warc.md`.
//!
//! A `response` or `revisit` is a *capture*, and becomes a crawl record. Crawlers may list a page's outlinks
//! in a `metadata` record behind its capture. Where those count (of every `revisit`; of a `response` by
//! choice) a crawl record is the capture together with its *tail*, the `request` and `metadata` records
//! that follow directly and have the same target. They are handed out just before it, without moving the
//! offset: the capture counts as read only with its tail.

mod group;
mod outlinks;

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::frame::{self, Frame, Header};
use super::http::Answer;
use super::{
    Bad, Decoder, FormatSpec, Link, Names, Parsed, Reason, Record, RecordTime, Sink, Skipper,
    put_time, time,
};
use crate::model::{Digest, LINE_BYTES};
use crate::rules::Outlinks;
use group::GroupSkipper;

/// The format's name, help and decoder.
pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "warc",
    about: "WARC files of crawlers",
    is_grouped: false,
    caveat: None,
    usual: &Warc {
        outlinks: Outlinks::Html,
        body_bytes: LINE_BYTES,
    },
    by: |rules, limits| {
        std::sync::Arc::new(Warc {
            outlinks: rules.outlinks,
            body_bytes: limits.line_bytes,
        })
    },
};

/// See the module.
pub(crate) struct Warc {
    /// Where the links of a `response` come from.
    pub outlinks: Outlinks,
    /// Most bytes that the body of an answer may take once it is decoded.
    pub body_bytes: u64,
}

impl Decoder for Warc {
    fn names(&self) -> Names {
        Names::Url
    }

    /// Up to the last record of which the tail may go on.
    fn whole(&self, buf: &[u8], at_end: bool) -> usize {
        if at_end {
            return buf.len();
        }
        let mut end = 0;
        while let Some(frame) = frame::first(&buf[end..], false) {
            let next = end + frame.end;
            let Some(tail) = group::tail(&frame, self.outlinks, &buf[next..], false) else {
                return end;
            };
            end = next + tail;
        }
        // The line ends behind it come before the next record's tail: see where that is handed out.
        end
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(GroupSkipper::new(self.outlinks))
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        let mut done = 0;
        while let Some(frame) = frame::first(&chunk[done..], true) {
            let tail_start = done + frame.end;
            let tail = group::tail(&frame, self.outlinks, &chunk[tail_start..], true).unwrap_or(0);
            let end = tail_start + tail;
            let mut listed = None;
            let mut rest = &chunk[tail_start..end];
            while let Some(frame) = frame::first(rest, true) {
                rest = &rest[frame.end..];
                if let Ok((header, block)) = &frame.parts {
                    outlinks::add(header, block, &mut listed);
                }
                if !sink(done, other(frame)) {
                    return;
                }
            }
            let read = self.read(frame, listed, &mut record, &mut || {
                sink(done, Parsed::Large);
            });
            done = end;
            if !sink(done, Parsed::of(read, &record)) {
                return;
            }
        }
    }
}

impl Warc {
    /// Reads a WARC record, and the outlinks `listed` in its tail, into `record`; `Some(kind)`:
    /// it is not a crawl record, and need not be.
    fn read<'a>(
        &self,
        frame: Frame<'a>,
        listed: Option<Vec<Link<'a>>>,
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
        record.url = Cow::Borrowed(url);
        put_time(record, read_time(header.date));
        if !header.digest.is_empty() {
            record.digest = Digest::of_content(xxh3_64(header.digest));
        }
        let answer = Answer::read(block);
        record.status = answer.status;
        record.redirect = answer.redirect();
        match (capture, listed) {
            _ if record.redirect.is_some() => {}
            (_, Some(links)) => record.links = links,
            (Capture::Revisit, None) => record.revisit = true,
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
