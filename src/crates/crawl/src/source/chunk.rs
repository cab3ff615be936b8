//! Cuts the decompressed stream into chunks of whole records, drops over-long records, and decides which data may be
//! handed out, and whether it counts as verified.
//!
//! Bytes are decompressed into one open buffer that starts at a record boundary. When it is full, its whole records
//! become a chunk and the rest is copied to the front of the next buffer. If the buffer's last part is not verified
//! yet, the verified records go into a chunk of their own. Chunks queue here until the [`Hold`] releases them.
//!
//! A record is over the limit if it takes more than `line_bytes` bytes, including its line end. No chunk holds a record
//! over the limit: it is dropped piece by piece, so that the buffer never grows far beyond the limit.
//!
//! A gzip member or zstd frame (a "member" here) carries its checksum at its end.
//!
//! | member | handed out |
//! |---|---|
//! | at most `held_bytes` decompressed | once it ended well, as verified |
//! | larger | as it streams, as not verified |
//! | cut short | up to the cut, as not verified |
//! | damaged, at most `held_bytes` up to the damage | not at all; with `accept_unverified` up to the damage, as not verified |
//! | damaged, larger | up to the damage, as not verified |
//!
//! A member whose header declares a larger size counts as larger from its start, others once they are. Plain input and
//! tables count as verified, and so does a member without a checksum once it ended well; those members are counted.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::mem;

use xxhash_rust::xxh3::Xxh3;

use super::{Chunk, SourceOptions};
use crate::decode::{Decoder, Skipped, Skipper};
use crate::model::{Compression, DamageKind, Limits, Member};

/// Minimum buffer size if the line limit is small: smaller buffers cost more than they save.
const BUFFER_MIN: usize = 4 << 10;

/// Position in the decompressed input: offset, and XXH3-128 of all bytes before, including those of dropped records.
#[derive(Clone, Default)]
pub(super) struct Position {
    pub offset: u64,
    pub prefix: Xxh3,
}

#[derive(Default)]
pub(super) struct Cutter {
    target: usize,
    line_bytes: usize,
    open: Vec<u8>,
    at: Position,
    /// Length of `open` at which it is cut.
    goal: usize,
    /// Finder of the end of the over-long record that is being dropped, and where that begins.
    skip: Option<(Skipper, Position)>,
    queue: VecDeque<Chunk>,
    spare: Vec<u8>,
    pub passed: Option<u8>,
    pub compressed: u64,
}

impl Cutter {
    /// Creates a cutter of chunks of usually `chunk_bytes` bytes, which begins at `offset` of the input.
    pub fn new(chunk_bytes: usize, line_bytes: u64, offset: u64) -> Cutter {
        let line_bytes = usize::try_from(line_bytes).unwrap_or(usize::MAX);
        // Bounds a chunk by the line limit, so that dropping one record never moves many times its length.
        let target = chunk_bytes.clamp(1, line_bytes.saturating_add(1).max(BUFFER_MIN));
        Cutter {
            target,
            line_bytes,
            at: Position {
                offset,
                ..Position::default()
            },
            goal: target,
            ..Cutter::default()
        }
    }

    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        if (self.target..=2 * self.target).contains(&buffer.capacity()) {
            buffer.clear();
            self.spare = buffer;
        }
    }

    pub fn is_full(&self) -> bool {
        self.open.len() >= self.goal
    }

    pub fn is_over_limit(&self) -> bool {
        self.open.len() > self.line_bytes
    }

    pub fn want(&mut self, len: usize) {
        self.goal = self.goal.max(len);
    }

    /// Returns the open buffer, to which bytes are appended, and the length at which it is full. It must not be full.
    pub fn room(&mut self) -> (&mut Vec<u8>, usize) {
        if self.open.capacity() < self.goal {
            self.open.reserve_exact(self.goal - self.open.len());
        }
        (&mut self.open, self.goal)
    }

    pub fn open(&self) -> &[u8] {
        &self.open
    }

    pub fn produced(&self) -> u64 {
        self.at.offset + self.open.len() as u64
    }

    pub fn retract(&mut self, n: u64) {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        self.open.truncate(self.open.len().saturating_sub(n));
    }

    /// Returns the start of the next chunk to be handed out.
    pub fn position(&self) -> Position {
        match self.queue.front() {
            Some(chunk) => Position {
                offset: chunk.offset,
                prefix: chunk.prefix.clone(),
            },
            None => self.queued_to().clone(),
        }
    }

    pub fn queued_to(&self) -> &Position {
        self.skip.as_ref().map_or(&self.at, |(_, from)| from)
    }

    pub fn pop(&mut self, hold: &Hold) -> Option<Chunk> {
        let chunk = self.queue.front()?;
        let verified = hold.permits(end_of(chunk))?;
        let mut chunk = self.queue.pop_front()?;
        chunk.verified = verified;
        Some(chunk)
    }

    pub fn pass(&mut self, n: usize) {
        let passed = self.split(n);
        self.passed = passed.last().copied().or(self.passed);
        self.recycle(passed);
    }

    /// Cuts the records that are whole. Returns whether there were any; if not, more bytes are needed.
    pub fn cut(&mut self, decoder: &dyn Decoder, verified_to: u64) -> bool {
        if self.skip.is_some() {
            return self.skip_on(false);
        }
        let all = self.open.len();
        let verified = verified_to.saturating_sub(self.at.offset);
        let verified = usize::try_from(verified).unwrap_or(all).min(all);
        let whole_of = |front: usize| decoder.whole(&self.open[..front]).min(front);
        let whole = match whole_of(verified) {
            0 if verified < all => whole_of(all),
            whole => whole,
        };
        if whole > 0 {
            self.push(decoder, whole);
            true
        } else if all > self.line_bytes {
            self.skip_first(decoder);
            true
        } else {
            // Makes room for a record that is longer than the open buffer, at most to just over the limit.
            let most = self.line_bytes.saturating_add(1);
            self.want(all.saturating_mul(2).min(most));
            false
        }
    }

    /// Cuts the rest at a sound end of the input: the last record needs no line end. The sender of a `live` stream may
    /// have been cut off, so an incomplete last record becomes a chunk of its own ([`Chunk::cut`]).
    pub fn finish(&mut self, decoder: &dyn Decoder, live: bool) {
        while live && !self.open.is_empty() && self.cut(decoder, u64::MAX) {}
        let has_rest = live && !self.open.is_empty();
        let is_cut = live && self.skip.is_some() || has_rest && decoder.is_cut(&self.open);
        let may_lack_request = has_rest && !is_cut && decoder.may_lack_request(&self.open);
        let whole = self.queue.len();
        while !self.open.is_empty() {
            if self.skip.is_some() {
                self.skip_on(true);
            } else {
                self.push(decoder, self.open.len());
            }
        }
        if let Some((_, from)) = self.skip.take() {
            self.push_oversize(from);
        }
        for chunk in self.queue.range_mut(whole..) {
            chunk.cut = is_cut;
            chunk.may_lack_request = may_lack_request;
        }
    }

    /// Cuts the whole records before damage and drops the rest. Data beyond `limit`, if there is one, is dropped first.
    pub fn finish_damaged(&mut self, decoder: &dyn Decoder, limit: Option<u64>, verified_to: u64) {
        if let Some(limit) = limit {
            let kept = self.queue.partition_point(|chunk| end_of(chunk) <= limit);
            if let Some(first) = self.queue.drain(kept..).next() {
                self.at = Position {
                    offset: first.offset,
                    prefix: first.prefix,
                };
                self.skip = None;
                self.open.clear();
            }
            self.retract(self.produced().saturating_sub(limit));
        }
        while !self.open.is_empty() && self.cut(decoder, verified_to) {}
        if let Some((_, from)) = self.skip.take() {
            self.at = from;
        }
        self.open = Vec::new();
        self.spare = Vec::new();
    }

    /// Queues the first `whole` open bytes up to a record over the line limit, which it drops if it comes first.
    fn push(&mut self, decoder: &dyn Decoder, whole: usize) {
        let within = self.within_limit(decoder, whole);
        if within == 0 {
            return self.skip_first(decoder);
        }
        let from = self.at.clone();
        let bytes = self.split(within);
        self.queue_chunk(from, bytes, 0);
    }

    /// Returns the length of the records within the first `whole` bytes that precede one over the limit.
    fn within_limit(&self, decoder: &dyn Decoder, whole: usize) -> usize {
        if whole <= self.line_bytes {
            return whole;
        }
        let mut at = 0;
        while at < whole {
            let rest = &self.open[at..whole];
            let end = match decoder.skipper()(rest, true) {
                Skipped::Ended(end) => end,
                Skipped::Inside(_) => rest.len(),
            };
            let record = end.clamp(1, rest.len());
            if record > self.line_bytes {
                break;
            }
            at += record;
        }
        at
    }

    fn skip_first(&mut self, decoder: &dyn Decoder) {
        self.skip = Some((decoder.skipper(), self.at.clone()));
        self.skip_on(false);
    }

    /// Drops the open bytes that belong to the over-long record. Returns whether it ended.
    fn skip_on(&mut self, at_end: bool) -> bool {
        let Some((mut skipper, from)) = self.skip.take() else {
            return false;
        };
        match skipper(&self.open, at_end) {
            Skipped::Ended(end) => {
                let first = from.offset == self.at.offset;
                self.pass(end.clamp(usize::from(first), self.open.len()));
                self.push_oversize(from);
                true
            }
            Skipped::Inside(inside) => {
                self.pass(inside.min(self.open.len()));
                self.want(self.open.len() + self.target);
                self.skip = Some((skipper, from));
                false
            }
        }
    }

    fn push_oversize(&mut self, from: Position) {
        let length = self.at.offset - from.offset;
        self.queue_chunk(from, Vec::new(), length);
    }

    fn queue_chunk(&mut self, from: Position, mut bytes: Vec<u8>, oversize: u64) {
        if bytes.len() < bytes.capacity() / 2 && !self.queue.is_empty() {
            // Many chunks may queue up, so spare capacity is freed.
            bytes.shrink_to_fit();
        }
        self.queue.push_back(Chunk {
            bytes,
            offset: from.offset,
            prefix: from.prefix,
            prefix_after: self.at.prefix.digest128(),
            oversize,
            cut: false,
            may_lack_request: false,
            compressed: self.compressed,
            verified: false,
            member: None,
        });
    }

    /// Takes the first `n` open bytes; the others move to the front of another buffer.
    fn split(&mut self, n: usize) -> Vec<u8> {
        let tail = &self.open[n..];
        let mut next = mem::take(&mut self.spare);
        next.reserve_exact(tail.len().max(self.target));
        next.extend_from_slice(tail);
        let mut front = mem::replace(&mut self.open, next);
        front.truncate(n);
        self.at.prefix.update(&front);
        self.at.offset += n as u64;
        self.goal = self.target;
        front
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn memory(&self) -> usize {
        let queued = self.queue.iter().map(|chunk| chunk.bytes.capacity());
        self.open.capacity() + queued.sum::<usize>() + self.spare.capacity()
    }
}

fn end_of(chunk: &Chunk) -> u64 {
    chunk.offset + chunk.bytes.len() as u64 + chunk.oversize
}

pub(super) struct Hold {
    held_bytes: u64,
    expansion_bytes: u64,
    accept_unverified: bool,
    pub compression: Compression,
    pub member: Option<Member>,
    pub size: Option<u64>,
    produced: u64,
    /// Offset up to which all decompressed bytes are verified.
    verified_to: u64,
    /// True if the input ended in damage and unverified data may be handed out.
    released: bool,
    pub starts: MemberStarts,
    pub members: u64,
    pub unchecked: u64,
}

impl Hold {
    pub fn new(
        limits: &Limits,
        options: &SourceOptions,
        compression: Compression,
        offset: u64,
    ) -> Hold {
        Hold {
            held_bytes: limits.held_bytes,
            expansion_bytes: limits.expansion_bytes,
            accept_unverified: options.accept_unverified,
            compression,
            member: None,
            size: None,
            produced: offset,
            verified_to: offset,
            released: false,
            starts: MemberStarts::default(),
            members: 0,
            unchecked: 0,
        }
    }

    /// Returns the offset up to which the decompressed input is verified: all of it for a plain input or a table.
    pub fn verified_to(&self) -> u64 {
        match self.compression {
            Compression::Plain | Compression::Table => self.produced,
            Compression::Gzip | Compression::Zstd => self.verified_to,
        }
    }

    /// Notes that a member begins at this compressed offset. If reading it again `needs_start`, it counts as beginning there.
    pub fn begin(&mut self, compressed: u64, needs_start: bool) {
        let member = Member {
            compressed,
            decompressed: self.produced,
        };
        (self.member, self.size) = (Some(member), None);
        self.starts.add(if needs_start {
            Member::default()
        } else {
            member
        });
    }

    /// Notes that the decompressed data reaches to `offset`. Returns the number of bytes beyond the limit on expansion.
    pub fn reach(&mut self, offset: u64) -> u64 {
        let start = match self.member {
            Some(member) => member.decompressed,
            None if self.compression == Compression::Table => 0,
            None => offset,
        };
        let over = (offset - start).saturating_sub(self.expansion_bytes);
        self.produced = offset - over;
        over
    }

    pub fn end(&mut self, checked: bool) {
        self.member = None;
        self.members += 1;
        self.unchecked += u64::from(!checked);
        self.verified_to = self.produced;
    }

    /// Notes damage at the end of the data. Returns whether unverified data may be handed out.
    pub fn damaged(&mut self, kind: DamageKind) -> bool {
        self.released = kind == DamageKind::Truncated || self.accept_unverified || self.streaming();
        self.released
    }

    fn streaming(&self) -> bool {
        self.member.is_some_and(|member| {
            let so_far = self.produced - member.decompressed;
            self.size.unwrap_or(0).max(so_far) > self.held_bytes
        })
    }

    /// Returns `Some(verified)` if data up to `offset` may be handed out.
    pub fn permits(&self, offset: u64) -> Option<bool> {
        if offset <= self.verified_to() {
            Some(true)
        } else if self.released || self.streaming() {
            Some(false)
        } else {
            None
        }
    }
}

const GRAIN: u64 = 64 << 10;

/// Offsets at which members begin, for as long as a chunk may need them. Close ones are thinned out to save memory.
#[derive(Default)]
pub(super) struct MemberStarts(VecDeque<Member>);

impl MemberStarts {
    fn add(&mut self, member: Member) {
        match self.0.back_mut() {
            // The previous member was empty.
            Some(last) if last.decompressed == member.decompressed => *last = member,
            Some(last) if member.decompressed - last.decompressed < GRAIN => {}
            _ => self.0.push_back(member),
        }
    }

    /// Returns the last kept start at or before `offset`, and forgets those before it: offsets must not decrease.
    pub fn before(&mut self, offset: u64) -> Option<Member> {
        while self.0.get(1).is_some_and(|m| m.decompressed <= offset) {
            self.0.pop_front();
        }
        self.0.front().copied()
    }
}
