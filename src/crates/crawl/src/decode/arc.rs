//! ARC, the predecessor of WARC. Specified in `formats/arc.md`.

mod frame;

use std::borrow::Cow;

use super::frame::{Frame, line_ends};
use super::http::{HttpResponse, NO_BODY};
use super::warc::is_web;
use super::{
    Bad, Decoder, FormatSpec, Names, Record, Sink, Skipper, put_time, skips_links, time, whole_by,
};
use crate::rules::Shard;
use frame::{ArcHeader, ArcSkipper};

pub const FORMAT: FormatSpec = FormatSpec {
    name: "arc",
    about: "ARC files, the predecessor of WARC",
    by: |rules, limits| {
        std::sync::Arc::new(Arc {
            body_bytes: limits.line_bytes,
            shard: rules.shard,
        })
    },
};

/// Returns whether a line looks like the first of a record, for format detection.
pub fn is_header(line: &[u8]) -> bool {
    frame::header(line).is_some()
}

/// Decoder of ARC files.
pub struct Arc {
    /// Maximum size of a decoded body, in bytes.
    pub body_bytes: u64,
    /// Shard whose records are decoded beyond their headers; `None`: all.
    pub shard: Option<Shard>,
}

impl Decoder for Arc {
    fn names(&self) -> Names {
        Names::Url
    }

    fn whole(&self, buf: &[u8]) -> usize {
        let end = whole_by(buf, |rest| Some(frame::first(rest, false)?.end));
        end + line_ends(&buf[end..])
    }

    fn skipper(&self) -> Box<dyn Skipper> {
        Box::new(ArcSkipper::Header)
    }

    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        super::frame::decode(chunk, sink, frame::first, |frame, record, large| {
            self.read(frame, record, large)
        });
    }
}

impl Arc {
    /// Reads an ARC record into `record`; `Some(kind)`: it is valid, but not a crawl record.
    fn read<'a>(
        &self,
        frame: Frame<'a, ArcHeader<'a>>,
        record: &mut Record<'a>,
        large: &mut dyn FnMut(),
    ) -> Result<Option<&'static str>, Bad> {
        let (header, block) = frame.parts?;
        if header.url.starts_with(b"filedesc:") {
            return Ok(Some("filedesc"));
        }
        if !is_web(header.url) || block.trim_ascii().is_empty() {
            return Ok(Some("no HTTP response"));
        }
        record.clear();
        record.url = Cow::Borrowed(header.url);
        if skips_links(self.shard, header.url, Names::Url) {
            return Ok(None);
        }
        let answer = HttpResponse::read(block);
        if answer.lacks_body() {
            return Ok(Some(NO_BODY));
        }
        put_time(record, time::read_archive(header.date, "a time"));
        record.status = answer.status;
        record.redirect = answer.redirect();
        if record.redirect.is_none() {
            answer.links(record, self.body_bytes, large)?;
        }
        Ok(None)
    }
}
