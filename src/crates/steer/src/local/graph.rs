//! Known graph: the domain, the fetched pages outside it, and all pages that they link to; and an upper bound on the
//! memory of a search.

use super::Policy;
use crate::graph::{LinkRows, Links};
use crate::rows::{Row, Rows};
use crate::{Error, Result};

/// States of pages that are not members, which have their number instead: no link leads to the page, some do, and it
/// could not be fetched.
const UNKNOWN: u32 = u32::MAX;
const FOUND: u32 = u32::MAX - 1;
const LOST: u32 = u32::MAX - 2;

/// Domain L, the pages fetched outside of it, and the frontier: F and Fout of the paper.
///
/// A fetched page is a *member*; the first members are the domain. At the end of a [`Matrix`], pages that could not be
/// fetched are members, too.
#[derive(Debug, Clone, Default)]
pub struct LocalGraph {
    pub domain: usize,
    /// Page of each member, those found gone included.
    pub fetched: Vec<u32>,
    pub gone: usize,
    /// Member of each page, or its state.
    states: Vec<u32>,
    /// Pages that could not be fetched, in the order of their failures. Some may have been fetched later.
    lost: Vec<u32>,
    /// Row of each member; a row's links weigh 1 on average.
    rows: LinkRows<f64>,
}

impl LocalGraph {
    /// Returns the pages of `domain`, which must be sorted, except those that are gone, with their rows; all other pages
    /// that have a row follow. Fails with [`Error::Missing`] if no page of the domain has a row.
    pub fn of_rows(rows: &dyn Rows, domain: &[u32]) -> Result<LocalGraph> {
        let mut known = LocalGraph::default();
        known.states.reserve(rows.pages() as usize);
        let is_local = |page: u32| domain.binary_search(&page).is_ok();
        let mut gone = Vec::new();
        rows.sweep(&mut |row| {
            match is_local(row.page) {
                true if row.gone => gone.push(row.page),
                true => known.row(row),
                false => {}
            }
            Ok(())
        })?;
        known.close_domain()?;
        gone.into_iter().for_each(|page| known.gone(page));
        rows.sweep(&mut |row| {
            if !is_local(row.page) {
                known.row(row);
            }
            Ok(())
        })?;
        Ok(known)
    }

    fn row(&mut self, row: Row<'_>) {
        if row.gone {
            self.gone(row.page);
        } else {
            self.fetch_weighted(row.page, row.links.iter());
        }
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

    /// Adds a fetched page with its links, without self-links and repeats. A page fetched before stays unchanged.
    pub fn fetch(&mut self, page: u32, targets: impl IntoIterator<Item = u32>) {
        self.fetch_weighted(page, targets.into_iter().map(|target| (target, 1)));
    }

    /// Adds a fetched page with weighted links: of repeats the largest weight counts, and a target of weight 0 is no
    /// link. Weights are relative to the row's others: they are scaled to 1 on average.
    pub fn fetch_weighted(&mut self, page: u32, targets: impl IntoIterator<Item = (u32, u64)>) {
        if self.is_fetched(page) {
            return;
        }
        let is_link = |&(target, weight): &(u32, u64)| target != page && weight > 0;
        let mut row: Vec<(u32, u64)> = targets.into_iter().filter(is_link).collect();
        row.sort_unstable_by_key(|&(target, weight)| (target, std::cmp::Reverse(weight)));
        row.dedup_by_key(|link| link.0);
        let targets: Vec<u32> = row.iter().map(|link| link.0).collect();
        for &target in &targets {
            let state = self.state(target);
            *state = (*state).min(FOUND);
        }
        let mut weights: Vec<f64> = row.iter().map(|link| link.1 as f64).collect();
        let mean = weights.iter().sum::<f64>() / row.len() as f64;
        weights.iter_mut().for_each(|weight| *weight /= mean);
        if row.windows(2).all(|pair| pair[0].1 == pair[1].1) {
            weights.clear();
        }
        self.rows.push(Links::new(&targets, &weights));
        *self.state(page) = self.fetched.len() as u32;
        self.fetched.push(page);
    }

    /// Adds a page that was found gone (404, 410): a page without links, as in all rankings of this library. It is a
    /// member, outside of the domain, as what flows to it is known.
    pub fn gone(&mut self, page: u32) {
        if !self.is_fetched(page) {
            self.fetch(page, []);
            self.gone += 1;
        }
    }

    /// Marks a page as one that could not be fetched, so that it is not requested again. Until it is fetched it counts
    /// as a page without links, as in all rankings of this library.
    pub fn lost(&mut self, page: u32) {
        let state = self.state(page);
        if *state > LOST {
            *state = LOST;
            self.lost.push(page);
        }
    }

    /// Returns the number of members that were fetched outside of the domain, and are not gone.
    pub fn outside(&self) -> usize {
        self.fetched.len() - self.domain - self.gone
    }

    fn state(&mut self, page: u32) -> &mut u32 {
        let known = self.states.len().max(page as usize + 1);
        self.states.resize(known, UNKNOWN);
        &mut self.states[page as usize]
    }

    /// Returns whether the page is in the domain, or links lead to it.
    pub fn has(&self, page: u32) -> bool {
        let state = self.states.get(page as usize);
        state.is_some_and(|&state| state != UNKNOWN)
    }

    pub fn is_fetched(&self, page: u32) -> bool {
        let state = self.states.get(page as usize);
        state.is_some_and(|&state| state < LOST)
    }

    pub fn links(&self) -> usize {
        self.rows.links()
    }

    pub fn matrix(&self) -> Matrix {
        self.matrix_of(self.fetched.len())
    }

    /// Returns the links as of the time when `members` pages were fetched, at least those of the domain. Pages that
    /// could not be fetched follow, without links.
    pub fn matrix_of(&self, members: usize) -> Matrix {
        let members = members.clamp(self.domain, self.fetched.len());
        // Numbers of lost pages as members, and of others in the frontier.
        let mut numbers = vec![UNKNOWN; self.states.len()];
        let mut all = members;
        for &page in &self.lost {
            if self.states[page as usize] == LOST {
                numbers[page as usize] = all as u32;
                all += 1;
            }
        }
        let mut matrix = Matrix {
            domain: self.domain,
            failed: all - members,
            out: Vec::with_capacity(all),
            ..Matrix::default()
        };
        let mut beyond = LinkRows::default();
        let is_weighted = self.rows.is_weighted();
        for row in self.rows.all().take(members) {
            for (page, weight) in row.iter() {
                let weight = is_weighted.then_some(weight);
                let number = &mut numbers[page as usize];
                match self.states[page as usize] {
                    member if (member as usize) < members => matrix.inside.link(member, weight),
                    LOST => matrix.inside.link(*number, weight),
                    _ => {
                        if *number == UNKNOWN {
                            *number = matrix.frontier.len() as u32;
                            matrix.frontier.push(page);
                        }
                        beyond.link(*number, weight);
                    }
                }
            }
            matrix.inside.end();
            beyond.end();
            // A row's links weigh 1 on average.
            matrix.out.push(row.targets.len() as f64);
        }
        (members..all).for_each(|_| matrix.inside.end());
        matrix.out.resize(all, 0.0);
        matrix.sources = beyond.transposed(matrix.frontier.len());
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
    /// For each member: the weight of all its links, also to unfetched pages; without weights, their number.
    pub out: Vec<f64>,
    /// For each position in `frontier`: the members that link to it, ascending.
    pub sources: LinkRows<f64>,
    /// Pages that are known and not fetched, in the order in which they became known.
    pub frontier: Vec<u32>,
}

impl Matrix {
    pub fn members(&self) -> usize {
        self.out.len()
    }

    /// Returns the weight of a member's links to unfetched pages.
    pub fn leaks(&self, member: usize) -> f64 {
        (self.out[member] - self.inside.at(member).weight()).max(0.0)
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
        let places = 0..self.frontier.len();
        places.map(|place| self.flow(place, &part)).collect()
    }
}

/// Bytes per page: its state, and its number while a matrix is made.
const PAGE: u64 = 12;
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

/// Returns the maximum memory of a search with this policy and its estimate, in bytes, over rows of `fetched` pages.
pub fn search_bytes(rows: &dyn Rows, fetched: u64, is_weighted: bool, policy: Policy) -> u64 {
    let of_frontier = FRONTIER + u64::from(policy == Policy::Complement) * COMPLEMENT;
    let link = LINK + u64::from(is_weighted) * WEIGHT;
    let frontier = rows.pages().saturating_sub(fetched);
    rows.pages() * PAGE + frontier * of_frontier + fetched * FETCHED + rows.links() * link
}
