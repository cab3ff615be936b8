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
