//! Which records belong to a capture: the request beside it, and what else its crawler tells of it.
//!
//! A group is a capture, a request directly before it, and its *tail* behind it. All have the capture's target. Where they name
//! each other (`WARC-Concurrent-To`), that decides; else it is enough that they are neighbours. A capture has one request.

use super::{Capture, is_web};
use crate::decode::frame::{self, Frame, FrameSkipper, Header};
use crate::decode::{HELD_MAX, Skipped, Skipper};
use crate::rules::Outlinks;

/// Most records of a tail. Crawlers write two.
const RECORDS_MAX: usize = 8;
/// Most bytes of line ends before a record of a group. Writers put four.
const GAP_MAX: usize = 8;
/// Longest record beside a capture, its header and the line ends before it included: whether it is whole must be
/// known before the capture's end is. Longer ones stand alone.
const RECORD_MAX: usize = HELD_MAX;

/// One group: a capture with the records beside it, or a record that stands alone.
pub(super) struct Group<'a> {
    /// The request before the capture.
    pub request: Option<Frame<'a>>,
    /// The capture, or what stands alone.
    pub frame: Frame<'a>,
    /// Where the tail begins, and where the group ends.
    pub tail: usize,
    pub end: usize,
}

impl<'a> Group<'a> {
    /// The first group of `buf`. `None`: it is not whole yet, or there is none; at the end of the input, only the latter.
    pub fn first(buf: &'a [u8], outlinks: Outlinks, at_end: bool) -> Option<Group<'a>> {
        let mut frame = frame::first(buf, at_end)?;
        let mut tail = frame.end;
        let mut request = None;
        let before = header_of(&frame).and_then(Beside::of_request);
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

fn header_of<'f, 'a>(frame: &'f Frame<'a>) -> Option<&'f Header<'a>> {
    frame.parts.as_ref().ok().map(|(header, _)| header)
}

/// The header of the next record and the line ends before it, if one begins there; `None`: not known yet.
#[expect(
    clippy::option_option,
    reason = "not known yet, or known not to be there"
)]
fn header_behind(behind: &[u8], at_end: bool) -> Option<Option<(usize, Header<'_>)>> {
    let start = frame::line_ends(behind);
    if start > GAP_MAX {
        return Some(None);
    }
    match frame::header(&behind[start..]) {
        Ok(Some(header)) => Some(Some((start, header))),
        Ok(None) => at_end.then_some(None),
        Err(_) => Some(None),
    }
}

fn is(header: &Header<'_>, kind: &[u8]) -> bool {
    header.kind.eq_ignore_ascii_case(kind)
}

/// Records of a group: their target, their own names, and those that they name.
struct Beside {
    target: Vec<u8>,
    ids: Vec<Vec<u8>>,
    named: Vec<Vec<u8>>,
}

impl Beside {
    /// `None`: nothing belongs to a record of this target.
    fn of(header: &Header<'_>) -> Option<Beside> {
        let mut beside = Beside {
            target: header.target.filter(|target| is_web(target))?.to_vec(),
            ids: Vec::new(),
            named: Vec::new(),
        };
        beside.add(header);
        Some(beside)
    }

    fn of_request(header: &Header<'_>) -> Option<Beside> {
        let fits = header.length <= (RECORD_MAX - header.len.min(RECORD_MAX)) as u64;
        Beside::of(header).filter(|_| is(header, b"request") && fits)
    }

    fn add(&mut self, header: &Header<'_>) {
        let id = Some(header.id).filter(|id| !id.is_empty());
        self.ids.extend(id.map(<[u8]>::to_vec));
        self.named
            .extend(header.concurrent.iter().map(|id| id.to_vec()));
    }

    /// Returns whether this is the request of the capture that begins `behind` it; `None`: not known yet.
    fn is_before(&self, behind: &[u8], at_end: bool) -> Option<bool> {
        let capture = match header_behind(behind, at_end)? {
            Some((_, capture)) if Capture::of(&capture).is_some() => capture,
            _ => return Some(false),
        };
        Some(capture.target == Some(&self.target) && self.is_linked(&capture))
    }

    /// Returns whether they and this record name each other, or nothing.
    fn is_linked(&self, header: &Header<'_>) -> bool {
        let has = |all: &[Vec<u8>], id: &[u8]| all.iter().any(|known| known == id);
        let mut named = header.concurrent.iter();
        (self.named.is_empty() && header.concurrent.is_empty())
            || has(&self.named, header.id)
            || named.any(|id| has(&self.ids, id) || has(&self.named, id))
    }
}

/// What may follow a capture.
struct Tail {
    beside: Beside,
    /// A request may.
    request: bool,
    /// The outlinks that it lists count: it is followed to its end.
    listed: bool,
    records: usize,
}

impl Tail {
    /// Of a capture, with the request before it; `None`: the record is none, or nothing can follow it.
    fn of(header: &Header<'_>, request: Option<Beside>, outlinks: Outlinks) -> Option<Tail> {
        let listed = are_listed(Capture::of(header)?, outlinks);
        let mut beside = Beside::of(header)?;
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

    /// Length of the next record of the tail, at the start of `behind`, the line ends before it included; 0: the tail has ended.
    /// `None`: not known yet.
    fn next(&mut self, behind: &[u8], at_end: bool) -> Option<usize> {
        if self.records == RECORDS_MAX || !(self.request || self.listed) {
            return Some(0);
        }
        let Some((start, header)) = header_behind(behind, at_end)? else {
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

/// Returns whether the outlinks that a capture's tail lists count.
pub(super) fn are_listed(capture: Capture, outlinks: Outlinks) -> bool {
    match capture {
        Capture::Revisit => true,
        Capture::Response => outlinks == Outlinks::Metadata,
    }
}

/// Skips a group of any length.
pub(super) struct GroupSkipper {
    outlinks: Outlinks,
    /// The record that is being skipped; `None`: it has ended.
    frame: Option<FrameSkipper>,
    /// It is a request, of which the capture may follow.
    request: Option<Beside>,
    /// It is the capture.
    tail: Option<Tail>,
}

impl GroupSkipper {
    pub fn new(outlinks: Outlinks) -> GroupSkipper {
        GroupSkipper {
            outlinks,
            frame: Some(FrameSkipper::Header),
            request: None,
            tail: None,
        }
    }

    /// Looks at the header of the next record, if it is whole.
    fn look(&mut self, rest: &[u8]) {
        if let Ok(Some(header)) = frame::header(&rest[frame::line_ends(rest)..]) {
            self.tail = Tail::of(&header, self.request.take(), self.outlinks);
            self.request = Beside::of_request(&header);
        }
    }
}

impl Skipper for GroupSkipper {
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
