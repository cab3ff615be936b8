//! Lookup of single pages in a snapshot: their values by number, and their numbers by name, by the index on disk and
//! the fingerprints.

use std::collections::HashMap;
use std::ops::Range;

use super::blocks::rows_at;
use super::{Snapshot, SnapshotColumn, SnapshotPage};
use crate::Result;
use crate::engine::{Fingerprint, PageId};
use crate::model::PageState;
use crate::rows::Bits;
use crate::store::{self, IndexFile};

/// Number of bits in a filter per name that is looked up, and their minimum.
const FILTER: u64 = 64;
const FILTER_LEAST: u64 = 1 << 13;
/// Number of fingerprints that are scanned in the time of one index lookup.
const LOOKUP_PAGES: u64 = 1 << 12;

impl Snapshot {
    /// Returns one page; `None` if the snapshot does not have it.
    pub fn page(&self, page: PageId) -> Result<Option<SnapshotPage>> {
        Ok(self.pages_of(&[page])?.pop())
    }

    /// Returns these pages, which the snapshot must have, in the order given. Reads each block of columns once.
    pub fn pages_of(&self, pages: &[PageId]) -> Result<Vec<SnapshotPage>> {
        self.pages_with(pages, &SnapshotColumn::ALL)
    }

    /// Returns the ranks and importances of these pages, which the snapshot must have, in the order given. Reads no
    /// other columns.
    pub fn ranks_of(&self, pages: &[PageId]) -> Result<Vec<(u64, f64)>> {
        let wanted = [SnapshotColumn::Rank, SnapshotColumn::Importance];
        let pages = self.pages_with(pages, &wanted)?.into_iter();
        Ok(pages.map(|page| (page.rank, page.importance)).collect())
    }

    /// Returns the fetch states of these pages, which the snapshot must have, in the order given.
    pub fn states_of(&self, pages: &[PageId]) -> Result<Vec<Option<PageState>>> {
        let pages = self.pages_of(pages)?;
        Ok(pages.iter().map(|page| page.fetches.state()).collect())
    }

    /// Reads these columns of the pages that the snapshot has.
    fn pages_with(&self, pages: &[PageId], wanted: &[SnapshotColumn]) -> Result<Vec<SnapshotPage>> {
        let known = pages.iter().copied().filter(|page| page.0 < self.len());
        let known: Vec<PageId> = known.collect();
        rows_at(&known, |block, places| {
            self.columns.pages_with(block, Some(places), wanted)
        })
    }

    /// Returns the names of these pages, in the order given. Reads each block of names once.
    pub fn names_of(&self, pages: &[PageId]) -> Result<Vec<String>> {
        let mut sorted: Vec<usize> = (0..pages.len()).collect();
        sorted.sort_unstable_by_key(|&at| pages[at]);
        let mut names = vec![String::new(); pages.len()];
        let mut held = None;
        for at in sorted {
            names[at] = self.names.name(pages[at].0, &mut held)?;
        }
        Ok(names)
    }

    /// Finds the pages with these names in the store's index, as far as that covers them. Otherwise scans the
    /// fingerprints (10 bytes per page) after the index, or all of them if the index is not of this snapshot or there
    /// are too many names to look up individually.
    pub fn find(&self, names: &[&[u8]]) -> Result<Vec<Option<PageId>>> {
        let fingerprints = self.key.fingerprints();
        let mut wanted: HashMap<Fingerprint, Vec<usize>> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            let print = store::kept(fingerprints.of(name));
            wanted.entry(print).or_default().push(at);
        }
        let mut found = vec![None; names.len()];
        let mut note = |page: u64, places: Vec<usize>| {
            (places.into_iter()).for_each(|at| found[at] = Some(PageId(page)));
        };
        let mut behind = 0;
        let index = (self.index.as_ref())
            .filter(|_| (wanted.len() as u64).saturating_mul(LOOKUP_PAGES) < self.len());
        // A damaged index is ignored.
        if let Some(index) = index
            && let Ok(known) = self.look_up(index, wanted.keys().copied())
        {
            behind = index.pages.min(self.len());
            for (page, print) in known {
                note(page, wanted.remove(&print).unwrap_or_default());
            }
        }
        self.sweep_prints(behind..self.len(), &mut wanted, &mut note)?;
        let is_whole = |index: &IndexFile| index.check(self.len(), &self.names).is_ok();
        // An index of the snapshot has all pages that it should.
        if !wanted.is_empty() && !index.is_some_and(is_whole) {
            self.sweep_prints(0..behind, &mut wanted, &mut note)?;
        }
        Ok(found)
    }

    /// Scans these pages and calls `found` with those whose fingerprints are wanted, removing these from `wanted`,
    /// until none is left.
    fn sweep_prints(
        &self,
        pages: Range<u64>,
        wanted: &mut HashMap<Fingerprint, Vec<usize>>,
        found: &mut dyn FnMut(u64, Vec<usize>),
    ) -> Result<()> {
        if wanted.is_empty() || pages.is_empty() {
            return Ok(());
        }
        // Nearly all pages are excluded by their lowest bits.
        let slots = (wanted.len() as u64 * FILTER).next_power_of_two();
        let slots = slots.max(FILTER_LEAST);
        let slot = |print: Fingerprint| print as u64 & (slots - 1);
        let mut filter = Bits::new(slots);
        for &print in wanted.keys() {
            filter.set(slot(print));
        }
        let prints = self.names.fingerprints_from(pages.start)?;
        let prints = self.pages_from(pages.start, "fingerprints", prints);
        for (page, print) in pages.zip(prints) {
            let print = print?;
            if filter.get(slot(print))
                && let Some(places) = wanted.remove(&print)
            {
                found(page, places);
                if wanted.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Looks up fingerprints in the index. Returns those of pages of the snapshot, verified against the fingerprints
    /// themselves.
    fn look_up(
        &self,
        index: &IndexFile,
        prints: impl Iterator<Item = Fingerprint>,
    ) -> Result<Vec<(u64, Fingerprint)>> {
        let mut known = Vec::new();
        for print in prints {
            let page = index.get(print)?.filter(|page| page.0 < self.len());
            known.extend(page.map(|page| (page.0, print)));
        }
        known.sort_unstable();
        let mut held = None;
        for &(page, print) in &known {
            if self.names.fingerprint(page, &mut held)? != Some(print) {
                return Err(index.damaged("it is of other fingerprints"));
            }
        }
        Ok(known)
    }
}

/// Table for repeated lookups by name: pages of a snapshot, sorted by the low 64 bits of their names' fingerprints. Takes
/// 12 bytes of memory per page, and no scans.
pub struct Lookup {
    pages: Vec<(u64, u32)>,
}

impl Lookup {
    /// Returns the memory for a snapshot of this many pages, in bytes; `None` if it has more than the table supports.
    pub fn bytes(pages: u64) -> Option<u64> {
        (pages <= u64::from(u32::MAX)).then(|| pages * size_of::<(u64, u32)>() as u64)
    }

    /// Reads the fingerprints of a snapshot, once. Pages beyond the limit of [`Lookup::bytes`] are left out.
    pub fn new(snapshot: &Snapshot) -> Result<Lookup> {
        let mut pages = Vec::with_capacity(snapshot.info().pages as usize);
        let prints = snapshot.all_pages("fingerprints", snapshot.names.fingerprints());
        for (page, print) in (0..=u32::MAX).zip(prints) {
            pages.push((print? as u64, page));
        }
        pages.sort_unstable();
        Ok(Lookup { pages })
    }

    /// Finds the pages of `snapshot`, from which this was made, with these names. Candidates are verified against the
    /// names themselves.
    pub fn find(&self, snapshot: &Snapshot, names: &[&[u8]]) -> Result<Vec<Option<PageId>>> {
        let fingerprints = snapshot.key.fingerprints();
        let mut found = vec![None; names.len()];
        for (name, found) in names.iter().zip(&mut found) {
            let wanted = store::kept(fingerprints.of(name)) as u64;
            let from = self.pages.partition_point(|&(print, _)| print < wanted);
            let same = self.pages[from..]
                .iter()
                .take_while(|&&(print, _)| print == wanted);
            let same: Vec<PageId> = same.map(|&(_, page)| PageId(u64::from(page))).collect();
            let known = snapshot.names_of(&same)?;
            let at = known.iter().position(|known| known.as_bytes() == *name);
            *found = at.map(|at| same[at]);
        }
        Ok(found)
    }
}
