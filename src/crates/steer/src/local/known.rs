//! Known graph: the domain, the fetched pages outside it, and all pages that they link to; and an upper bound on the
//! memory of a search.

use std::collections::HashMap;

use super::Policy;
use crate::graph::{LinkRows, Links};
use crate::rows::{Row, Rows};
use crate::{Error, Result};

const NONE: u32 = u32::MAX;

/// Domain L, the pages fetched outside of it, and the frontier: F and Fout of the paper.
///
/// Memory and time depend on the rows added: no table has an entry for each page of the web. A fetched page is a
/// *member*; the first [`domain`](LocalGraph::domain) members are the domain. At the end of a [`Matrix`], pages that
/// could not be fetched are members, too.
#[derive(Debug, Clone, Default)]
pub struct LocalGraph {
    domain: usize,
    /// Slots of pages, in the order in which they became known.
    slots: HashMap<u32, u32>,
    /// Page of each slot.
    pages: Vec<u32>,
    /// Member of each slot, or `NONE`.
    members: Vec<u32>,
    /// Slot of each member.
    fetched: Vec<u32>,
    /// For each slot: true if it could not be fetched, so that it is no candidate.
    lost: Vec<bool>,
    /// Slots of pages that could not be fetched, in the order of their failures. Some may have been fetched later.
    failed: Vec<u32>,
    gone: usize,
    /// Row of each member, as slots; a row's links weigh 1 on average.
    rows: LinkRows<f64>,
}

impl LocalGraph {
    /// Returns the pages of `domain`, which must be sorted, with their rows; all other pages that have a row follow, in
    /// the order of the rows. Pages of the domain that are gone are not ranked with it
    /// ([`LocalGraph::gone`]). Fails with [`Error::Missing`] if no page of the domain has a row.
    pub fn of_rows(rows: &dyn Rows, domain: &[u32]) -> Result<LocalGraph> {
        let mut known = LocalGraph::default();
        known.slots.reserve(rows.pages() as usize);
        let is_local = |page: u32| domain.binary_search(&page).is_ok();
        let mut gone = Vec::new();
        rows.sweep(&mut |row| {
            match is_local(row.page) {
                true if row.gone => gone.push(row.page),
                true => known.row(row)?,
                false => {}
            }
            Ok(())
        })?;
        known.close_domain()?;
        gone.into_iter().try_for_each(|page| known.gone(page))?;
        rows.sweep(&mut |row| {
            if !is_local(row.page) {
                known.row(row)?;
            }
            Ok(())
        })?;
        Ok(known)
    }

    fn row(&mut self, row: Row<'_>) -> Result<()> {
        if row.gone {
            return self.gone(row.page);
        }
        self.fetch_weighted(row.page, row.links.iter())
    }

    /// Closes the domain: pages fetched so far are local, later ones outside. Fails with [`Error::Missing`] if there
    /// are none.
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

    /// Adds a fetched page with its links, without self-links and repeats. A page fetched before stays unchanged. Fails
    /// with [`Error::Unsupported`] beyond 2^32 - 2 pages.
    pub fn fetch(&mut self, page: u32, targets: impl IntoIterator<Item = u32>) -> Result<()> {
        self.fetch_weighted(page, targets.into_iter().map(|target| (target, 1)))
    }

    /// Adds a fetched page with weighted links: of repeats the largest weight counts, and a target of weight 0 is no
    /// link. Weights are relative to the row's others: they are scaled to 1 on average.
    pub fn fetch_weighted(
        &mut self,
        page: u32,
        targets: impl IntoIterator<Item = (u32, u64)>,
    ) -> Result<()> {
        let slot = self.slot(page)?;
        if self.members[slot as usize] != NONE {
            return Ok(());
        }
        let mut row: Vec<(u32, u64)> = Vec::new();
        for (target, weight) in targets {
            if target != page && weight > 0 {
                row.push((self.slot(target)?, weight));
            }
        }
        row.sort_unstable_by_key(|&(target, weight)| (target, std::cmp::Reverse(weight)));
        row.dedup_by_key(|link| link.0);
        let targets: Vec<u32> = row.iter().map(|link| link.0).collect();
        let mut weights: Vec<f64> = row.iter().map(|link| link.1 as f64).collect();
        let mean = weights.iter().sum::<f64>() / row.len() as f64;
        weights.iter_mut().for_each(|weight| *weight /= mean);
        if row.windows(2).all(|pair| pair[0].1 == pair[1].1) {
            weights.clear();
        }
        self.rows.push(Links {
            targets: &targets,
            weights: &weights,
        });
        self.members[slot as usize] = self.fetched.len() as u32;
        self.fetched.push(slot);
        Ok(())
    }

    /// Adds a page that was found gone (404, 410): a page without links, as in all rankings of this library. It is a
    /// member, outside of the domain, as what flows to it is known.
    pub fn gone(&mut self, page: u32) -> Result<()> {
        if !self.is_fetched(page) {
            self.fetch(page, [])?;
            self.gone += 1;
        }
        Ok(())
    }

    /// Returns whether the page is in the domain, or links lead to it.
    pub fn has(&self, page: u32) -> bool {
        self.slots.contains_key(&page)
    }

    /// Marks a requested page as one that could not be fetched, so that it is not requested again. Until it is fetched
    /// it counts as a page without links, as in all rankings of this library.
    pub fn lost(&mut self, page: u32) -> Result<()> {
        let slot = self.slot(page)?;
        if !std::mem::replace(&mut self.lost[slot as usize], true) {
            self.failed.push(slot);
        }
        Ok(())
    }

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

    pub fn domain(&self) -> usize {
        self.domain
    }

    /// Returns the number of fetched pages, in the domain and outside, including those found gone.
    pub fn fetched(&self) -> usize {
        self.fetched.len()
    }

    pub fn found_gone(&self) -> usize {
        self.gone
    }

    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    pub fn links(&self) -> usize {
        self.rows.links()
    }

    pub fn is_fetched(&self, page: u32) -> bool {
        let slot = self.slots.get(&page);
        slot.is_some_and(|&slot| self.members[slot as usize] != NONE)
    }

    pub fn page(&self, member: usize) -> u32 {
        self.pages[self.fetched[member] as usize]
    }

    pub fn matrix(&self) -> Matrix {
        self.matrix_of(self.fetched.len())
    }

    /// Returns the links as of the time when `members` pages were fetched, at least those of the domain. Pages that
    /// could not be fetched follow, without links.
    pub fn matrix_of(&self, members: usize) -> Matrix {
        let members = members.clamp(self.domain, self.fetched.len());
        let mut failed = HashMap::new();
        for slot in self.failed_slots() {
            failed.insert(slot, (members + failed.len()) as u32);
        }
        let inside = |slot: u32| match self.members[slot as usize] {
            member if (member as usize) < members => Some(member),
            _ => failed.get(&slot).copied(),
        };
        let mut numbers = vec![NONE; self.pages.len()];
        let mut matrix = Matrix {
            domain: self.domain,
            failed: failed.len(),
            out: Vec::with_capacity(members + failed.len()),
            ..Matrix::default()
        };
        let is_weighted = self.rows.is_weighted();
        for row in self.rows.all().take(members) {
            for (slot, weight) in row.iter() {
                let weight = is_weighted.then_some(weight);
                if let Some(member) = inside(slot) {
                    matrix.inside.link(member, weight);
                    continue;
                }
                let number = &mut numbers[slot as usize];
                if *number == NONE {
                    *number = matrix.frontier.len() as u32;
                    matrix.frontier.push(self.pages[slot as usize]);
                }
                matrix.beyond.link(*number, weight);
            }
            // A row's links weigh 1 on average.
            matrix.end_row(row.targets.len() as f64);
        }
        (0..failed.len()).for_each(|_| matrix.end_row(0.0));
        matrix.sources = matrix.beyond.transposed(matrix.frontier.len());
        matrix
    }
}

/// Links of the members, among each other and to the frontier: sparse, by member.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    /// Number of members in the domain, which come first.
    pub domain: usize,
    /// Number of members that could not be fetched, which come last and have no links.
    pub failed: usize,
    /// For each member: the members that it links to.
    pub inside: LinkRows<f64>,
    /// For each member: the positions in `frontier` that it links to.
    pub beyond: LinkRows<f64>,
    /// For each member: the weight of all its links; without weights, their number.
    out: Vec<f64>,
    /// For each position in `frontier`: the members that link to it, ascending.
    pub sources: LinkRows<f64>,
    /// Pages that are known and not fetched, in the order in which they became known.
    pub frontier: Vec<u32>,
}

impl Matrix {
    /// Returns the number of members: l of the paper.
    pub fn len(&self) -> usize {
        self.inside.nodes()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn end_row(&mut self, out: f64) {
        self.inside.end();
        self.beyond.end();
        self.out.push(out);
    }

    /// Returns the weight of a member's links, including those to unfetched pages; without weights, their number.
    pub fn out(&self, member: usize) -> f64 {
        self.out[member]
    }

    /// Returns the weight of a member's links to unfetched pages.
    pub fn leaks(&self, member: usize) -> f64 {
        (self.out[member] - self.inside.at(member).weight()).max(0.0)
    }

    pub fn into_domain(&self, member: usize) -> f64 {
        let mut into = 0.0;
        self.inside.at(member).each(|target, weight| {
            if (target as usize) < self.domain {
                into += weight;
            }
        });
        into
    }

    /// Returns the sum of `part` over the members that link to the page at `place` of the frontier, and the weights of
    /// the links.
    pub(super) fn flow(&self, place: usize, part: impl Fn(usize, f64) -> f64) -> f64 {
        let mut flow = 0.0;
        let sources = self.sources.at(place);
        sources.each(|k, weight| flow += part(k as usize, weight));
        flow
    }

    /// Returns [`Matrix::flow`] for each page of the frontier.
    pub(super) fn flows(&self, part: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        let places = 0..self.sources.nodes();
        places.map(|place| self.flow(place, &part)).collect()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub pages: u64,
    /// Number of pages that have a row.
    pub fetched: u64,
    pub links: u64,
    pub is_weighted: bool,
}

/// Bytes per page: its entry in the hash table of slots, which may be little more than half full, and in the arrays by
/// slot.
const PAGE: u64 = 36;
/// Bytes per unfetched page: its entry in the frontier, the start of its sources, its score and its position by score.
const FRONTIER: u64 = 36;
/// Maximum bytes of [`Policy::Complement`] per unfetched page.
const COMPLEMENT: u64 = 104;
/// Bytes per fetched page: its rows in the known graph and two matrices, its ranks (current, in a step and of an
/// earlier stage), its visits, and what a policy keeps of it.
const FETCHED: u64 = 200;
/// Bytes per link: in the known graph, in the matrix, as a source, and in the matrix of an earlier stage.
const LINK: u64 = 24;
/// Bytes per link for its weights in these.
const WEIGHT: u64 = 48;

impl Size {
    pub fn of_rows(rows: &dyn Rows) -> Result<Size> {
        let mut size = Size {
            pages: rows.pages(),
            links: rows.links(),
            ..Size::default()
        };
        rows.sweep(&mut |row| {
            size.fetched += 1;
            size.is_weighted |= !row.weights.is_empty();
            Ok(())
        })?;
        Ok(size)
    }

    /// Returns the maximum memory of a [`LocalSearch`](super::LocalSearch) with this policy and its estimate, in bytes.
    pub fn search_bytes(&self, policy: Policy) -> u64 {
        let of_frontier = FRONTIER + u64::from(policy == Policy::Complement) * COMPLEMENT;
        let link = LINK + u64::from(self.is_weighted) * WEIGHT;
        let frontier = self.pages.saturating_sub(self.fetched);
        self.pages * PAGE + frontier * of_frontier + self.fetched * FETCHED + self.links * link
    }
}
