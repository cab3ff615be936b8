//! Finding pages of one snapshot by their names, again and again: 12 bytes of memory a page, and no sweep.

use super::Snapshot;
use crate::Result;
use crate::engine::PageId;
use crate::store;

/// The pages of a snapshot by the low 64 bits of their names' fingerprints, in order.
pub struct Lookup {
    pages: Vec<(u64, u32)>,
}

impl Lookup {
    /// Bytes of memory for a snapshot of so many pages; `None`: of more pages than it can tell apart.
    pub fn bytes(pages: u64) -> Option<u64> {
        (pages <= u64::from(u32::MAX)).then(|| pages * size_of::<(u64, u32)>() as u64)
    }

    /// Reads the fingerprints of a snapshot, once. Of more pages than [`Lookup::bytes`] has a number for, those
    /// beyond are left out.
    ///
    /// # Errors
    ///
    /// The fingerprints are damaged or cannot be read.
    pub fn new(snapshot: &Snapshot) -> Result<Lookup> {
        let mut pages = Vec::with_capacity(snapshot.info().pages as usize);
        let prints = snapshot.all_pages("fingerprints", snapshot.names.fingerprints());
        for (page, print) in (0..=u32::MAX).zip(prints) {
            pages.push((print? as u64, page));
        }
        pages.sort_unstable();
        Ok(Lookup { pages })
    }

    /// The pages of `snapshot`, of which this was made, with these names. What the fingerprints say is held against
    /// the names themselves.
    ///
    /// # Errors
    ///
    /// Names are damaged or cannot be read.
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
