//! The decoder of archives (WARC, ARC, WAT), and exchanges in them: a capture (a response or revisit) with its request,
//! and the metadata about it.
//!
//! An exchange is a capture, at most one request directly before it, and the *tail* after it: a request if none was
//! before, and metadata, as far as one of them is wanted. All have the capture's target. If records name each other
//! (`WARC-Concurrent-To`), that decides; otherwise adjacency is enough. A record with which the exchange would exceed
//! the limit on records stands alone, so only a single record can be over that limit.

use super::frame::{self, Frame, Framing, WarcHeader, line_ends};
use super::{Decoder, Parsed, ReadResult, Record, Sink, Skipper, parsed};
use crate::rules::{Outlinks, Shard};

/// Maximum number of bytes of line ends between records that belong together. Writers put four.
const GAP_MAX: usize = 8;
/// Maximum number of records in a tail. Crawlers write two.
const TAIL_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Capture,
    Request,
    Metadata,
}

/// Decoder of archives: how their records are framed, form exchanges, and are read.
pub(super) struct Archives {
    pub framing: &'static Framing,
    /// Returns the role of a record; `None` if it always stands alone.
    pub role: fn(&WarcHeader<'_>, &[u8]) -> Option<Role>,
    /// True if `WARC-Concurrent-To` names records of the exchange.
    pub has_ids: bool,
    /// Records whose outlinks count: metadata counts after a revisit and, with [`Outlinks::Metadata`], after all.
    pub outlinks: Outlinks,
    /// Maximum length of an exchange of several records, and of a decoded body, in bytes.
    pub limit: u64,
    /// Shard whose captures are decoded beyond their headers; `None`: all captures are.
    pub shard: Option<Shard>,
    pub read: ReadFrame,
}

/// Reads a frame into the record or the facts. Calls the last argument before it holds a large body.
pub(super) type ReadFrame = for<'a> fn(
    &Archives,
    Frame<'a>,
    &mut CaptureFacts<'a>,
    &mut Record<'a>,
    &mut dyn FnMut(),
) -> ReadResult;

/// Facts about a capture from its accompanying records.
#[derive(Default)]
pub(super) struct CaptureFacts<'a> {
    /// Report name of the capture, if it is not a response to GET.
    pub not_get: Option<&'static str>,
    pub metadata: Vec<&'a [u8]>,
}

pub(super) struct Exchange<'a> {
    /// Capture, or the record that stands alone.
    pub frame: Frame<'a>,
    pub beside: Vec<(Role, Frame<'a>)>,
    pub end: usize,
}

impl<'a> Exchange<'a> {
    fn has(&self, role: Role) -> bool {
        self.beside.iter().any(|(found, _)| *found == role)
    }

    fn headers(&self) -> impl Iterator<Item = &WarcHeader<'a>> {
        let frames = self.beside.iter().map(|(_, frame)| frame);
        let all = frames.chain([&self.frame]);
        all.filter_map(|frame| Some(&frame.parts.as_ref().ok()?.0))
    }

    /// Returns whether the exchange and this record name each other, or neither names any record.
    fn is_linked_to(&self, header: &WarcHeader<'_>) -> bool {
        let has = |id: &[u8]| !id.is_empty() && self.headers().any(|known| known.id == id);
        let names = |id: &[u8]| self.headers().any(|known| known.concurrent.contains(&id));
        let names_none = |known: &WarcHeader<'_>| known.concurrent.is_empty();
        (names_none(header) && self.headers().all(names_none))
            || names(header.id)
            || header.concurrent.iter().any(|id| has(id) || names(id))
    }
}

impl Archives {
    pub fn lists_outlinks(&self, capture: &WarcHeader<'_>) -> bool {
        capture.is("revisit") || self.outlinks == Outlinks::Metadata
    }

    fn role_of(&self, frame: &Frame<'_>) -> Option<Role> {
        let (header, block) = frame.parts.as_ref().ok()?;
        (self.role)(header, block)
    }

    /// Returns the first exchange of `buf`; `None` if there is none or, before the input's end, if it is incomplete.
    fn first<'a>(&self, buf: &'a [u8], at_end: bool) -> Option<Exchange<'a>> {
        let frame = self.framing.first(buf, at_end)?;
        let role = self.role_of(&frame);
        let mut exchange = Exchange {
            end: frame.end,
            frame,
            beside: Vec::new(),
        };
        if role == Some(Role::Request) {
            let Some((Role::Capture, capture)) = self.behind(buf, &exchange, at_end)? else {
                return Some(exchange);
            };
            exchange.end += capture.end;
            let request = std::mem::replace(&mut exchange.frame, capture);
            exchange.beside.push((Role::Request, request));
        } else if role != Some(Role::Capture) {
            return Some(exchange);
        }
        let capture = exchange.frame.parts.as_ref().ok();
        let wants_metadata = capture.is_some_and(|(header, _)| self.lists_outlinks(header));
        let most = exchange.beside.len() + TAIL_MAX;
        while exchange.beside.len() < most && (wants_metadata || !exchange.has(Role::Request)) {
            match self.behind(buf, &exchange, at_end)? {
                Some((Role::Request, _)) if exchange.has(Role::Request) => break,
                Some((role @ (Role::Request | Role::Metadata), frame)) => {
                    exchange.end += frame.end;
                    exchange.beside.push((role, frame));
                }
                _ => break,
            }
        }
        Some(exchange)
    }

    /// Returns the record after the exchange at the start of `buf`, if it belongs to it. `None`: more bytes are needed.
    #[expect(
        clippy::option_option,
        reason = "not known yet, or known not to be there"
    )]
    fn behind<'a>(
        &self,
        buf: &'a [u8],
        exchange: &Exchange<'_>,
        at_end: bool,
    ) -> Option<Option<(Role, Frame<'a>)>> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let is_full = buf.len() > limit;
        let seen = if is_full { &buf[..limit] } else { buf };
        let Some(behind) = seen.get(exchange.end..) else {
            return Some(None);
        };
        let at_end = at_end || is_full;
        let start = line_ends(behind);
        let header = match (self.framing.header)(&behind[start..]) {
            Ok(Some(header)) if start <= GAP_MAX => header,
            Ok(None) if start <= GAP_MAX && !at_end => return None,
            _ => return Some(None),
        };
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        let block = start + header.len;
        let len = block.saturating_add(length);
        let target = exchange.headers().next().and_then(|known| known.target);
        if header.target != target || len > limit - exchange.end {
            return Some(None);
        }
        let belongs = |role: &Role| {
            !self.has_ids
                || exchange.is_linked_to(&header)
                || (*role == Role::Metadata && header.concurrent.is_empty())
        };
        // The header alone tells the role of a WARC's record.
        if self.has_ids && (self.role)(&header, &[]).filter(belongs).is_none() {
            return Some(None);
        }
        let Some(block) = behind.get(block..len) else {
            return at_end.then_some(None);
        };
        let role = (self.role)(&header, block).filter(belongs);
        Some(role.map(|role| {
            let frame = Frame {
                end: len,
                parts: Ok((header, block)),
            };
            (role, frame)
        }))
    }

    /// Returns the last exchange of `rest`, with which the input ends.
    fn last<'a>(&self, mut rest: &'a [u8]) -> Option<Exchange<'a>> {
        let exchanges = std::iter::from_fn(|| {
            let exchange = self.first(rest, true)?;
            rest = &rest[exchange.end..];
            Some(exchange)
        });
        exchanges.last()
    }
}

impl Decoder for Archives {
    /// Stops before an exchange that may continue.
    fn whole(&self, buf: &[u8]) -> usize {
        let mut end = 0;
        while let Some(exchange) = self.first(&buf[end..], false) {
            end += exchange.end;
        }
        if self.framing.takes_line_ends {
            end + line_ends(&buf[end..])
        } else {
            end
        }
    }

    /// Returns whether `rest` ends in a request or capture that lacks its counterpart, or inside a record.
    fn is_cut(&self, rest: &[u8]) -> bool {
        self.last(rest).is_some_and(|exchange| {
            let Ok((header, _)) = &exchange.frame.parts else {
                return true;
            };
            match self.role_of(&exchange.frame) {
                Some(Role::Capture) => self.lists_outlinks(header) && !exchange.has(Role::Metadata),
                role => role == Some(Role::Request),
            }
        })
    }

    fn may_lack_request(&self, rest: &[u8]) -> bool {
        self.last(rest).is_some_and(|exchange| {
            self.role_of(&exchange.frame) == Some(Role::Capture) && !exchange.has(Role::Request)
        })
    }

    fn skipper(&self) -> Skipper {
        frame::skipper(self.framing)
    }

    /// Emits the other records of an exchange before its capture, at the same offset: all count as read together.
    fn decode(&self, chunk: &[u8], sink: &mut Sink<'_>) {
        let mut record = Record::default();
        let mut done = 0;
        while let Some(exchange) = self.first(&chunk[done..], true) {
            let mut facts = CaptureFacts::default();
            let beside = exchange.beside.into_iter().map(|(_, frame)| (frame, 0));
            for (frame, len) in beside.chain([(exchange.frame, exchange.end)]) {
                let mut large = || {
                    sink(done, Parsed::Large);
                };
                let read = (self.read)(self, frame, &mut facts, &mut record, &mut large);
                done += len;
                if !sink(done, parsed(read, &record)) {
                    return;
                }
            }
        }
    }
}
