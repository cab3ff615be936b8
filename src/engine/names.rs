//! The pages of the names of a crawl archive, for as long as it is read.

use super::page::PageId;

/// Name number -> page. Where the archive was the first input of its store, names and pages have the
/// same numbers, and nothing is kept; else five bytes a name.
#[derive(Debug, Clone, Default)]
pub struct NameMap {
    /// The first so many names have the number of their page.
    same: u64,
    /// The pages of the names after them: 40 bits, little-endian.
    others: Vec<[u8; 5]>,
}

impl NameMap {
    /// Names whose pages are known.
    pub fn len(&self) -> u64 {
        self.same + self.others.len() as u64
    }

    /// Whether no page is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> u64 {
        (self.others.capacity() * 5) as u64
    }

    /// Takes the page of the next name.
    pub fn push(&mut self, page: PageId) {
        if self.others.is_empty() && page.0 == self.same {
            self.same += 1;
            return;
        }
        let [a, b, c, d, e, ..] = page.0.to_le_bytes();
        self.others.push([a, b, c, d, e]);
    }

    /// The page of a name that is known.
    pub fn page(&self, name: u32) -> PageId {
        let name = u64::from(name);
        match name.checked_sub(self.same) {
            None => PageId(name),
            Some(at) => {
                let [a, b, c, d, e] = self.others[at as usize];
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
}
