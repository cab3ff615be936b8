//! Which records belong to a capture: its tail.

use super::{Capture, is_web};
use crate::decode::frame::{self, Frame, FrameSkipper, Header};
use crate::decode::{HELD_MAX, Skipped, Skipper};
use crate::rules::Outlinks;

/// Most records of a tail. Crawlers write two.
const RECORDS_MAX: usize = 8;
/// Most bytes of line ends before a record of a tail. Writers put four.
const GAP_MAX: usize = 8;
/// Longest record of a tail, its header and the line ends before it included: whether it is whole must be
/// known before the capture's end is. Longer ones stand alone.
const RECORD_MAX: usize = HELD_MAX;

/// Returns whether the capture's links may be in its tail, and if so its target.
fn target<'a>(header: &Header<'a>, outlinks: Outlinks) -> Option<&'a [u8]> {
    let listed = match Capture::of(header)? {
        Capture::Revisit => true,
        Capture::Response => outlinks == Outlinks::Metadata,
    };
    header.target.filter(|target| listed && is_web(target))
}

/// Length of the tail of a record, at the start of the bytes behind it; `None`: it depends on
/// bytes that are not there yet.
pub(super) fn tail(
    frame: &Frame<'_>,
    outlinks: Outlinks,
    behind: &[u8],
    at_end: bool,
) -> Option<usize> {
    let header = frame.parts.as_ref().ok().map(|(header, _)| header);
    let Some(target) = header.and_then(|header| target(header, outlinks)) else {
        return Some(0);
    };
    let mut end = 0;
    for _ in 0..RECORDS_MAX {
        match joined(target, &behind[end..], at_end)? {
            0 => break,
            len => end += len,
        }
    }
    Some(end)
}

/// Length of the record at the start of `behind`, the line ends before it included, if it belongs to a
/// capture of `target`; 0: it does not. `None`: not known yet.
fn joined(target: &[u8], behind: &[u8], at_end: bool) -> Option<usize> {
    let start = frame::line_ends(behind);
    let not_yet = || at_end.then_some(0);
    if start > GAP_MAX {
        return Some(0);
    }
    let header = match frame::header(&behind[start..]) {
        Ok(Some(header)) => header,
        Ok(None) => return not_yet(),
        Err(_) => return Some(0),
    };
    let is = |name: &[u8]| header.kind.eq_ignore_ascii_case(name);
    let block = usize::try_from(header.length).unwrap_or(usize::MAX);
    let len = block.saturating_add(start + header.len);
    if !(is(b"request") || is(b"metadata")) || header.target != Some(target) || len > RECORD_MAX {
        Some(0)
    } else if len <= behind.len() {
        Some(len)
    } else {
        not_yet()
    }
}

/// Skips a record of any length, with its tail.
pub(super) struct GroupSkipper {
    outlinks: Outlinks,
    first: FrameSkipper,
    target: Option<Vec<u8>>,
    /// Records of the tail so far; `None`: the first record has not ended.
    joined: Option<usize>,
}

impl GroupSkipper {
    pub fn new(outlinks: Outlinks) -> GroupSkipper {
        GroupSkipper {
            outlinks,
            first: FrameSkipper::Header,
            target: None,
            joined: None,
        }
    }
}

impl Skipper for GroupSkipper {
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped {
        let mut at = 0;
        if self.joined.is_none() {
            if matches!(self.first, FrameSkipper::Header)
                && let Ok(Some(header)) = frame::header(&buf[frame::line_ends(buf)..])
            {
                self.target = target(&header, self.outlinks).map(<[u8]>::to_vec);
            }
            match self.first.skip(buf, at_end) {
                Skipped::Ended(end) => at = end,
                inside => return inside,
            }
        }
        let joined_before = self.joined.get_or_insert(0);
        let Some(target) = &self.target else {
            return Skipped::Ended(at);
        };
        while *joined_before < RECORDS_MAX {
            match joined(target, &buf[at..], at_end) {
                None => return Skipped::Inside(at),
                Some(0) => break,
                Some(len) => at += len,
            }
            *joined_before += 1;
        }
        Skipped::Ended(at)
    }
}
