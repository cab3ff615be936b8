//! A segment of the index: tags and their pages in an array of 10-byte slots, sorted by tag, with gaps.
//!
//! A tag's home is its share of the array: `home = floor(tag x homes / 2^63)`. Entries are pushed right where homes
//! collide, and a search ends at the first larger tag. With L = floor(log2 homes), a slot holds, from its highest
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
//! grows, by an eighth, from its slots alone, in one sweep. The more homes, the fewer bits of tag and the more of page
//! number a slot needs: in all no more than 80, as long as segments share the pages about alike. An entry that does not
//! fit, for its page number or because too many share its home, makes the segment grow.
//!
//! Load runs from 0.78 to 0.88: 12 bytes a page on average.

use prefetch_index::prefetch_index;

use super::TAG_BITS;
use crate::engine::cells::Cells;
use crate::model::PageId;
use crate::{Error, Result};

/// Bits of its home that a slot holds.
const HOME_BITS: u32 = 6;
/// An entry lies less than so many slots right of its home; there are as many past the last home.
pub(crate) const REACH: usize = 1 << HOME_BITS;
/// Least homes of a segment: tag and home then leave no bit of a slot's first eight bytes unused.
pub(super) const LEAST_HOMES: usize = 1 << (TAG_BITS + HOME_BITS - 64);
/// Below this many homes a segment doubles; above, it grows by an eighth.
const SMALL: usize = 1 << 15;
/// From this many homes on huge pages are asked for. Smaller arrays than one such page gain, too: they
/// lie side by side.
const HUGE: usize = 1 << 16;
/// A segment grows when it is fuller than this.
pub(super) const FULL: (usize, usize) = (7, 8);
/// A segment of hashes never needs this many homes an entry.
const CROWDED: usize = 8;
/// Slots to the next cache line.
const NEXT_LINE: usize = 6;

/// Little-endian: the last eight bytes are the word that is searched, with the page number's high
/// bits; the first two are the page number's low bits.
pub(crate) type Slot = [u8; 10];

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
pub(super) struct Layout {
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

/// How many slots right of its home the entry in slot `at` lies.
fn steps_right(at: usize, word: u64) -> usize {
    let last = (word >> (64 - HOME_BITS)) as usize;
    at.wrapping_sub(last) % REACH
}

/// Returns whether what is in slot `at` is as far right of its home as can be.
fn is_at_end_of_reach(at: usize, slot: Slot) -> bool {
    word_of(slot).wrapping_sub(turn(at)) >> (64 - HOME_BITS) == 0
}

impl Layout {
    pub(super) fn new(homes: usize) -> Layout {
        let homes = homes as u64;
        let log = homes.ilog2();
        Layout {
            homes,
            log,
            page_mask: (1 << (log - LEAST_HOMES.ilog2())) - 1,
        }
    }

    /// The home of a tag, and the word of its slot but for the page number.
    pub(super) fn locate(&self, tag: u64) -> (usize, u64) {
        let product = u128::from(tag << (64 - TAG_BITS)) * u128::from(self.homes);
        let (home, rest) = ((product >> 64) as u64, product as u64);
        let word = (home << (64 - HOME_BITS)) | (rest >> HOME_BITS);
        (home as usize, word & !self.page_mask)
    }

    /// The tag of what is in slot `at`. `inverse`: see [`Layout::inverse`].
    pub(super) fn tag_at(&self, at: usize, slot: Slot, inverse: u64) -> u64 {
        let word = word_of(slot);
        let home = (at - steps_right(at, word)) as u64;
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
    pub(super) fn inverse(&self) -> u64 {
        (((1u128 << (64 + self.log)) - 1) / u128::from(self.homes)) as u64
    }

    pub(super) fn page_of(&self, slot: Slot) -> Option<PageId> {
        let stored = (word_of(slot) & self.page_mask) << 16 | u64::from(low_of(slot));
        stored.checked_sub(1).map(PageId)
    }

    /// Returns whether the numbers of so many pages fit a slot.
    pub(super) fn fits(&self, pages: u64) -> bool {
        pages >> 16 <= self.page_mask
    }

    /// A slot, if the page number fits.
    pub(super) fn slot_of(&self, word: u64, page: PageId) -> Option<Slot> {
        let stored = page.0 + 1;
        if !self.fits(stored) {
            return None;
        }
        let high = stored >> 16;
        let [a, b, ..] = stored.to_le_bytes();
        let [c, d, e, f, g, h, i, j] = (word | high).to_le_bytes();
        Some([a, b, c, d, e, f, g, h, i, j])
    }

    /// Where a search for a tag ends, given its [place](Layout::locate) and [`REACH`] slots from its home on.
    pub(super) fn search(&self, (home, wanted): (usize, u64), slots: &[Slot]) -> Search {
        for (at, &slot) in (home..).zip(slots) {
            let word = word_of(slot);
            if slot == GAP {
                return Search::Free(at);
            }
            if word & !self.page_mask == wanted {
                return match self.page_of(slot) {
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

    /// Lays out the entries of `from` in `slots`. False: they don't fit.
    pub(super) fn fill(&self, slots: &mut [Slot], from: &Segment) -> bool {
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

/// Slots sorted by tag.
pub(super) struct Segment {
    layout: Layout,
    slots: Cells<Slot>,
    pub(super) used: usize,
}

/// Where a search ended.
pub(super) enum Search {
    Found(PageId),
    /// It goes here, in front of what is here.
    Free(usize),
    /// There is no room for it within reach.
    Crowded,
}

impl Segment {
    pub(super) fn with_homes(homes: usize) -> Result<Segment> {
        let slots = Cells::reserve(homes + REACH)?;
        if homes >= HUGE {
            slots.advise_huge();
        }
        Ok(Segment {
            layout: Layout::new(homes),
            slots,
            used: 0,
        })
    }

    pub(super) fn homes(&self) -> usize {
        self.slots.len() - REACH
    }

    pub(super) fn find(&self, tag: u64) -> Search {
        let (home, wanted) = self.layout.locate(tag);
        let reached = &self.slots[home..home + REACH];
        self.layout.search((home, wanted), reached)
    }

    /// Puts a page at `at`, pushing what is there right to the next gap. False: there is no room.
    pub(super) fn insert(&mut self, at: usize, tag: u64, page: PageId) -> bool {
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
    pub(super) fn admit(&mut self, tag: u64, page: PageId) -> Result<Option<PageId>> {
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

    pub(super) fn is_full(&self) -> bool {
        self.used * FULL.1 > self.homes() * FULL.0
    }

    /// Lays the entries out again over more homes.
    pub(super) fn grow(&mut self) -> Result<()> {
        *self = self.laid_out(grown(self.homes()))?;
        Ok(())
    }

    /// The same entries over so many homes, or the least more that they need. They are in tag order, so one sweep does it.
    pub(super) fn laid_out(&self, mut homes: usize) -> Result<Segment> {
        loop {
            // Hashes never crowd where most slots are gaps.
            if homes > CROWDED * (self.used + REACH) {
                return Err(Error::damaged(
                    "fingerprints",
                    "too many are nearly equal for hashes",
                ));
            }
            let mut next = Segment::with_homes(homes)?;
            next.used = self.used;
            if !next.is_full() && next.layout.fill(&mut next.slots, self) {
                return Ok(next);
            }
            homes = grown(homes);
        }
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    /// Takes the slots as they were filled, if all entries are of the first `pages` pages, and within reach of a home.
    pub(super) fn count(&mut self, pages: u64) -> bool {
        let (mut used, homes) = (0, self.homes());
        for (at, &slot) in self.slots.iter().enumerate() {
            if slot == GAP {
                continue;
            }
            used += 1;
            let home = at.checked_sub(steps_right(at, word_of(slot)));
            let page = self.layout.page_of(slot);
            if home.is_none_or(|home| home >= homes) || page.is_none_or(|page| page.0 >= pages) {
                return false;
            }
        }
        self.used = used;
        true
    }
}

/// Asks for the homes of some tags, all together, to be brought near.
pub(super) fn touch<'i>(homes: impl Iterator<Item = (&'i Segment, u64)>) {
    for (segment, tag) in homes {
        let (home, _) = segment.layout.locate(tag);
        prefetch_index(&*segment.slots, home);
        // Half of all searches end in the next cache line.
        prefetch_index(&*segment.slots, home + NEXT_LINE);
    }
}

/// Bytes of a segment of so many homes.
pub(super) fn bytes_of(homes: usize) -> u64 {
    ((homes + REACH) * size_of::<Slot>()) as u64
}

/// Homes of a segment that has grown once.
pub(super) fn grown(homes: usize) -> usize {
    homes + if homes < SMALL { homes } else { homes / 8 }
}
