//! Index from a URL's fingerprint to its page number.
//!
//! The index never sees a URL. A fingerprint is a keyed 128-bit hash; 9 of its bits choose a [`segment`], 63 more are
//! the tag. Two URLs that agree in those 72 bits would be taken for one page, whatever the size of the index: about
//! 1e-4 expected pairs among a billion URLs ([`Index::expected_wrong_merges`]).
//!
//! Segments grow independently: at any time at most one of 512 is held twice.

mod segment;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::Result;
use crate::model::{Fingerprint, PageId};
use segment::{FULL, LEAST_HOMES, REACH, SegmentLayout, bytes_of, grown, touch};

pub use segment::{IndexSegment, Slot};

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

/// Map from fingerprint to [`PageId`], in memory.
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
    /// Locates a fingerprint in an index with these numbers of slots per segment, as given by `Index::each_segment`.
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

/// Returns the number of homes of a segment in an index of `pages` pages.
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
        let tags = fingerprints.iter().map(|&of| Self::split(of));
        touch(tags.map(|(segment, tag)| (&self.segments[segment], tag)));
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
    /// with `Error::AddressSpace` if memory cannot be reserved; `Error::Damaged` if fingerprints are too alike to be
    /// hashes.
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
