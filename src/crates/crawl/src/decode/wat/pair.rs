//! Pairs a response with its request, which has the method.

use memchr::memmem;

use super::is_wat;
use crate::decode::frame::{self, Frame, FrameSkipper, WarcHeader};
use crate::decode::{HELD_MAX, Skipped, Skipper};

/// Maximum length of a paired record, without line ends before it: both must be examined before the first counts as
/// whole.
const RECORD_MAX: u64 = HELD_MAX as u64 / 2;

/// Record, and the request before or after it.
pub(super) struct ExchangePair<'a> {
    pub request: Option<Frame<'a>>,
    pub frame: Frame<'a>,
    pub end: usize,
}

impl<'a> ExchangePair<'a> {
    /// Returns the first pair of `buf`. `None`: it is incomplete, or there is none; at the end of the input, always the
    /// latter.
    pub fn first(buf: &'a [u8], at_end: bool) -> Option<ExchangePair<'a>> {
        let frame = frame::first(buf, at_end)?;
        let end = frame.end;
        let next = match half(&frame) {
            Some((target, half)) => second(&buf[end..], target, half, at_end)?,
            None => None,
        };
        Some(match next {
            None => ExchangePair {
                request: None,
                frame,
                end,
            },
            Some((next, ExchangeHalf::Request)) => ExchangePair {
                end: end + next.end,
                request: Some(next),
                frame,
            },
            Some((next, ExchangeHalf::Answer)) => ExchangePair {
                end: end + next.end,
                request: Some(frame),
                frame: next,
            },
        })
    }
}

/// Role of a record in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeHalf {
    Request,
    Answer,
}

/// Returns the target and role of an archived request or response; `None` if it is neither, has no target, or is long.
fn half<'a>(frame: &Frame<'a>) -> Option<(&'a [u8], ExchangeHalf)> {
    let (header, block) = frame.parts.as_ref().ok()?;
    let target = header
        .target
        .filter(|_| is_wat(header) && !is_long(header))?;
    // Quotes within a text are escaped: both can only be names of fields.
    let has = |name: &[u8]| memmem::find(block, name).is_some();
    if has(b"\"HTTP-Request-Metadata\"") {
        return Some((target, ExchangeHalf::Request));
    }
    has(b"\"HTTP-Response-Metadata\"").then_some((target, ExchangeHalf::Answer))
}

fn is_long(header: &WarcHeader<'_>) -> bool {
    header.length.saturating_add(header.len as u64) > RECORD_MAX
}

/// Returns the other half if it follows, or `Some(None)` if it does not. `None`: more bytes are needed.
#[expect(
    clippy::option_option,
    reason = "not known yet, or known not to be there"
)]
fn second<'a>(
    behind: &'a [u8],
    target: &[u8],
    first: ExchangeHalf,
    at_end: bool,
) -> Option<Option<(Frame<'a>, ExchangeHalf)>> {
    match frame::header_behind(behind, at_end)? {
        Some((_, header)) if header.target == Some(target) && !is_long(&header) => {}
        _ => return Some(None),
    }
    let Some(next) = frame::first(behind, at_end) else {
        return at_end.then_some(None);
    };
    Some(match half(&next) {
        Some((_, half)) if half != first => Some((next, half)),
        _ => None,
    })
}

/// Skips a record of any length, with the other half of its exchange.
#[derive(Default)]
pub(super) struct PairSkipper {
    /// The record being skipped, if it is long.
    frame: Option<FrameSkipper>,
}

impl Skipper for PairSkipper {
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Skipped {
        if self.frame.is_none() {
            if let Some(pair) = ExchangePair::first(buf, at_end) {
                return Skipped::Ended(pair.end);
            }
            let start = frame::line_ends(buf);
            match frame::header(&buf[start..]) {
                Ok(Some(header)) if !at_end && !is_long(&header) => return Skipped::Inside(start),
                Ok(None) if !at_end => return Skipped::Inside(start),
                _ => {}
            }
        }
        let frame = self.frame.get_or_insert(FrameSkipper::Header);
        frame.skip(buf, at_end)
    }
}
