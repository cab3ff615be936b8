//! Decides which decompressed data may be handed out, and whether it counts as verified.
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

use std::collections::VecDeque;

use super::SourceOptions;
use crate::model::{Compression, DamageKind, Limits, Member};

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

#[cfg(test)]
mod tests {
    use super::*;
    use DamageKind::*;

    /// Returns a hold of 10 bytes, with 100 of expansion.
    fn hold(accept_unverified: bool, compression: Compression) -> Hold {
        let limits = Limits {
            held_bytes: 10,
            expansion_bytes: 100,
            ..Limits::default()
        };
        let options = SourceOptions {
            accept_unverified,
            ..SourceOptions::default()
        };
        Hold::new(&limits, &options, compression, 0)
    }

    /// Returns such a hold with a verified member of 5 bytes and a second one begun.
    fn second_member(accept_unverified: bool) -> Hold {
        let mut hold = hold(accept_unverified, Compression::Gzip);
        hold.begin(0, false);
        assert_eq!(hold.reach(5), 0);
        assert_eq!(hold.permits(5), None);
        hold.end(true);
        assert_eq!(hold.permits(5), Some(true));
        hold.begin(7, false);
        hold
    }

    #[test]
    fn a_member_of_the_limit_is_held_and_a_larger_one_streams() {
        let mut hold = second_member(false);
        hold.reach(15);
        assert_eq!(hold.permits(15), None);
        assert_eq!(hold.permits(5), Some(true));
        hold.reach(16);
        assert_eq!(hold.permits(15), Some(false));
        hold.end(false);
        assert_eq!(hold.permits(16), Some(true));
        assert_eq!((hold.members, hold.unchecked), (2, 1));
    }

    #[test]
    fn a_member_that_says_it_is_large_streams_at_once() {
        let mut hold = second_member(false);
        hold.size = Some(10);
        hold.reach(6);
        assert_eq!(hold.permits(6), None);
        hold.size = Some(11);
        assert_eq!(hold.permits(6), Some(false));
        hold.end(true);
        hold.begin(20, false);
        hold.reach(7);
        assert_eq!(hold.permits(7), None);
    }

    #[test]
    fn only_a_cut_or_consent_releases_what_was_held() {
        for (kind, accept, released) in [
            (Truncated, false, true),
            (ChecksumFailed, false, false),
            (InvalidData, false, false),
            (Expansion, false, false),
            (ChecksumFailed, true, true),
        ] {
            let mut hold = second_member(accept);
            hold.reach(15);
            assert_eq!(hold.damaged(kind), released, "{kind:?}");
            assert_eq!(hold.permits(15), released.then_some(false), "{kind:?}");
            assert_eq!(hold.permits(5), Some(true));
        }
        let mut hold = second_member(false);
        hold.reach(16);
        assert!(hold.damaged(ChecksumFailed));
    }

    #[test]
    fn expansion_counts_from_the_member() {
        let mut member = second_member(false);
        assert_eq!(member.reach(105), 0);
        assert_eq!(member.reach(107), 2);
        assert_eq!(hold(false, Compression::Table).reach(101), 1);
        assert_eq!(hold(false, Compression::Plain).reach(101), 0);
    }

    #[test]
    fn trusted_data_is_never_held() {
        for compression in [Compression::Plain, Compression::Table] {
            let mut hold = hold(false, compression);
            hold.reach(5);
            assert_eq!(hold.permits(5), Some(true));
        }
    }

    fn member(compressed: u64, decompressed: u64) -> Member {
        Member {
            compressed,
            decompressed,
        }
    }

    #[test]
    fn the_last_place_at_or_before() {
        let mut members = MemberStarts::default();
        assert_eq!(members.before(0), None);
        members.add(member(0, 0));
        members.add(member(7, GRAIN));
        members.add(member(9, 3 * GRAIN));
        assert_eq!(members.before(GRAIN - 1), Some(member(0, 0)));
        assert_eq!(members.before(GRAIN), Some(member(7, GRAIN)));
        assert_eq!(members.before(3 * GRAIN - 1), Some(member(7, GRAIN)));
        assert_eq!(members.before(9 * GRAIN), Some(member(9, 3 * GRAIN)));
    }

    #[test]
    fn tiny_and_empty_members_take_no_memory() {
        let mut members = MemberStarts::default();
        for n in 0..=4 * GRAIN {
            members.add(member(20 * n, n));
        }
        assert_eq!(members.0.len(), 5);
        assert_eq!(
            members.before(2 * GRAIN + 1),
            Some(member(40 * GRAIN, 2 * GRAIN))
        );
        for n in 0..1000 {
            members.add(member(n, 9 * GRAIN));
        }
        assert_eq!(members.before(9 * GRAIN), Some(member(999, 9 * GRAIN)));
        assert_eq!(members.0.len(), 1);
    }
}
