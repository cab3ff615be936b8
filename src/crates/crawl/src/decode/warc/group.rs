//! Groups records: a capture with its request and the metadata that the crawler wrote about it.
//!
//! A group is a capture, at most one request directly before it, and the *tail* after it. All have the capture's
//! target. If records name each other (`WARC-Concurrent-To`), that decides; otherwise adjacency is enough.

use super::{Capture, is_web};
use crate::decode::frame::{self, Frame, FrameSkipper, WarcHeader};
use crate::decode::{HELD_MAX, Skipped, Skipper};
use crate::rules::Outlinks;

/// Maximum number of records in a tail. Crawlers write two.
const RECORDS_MAX: usize = 8;
/// Maximum length of a request or tail record, with its header and the line ends before it: whether it is complete must
/// be known before the end of the capture is. A longer record stands alone.
const RECORD_MAX: usize = HELD_MAX;

/// A group: a capture with its accompanying records, or a record that stands alone.
pub(super) struct Group<'a> {
    pub request: Option<Frame<'a>>,
    /// Capture, or the record that stands alone.
    pub frame: Frame<'a>,
    /// Offset where the tail begins.
    pub tail: usize,
    pub end: usize,
}

impl<'a> Group<'a> {
    /// Returns the first group of `buf`; `None` if there is none or, before the input's end, if it is incomplete.
    pub fn first(buf: &'a [u8], outlinks: Outlinks, at_end: bool) -> Option<Group<'a>> {
        let mut frame = frame::first(buf, at_end)?;
        let mut tail = frame.end;
        let mut request = None;
        let before = header_of(&frame).and_then(GroupIds::of_request);
        if let Some(before) = &before
            && before.is_before(&buf[tail..], at_end)?
        {
            let capture = frame::first(&buf[tail..], at_end)?;
            tail += capture.end;
            request = Some(std::mem::replace(&mut frame, capture));
        }
        let mut end = tail;
        let before = before.filter(|_| request.is_some());
        if let Some(mut beside) =
            header_of(&frame).and_then(|header| Tail::of(header, before, outlinks))
        {
            while let len @ 1.. = beside.next(&buf[end..], at_end)? {
                end += len;
            }
        }
        Some(Group {
            request,
            frame,
            tail,
            end,
        })
    }
}

fn header_of<'f, 'a>(frame: &'f Frame<'a>) -> Option<&'f WarcHeader<'a>> {
    frame.parts.as_ref().ok().map(|(header, _)| header)
}

fn is(header: &WarcHeader<'_>, kind: &[u8]) -> bool {
    header.kind.eq_ignore_ascii_case(kind)
}

/// Identification of a group's records: their target, their own ids, and the ids that they name.
struct GroupIds {
    target: Vec<u8>,
    ids: Vec<Vec<u8>>,
    named: Vec<Vec<u8>>,
}

impl GroupIds {
    /// `None` if nothing can belong to a record of this target.
    fn of(header: &WarcHeader<'_>) -> Option<GroupIds> {
        let mut beside = GroupIds {
            target: header.target.filter(|target| is_web(target))?.to_vec(),
            ids: Vec::new(),
            named: Vec::new(),
        };
        beside.add(header);
        Some(beside)
    }

    fn of_request(header: &WarcHeader<'_>) -> Option<GroupIds> {
        let fits = header.length <= (RECORD_MAX - header.len.min(RECORD_MAX)) as u64;
        GroupIds::of(header).filter(|_| is(header, b"request") && fits)
    }

    fn add(&mut self, header: &WarcHeader<'_>) {
        let id = Some(header.id).filter(|id| !id.is_empty());
        self.ids.extend(id.map(<[u8]>::to_vec));
        self.named
            .extend(header.concurrent.iter().map(|id| id.to_vec()));
    }

    /// Returns whether this is the request of the capture that begins at `behind`; `None`: more bytes are needed.
    fn is_before(&self, behind: &[u8], at_end: bool) -> Option<bool> {
        let capture = match frame::header_behind(behind, at_end)? {
            Some((_, capture)) if Capture::of(&capture).is_some() => capture,
            _ => return Some(false),
        };
        Some(capture.target == Some(&self.target) && self.is_linked(&capture))
    }

    /// Returns whether the group and this record name each other, or neither names any record.
    fn is_linked(&self, header: &WarcHeader<'_>) -> bool {
        let has = |all: &[Vec<u8>], id: &[u8]| all.iter().any(|known| known == id);
        let mut named = header.concurrent.iter();
        (self.named.is_empty() && header.concurrent.is_empty())
            || has(&self.named, header.id)
            || named.any(|id| has(&self.ids, id) || has(&self.named, id))
    }
}

struct Tail {
    beside: GroupIds,
    request: bool,
    /// True if the tail's outlinks count, so that it is read to its end.
    listed: bool,
    records: usize,
}

impl Tail {
    /// Returns the tail of a capture with the request before it; `None` if nothing can follow the record.
    fn of(header: &WarcHeader<'_>, request: Option<GroupIds>, outlinks: Outlinks) -> Option<Tail> {
        let listed = are_listed(Capture::of(header)?, outlinks);
        let mut beside = GroupIds::of(header)?;
        let has_request = request.is_some();
        if let Some(request) = request {
            beside.ids.extend(request.ids);
            beside.named.extend(request.named);
        }
        Some(Tail {
            beside,
            request: !has_request,
            listed,
            records: 0,
        })
    }

    /// Returns the length of the tail's next record at the start of `behind`, including the line ends before it; 0 if
    /// the tail has ended. `None`: more bytes are needed.
    fn next(&mut self, behind: &[u8], at_end: bool) -> Option<usize> {
        if self.records == RECORDS_MAX || !(self.request || self.listed) {
            return Some(0);
        }
        let Some((start, header)) = frame::header_behind(behind, at_end)? else {
            return Some(0);
        };
        let is_request = is(&header, b"request");
        let belongs = if is_request {
            self.request && self.beside.is_linked(&header)
        } else {
            is(&header, b"metadata")
                && (header.concurrent.is_empty() || self.beside.is_linked(&header))
        };
        let block = usize::try_from(header.length).unwrap_or(usize::MAX);
        let len = block.saturating_add(start + header.len);
        if !belongs || header.target != Some(&self.beside.target) || len > RECORD_MAX {
            return Some(0);
        }
        if len > behind.len() {
            return at_end.then_some(0);
        }
        self.request &= !is_request;
        self.beside.add(&header);
        self.records += 1;
        Some(len)
    }
}

pub(super) fn are_listed(capture: Capture, outlinks: Outlinks) -> bool {
    match capture {
        Capture::Revisit => true,
        Capture::Response => outlinks == Outlinks::Metadata,
    }
}

pub(super) struct CaptureGroupSkipper {
    outlinks: Outlinks,
    /// Record being skipped; `None` once it has ended.
    frame: Option<FrameSkipper>,
    /// Request that was or is being skipped; its capture may follow.
    request: Option<GroupIds>,
    tail: Option<Tail>,
}

impl CaptureGroupSkipper {
    pub fn new(outlinks: Outlinks) -> CaptureGroupSkipper {
        CaptureGroupSkipper {
            outlinks,
            frame: Some(FrameSkipper::Header),
            request: None,
            tail: None,
        }
    }

    fn look(&mut self, rest: &[u8]) {
        if let Ok(Some(header)) = frame::header(&rest[frame::line_ends(rest)..]) {
            self.tail = Tail::of(&header, self.request.take(), self.outlinks);
            self.request = GroupIds::of_request(&header);
        }
    }
}

impl Skipper for CaptureGroupSkipper {
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped {
        let mut at = 0;
        loop {
            if let Some(mut frame) = self.frame.take() {
                if matches!(frame, FrameSkipper::Header) {
                    self.look(&buf[at..]);
                }
                match frame.skip(&buf[at..], at_end) {
                    Skipped::Ended(end) => at += end,
                    Skipped::Inside(inside) => {
                        self.frame = Some(frame);
                        return Skipped::Inside(at + inside);
                    }
                }
            }
            let Some(request) = &self.request else {
                break;
            };
            match request.is_before(&buf[at..], at_end) {
                None => return Skipped::Inside(at),
                Some(false) => return Skipped::Ended(at),
                Some(true) => self.frame = Some(FrameSkipper::Header),
            }
        }
        let Some(tail) = &mut self.tail else {
            return Skipped::Ended(at);
        };
        loop {
            match tail.next(&buf[at..], at_end) {
                None => return Skipped::Inside(at),
                Some(0) => return Skipped::Ended(at),
                Some(len) => at += len,
            }
        }
    }
}
