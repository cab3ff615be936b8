//! From a URL's fingerprint to its page number.
//!
//! The index never sees a URL. A fingerprint is a keyed 128-bit hash; 9 of its bits choose a
//! segment, 63 more are the tag. Two URLs that agree in those 72 bits would be taken for one page,
//! whatever the size of the index: about 1e-4 expected such pairs among a billion URLs
//! ([`Index::expected_wrong_merges`]).
//!
//! A segment is an array of 10-byte slots, sorted by tag, with gaps. A tag's home is its share of
//! the array: `home = floor(tag x homes / 2^63)`. Entries are pushed right where homes collide, and
//! a search ends at the first larger tag. With L = floor(log2 homes), a slot holds, from its highest
//! bit on:
//!
//! | bits | what |
//! |---|---|
//! | 6 | the home's last bits: entries lie less than 64 slots right of their homes, so the home follows |
//! | 63 - L | `rest = floor((tag x homes mod 2^63) / 2^L)` |
//! | 11 + L | page number + 1; all zero: a gap |
//!
//! Home and rest recover the tag: products of neighbouring tags are `homes >= 2^L` apart, so tags of one
//! home have different rests, and `tag = ceil((home x 2^63 + rest x 2^L) / homes)`. So a segment
//! grows, by an eighth, from its slots alone, in one sweep; only one of 512 segments is held twice
//! meanwhile. The more homes, the fewer bits of tag and the more of page number a slot needs:
//! in all no more than 80, as long as segments share the pages about alike. An entry that does not
//! fit, for its page number or because too many share its home, makes the segment grow.
//!
//! Load runs from 0.78 to 0.88: 12 bytes a page on average.

use prefetch_index::prefetch_index;

use super::cells::Cells;
use crate::model::{Fingerprint, PageId};
use crate::{Error, Result};

const SEGMENT_BITS: u32 = 9;
const TAG_BITS: u32 = 63;
// The store keeps no other bits of a fingerprint than its low 64 and its high 16.
const _: () = assert!(TAG_BITS <= 64 && SEGMENT_BITS <= 16);
/// Bits of its home that a slot holds.
const HOME_BITS: u32 = 6;
/// An entry lies less than so many slots right of its home; there are as many past the last home.
const REACH: usize = 1 << HOME_BITS;
/// Least homes of a segment: tag and home then leave no bit of a slot's first eight bytes unused.
const LEAST_HOMES: usize = 1 << (TAG_BITS + HOME_BITS - 64);
/// Below this many homes a segment doubles; above, it grows by an eighth.
const SMALL: usize = 1 << 15;
/// From this many homes on huge pages are asked for. Smaller arrays than one such page gain, too: they
/// lie side by side.
const HUGE: usize = 1 << 16;
/// A segment grows when it is fuller than this.
const FULL: (usize, usize) = (7, 8);
/// A few segments are crowded before that. So small a share of all memory is more than theirs.
const EARLY: u64 = 128;
/// A segment of hashes never needs this many homes an entry.
const CROWDED: usize = 8;

/// Fingerprints whose homes are best touched at a time.
pub(crate) const TOUCHED: usize = 64;
/// Slots to the next cache line.
const NEXT_LINE: usize = 6;

/// Fingerprint -> [`PageId`], in memory.
pub(crate) struct Index {
    segments: Vec<Segment>,
    pages: u64,
}

/// Little-endian: the last eight bytes are the word that is searched, with the page number's high
/// bits; the first two are the page number's low bits.
type Slot = [u8; 10];

const GAP: Slot = [0; 10];

fn word_of(slot: Slot) -> u64 {
    let [_, _, word @ ..] = slot;
    u64::from_le_bytes(word)
}

fn low_of(slot: Slot) -> u16 {
    let [a, b, ..] = slot;
    u16::from_le_bytes([a, b])
}

/// How tags are spread over so many homes, and what of them is kept in a slot.
#[derive(Clone, Copy)]
struct Shape {
    /// From [`LEAST_HOMES`] on.
    homes: u64,
    /// L.
    log: u32,
    /// The bits of a word that are the page number's.
    page_mask: u64,
}

/// What a search at slot `at` subtracts from words: of two, the smaller is then that of the smaller
/// tag. It makes of a home's last bits 63 - (slots right of the home).
fn turn(at: usize) -> u64 {
    (at as u64 + 1) << (64 - HOME_BITS)
}

/// Whether what is in slot `at` is as far right of its home as can be.
fn is_at_end_of_reach(at: usize, slot: Slot) -> bool {
    word_of(slot).wrapping_sub(turn(at)) >> (64 - HOME_BITS) == 0
}

impl Shape {
    fn new(homes: usize) -> Shape {
        let homes = homes as u64;
        let log = homes.ilog2();
        Shape {
            homes,
            log,
            page_mask: (1 << (log - LEAST_HOMES.ilog2())) - 1,
        }
    }

    /// The home of a tag, and the word of its slot but for the page number.
    fn locate(&self, tag: u64) -> (usize, u64) {
        let product = u128::from(tag << (64 - TAG_BITS)) * u128::from(self.homes);
        let (home, rest) = ((product >> 64) as u64, product as u64);
        let word = (home << (64 - HOME_BITS)) | (rest >> HOME_BITS);
        (home as usize, word & !self.page_mask)
    }

    /// The tag of what is in slot `at`. `inverse`: see [`Shape::inverse`].
    fn tag_at(&self, at: usize, slot: Slot, inverse: u64) -> u64 {
        let word = word_of(slot);
        let last = (word >> (64 - HOME_BITS)) as usize;
        let home = (at - (at.wrapping_sub(last) % REACH)) as u64;
        let rest = (word << HOME_BITS) >> (64 - TAG_BITS + self.log);
        let share = (home << (TAG_BITS - self.log)) + rest;
        let least = u128::from(share) << self.log;
        let tag = ((u128::from(share) * u128::from(inverse)) >> 64) as u64;
        // It is too small by two at most. Without branches, which nothing could foretell.
        let short = |tag: u64| u64::from(u128::from(tag) * u128::from(self.homes) < least);
        let tag = tag + short(tag);
        tag + short(tag)
    }

    /// 2^(64 + L) / homes, just below: to multiply with it is faster than to divide by `homes`.
    fn inverse(&self) -> u64 {
        (((1u128 << (64 + self.log)) - 1) / u128::from(self.homes)) as u64
    }

    fn page_of(&self, slot: Slot) -> Option<PageId> {
        let stored = (word_of(slot) & self.page_mask) << 16 | u64::from(low_of(slot));
        stored.checked_sub(1).map(PageId)
    }

    /// Whether the numbers of so many pages fit a slot.
    fn fits(&self, pages: u64) -> bool {
        pages >> 16 <= self.page_mask
    }

    /// A slot, if the page number fits.
    fn slot_of(&self, word: u64, page: PageId) -> Option<Slot> {
        let stored = page.0 + 1;
        if !self.fits(stored) {
            return None;
        }
        let high = stored >> 16;
        let [a, b, ..] = stored.to_le_bytes();
        let [c, d, e, f, g, h, i, j] = (word | high).to_le_bytes();
        Some([a, b, c, d, e, f, g, h, i, j])
    }

    /// Lays out the entries of `from` in `slots`. False: they don't fit.
    fn fill(&self, slots: &mut [Slot], from: &Segment) -> bool {
        let mut free = 0;
        let inverse = from.shape.inverse();
        for (at, &slot) in from.slots.iter().enumerate() {
            let Some(page) = from.shape.page_of(slot) else {
                continue;
            };
            let (home, word) = self.locate(from.shape.tag_at(at, slot, inverse));
            let at = home.max(free);
            match self.slot_of(word, page) {
                Some(slot) if at - home < REACH => slots[at] = slot,
                _ => return false,
            }
            free = at + 1;
        }
        true
    }
}

/// Slots sorted by tag.
struct Segment {
    shape: Shape,
    slots: Cells<Slot>,
    used: usize,
}

/// Where a search ended.
enum Search {
    Found(PageId),
    /// It goes here, in front of what is here.
    Free(usize),
    /// There is no room for it within reach.
    Crowded,
}

impl Segment {
    fn with_homes(homes: usize) -> Result<Segment> {
        let slots = Cells::reserve(homes + REACH)?;
        if homes >= HUGE {
            slots.advise_huge();
        }
        Ok(Segment {
            shape: Shape::new(homes),
            slots,
            used: 0,
        })
    }

    fn homes(&self) -> usize {
        self.slots.len() - REACH
    }

    fn find(&self, tag: u64) -> Search {
        let (home, wanted) = self.shape.locate(tag);
        for (at, &slot) in (home..).zip(&self.slots[home..home + REACH]) {
            let word = word_of(slot);
            if slot == GAP {
                return Search::Free(at);
            }
            if word & !self.shape.page_mask == wanted {
                return match self.shape.page_of(slot) {
                    Some(page) => Search::Found(page),
                    None => Search::Free(at),
                };
            }
            if word.wrapping_sub(turn(at)) > wanted.wrapping_sub(turn(at)) {
                return Search::Free(at);
            }
        }
        Search::Crowded
    }

    /// Puts a page at `at`, pushing what is there right to the next gap. False: there is no room.
    fn insert(&mut self, at: usize, tag: u64, page: PageId) -> bool {
        let (_, word) = self.shape.locate(tag);
        let Some(slot) = self.shape.slot_of(word, page) else {
            return false;
        };
        let slots = &mut self.slots[at..];
        let mut gap = 0;
        loop {
            match slots.get(gap) {
                None => return false,
                Some(&GAP) => break,
                Some(&slot) if is_at_end_of_reach(at + gap, slot) => return false,
                Some(_) => gap += 1,
            }
        }
        slots.copy_within(..gap, 1);
        slots[0] = slot;
        self.used += 1;
        true
    }

    /// The page of this tag; `None`: it was not known, and now is that of `page`.
    fn admit(&mut self, tag: u64, page: PageId) -> Result<Option<PageId>> {
        loop {
            match self.find(tag) {
                Search::Found(page) => return Ok(Some(page)),
                Search::Free(at) if !self.is_full() && self.insert(at, tag, page) => {
                    return Ok(None);
                }
                Search::Free(_) | Search::Crowded => self.grow()?,
            }
        }
    }

    fn is_full(&self) -> bool {
        self.used * FULL.1 > self.homes() * FULL.0
    }

    /// Lays the entries out again over more homes. They are in tag order, so one sweep does it.
    fn grow(&mut self) -> Result<()> {
        let mut homes = self.homes();
        loop {
            // Hashes never crowd where most slots are gaps.
            if homes > CROWDED * (self.used + REACH) {
                return Err(Error::damaged(
                    "fingerprints",
                    "so many are nearly the same that they are no hashes",
                ));
            }
            homes = grown(homes);
            let mut next = Segment::with_homes(homes)?;
            if next.shape.fill(&mut next.slots, self) {
                next.used = self.used;
                *self = next;
                return Ok(());
            }
        }
    }
}

/// A share of an index's segments, to be filled.
pub(crate) struct Share<'i> {
    /// The first segment's number.
    first: usize,
    segments: &'i mut [Segment],
    /// Segment, tag and page of those to be put in next.
    own: Vec<(usize, u64, PageId)>,
}

impl Share<'_> {
    /// Puts in those of the fingerprints that belong to this share; they are of the pages from `first`
    /// on. False: one was there before.
    pub fn put(&mut self, first: u64, fingerprints: &[Fingerprint]) -> Result<bool> {
        for (page, &fingerprint) in (first..).zip(fingerprints) {
            let (segment, tag) = Index::split(fingerprint);
            let segment = segment.wrapping_sub(self.first);
            if segment < self.segments.len() {
                self.own.push((segment, tag, PageId(page)));
                if self.own.len() == TOUCHED && !self.put_own()? {
                    return Ok(false);
                }
            }
        }
        self.put_own()
    }

    fn put_own(&mut self) -> Result<bool> {
        touch((self.own.iter()).map(|&(segment, tag, _)| (&self.segments[segment], tag)));
        for (segment, tag, page) in self.own.drain(..) {
            if self.segments[segment].admit(tag, page)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Asks for the homes of some tags, all together, to be brought near.
fn touch<'i>(homes: impl Iterator<Item = (&'i Segment, u64)>) {
    for (segment, tag) in homes {
        let (home, _) = segment.shape.locate(tag);
        prefetch_index(&*segment.slots, home);
        // Half of all searches end in the next cache line.
        prefetch_index(&*segment.slots, home + NEXT_LINE);
    }
}

/// Homes of a segment of an index of `pages` pages.
fn homes_for(pages: u64) -> usize {
    ((pages >> SEGMENT_BITS) as usize * 5 / 4).max(LEAST_HOMES)
}

/// Bytes of a segment of so many homes.
fn bytes_of(homes: usize) -> u64 {
    ((homes + REACH) * size_of::<Slot>()) as u64
}

/// Homes of a segment that has grown once.
fn grown(homes: usize) -> usize {
    homes + if homes < SMALL { homes } else { homes / 8 }
}

impl Index {
    pub fn new() -> Result<Index> {
        Index::with_room(0)
    }

    /// An index that takes `pages` pages without growing.
    pub fn with_room(pages: u64) -> Result<Index> {
        let segments = 1usize << SEGMENT_BITS;
        let homes = homes_for(pages);
        Ok(Index {
            segments: (0..segments)
                .map(|_| Segment::with_homes(homes))
                .collect::<Result<_>>()?,
            pages: 0,
        })
    }

    /// Pages known: the next new page gets this number.
    #[cfg(test)]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    fn split(fingerprint: Fingerprint) -> (usize, u64) {
        let segment = (fingerprint >> (128 - SEGMENT_BITS)) as usize;
        let tag = (fingerprint as u64) >> (64 - TAG_BITS);
        (segment, tag)
    }

    /// Brings the homes of some fingerprints near. The loads don't wait for one another, as those
    /// of one search after the other would: at a million pages that halves the time of a search.
    pub fn touch(&self, fingerprints: &[Fingerprint]) {
        let homes = fingerprints.iter().map(|&fingerprint| {
            let (segment, tag) = Self::split(fingerprint);
            (&self.segments[segment], tag)
        });
        touch(homes);
    }

    /// The page with this fingerprint, if known.
    pub fn get(&self, fingerprint: Fingerprint) -> Option<PageId> {
        let (segment, tag) = Self::split(fingerprint);
        match self.segments[segment].find(tag) {
            Search::Found(page) => Some(page),
            Search::Free(_) | Search::Crowded => None,
        }
    }

    /// The page with this fingerprint; the next number if it is new. The flag says "new".
    ///
    /// # Errors
    /// [`Error::Usage`] if memory can't be reserved; [`Error::Damaged`] for fingerprints so alike
    /// that they are no hashes.
    pub fn admit(&mut self, fingerprint: Fingerprint) -> Result<(PageId, bool)> {
        let (segment, tag) = Self::split(fingerprint);
        match self.segments[segment].admit(tag, PageId(self.pages))? {
            Some(page) => Ok((page, false)),
            None => {
                self.pages += 1;
                Ok((PageId(self.pages - 1), true))
            }
        }
    }

    /// An index of `pages` pages that are still to be put in: by [`Share::put`], each share on a thread
    /// of its own if need be.
    pub fn to_fill(pages: u64) -> Result<Index> {
        let mut index = Index::with_room(pages)?;
        index.pages = pages;
        Ok(index)
    }

    /// All segments in `shares` shares or fewer.
    pub fn shares(&mut self, shares: usize) -> impl Iterator<Item = Share<'_>> {
        let len = self.segments.len().div_ceil(shares.max(1));
        let parts = self.segments.chunks_mut(len).enumerate();
        parts.map(move |(at, segments)| Share {
            first: at * len,
            segments,
            own: Vec::with_capacity(TOUCHED),
        })
    }

    /// Expected pairs of distinct URLs among `pages` that this index would take for one page.
    pub fn expected_wrong_merges(pages: u64) -> f64 {
        let n = pages as f64;
        n * n / 2.0 / 2f64.powi((SEGMENT_BITS + TAG_BITS) as i32)
    }

    /// Bytes of memory in use by the slots.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|s| bytes_of(s.homes())).sum()
    }

    /// Bytes of an index [`with room`](Index::with_room).
    pub fn bytes_with_room(pages: u64) -> u64 {
        bytes_of(homes_for(pages)) << SEGMENT_BITS
    }

    /// Most bytes on the way to `pages` pages, a segment that grows counted twice.
    pub fn bytes_at(&self, pages: u64) -> u64 {
        let more = pages.saturating_sub(self.pages) >> SEGMENT_BITS;
        // Shares of random numbers vary by their square root; six times that is never seen.
        let more = if pages > self.pages {
            more + 6 * more.isqrt() + 8
        } else {
            0
        };
        let (mut sum, mut largest) = (0, 0);
        for segment in &self.segments {
            let mut homes = segment.homes();
            let used = segment.used + more as usize;
            while more > 0 && (used * FULL.1 > homes * FULL.0 || !Shape::new(homes).fits(pages)) {
                homes = grown(homes);
            }
            sum += bytes_of(homes);
            largest = largest.max(homes);
        }
        sum + sum / EARLY + bytes_of(grown(largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn numbers_pages_in_order_and_finds_them_again_while_growing() {
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
        /// Home, rest and place give back the tag: what the module's head claims, for any number of homes.
        #[test]
        fn a_slot_keeps_the_whole_tag(
            homes in shapes(),
            tag in prop_oneof![0..1u64 << TAG_BITS, 0..9u64, (1u64 << TAG_BITS) - 9..1 << TAG_BITS],
            right in 0..REACH,
        ) {
            let shape = Shape::new(homes);
            let (home, word) = shape.locate(tag);
            prop_assert_eq!(home as u128, (u128::from(tag) * homes as u128) >> TAG_BITS);
            let page = PageId((1 << (11 + homes.ilog2())) - 2);
            let slot = shape.slot_of(word, page).unwrap();
            prop_assert_eq!(shape.tag_at(home + right, slot, shape.inverse()), tag);
            prop_assert_eq!(shape.page_of(slot), Some(page));
            prop_assert_eq!(shape.slot_of(word, PageId(page.0 + 1)), None);
        }
    }

    #[test]
    fn every_page_number_fits_a_segment_of_the_size_that_its_pages_need() {
        for pages in [1 << 20, 1 << 30, PageId::LIMIT] {
            // As full as a segment may be, if all have the same share.
            let homes = (pages >> SEGMENT_BITS) * 8 / 7;
            let shape = Shape::new(homes as usize);
            assert!(shape.slot_of(0, PageId(pages - 1)).is_some());
        }
    }

    /// Whether two URLs are one page must not depend on how large the index is.
    #[test]
    fn seventy_two_bits_tell_pages_apart_at_any_size() {
        for room in [0, 100_000, 50_000_000] {
            let mut index = Index::with_room(room).unwrap();
            let print = spread(7);
            // 9 bits for the segment, 63 of the low word; the others tell nothing.
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
    fn shares_filled_apart_make_the_index_that_one_makes() {
        let prints: Vec<u128> = (0..100_000).map(spread).collect();
        for shares in [1, 2, 3, 7] {
            let mut index = Index::to_fill(100_000).unwrap();
            for mut share in index.shares(shares) {
                assert!(share.put(0, &prints[..4_097]).unwrap());
                assert!(share.put(4_097, &prints[4_097..]).unwrap());
            }
            assert_eq!(index.pages(), 100_000);
            for (page, &print) in (0..).zip(&prints) {
                assert_eq!(index.get(print), Some(PageId(page)));
            }
            let twice = |mut share: Share<'_>| share.put(100_000, &prints[9..10]).unwrap();
            assert_eq!(
                index.shares(shares).map(twice).filter(|new| !new).count(),
                1
            );
        }
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
                // Segments of few pages vary much, and then grow to the double.
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

    /// Its story: no growing parts tags that differ in their last bits only; a store whose
    /// fingerprints are no hashes would have taken all memory.
    #[test]
    fn what_is_no_hash_is_refused_and_memory_stays_small() {
        let mut index = Index::new().unwrap();
        let before = index.bytes();
        let refused = (0..200u128).find_map(|n| index.admit(n << 1).err());
        assert!(matches!(refused, Some(Error::Damaged { .. })));
        assert!(index.bytes() < before + (1 << 20));
    }

    /// Measures: nanoseconds an operation with random fingerprints, and bytes a page. One number, of
    /// millions of pages, in MILLIONS.
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
                // Pages in an order of their own, unless they are all wanted.
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
}
