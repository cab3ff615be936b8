//! What is known: the domain, the pages fetched beside it, and the pages that these link to.

use std::collections::HashMap;

use crate::rows::{Row, Rows};
use crate::{Error, Result};

const NONE: u32 = u32::MAX;

/// The domain L, the pages fetched outside of it, and the frontier: F and Fout of the paper.
///
/// Memory and time are those of the rows added: no table has a place for each page of the web. A page that
/// is fetched is a *member*; the first [`domain`](Known::domain) members are the domain.
#[derive(Debug, Clone, Default)]
pub struct Known {
    domain: usize,
    /// Slots of pages, in order of becoming known.
    slots: HashMap<u32, u32>,
    /// The page of each slot.
    pages: Vec<u32>,
    /// The member of each slot, or `NONE`.
    members: Vec<u32>,
    /// The slot of each member.
    fetched: Vec<u32>,
    /// Of each slot: it is known not to be there, and is no candidate.
    gone: Vec<bool>,
    /// Row of member `i`: `targets[ends[i - 1]..ends[i]]`, as slots.
    ends: Vec<usize>,
    targets: Vec<u32>,
}

impl Known {
    /// The pages of `domain`, which is sorted, with their rows; then, with `outside`, all other pages that have a
    /// row, in the order of the rows.
    ///
    /// # Errors
    /// Those of the sweep; [`Error::Unsupported`] if no page of the domain has a row, or if links have weights.
    pub fn of_rows(rows: &dyn Rows, domain: &[u32], outside: bool) -> Result<Known> {
        let mut known = Known::default();
        let is_local = |page: u32| domain.binary_search(&page).is_ok();
        rows.sweep(&mut |row| match is_local(row.page) {
            true => known.row(row),
            false => Ok(()),
        })?;
        known.close_domain()?;
        if outside {
            rows.sweep(&mut |row| match is_local(row.page) {
                true => Ok(()),
                false => known.row(row),
            })?;
        }
        Ok(known)
    }

    fn row(&mut self, row: Row<'_>) -> Result<()> {
        if row.gone {
            return self.lost(row.page);
        }
        let mut weights = row.weights.iter().copied().filter(|&weight| weight > 0);
        let first = weights.next();
        if weights.any(|weight| Some(weight) != first) {
            return Err(Error::Unsupported(format!(
                "links of page {} weigh differently: ranks of a local domain are computed for links that are alike",
                row.page
            )));
        }
        let is_link = |at: usize| row.weights.get(at).is_none_or(|&weight| weight > 0);
        let targets = row.targets.iter().enumerate();
        let targets = targets
            .filter(|&(at, _)| is_link(at))
            .map(|(_, &page)| page);
        self.fetch(row.page, targets)
    }

    /// Ends the domain: what was fetched so far is local, what comes is outside.
    ///
    /// # Errors
    /// [`Error::Missing`]: nothing was fetched.
    pub fn close_domain(&mut self) -> Result<()> {
        if self.fetched.is_empty() {
            return Err(Error::Missing(
                "the domain has no page that was fetched: ranks need the links of its pages; crawl it \
                 first, or see whether its rules fit the pages' names"
                    .into(),
            ));
        }
        self.domain = self.fetched.len();
        Ok(())
    }

    /// Adds a page that was fetched, with its links; those to itself and repeats are dropped. One fetched
    /// before is left as it was.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: more than 2^32 - 2 pages.
    pub fn fetch(&mut self, page: u32, targets: impl IntoIterator<Item = u32>) -> Result<()> {
        let slot = self.slot(page)?;
        if self.members[slot as usize] != NONE {
            return Ok(());
        }
        let start = self.targets.len();
        for target in targets {
            if target != page {
                let target = self.slot(target)?;
                self.targets.push(target);
            }
        }
        self.targets[start..].sort_unstable();
        let mut kept = start;
        for at in start..self.targets.len() {
            if at == start || self.targets[at] != self.targets[kept - 1] {
                self.targets[kept] = self.targets[at];
                kept += 1;
            }
        }
        self.targets.truncate(kept);
        self.members[slot as usize] = self.fetched.len() as u32;
        self.fetched.push(slot);
        self.ends.push(kept);
        Ok(())
    }

    /// A page that was asked for and is not there: it is not asked for again, and is no page of the web.
    ///
    /// # Errors
    /// As [`Known::fetch`].
    pub fn lost(&mut self, page: u32) -> Result<()> {
        let slot = self.slot(page)?;
        self.gone[slot as usize] = true;
        Ok(())
    }

    fn slot(&mut self, page: u32) -> Result<u32> {
        if let Some(&slot) = self.slots.get(&page) {
            return Ok(slot);
        }
        let slot = self.pages.len() as u32;
        if slot >= NONE - 1 {
            return Err(Error::Unsupported(format!(
                "more than {} pages are known: a local domain has fewer",
                NONE - 1
            )));
        }
        self.slots.insert(page, slot);
        self.pages.push(page);
        self.members.push(NONE);
        self.gone.push(false);
        Ok(slot)
    }

    /// Pages of the domain.
    pub fn domain(&self) -> usize {
        self.domain
    }

    /// Pages fetched: those of the domain, and outside.
    pub fn fetched(&self) -> usize {
        self.fetched.len()
    }

    /// Pages known.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Links of the pages fetched.
    pub fn links(&self) -> usize {
        self.targets.len()
    }

    /// Whether a page was fetched.
    pub fn is_fetched(&self, page: u32) -> bool {
        let slot = self.slots.get(&page);
        slot.is_some_and(|&slot| self.members[slot as usize] != NONE)
    }

    /// The page of a member.
    pub fn page(&self, member: usize) -> u32 {
        self.pages[self.fetched[member] as usize]
    }

    /// The links as they are now.
    pub fn matrix(&self) -> Matrix {
        self.matrix_of(self.fetched.len())
    }

    /// The links as they were when `members` pages were fetched. At least those of the domain.
    pub fn matrix_of(&self, members: usize) -> Matrix {
        let members = members.clamp(self.domain, self.fetched.len());
        let inside = |slot: u32| (self.members[slot as usize] as usize) < members;
        let mut numbers = vec![NONE; self.pages.len()];
        let mut matrix = Matrix {
            domain: self.domain,
            inside: Lists::default(),
            beyond: Lists::default(),
            sources: Lists::default(),
            frontier: Vec::new(),
        };
        let mut start = 0;
        for &end in &self.ends[..members] {
            for &slot in &self.targets[start..end] {
                if inside(slot) {
                    matrix.inside.items.push(self.members[slot as usize]);
                } else if !self.gone[slot as usize] {
                    let number = &mut numbers[slot as usize];
                    if *number == NONE {
                        *number = matrix.frontier.len() as u32;
                        matrix.frontier.push(self.pages[slot as usize]);
                    }
                    matrix.beyond.items.push(*number);
                }
            }
            matrix.inside.end();
            matrix.beyond.end();
            start = end;
        }
        matrix.sources = matrix.beyond.transposed(matrix.frontier.len());
        matrix
    }
}

/// The links of the members, among each other and to the frontier: sparse, by member.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Members 0 to `domain - 1` are the domain.
    pub domain: usize,
    /// Of each member: the members that it links to.
    pub inside: Lists,
    /// Of each member: the places in `frontier` that it links to.
    pub beyond: Lists,
    /// Of each place in `frontier`: the members that link to it, ascending.
    pub sources: Lists,
    /// Pages that are known and were not fetched, in order of becoming known.
    pub frontier: Vec<u32>,
}

impl Matrix {
    /// Members: l of the paper.
    pub fn len(&self) -> usize {
        self.inside.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Links of a member, also to the frontier.
    pub fn out(&self, member: usize) -> usize {
        self.inside.get(member).len() + self.beyond.get(member).len()
    }
}

/// Lists of numbers, one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists {
    ends: Vec<usize>,
    items: Vec<u32>,
}

impl Lists {
    /// How many lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One of them.
    pub fn get(&self, at: usize) -> &[u32] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.items[start..self.ends[at]]
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// The items of all lists.
    pub fn items(&self) -> &[u32] {
        &self.items
    }

    fn end(&mut self) {
        self.ends.push(self.items.len());
    }

    /// For each of `count` items, the lists that hold it.
    fn transposed(&self, count: usize) -> Lists {
        let mut ends = vec![0; count];
        for &item in &self.items {
            ends[item as usize] += 1;
        }
        // Each list's start; while lists fill, it becomes their end.
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut items = vec![0; self.items.len()];
        for (list, members) in (0..).zip(self.iter()) {
            for &item in members {
                let at = &mut ends[item as usize];
                items[*at] = list;
                *at += 1;
            }
        }
        Lists { ends, items }
    }
}
