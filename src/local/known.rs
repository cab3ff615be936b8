//! What is known: the domain, the pages fetched beside it, and the pages that these link to.

use std::collections::HashMap;

use crate::rows::{Row, Rows};
use crate::{Error, Result};

const NONE: u32 = u32::MAX;

/// The domain L, the pages fetched outside of it, and the frontier: F and Fout of the paper.
///
/// Memory and time are those of the rows added: no table has a place for each page of the web. A page that
/// is fetched is a *member*; the first [`domain`](Known::domain) members are the domain. So is, at the end of a
/// [`Matrix`], a page that could not be fetched.
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
    /// Of each slot: it could not be fetched, and is no candidate.
    lost: Vec<bool>,
    /// The slots of those, in the order of their failures. Some may have been fetched later.
    failed: Vec<u32>,
    /// Members that are gone.
    gone: usize,
    /// Row of member `i`: `targets[ends[i - 1]..ends[i]]`, as slots.
    ends: Vec<usize>,
    targets: Vec<u32>,
    /// What each of `targets` weighs, a row's links 1 on average; empty: 1 each.
    weights: Vec<f64>,
    /// The row being added.
    row: Vec<(u32, u64)>,
}

impl Known {
    /// The pages of `domain`, which is sorted, with their rows; then, with `outside`, all other pages that have a
    /// row, in the order of the rows. Pages of the domain that are gone are not ranked with it, see [`Known::gone`].
    ///
    /// # Errors
    /// Those of the sweep; [`Error::Missing`] if no page of the domain has a row.
    pub fn of_rows(rows: &dyn Rows, domain: &[u32], outside: bool) -> Result<Known> {
        let mut known = Known::default();
        let is_local = |page: u32| domain.binary_search(&page).is_ok();
        let mut gone = Vec::new();
        rows.sweep(&mut |row| {
            if !is_local(row.page) {
                return Ok(());
            }
            if row.gone {
                gone.push(row.page);
                return Ok(());
            }
            Ok(known.row(row)?)
        })?;
        known.close_domain()?;
        gone.into_iter().try_for_each(|page| known.gone(page))?;
        if outside {
            rows.sweep(&mut |row| {
                if is_local(row.page) {
                    Ok(())
                } else {
                    Ok(known.row(row)?)
                }
            })?;
        }
        Ok(known)
    }

    fn row(&mut self, row: Row<'_>) -> Result<()> {
        if row.gone {
            return self.gone(row.page);
        }
        let weight = |at: usize| row.weights.get(at).copied().unwrap_or(1);
        let targets = row.targets.iter().enumerate();
        self.fetch_weighted(row.page, targets.map(|(at, &page)| (page, weight(at))))
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
        self.fetch_weighted(page, targets.into_iter().map(|target| (target, 1)))
    }

    /// The same with what each link weighs: of repeats the largest counts, and a target of weight 0 is no link.
    /// Only a row's own links are weighed against each other: they weigh 1 on average.
    ///
    /// # Errors
    /// As [`Known::fetch`].
    pub fn fetch_weighted(
        &mut self,
        page: u32,
        targets: impl IntoIterator<Item = (u32, u64)>,
    ) -> Result<()> {
        let slot = self.slot(page)?;
        if self.members[slot as usize] != NONE {
            return Ok(());
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        for (target, weight) in targets {
            if target != page && weight > 0 {
                row.push((self.slot(target)?, weight));
            }
        }
        row.sort_unstable_by_key(|&(target, weight)| (target, std::cmp::Reverse(weight)));
        row.dedup_by_key(|link| link.0);
        let start = self.targets.len();
        self.targets.extend(row.iter().map(|link| link.0));
        let differ = row.windows(2).any(|pair| pair[0].1 != pair[1].1);
        if differ && self.weights.is_empty() {
            self.weights.resize(start, 1.0);
        }
        if differ {
            let sum: f64 = row.iter().map(|link| link.1 as f64).sum();
            let mean = sum / row.len() as f64;
            self.weights
                .extend(row.iter().map(|link| link.1 as f64 / mean));
        } else if !self.weights.is_empty() {
            self.weights.resize(self.targets.len(), 1.0);
        }
        self.row = row;
        self.members[slot as usize] = self.fetched.len() as u32;
        self.fetched.push(slot);
        self.ends.push(self.targets.len());
        Ok(())
    }

    /// A page that was found gone (404, 410): a page of the web that has no links, as in all rankings of this
    /// library. What flows to it is known, so it is a member, outside of the domain.
    ///
    /// # Errors
    /// As [`Known::fetch`].
    pub fn gone(&mut self, page: u32) -> Result<()> {
        if !self.is_fetched(page) {
            self.fetch(page, [])?;
            self.gone += 1;
        }
        Ok(())
    }

    /// Whether the page is one of the domain, or one that links lead to.
    pub fn has(&self, page: u32) -> bool {
        self.slots.contains_key(&page)
    }

    /// A page that was asked for and could not be fetched: it is not asked for again. Until it is fetched it counts as a
    /// page without links, as in all rankings of this library: no more will be known of it.
    ///
    /// # Errors
    /// As [`Known::fetch`].
    pub fn lost(&mut self, page: u32) -> Result<()> {
        let slot = self.slot(page)?;
        if !std::mem::replace(&mut self.lost[slot as usize], true) {
            self.failed.push(slot);
        }
        Ok(())
    }

    /// Pages that could not be fetched.
    pub fn failed(&self) -> usize {
        self.failed_slots().count()
    }

    fn failed_slots(&self) -> impl Iterator<Item = u32> + '_ {
        let failed = self.failed.iter().copied();
        failed.filter(|&slot| self.members[slot as usize] == NONE)
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
        self.lost.push(false);
        Ok(slot)
    }

    /// Pages of the domain.
    pub fn domain(&self) -> usize {
        self.domain
    }

    /// Pages fetched: those of the domain, and outside; those found gone, too.
    pub fn fetched(&self) -> usize {
        self.fetched.len()
    }

    /// Pages found gone.
    pub fn found_gone(&self) -> usize {
        self.gone
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

    /// The links as they were when `members` pages were fetched, at least those of the domain. Pages that could not be
    /// fetched come after them, without links.
    pub fn matrix_of(&self, members: usize) -> Matrix {
        let members = members.clamp(self.domain, self.fetched.len());
        let mut failed = HashMap::new();
        for slot in self.failed_slots() {
            failed.insert(slot, (members + failed.len()) as u32);
        }
        let inside = |slot: u32| {
            let member = self.members[slot as usize];
            let fetched = (member as usize) < members;
            if fetched {
                Some(member)
            } else {
                failed.get(&slot).copied()
            }
        };
        let mut numbers = vec![NONE; self.pages.len()];
        let mut matrix = Matrix {
            domain: self.domain,
            failed: failed.len(),
            inside: Lists::default(),
            beyond: Lists::default(),
            out: Vec::with_capacity(members + failed.len()),
            sources: Lists::default(),
            frontier: Vec::new(),
        };
        let weigh = |at: usize, into: &mut Lists| {
            if let Some(&weight) = self.weights.get(at) {
                into.weights.push(weight);
            }
        };
        let mut start = 0;
        for &end in &self.ends[..members] {
            for (at, &slot) in (start..end).zip(&self.targets[start..end]) {
                if let Some(member) = inside(slot) {
                    matrix.inside.items.push(member);
                    weigh(at, &mut matrix.inside);
                    continue;
                }
                let number = &mut numbers[slot as usize];
                if *number == NONE {
                    *number = matrix.frontier.len() as u32;
                    matrix.frontier.push(self.pages[slot as usize]);
                }
                matrix.beyond.items.push(*number);
                weigh(at, &mut matrix.beyond);
            }
            // A row's links weigh 1 on average.
            matrix.end_row((end - start) as f64);
            start = end;
        }
        (0..failed.len()).for_each(|_| matrix.end_row(0.0));
        matrix.sources = matrix.beyond.transposed(matrix.frontier.len());
        matrix
    }
}

/// The links of the members, among each other and to the frontier: sparse, by member.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Members 0 to `domain - 1` are the domain.
    pub domain: usize,
    /// So many members, the last ones, could not be fetched: they have no links.
    pub failed: usize,
    /// Of each member: the members that it links to.
    pub inside: Lists,
    /// Of each member: the places in `frontier` that it links to.
    pub beyond: Lists,
    /// Of each member: what all of its links weigh; without weights, how many there are.
    out: Vec<f64>,
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

    /// A member is done, whose links weigh so much.
    fn end_row(&mut self, out: f64) {
        self.inside.end();
        self.beyond.end();
        self.out.push(out);
    }

    /// What the links of a member weigh, also those to pages not fetched; without weights, how many there are.
    pub fn out(&self, member: usize) -> f64 {
        self.out[member]
    }

    /// What those of them weigh that lead to pages not fetched.
    pub fn leaks(&self, member: usize) -> f64 {
        (self.out[member] - self.inside.weight(member)).max(0.0)
    }
}

/// Lists of numbers, one after the other, each with a weight.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists {
    ends: Vec<usize>,
    items: Vec<u32>,
    /// By item; empty: 1 each.
    weights: Vec<f64>,
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
        &self.items[self.range(at)]
    }

    /// Calls `visit` with the items of a list and their weights.
    pub fn each(&self, at: usize, mut visit: impl FnMut(u32, f64)) {
        let items = self.get(at);
        if self.weights.is_empty() {
            items.iter().for_each(|&item| visit(item, 1.0))
        } else {
            items
                .iter()
                .zip(&self.weights[self.range(at)])
                .for_each(|(&item, &weight)| visit(item, weight))
        }
    }

    /// The sum of a list's weights.
    pub fn weight(&self, at: usize) -> f64 {
        if self.weights.is_empty() {
            self.get(at).len() as f64
        } else {
            self.weights[self.range(at)].iter().sum()
        }
    }

    /// Whether items weigh differently.
    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    fn range(&self, at: usize) -> std::ops::Range<usize> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        start..self.ends[at]
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
        let mut weights = vec![0.0; self.weights.len()];
        for list in 0..self.len() {
            self.each(list, |item, weight| {
                let at = &mut ends[item as usize];
                items[*at] = list as u32;
                if let Some(place) = weights.get_mut(*at) {
                    *place = weight;
                }
                *at += 1;
            });
        }
        Lists {
            ends,
            items,
            weights,
        }
    }
}
