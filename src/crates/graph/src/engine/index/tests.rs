//! Tests of the index and of the layout of its segments.

use super::*;
use crate::Error;
use proptest::prelude::*;
use std::collections::HashMap;

/// Spreads small numbers over 128 bits (SplitMix64's finaliser, twice).
fn spread(n: u64) -> u128 {
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let low = mix(n.wrapping_add(0x9e37_79b9_7f4a_7c15));
    (u128::from(mix(low ^ n)) << 64) | u128::from(low)
}

#[test]
fn pages_are_numbered_in_order_and_found_while_growing() {
    let mut index = Index::new().unwrap();
    for n in 0..300_000u64 {
        assert_eq!(index.admit(spread(n)).unwrap(), (PageId(n), true));
    }
    for n in 0..300_000u64 {
        assert_eq!(index.admit(spread(n)).unwrap(), (PageId(n), false));
        assert_eq!(index.get(spread(n)), Some(PageId(n)));
        assert_eq!(index.get(spread(n + 300_000)), None);
    }
}

proptest! {
    #[test]
    fn agrees_with_a_hash_map(keys in proptest::collection::vec(0u64..4_000, 1..6_000)) {
        let mut index = Index::new().unwrap();
        let mut map = HashMap::new();
        for key in keys {
            let next = map.len() as u64;
            let expected = *map.entry(key).or_insert(next);
            prop_assert_eq!(index.admit(spread(key)).unwrap().0, PageId(expected));
        }
        prop_assert_eq!(index.pages(), map.len() as u64);
    }
}

fn shapes() -> impl Strategy<Value = usize> {
    prop_oneof![
        LEAST_HOMES..5_000,
        (5u32..26).prop_map(|log| 1 << log),
        (5u32..26).prop_map(|log| (2 << log) - 1),
        LEAST_HOMES..1 << 26,
    ]
}

proptest! {
    /// Home, rest and slot recover the tag for any number of homes, as the module documentation claims.
    #[test]
    fn a_slot_keeps_the_whole_tag(
        homes in shapes(),
        tag in prop_oneof![0..1u64 << TAG_BITS, 0..9u64, (1u64 << TAG_BITS) - 9..1 << TAG_BITS],
        right in 0..REACH,
    ) {
        let layout = SegmentLayout::new(homes);
        let (home, word) = layout.locate(tag);
        prop_assert_eq!(home as u128, (u128::from(tag) * homes as u128) >> TAG_BITS);
        let page = PageId((1 << (11 + homes.ilog2())) - 2);
        let slot = layout.slot_of(word, page).unwrap();
        prop_assert_eq!(layout.tag_at(home + right, slot, layout.inverse()), tag);
        prop_assert_eq!(layout.page_of(slot), Some(page));
        prop_assert_eq!(layout.slot_of(word, PageId(page.0 + 1)), None);
    }
}

#[test]
fn every_page_number_fits_a_segment_of_the_size_that_its_pages_need() {
    for pages in [1 << 20, 1 << 30, PageId::LIMIT] {
        // As full as a segment may be if all have the same share.
        let homes = (pages >> SEGMENT_BITS) * 8 / 7;
        let layout = SegmentLayout::new(homes as usize);
        assert!(layout.slot_of(0, PageId(pages - 1)).is_some());
    }
}

/// Whether two URLs are taken for one page does not depend on the size of the index.
#[test]
fn seventy_two_bits_distinguish_pages_at_any_size() {
    for room in [0, 100_000, 50_000_000] {
        let mut index = Index::with_room(room).unwrap();
        let print = spread(7);
        // 9 bits select the segment, 63 of the low word are the tag; the others are ignored.
        let (counted, others) = (u128::MAX << 119 | (u64::MAX as u128) & !1, 1u128 << 118 | 1);
        index.admit(print).unwrap();
        assert_eq!(index.get(print ^ others), Some(PageId(0)));
        for bit in (0..128).filter(|bit| counted >> bit & 1 == 1) {
            assert_eq!(index.get(print ^ (1 << bit)), None, "bit {bit}");
            assert!(index.admit(print ^ (1 << bit)).unwrap().1);
        }
        assert_eq!(index.pages(), 73);
    }
    let expected = 1e18 / 2.0 / 2f64.powi(72);
    assert_eq!(Index::expected_wrong_merges(1_000_000_000), expected);
}

#[test]
fn the_need_is_foretold() {
    let mut index = Index::new().unwrap();
    let foretold: Vec<(u64, u64)> = (0..=40)
        .map(|n| (n * 5_000, index.bytes_at(n * 5_000)))
        .collect();
    for n in 0..200_000 {
        if let Some((_, most)) = foretold.iter().find(|(pages, _)| *pages == n) {
            assert!((index.bytes()..=index.bytes_at(n)).contains(&index.bytes()));
            assert!(index.bytes() < *most, "{n} pages");
            // Segments of few pages vary much, and then double.
            assert!(*most < 3 * index.bytes(), "{n} pages");
        }
        index.admit(spread(n)).unwrap();
    }
    let restored = Index::with_room(20_000_000).unwrap();
    assert_eq!(restored.bytes(), Index::bytes_with_room(20_000_000));
}

#[test]
fn tags_that_share_a_home_lie_side_by_side() {
    let mut index = Index::new().unwrap();
    let alike = |n: u128| n << 1 | 7 << 120;
    for n in 0..REACH as u128 {
        index.admit(alike(n * 77 % 64)).unwrap();
    }
    for n in 0..REACH as u128 {
        assert_eq!(index.get(alike(n * 77 % 64)), Some(PageId(n as u64)));
    }
    assert_eq!(index.get(alike(64)), None);
}

/// Regression: growing does not separate tags that differ in their last bits only, so a store whose fingerprints are
/// not hashes would have taken all memory.
#[test]
fn what_is_no_hash_is_refused_and_memory_stays_small() {
    let mut index = Index::new().unwrap();
    let before = index.bytes();
    let refused = (0..200u128).find_map(|n| index.admit(n << 1).err());
    assert!(matches!(refused, Some(Error::Damaged { .. })));
    assert!(index.bytes() < before + (1 << 20));
}

/// Measures nanoseconds per operation with random fingerprints, and bytes per page. MILLIONS is the number of pages, in
/// millions.
#[test]
#[ignore = "cargo test --release --lib index::tests::speed -- --ignored --nocapture"]
fn speed() {
    let millions = std::env::var("MILLIONS").map_or(1, |m| m.parse::<u64>().unwrap());
    let pages = millions * 1_000_000;
    let looked_up = pages.min(1 << 24);
    let mut index = Index::new().unwrap();
    let timed = |name: &str, count: u64, work: &mut dyn FnMut(&[u128]) -> usize, from: u64| {
        let started = std::time::Instant::now();
        let mut done = 0;
        for first in (0..count).step_by(TOUCHED) {
            // Visits pages in scattered order.
            let at = |n: u64| {
                if count == pages {
                    n
                } else {
                    n * 0x9e37_79b9 % pages
                }
            };
            let block: Vec<u128> = (first..count.min(first + TOUCHED as u64))
                .map(|n| spread(from + at(n)))
                .collect();
            done += work(&block);
        }
        let nanos = started.elapsed().as_nanos() as f64 / count as f64;
        eprintln!("{name}: {nanos:.1} ns ({done} of {count})");
        done as u64
    };
    let mut admit = |block: &[u128]| {
        index.touch(block);
        block
            .iter()
            .filter(|&&print| index.admit(print).unwrap().1)
            .count()
    };
    assert_eq!(timed("admit, new", pages, &mut admit, 0), pages);
    let mut get = |block: &[u128]| {
        index.touch(block);
        block
            .iter()
            .filter(|&&print| index.get(print).is_some())
            .count()
    };
    assert_eq!(timed("get, known", looked_up, &mut get, 0), looked_up);
    assert_eq!(timed("get, unknown", looked_up, &mut get, pages), 0);
    eprintln!("{:.2} bytes a page", index.bytes() as f64 / pages as f64);
}
