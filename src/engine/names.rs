//! The pages of the names of a crawl archive, for as long as it is read.

use crate::model::PageId;

/// Name number -> page. Where the archive was the first input of its store, names and pages have the
/// same numbers, and nothing is kept; else five bytes a name.
#[derive(Debug, Clone, Default)]
pub struct NameMap {
    /// The first so many names have the number of their page.
    same: u64,
    /// The pages of the names after them: 40 bits, little-endian; all parts but the last hold [`PART`].
    others: Vec<Vec<[u8; 5]>>,
}

/// Names of a part: growing never copies more.
const PART: usize = 1 << 18;

impl NameMap {
    /// Bytes of a name whose page has another number.
    const BYTES: u64 = 5;

    /// Names whose pages are known.
    pub fn len(&self) -> u64 {
        let parts = self.others.len().saturating_sub(1);
        let last = self.others.last().map_or(0, Vec::len);
        self.same + (parts * PART + last) as u64
    }

    /// Returns whether no page is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> u64 {
        let names: usize = self.others.iter().map(Vec::capacity).sum();
        names as u64 * Self::BYTES
    }

    /// Bytes that `names` more names may take.
    pub fn bytes_more(names: u64) -> u64 {
        (names + PART as u64) * Self::BYTES
    }

    /// Takes the page of the next name.
    pub fn push(&mut self, page: PageId) {
        if self.others.is_empty() && page.0 == self.same {
            self.same += 1;
            return;
        }
        let [a, b, c, d, e, ..] = page.0.to_le_bytes();
        match self.others.last_mut() {
            Some(part) if part.len() < PART => part.push([a, b, c, d, e]),
            _ => {
                let mut part = Vec::new();
                if !self.others.is_empty() {
                    part.reserve_exact(PART);
                }
                part.push([a, b, c, d, e]);
                self.others.push(part);
            }
        }
    }

    /// The page of a name that is known.
    pub fn page(&self, name: u32) -> PageId {
        let name = u64::from(name);
        match name.checked_sub(self.same) {
            None => PageId(name),
            Some(at) => {
                let [a, b, c, d, e] = self.others[at as usize / PART][at as usize % PART];
                PageId(u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]))
            }
        }
    }

    /// Appends the pages of names that are known.
    pub(super) fn pages(&self, names: &[u32], into: &mut Vec<PageId>) {
        if self.others.is_empty() {
            into.extend(names.iter().map(|&name| PageId(u64::from(name))));
        } else {
            into.extend(names.iter().map(|&name| self.page(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back() {
        let pages = [0, 1, 2, 9, 4, PageId::LIMIT - 1, 0];
        let mut map = NameMap::default();
        pages.iter().for_each(|&page| map.push(PageId(page)));
        let names: Vec<u32> = (0..7).collect();
        let mut found = Vec::new();
        map.pages(&names, &mut found);
        assert_eq!(found, pages.map(PageId));
        assert_eq!(map.same, 3);
    }

    #[test]
    fn parts_take_five_bytes_a_name() {
        let mut map = NameMap::default();
        let names = 3 * PART as u64 + 5;
        (0..names).for_each(|name| map.push(PageId(name * 1_000 + 7)));
        assert_eq!(map.len(), names);
        assert_eq!(map.bytes(), 4 * PART as u64 * 5);
        assert!(map.bytes() <= NameMap::bytes_more(names));
        for name in (0..names).step_by(999).chain([names - 1]) {
            assert_eq!(map.page(name as u32), PageId(name * 1_000 + 7));
        }
    }
}
