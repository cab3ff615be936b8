//! Table for repeated lookups of a snapshot's pages by name: 12 bytes of memory per page, without scans.

use super::Snapshot;
use crate::Result;
use crate::engine::PageId;
use crate::store;

/// Pages of a snapshot, sorted by the low 64 bits of their names' fingerprints.
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
