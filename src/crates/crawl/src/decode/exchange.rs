//! Exchanges in WARC files: a capture (a response or revisit) with its request, and the metadata about it.
//!
//! An exchange is a capture, at most one request directly before it, and the *tail* behind it: a request if none was
//! before, and metadata, as far as one of them is wanted. All have the capture's target. If records name each other
//! (`WARC-Concurrent-To`), that decides; otherwise adjacency is enough. A record with which the exchange would exceed
//! the limit on records stands alone, so only a single record can be over that limit.

use super::frame::{self, Frame, Framing, WarcFraming, WarcHeader};
use crate::rules::Outlinks;

/// Maximum number of records in a tail. Crawlers write two.
const TAIL_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Capture,
    Request,
    Metadata,
}

/// Rules by which the records of a format form exchanges.
pub(super) struct ExchangeRules {
    /// Returns the role of a record; `None` if it always stands alone.
    pub role: fn(&WarcHeader<'_>, &[u8]) -> Option<Role>,
    /// True if `WARC-Concurrent-To` names records of the exchange.
    pub has_ids: bool,
    /// Records whose outlinks count: metadata counts after a revisit and, with [`Outlinks::Metadata`], after all.
    pub outlinks: Outlinks,
    /// Maximum length of an exchange of several records, in bytes.
    pub limit: u64,
}

/// A capture with the records beside it, or a record that stands alone.
pub(super) struct Exchange<'a> {
    /// Capture, or the record that stands alone.
    pub frame: Frame<'a>,
    pub beside: Vec<(Role, Frame<'a>)>,
    pub end: usize,
}

impl Exchange<'_> {
    fn has(&self, role: Role) -> bool {
        self.beside.iter().any(|(found, _)| *found == role)
    }
}

/// Records of an exchange: their target, their own ids, and the ids that they name.
struct Ids<'a> {
    target: &'a [u8],
    own: Vec<&'a [u8]>,
    named: Vec<&'a [u8]>,
}

impl<'a> Ids<'a> {
    fn add(&mut self, header: &WarcHeader<'a>) {
        self.own.extend(Some(header.id).filter(|id| !id.is_empty()));
        self.named.extend(&header.concurrent);
    }

    /// Returns whether the exchange and this record name each other, or neither names any record.
    fn are_linked(&self, header: &WarcHeader<'_>) -> bool {
        let mut named = header.concurrent.iter();
        (self.named.is_empty() && header.concurrent.is_empty())
            || self.named.contains(&header.id)
            || named.any(|id| self.own.contains(id) || self.named.contains(id))
    }
}

impl ExchangeRules {
    pub fn lists_outlinks(&self, capture: &WarcHeader<'_>) -> bool {
        capture.kind.eq_ignore_ascii_case(b"revisit") || self.outlinks == Outlinks::Metadata
    }

    fn role_of(&self, frame: &Frame<'_>) -> Option<Role> {
        let (header, block) = frame.parts.as_ref().ok()?;
        (self.role)(header, block)
    }

    /// Returns the first exchange of `buf`; `None` if there is none or, before the input's end, if it is incomplete.
    pub fn first<'a>(&self, buf: &'a [u8], at_end: bool) -> Option<Exchange<'a>> {
        let frame = WarcFraming::first(buf, at_end)?;
        let mut exchange = Exchange {
            end: frame.end,
            frame,
            beside: Vec::new(),
        };
        let role = self.role_of(&exchange.frame);
        let Ok((header, _)) = &exchange.frame.parts else {
            return Some(exchange);
        };
        let mut ids = Ids {
            target: header.target.unwrap_or_default(),
            own: Vec::new(),
            named: Vec::new(),
        };
        ids.add(header);
        let mut wants_metadata = self.lists_outlinks(header);
        match role {
            Some(Role::Capture) => {}
            Some(Role::Request) => {
                match self.behind(buf, exchange.end, &ids, at_end)? {
                    Some((Role::Capture, capture)) => {
                        exchange.end += capture.end;
                        let request = std::mem::replace(&mut exchange.frame, capture);
                        exchange.beside.push((Role::Request, request));
                    }
                    _ => return Some(exchange),
                }
                if let Ok((header, _)) = &exchange.frame.parts {
                    ids.add(header);
                    wants_metadata = self.lists_outlinks(header);
                }
            }
            _ => return Some(exchange),
        }
        let most = exchange.beside.len() + TAIL_MAX;
        while exchange.beside.len() < most && (wants_metadata || !exchange.has(Role::Request)) {
            match self.behind(buf, exchange.end, &ids, at_end)? {
                Some((Role::Request, _)) if exchange.has(Role::Request) => break,
                Some((role @ (Role::Request | Role::Metadata), frame)) => {
                    if let Ok((header, _)) = &frame.parts {
                        ids.add(header);
                    }
                    exchange.end += frame.end;
                    exchange.beside.push((role, frame));
                }
                _ => break,
            }
        }
        Some(exchange)
    }

    /// Returns the record at offset `end` of `buf` if it belongs to the exchange before it; `Some(None)` if it does not.
    /// `None`: more bytes are needed.
    #[expect(
        clippy::option_option,
        reason = "not known yet, or known not to be there"
    )]
    fn behind<'a>(
        &self,
        buf: &'a [u8],
        end: usize,
        ids: &Ids<'_>,
        at_end: bool,
    ) -> Option<Option<(Role, Frame<'a>)>> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let is_full = buf.len() > limit;
        let seen = if is_full { &buf[..limit] } else { buf };
        let Some(behind) = seen.get(end..) else {
            return Some(None);
        };
        let at_end = at_end || is_full;
        let Some((start, header)) = frame::header_behind(behind, at_end)? else {
            return Some(None);
        };
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        let block = start + header.len;
        let len = block.saturating_add(length);
        if header.target != Some(ids.target) || len > limit - end {
            return Some(None);
        }
        let belongs = |role: &Role| {
            !self.has_ids
                || ids.are_linked(&header)
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

    /// Returns whether `rest` ends in a request without its capture, in a capture without the metadata with its links,
    /// or inside a record.
    pub fn is_cut(&self, rest: &[u8]) -> bool {
        let (mut at, mut waits) = (0, false);
        while let Some(exchange) = self.first(&rest[at..], true) {
            let Ok((header, _)) = &exchange.frame.parts else {
                return true;
            };
            waits = match self.role_of(&exchange.frame) {
                Some(Role::Capture) => self.lists_outlinks(header) && !exchange.has(Role::Metadata),
                role => role == Some(Role::Request),
            };
            at += exchange.end;
        }
        waits
    }

    /// Returns whether `rest` ends in a capture without its request.
    pub fn may_lack_request(&self, rest: &[u8]) -> bool {
        let (mut at, mut lacks) = (0, false);
        while let Some(exchange) = self.first(&rest[at..], true) {
            lacks = self.role_of(&exchange.frame) == Some(Role::Capture)
                && !exchange.has(Role::Request);
            at += exchange.end;
        }
        lacks
    }
}
