//! Index from a URL's fingerprint to its page number.
//!
//! A fingerprint is a keyed 128-bit hash; 9 of its bits choose a segment, 63 more are the tag. Two URLs that agree in
//! those 72 bits would be taken for one page: about 1e-4 expected pairs among a billion URLs
//! ([`Index::expected_wrong_merges`]). Segments grow independently: at any time at most one of 512 is held twice.
//!
//! A **segment** holds tags and their pages in an array of 10-byte slots, sorted by tag, with gaps. A tag's home is its
//! share of the array: `home = floor(tag x homes / 2^63)`. Entries are pushed right where homes collide, and a search ends
//! at the first larger tag. With L = floor(log2 homes), a slot holds, from its highest bit on:
//!
//! | bits | what |
//! |---|---|
//! | 6 | the home's last bits: entries lie less than 64 slots right of their homes, so these bits determine the home |
//! | 63 - L | `rest = floor((tag x homes mod 2^63) / 2^L)` |
//! | 11 + L | page number + 1; all zero: a gap |
//!
//! Home and rest recover the tag: products of neighbouring tags are `homes >= 2^L` apart, so tags of one home have
//! different rests, and `tag = ceil((home x 2^63 + rest x 2^L) / homes)`. So a segment grows, by an eighth, from its
//! slots alone, in one sweep. With more homes a slot needs fewer bits for the tag and more for the page number: at most
//! 80 in total, as long as pages are spread evenly over segments. An entry that does not fit, for its page number or
//! because too many share its home, makes the segment grow.
//!
//! The load is 0.78 to 0.88: 12 bytes per page on average.

use std::ops::Range;

use prefetch_index::prefetch_index;

use super::cells::Cells;
use crate::model::{Fingerprint, PageId};
use crate::{Error, Result};

const SEGMENT_BITS: u32 = 9;
const TAG_BITS: u32 = 63;
// The store keeps only the low 64 and the high 16 bits of a fingerprint.
const _: () = assert!(TAG_BITS <= 64 && SEGMENT_BITS <= 16);
/// Divisor for the additional memory of segments that grow early: a few are crowded before they are full.
const EARLY: u64 = 128;
pub const SEGMENTS: usize = 1 << SEGMENT_BITS;
/// Smallest number of slots of a segment.
pub const LEAST_SLOTS: u64 = (LEAST_HOMES + REACH) as u64;
/// Number of fingerprints that are prefetched at a time.
pub const TOUCHED: usize = 64;

pub struct Index {
    pub segments: Vec<IndexSegment>,
    pages: u64,
}

/// Location of a fingerprint in an index: the slots to read from an index on disk.
pub struct Probe {
    pub segment: usize,
    /// Slots of the segment that may hold the fingerprint.
    pub slots: Range<usize>,
    layout: SegmentLayout,
    wanted: (usize, u64),
}

impl Probe {
    /// Locates a fingerprint in an index with these numbers of slots per segment.
    pub fn of(fingerprint: Fingerprint, slots: &[u64; SEGMENTS]) -> Probe {
        let (segment, tag) = Index::split(fingerprint);
        let layout = SegmentLayout::new(slots[segment] as usize - REACH);
        let wanted = layout.locate(tag);
        Probe {
            segment,
            slots: wanted.0..wanted.0 + REACH,
            layout,
            wanted,
        }
    }

    /// Returns the page of the fingerprint, given the contents of its `slots`.
    pub fn find(&self, slots: &[Slot]) -> Option<PageId> {
        self.layout.search(self.wanted, slots).page()
    }
}

fn homes_for(pages: u64) -> usize {
    ((pages >> SEGMENT_BITS) as usize * 5 / 4).max(LEAST_HOMES)
}

impl Index {
    pub fn new() -> Result<Index> {
        Index::with_room(0)
    }

    /// Creates an index that takes `pages` pages without growing.
    pub fn with_room(pages: u64) -> Result<Index> {
        let segments = 1usize << SEGMENT_BITS;
        let homes = homes_for(pages);
        Ok(Index {
            segments: (0..segments)
                .map(|_| IndexSegment::with_homes(homes))
                .collect::<Result<_>>()?,
            pages: 0,
        })
    }

    /// Returns the number of pages, which is the number of the next new page.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    fn split(fingerprint: Fingerprint) -> (usize, u64) {
        let segment = (fingerprint >> (128 - SEGMENT_BITS)) as usize;
        let tag = (fingerprint as u64) >> (64 - TAG_BITS);
        (segment, tag)
    }

    /// Prefetches the homes of some fingerprints. The loads overlap, which halves search times at a million pages.
    pub fn touch(&self, fingerprints: &[Fingerprint]) {
        for &fingerprint in fingerprints {
            let (segment, tag) = Self::split(fingerprint);
            let segment = &self.segments[segment];
            let (home, _) = segment.layout.locate(tag);
            prefetch_index(&*segment.slots, home);
            // Half of all searches end in the next cache line.
            prefetch_index(&*segment.slots, home + NEXT_LINE);
        }
    }

    pub fn get(&self, fingerprint: Fingerprint) -> Option<PageId> {
        let (segment, tag) = Self::split(fingerprint);
        self.segments[segment].find(tag).page()
    }

    /// Admits the fingerprints in `places`, in order. Calls `each` with position, page, and whether the page is new.
    pub fn admit_all(
        &mut self,
        all: &[Fingerprint],
        places: Range<usize>,
        mut each: impl FnMut(usize, PageId, bool) -> Result<()>,
    ) -> Result<()> {
        for at in places {
            if at.is_multiple_of(TOUCHED) {
                self.touch(&all[at..all.len().min(at + TOUCHED)]);
            }
            let (page, is_new) = self.admit(all[at])?;
            each(at, page, is_new)?;
        }
        Ok(())
    }

    /// Returns the page of this fingerprint, or assigns the next number. The flag is true if the page is new. Fails
    /// with `Error::Damaged` if fingerprints are too alike to be hashes.
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

    /// Creates an index of `pages` pages whose segments have the given numbers of slots, each at least [`LEAST_SLOTS`];
    /// [`IndexSegment::fill`] must fill each before use.
    pub fn to_load(pages: u64, slots: &[u64; SEGMENTS]) -> Result<Index> {
        let segments = slots.iter();
        let segments = segments.map(|&slots| IndexSegment::with_homes(slots as usize - REACH));
        Ok(Index {
            segments: segments.collect::<Result<_>>()?,
            pages,
        })
    }

    /// Calls `each` with the slots of every segment, laid out as in an index built from these pages alone.
    pub fn each_segment(&self, each: &mut dyn FnMut(&[Slot]) -> Result<()>) -> Result<()> {
        let homes = homes_for(self.pages);
        let mut segments = self.segments.iter();
        segments.try_for_each(|segment| each(&segment.laid_out(homes)?.slots))
    }

    /// Returns the expected number of pairs of distinct URLs among `pages` that this index would merge.
    pub fn expected_wrong_merges(pages: u64) -> f64 {
        let n = pages as f64;
        n * n / 2.0 / 2f64.powi((SEGMENT_BITS + TAG_BITS) as i32)
    }

    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|s| bytes_of(s.homes())).sum()
    }

    /// Returns the size of an index [`with room`](Index::with_room) for `pages` pages, in bytes.
    pub fn bytes_with_room(pages: u64) -> u64 {
        bytes_of(homes_for(pages)) << SEGMENT_BITS
    }

    /// Returns the peak size while growing to `pages` pages, in bytes; a segment that grows counts twice.
    pub fn bytes_at(&self, pages: u64) -> u64 {
        let mut more = pages.saturating_sub(self.pages) >> SEGMENT_BITS;
        if pages > self.pages {
            // Occupancies of random buckets vary by their square root; six times that never occurs.
            more += 6 * more.isqrt() + 8;
        }
        let (mut sum, mut largest) = (0, 0);
        for segment in &self.segments {
            let mut homes = segment.homes();
            let used = segment.used + more as usize;
            while more > 0
                && (used * FULL.1 > homes * FULL.0 || !SegmentLayout::new(homes).fits(pages))
            {
                homes = grown(homes);
            }
            sum += bytes_of(homes);
            largest = largest.max(homes);
        }
        sum + sum / EARLY + bytes_of(grown(largest))
    }
}

/// Number of low bits of its home that a slot holds.
const HOME_BITS: u32 = 6;
/// Bound on the distance of an entry from its home, in slots; as many slots follow the last home.
pub const REACH: usize = 1 << HOME_BITS;
/// Minimum number of homes of a segment; tag and home then fill the first eight bytes of a slot.
const LEAST_HOMES: usize = 1 << (TAG_BITS + HOME_BITS - 64);
/// Number of homes below which a segment doubles; above, it grows by an eighth.
const SMALL: usize = 1 << 15;
/// Maximum load of a segment, as a fraction; beyond it the segment grows.
const FULL: (usize, usize) = (7, 8);
/// Number of homes per entry that a segment of hashes never reaches.
const CROWDED: usize = 8;
const NEXT_LINE: usize = 6;

/// Entry of a segment, little-endian: the last eight bytes are the word that is searched, with the high bits of the
/// page number; the first two are its low bits.
pub type Slot = [u8; 10];

const GAP: Slot = [0; 10];

fn word_of(slot: Slot) -> u64 {
    let [_, _, word @ ..] = slot;
    u64::from_le_bytes(word)
}

/// Mapping from tags to homes and slot contents, for a given number of homes.
#[derive(Clone, Copy)]
struct SegmentLayout {
    homes: u64,
    log: u32,
    page_mask: u64,
}

/// Returns the offset that a search at slot `at` subtracts from words, so that their order is that of the tags. It maps
/// the low bits of a home to 63 - (slots right of the home).
fn turn(at: usize) -> u64 {
    (at as u64 + 1) << (64 - HOME_BITS)
}

/// Returns the distance of the entry in slot `at` from its home, in slots.
fn steps_right(at: usize, word: u64) -> usize {
    let last = (word >> (64 - HOME_BITS)) as usize;
    at.wrapping_sub(last) % REACH
}

impl SegmentLayout {
    fn new(homes: usize) -> SegmentLayout {
        let homes = homes as u64;
        let log = homes.ilog2();
        SegmentLayout {
            homes,
            log,
            page_mask: (1 << (log - LEAST_HOMES.ilog2())) - 1,
        }
    }

    /// Returns the home of a tag and the word of its slot, without the page number.
    fn locate(&self, tag: u64) -> (usize, u64) {
        let product = u128::from(tag << (64 - TAG_BITS)) * u128::from(self.homes);
        let (home, rest) = ((product >> 64) as u64, product as u64);
        let word = (home << (64 - HOME_BITS)) | (rest >> HOME_BITS);
        (home as usize, word & !self.page_mask)
    }

    /// Returns the tag of the entry in slot `at`. `inverse` is [`SegmentLayout::inverse`].
    fn tag_at(&self, at: usize, slot: Slot, inverse: u64) -> u64 {
        let word = word_of(slot);
        let home = (at - steps_right(at, word)) as u64;
        let rest = (word << HOME_BITS) >> (64 - TAG_BITS + self.log);
        let share = (home << (TAG_BITS - self.log)) + rest;
        let least = u128::from(share) << self.log;
        let tag = ((u128::from(share) * u128::from(inverse)) >> 64) as u64;
        // The quotient is too small by at most two. No branches: they would be unpredictable.
        let short = |tag: u64| u64::from(u128::from(tag) * u128::from(self.homes) < least);
        let tag = tag + short(tag);
        tag + short(tag)
    }

    /// Returns 2^(64 + L) / homes, rounded down: multiplying by it is faster than dividing by `homes`.
    fn inverse(&self) -> u64 {
        (((1u128 << (64 + self.log)) - 1) / u128::from(self.homes)) as u64
    }

    fn page_of(&self, slot: Slot) -> Option<PageId> {
        let [a, b, ..] = slot;
        let low = u64::from(u16::from_le_bytes([a, b]));
        let stored = (word_of(slot) & self.page_mask) << 16 | low;
        stored.checked_sub(1).map(PageId)
    }

    /// Returns true if page numbers below `pages` fit in a slot.
    fn fits(&self, pages: u64) -> bool {
        pages >> 16 <= self.page_mask
    }

    /// Returns the slot of an entry, or `None` if the page number does not fit.
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

    /// Searches for a tag, given its [location](SegmentLayout::locate) and the [`REACH`] slots from its home on.
    fn search(&self, (home, wanted): (usize, u64), slots: &[Slot]) -> SlotSearch {
        for (at, &slot) in (home..).zip(slots) {
            let word = word_of(slot);
            if slot == GAP {
                return SlotSearch::Free(at);
            }
            if word & !self.page_mask == wanted {
                return match self.page_of(slot) {
                    Some(page) => SlotSearch::Found(page),
                    None => SlotSearch::Free(at),
                };
            }
            if word.wrapping_sub(turn(at)) > wanted.wrapping_sub(turn(at)) {
                return SlotSearch::Free(at);
            }
        }
        SlotSearch::Crowded
    }

    /// Lays out the entries of `from` in `slots`. Returns false if they do not fit.
    fn fill(&self, slots: &mut [Slot], from: &IndexSegment) -> bool {
        let mut free = 0;
        let inverse = from.layout.inverse();
        for (at, &slot) in from.slots.iter().enumerate() {
            let Some(page) = from.layout.page_of(slot) else {
                continue;
            };
            let (home, word) = self.locate(from.layout.tag_at(at, slot, inverse));
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

pub struct IndexSegment {
    layout: SegmentLayout,
    slots: Cells<Slot>,
    used: usize,
}

enum SlotSearch {
    Found(PageId),
    /// The tag is absent and belongs at this slot, in front of its present entry.
    Free(usize),
    /// The tag is absent and there is no room within reach of its home.
    Crowded,
}

impl SlotSearch {
    fn page(self) -> Option<PageId> {
        match self {
            SlotSearch::Found(page) => Some(page),
            SlotSearch::Free(_) | SlotSearch::Crowded => None,
        }
    }
}

impl IndexSegment {
    fn with_homes(homes: usize) -> Result<IndexSegment> {
        Ok(IndexSegment {
            layout: SegmentLayout::new(homes),
            slots: Cells::reserve(homes + REACH)?,
            used: 0,
        })
    }

    fn homes(&self) -> usize {
        self.slots.len() - REACH
    }

    fn find(&self, tag: u64) -> SlotSearch {
        let (home, wanted) = self.layout.locate(tag);
        let reached = &self.slots[home..home + REACH];
        self.layout.search((home, wanted), reached)
    }

    /// Inserts a page at `at`, pushing entries right up to the next gap. Returns false if there is no room.
    fn insert(&mut self, at: usize, tag: u64, page: PageId) -> bool {
        let (_, word) = self.layout.locate(tag);
        let Some(slot) = self.layout.slot_of(word, page) else {
            return false;
        };
        let slots = &mut self.slots[at..];
        let mut gap = 0;
        loop {
            match slots.get(gap) {
                None => return false,
                Some(&GAP) => break,
                // As far from its home as is allowed.
                Some(&slot) if steps_right(at + gap, word_of(slot)) == REACH - 1 => return false,
                Some(_) => gap += 1,
            }
        }
        slots.copy_within(..gap, 1);
        slots[0] = slot;
        self.used += 1;
        true
    }

    /// Returns the page of this tag; if it is unknown, stores it with `page` and returns `None`.
    fn admit(&mut self, tag: u64, page: PageId) -> Result<Option<PageId>> {
        loop {
            match self.find(tag) {
                SlotSearch::Found(page) => return Ok(Some(page)),
                SlotSearch::Free(at) if !self.is_full() && self.insert(at, tag, page) => {
                    return Ok(None);
                }
                SlotSearch::Free(_) | SlotSearch::Crowded => self.grow()?,
            }
        }
    }

    fn is_full(&self) -> bool {
        self.used * FULL.1 > self.homes() * FULL.0
    }

    fn grow(&mut self) -> Result<()> {
        *self = self.laid_out(grown(self.homes()))?;
        Ok(())
    }

    /// Returns a segment with the same entries over `homes` homes, or more if needed.
    fn laid_out(&self, mut homes: usize) -> Result<IndexSegment> {
        loop {
            // Hashes never crowd where most slots are gaps.
            if homes > CROWDED * (self.used + REACH) {
                return Err(Error::damaged(
                    "fingerprints",
                    "too many are nearly equal for hashes",
                ));
            }
            let mut next = IndexSegment::with_homes(homes)?;
            next.used = self.used;
            if !next.is_full() && next.layout.fill(&mut next.slots, self) {
                return Ok(next);
            }
            homes = grown(homes);
        }
    }

    /// Fills the slots by `fill`, which must overwrite all of them. Returns the number of entries, or `None` unless all
    /// are of the first `pages` pages and within reach of a home.
    pub fn fill(
        &mut self,
        pages: u64,
        fill: impl FnOnce(&mut [Slot]) -> Result<()>,
    ) -> Result<Option<u64>> {
        fill(&mut self.slots)?;
        let (mut used, homes) = (0, self.homes());
        for (at, &slot) in self.slots.iter().enumerate() {
            if slot == GAP {
                continue;
            }
            used += 1;
            let home = at.checked_sub(steps_right(at, word_of(slot)));
            let page = self.layout.page_of(slot);
            if home.is_none_or(|home| home >= homes) || page.is_none_or(|page| page.0 >= pages) {
                return Ok(None);
            }
        }
        self.used = used;
        Ok(Some(used as u64))
    }
}

fn bytes_of(homes: usize) -> u64 {
    ((homes + REACH) * size_of::<Slot>()) as u64
}

fn grown(homes: usize) -> usize {
    homes + if homes < SMALL { homes } else { homes / 8 }
}

#[cfg(test)]
mod tests;
