//! The ghosts of a block, by the block whose pages they are.

use std::ops::Range;

use crate::rows::Ghost;

/// Those of one block lie together, in ascending order.
#[derive(Default)]
pub(super) struct ByOwner {
    /// Where those of each block end; of later blocks there are none.
    ends: Vec<usize>,
    /// The numbers that they have here, and there.
    pub pages: Vec<u32>,
    pub ats: Vec<u32>,
}

impl ByOwner {
    /// Of ghosts in ascending order.
    pub fn new(ghosts: &[Ghost]) -> ByOwner {
        let mut ends = Vec::new();
        for ghost in ghosts {
            let owner = ghost.owner as usize;
            if ends.len() <= owner {
                ends.resize(owner + 1, 0);
            }
            ends[owner] += 1;
        }
        let mut next = 0;
        for end in &mut ends {
            // At first where those of the block begin.
            next += std::mem::replace(end, next);
        }
        let [mut pages, mut ats] = [vec![0; ghosts.len()], vec![0; ghosts.len()]];
        for ghost in ghosts {
            let place = &mut ends[ghost.owner as usize];
            (pages[*place], ats[*place]) = (ghost.page, ghost.at);
            *place += 1;
        }
        ByOwner { ends, pages, ats }
    }

    /// Where those of a block lie.
    pub fn of(&self, owner: usize) -> Range<usize> {
        let end = self.ends.get(owner).copied().unwrap_or(0);
        let before = owner.checked_sub(1).and_then(|owner| self.ends.get(owner));
        before.copied().unwrap_or(0).min(end)..end
    }

    /// Blocks from the last of which on there are none.
    pub fn blocks(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_block_finds_its_own(owners in proptest::collection::vec(0u32..6, 0..60)) {
            let ghost = |(page, &owner)| Ghost { page, owner, at: 1000 - page };
            let ghosts: Vec<Ghost> = (0..).zip(&owners).map(ghost).collect();
            let sorted = ByOwner::new(&ghosts);
            for owner in 0..8 {
                let expected: Vec<(u32, u32)> = ghosts
                    .iter()
                    .filter(|ghost| ghost.owner == owner)
                    .map(|ghost| (ghost.page, ghost.at))
                    .collect();
                let range = sorted.of(owner as usize);
                let pages = sorted.pages[range.clone()].iter().copied();
                let found: Vec<(u32, u32)> = pages.zip(sorted.ats[range].iter().copied()).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
