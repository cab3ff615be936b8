//! Offsets at which the members and frames of an input begin, for as long as a chunk may need them.
//!
//! Close offsets are thinned out, so that an input of tiny members takes no memory: then a slightly earlier one is
//! returned.

use std::collections::VecDeque;

use crate::model::Member;

/// Minimum distance of two kept members, in decompressed bytes.
const GRAIN: u64 = 64 << 10;

#[derive(Default)]
pub(super) struct MemberIndex(VecDeque<Member>);

impl MemberIndex {
    /// Notes that a member begins.
    pub fn begin(&mut self, member: Member) {
        match self.0.back_mut() {
            // The previous member was empty.
            Some(last) if last.decompressed == member.decompressed => *last = member,
            Some(last) if member.decompressed - last.decompressed < GRAIN => {}
            _ => self.0.push_back(member),
        }
    }

    /// Returns the last kept member at or before `offset` of the decompressed input, and forgets those before it:
    /// offsets must not decrease.
    pub fn at(&mut self, offset: u64) -> Option<Member> {
        while self.0.get(1).is_some_and(|m| m.decompressed <= offset) {
            self.0.pop_front();
        }
        self.0.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(compressed: u64, decompressed: u64) -> Member {
        Member {
            compressed,
            decompressed,
        }
    }

    #[test]
    fn the_last_place_at_or_before() {
        let mut members = MemberIndex::default();
        assert_eq!(members.at(0), None);
        members.begin(member(0, 0));
        members.begin(member(7, GRAIN));
        members.begin(member(9, 3 * GRAIN));
        assert_eq!(members.at(GRAIN - 1), Some(member(0, 0)));
        assert_eq!(members.at(GRAIN), Some(member(7, GRAIN)));
        assert_eq!(members.at(3 * GRAIN - 1), Some(member(7, GRAIN)));
        assert_eq!(members.at(9 * GRAIN), Some(member(9, 3 * GRAIN)));
    }

    #[test]
    fn tiny_and_empty_members_take_no_memory() {
        let mut members = MemberIndex::default();
        for n in 0..=4 * GRAIN {
            members.begin(member(20 * n, n));
        }
        assert_eq!(members.0.len(), 5);
        assert_eq!(
            members.at(2 * GRAIN + 1),
            Some(member(40 * GRAIN, 2 * GRAIN))
        );
        for n in 0..1000 {
            members.begin(member(n, 9 * GRAIN));
        }
        assert_eq!(members.at(9 * GRAIN), Some(member(999, 9 * GRAIN)));
        assert_eq!(members.0.len(), 1);
    }
}
