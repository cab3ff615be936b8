//! From a URL's fingerprint to its page number.
//!
//! The index never sees a URL. A fingerprint is a keyed 128-bit hash; 9 of its bits choose a
//! segment, 63 more are the tag. Two URLs that agree in those 72 bits would be taken for one page,
//! whatever the size of the index: about 1e-4 expected such pairs among a billion URLs
//! ([`Index::expected_wrong_merges`]).
//!
//! A [`segment`] finds tags, and grows by itself: only one of 512 segments is held twice meanwhile.

mod segment;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::Result;
use crate::model::{Fingerprint, PageId};
use segment::{FULL, LEAST_HOMES, Layout, REACH, Search, Segment, bytes_of, grown, touch};

pub(crate) use segment::Slot;

const SEGMENT_BITS: u32 = 9;
const TAG_BITS: u32 = 63;
// The store keeps no other bits of a fingerprint than its low 64 and its high 16.
const _: () = assert!(TAG_BITS <= 64 && SEGMENT_BITS <= 16);
/// A few segments are crowded before they are full. So small a share of all memory is more than theirs.
const EARLY: u64 = 128;

/// Segments of an index.
pub(crate) const SEGMENTS: usize = 1 << SEGMENT_BITS;
/// Least slots of a segment.
pub(crate) const LEAST_SLOTS: u64 = (LEAST_HOMES + REACH) as u64;

/// Fingerprints whose homes are best touched at a time.
pub(crate) const TOUCHED: usize = 64;

/// Fingerprint -> [`PageId`], in memory.
pub(crate) struct Index {
    segments: Vec<Segment>,
    pages: u64,
}

/// A share of an index's segments, to be filled.
pub(crate) struct Share<'i> {
    /// The first segment's number.
    first: usize,
    segments: &'i mut [Segment],
    /// Segment, tag and page of those to be put in next.
    own: Vec<(usize, u64, PageId)>,
}

/// Where an index finds a fingerprint: what to read of one that is on disk.
pub(crate) struct Probe {
    pub segment: usize,
    /// Slots of the segment.
    pub slots: Range<usize>,
    layout: Layout,
    wanted: (usize, u64),
}

impl Probe {
    /// In an index whose segments have so many slots, as [`Index::segments`] gives them.
    pub fn of(fingerprint: Fingerprint, slots: &[u64; SEGMENTS]) -> Probe {
        let (segment, tag) = Index::split(fingerprint);
        let layout = Layout::new(slots[segment] as usize - REACH);
        let wanted = layout.locate(tag);
        Probe {
            segment,
            slots: wanted.0..wanted.0 + REACH,
            layout,
            wanted,
        }
    }

    /// The page with the fingerprint, given these slots.
    pub fn find(&self, slots: &[Slot]) -> Option<PageId> {
        match self.layout.search(self.wanted, slots) {
            Search::Found(page) => Some(page),
            Search::Free(_) | Search::Crowded => None,
        }
    }
}

impl Share<'_> {
    /// Calls `fill` with the number of each segment and its slots, all of which it fills, with entries of the first `pages`
    /// pages. How many there are; `None`: one is of another page.
    pub fn fill(
        &mut self,
        pages: u64,
        fill: &mut dyn FnMut(usize, &mut [Slot]) -> Result<()>,
    ) -> Result<Option<u64>> {
        let mut entries = 0;
        for (number, segment) in (self.first..).zip(&mut *self.segments) {
            fill(number, segment.slots_mut())?;
            if !segment.count(pages) {
                return Ok(None);
            }
            entries += segment.used as u64;
        }
        Ok(Some(entries))
    }

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

/// Homes of a segment of an index of `pages` pages.
fn homes_for(pages: u64) -> usize {
    ((pages >> SEGMENT_BITS) as usize * 5 / 4).max(LEAST_HOMES)
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

    /// Admits fingerprints, in order; `each` hears at which place of all, of which page, and whether that is new.
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

    /// The same, with segments of so many slots, [`LEAST_SLOTS`] or more, which [`Share::fill`] fills first.
    pub fn to_load(pages: u64, slots: &[u64; SEGMENTS]) -> Result<Index> {
        let segments = slots.iter();
        let segments = segments.map(|&slots| Segment::with_homes(slots as usize - REACH));
        Ok(Index {
            segments: segments.collect::<Result<_>>()?,
            pages,
        })
    }

    /// Calls `each` with the slots of every segment, laid out as in an index that was made of just these pages: they depend on
    /// the pages alone, however this index grew.
    pub fn each_segment(&self, each: &mut dyn FnMut(&[Slot]) -> Result<()>) -> Result<()> {
        let homes = homes_for(self.pages);
        let mut segments = self.segments.iter();
        segments.try_for_each(|segment| each(segment.laid_out(homes)?.slots()))
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
            while more > 0 && (used * FULL.1 > homes * FULL.0 || !Layout::new(homes).fits(pages)) {
                homes = grown(homes);
            }
            sum += bytes_of(homes);
            largest = largest.max(homes);
        }
        sum + sum / EARLY + bytes_of(grown(largest))
    }
}
