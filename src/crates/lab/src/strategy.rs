//! Choice of the next page to crawl (section 3.1 of the paper).
//!
//! Each strategy chooses among the pages that are known and were not found gone.

use std::fmt;
use std::str::FromStr;

use cashrank_graph::engine::Ledger;

use crate::random::Random;

/// Strategy of a simulated crawler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Any page, with equal probability.
    Random,
    /// The page with the largest claim: its cash plus what was recycled since it was crawled. Among equals, the first
    /// known.
    Greedy,
    /// All pages in the order in which they became known; then from the start.
    Cycle,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 3] = [Strategy::Random, Strategy::Greedy, Strategy::Cycle];

    pub(super) fn scheduler(self, random: Random) -> Box<dyn Scheduler> {
        match self {
            Strategy::Random => Box::new(Any {
                random,
                candidates: Vec::new(),
                drawn: 0,
            }),
            Strategy::Greedy => Box::new(Greedy::default()),
            Strategy::Cycle => Box::new(Cycle::default()),
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::Random => "random",
            Strategy::Greedy => "greedy",
            Strategy::Cycle => "cycle",
        })
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |strategy: &&Strategy| strategy.to_string() == text;
        let found = Strategy::ALL.iter().find(named).copied();
        found.ok_or_else(|| format!("unknown strategy {text:?}: random, greedy or cycle"))
    }
}

/// Scheduler of pages; it is informed of all events.
pub(super) trait Scheduler {
    /// Adds the next page, with its endowment. Pages come in order, from 0.
    fn known(&mut self, page: u32, ledger: &Ledger);
    /// Returns the next page to crawl; `None` if all are gone.
    fn next(&mut self) -> Option<u32>;
    /// Reports that the page chosen last was found gone: it must not be chosen again.
    fn gone(&mut self);
    /// Reports that the page chosen last was crawled, and paid `targets`, all of them known.
    fn crawled(&mut self, _ledger: &Ledger, _targets: &[u32]) {}
    /// Reports that a round ended, which may have recycled the cash of any pages.
    fn recycled(&mut self, _ledger: &Ledger) {}
}

struct Any {
    random: Random,
    candidates: Vec<u32>,
    /// Index of the page chosen last.
    drawn: usize,
}

impl Scheduler for Any {
    fn known(&mut self, page: u32, _ledger: &Ledger) {
        self.candidates.push(page);
    }

    fn next(&mut self) -> Option<u32> {
        if self.candidates.is_empty() {
            return None;
        }
        self.drawn = self.random.below(self.candidates.len());
        Some(self.candidates[self.drawn])
    }

    fn gone(&mut self) {
        self.candidates.swap_remove(self.drawn);
    }
}

#[derive(Default)]
struct Cycle {
    candidates: Vec<u32>,
    /// Index of the next page.
    next: usize,
}

impl Scheduler for Cycle {
    fn known(&mut self, page: u32, _ledger: &Ledger) {
        self.candidates.push(page);
    }

    fn next(&mut self) -> Option<u32> {
        if self.next >= self.candidates.len() {
            self.next = 0;
        }
        let page = *self.candidates.get(self.next)?;
        self.next += 1;
        Some(page)
    }

    fn gone(&mut self) {
        self.next -= 1;
        self.candidates.remove(self.next);
    }
}

/// A tournament: every inner node of a binary tree knows the best page under it, so that a change of one
/// page's cash is a walk towards the root that ends where it changes nothing.
///
/// Cash is cells + A, wrapping. Neither it nor A comes near 2^63 (A grows by less than 2^30 a turnover),
/// so the cells as signed numbers are cash - A: in the order of cash, which payments to all pages alike
/// don't change.
#[derive(Default)]
struct Greedy {
    /// Claim of each page, as a cell plus what was recycled; [`OUT`] for pages gone, and up to a power of two.
    claims: Vec<i64>,
    /// Amount recycled from each page since it was crawled.
    recycled: Vec<i64>,
    /// Best page under node `i`, whose children are `2i` and `2i + 1`; 1 is the root. Leaves are not stored: node
    /// `claims.len() + page` stands for a page.
    best: Vec<u32>,
    chosen: u32,
}

/// Less than any claim.
const OUT: i64 = i64::MIN;

impl Greedy {
    fn best_of(&self, node: usize) -> u32 {
        match node.checked_sub(self.claims.len()) {
            Some(page) => page as u32,
            None => self.best[node],
        }
    }

    fn play(&self, node: usize) -> u32 {
        let (left, right) = (self.best_of(2 * node), self.best_of(2 * node + 1));
        if self.claims[right as usize] > self.claims[left as usize] {
            right
        } else {
            left
        }
    }

    fn play_all(&mut self) {
        self.best.resize(self.claims.len(), 0);
        for node in (1..self.claims.len()).rev() {
            self.best[node] = self.play(node);
        }
    }

    fn set(&mut self, page: u32, claim: i64) {
        self.claims[page as usize] = claim;
        let mut node = (self.claims.len() + page as usize) / 2;
        while node > 0 {
            let best = self.play(node);
            if best == self.best[node] && best != page {
                break;
            }
            self.best[node] = best;
            node /= 2;
        }
    }

    /// Updates a page's claim from its cell, unless it is out.
    fn refresh(&mut self, page: u32, ledger: &Ledger) {
        if self.claims[page as usize] != OUT {
            let cell = ledger.cells()[page as usize] as i64;
            self.set(page, cell + self.recycled[page as usize]);
        }
    }
}

impl Scheduler for Greedy {
    fn known(&mut self, page: u32, ledger: &Ledger) {
        if page as usize >= self.claims.len() {
            let size = (page as usize + 1).next_power_of_two().max(2);
            self.claims.resize(size, OUT);
            self.recycled.resize(size, 0);
            self.play_all();
        }
        self.set(page, ledger.cells()[page as usize] as i64);
    }

    fn next(&mut self) -> Option<u32> {
        self.chosen = *self.best.get(1)?;
        (self.claims[self.chosen as usize] != OUT).then_some(self.chosen)
    }

    fn gone(&mut self) {
        self.set(self.chosen, OUT);
    }

    fn crawled(&mut self, ledger: &Ledger, targets: &[u32]) {
        self.recycled[self.chosen as usize] = 0;
        self.refresh(self.chosen, ledger);
        for &target in targets {
            self.refresh(target, ledger);
        }
    }

    fn recycled(&mut self, ledger: &Ledger) {
        // A cell that was recycled keeps its claim: claims do not change.
        let pages = self
            .claims
            .iter()
            .zip(&mut self.recycled)
            .zip(ledger.cells());
        for ((&claim, recycled), &cell) in pages {
            if claim != OUT {
                *recycled = claim - cell as i64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use cashrank_graph::engine::{PageId, damping_units};

    /// Greedy chooses the page of largest cash plus recycled cash, the first of several, whatever happened before.
    #[test]
    fn greedy_takes_the_most() {
        for pages in [1u32, 2, 3, 7, 64, 100] {
            let mut ledger = Ledger::new(damping_units(0.85), 0, 1 << 20).unwrap();
            let mut random = Random::new(u64::from(pages), Purpose::Order);
            let mut greedy = Greedy::default();
            let mut gone = Vec::new();
            let mut recycled = vec![0; pages as usize];
            for page in 0..pages {
                ledger.admit().unwrap();
                greedy.known(page, &ledger);
            }
            for step in 0..2_000 {
                let claim =
                    |page: u32| ledger.cash(PageId(u64::from(page))) + recycled[page as usize];
                let left = (0..pages).filter(|page| !gone.contains(page));
                let most = left.max_by_key(|&page| (claim(page), std::cmp::Reverse(page)));
                assert_eq!(greedy.next(), most);
                let Some(page) = most else {
                    break;
                };
                let mut targets: Vec<u32> = (0..random.below(4))
                    .map(|_| random.below(pages as usize) as u32)
                    .filter(|&target| target != page)
                    .collect();
                targets.sort_unstable();
                targets.dedup();
                let ids: Vec<PageId> = targets.iter().map(|&t| PageId(u64::from(t))).collect();
                ledger.visit(PageId(u64::from(page)), &ids[..], 1);
                greedy.crawled(&ledger, &targets);
                recycled[page as usize] = 0;
                if step % 150 == 149 {
                    let ended = ledger.end_round(|page, cash, _| {
                        recycled[page.0 as usize] += cash;
                        Ok::<(), ()>(())
                    });
                    ended.unwrap();
                    greedy.recycled(&ledger);
                } else if step % 70 == 69 {
                    greedy.gone();
                    gone.push(page);
                }
            }
        }
    }

    /// A cycle reaches every page once per turn, and gone ones never again.
    #[test]
    fn cycle_goes_round() {
        let ledger = Ledger::new(0, 0, 10).unwrap();
        let mut cycle = Cycle::default();
        assert_eq!(cycle.next(), None);
        (0..4).for_each(|page| cycle.known(page, &ledger));
        let next = |cycle: &mut Cycle| cycle.next().unwrap();
        assert_eq!([0; 6].map(|_| next(&mut cycle)), [0, 1, 2, 3, 0, 1]);
        cycle.gone();
        assert_eq!([0; 4].map(|_| next(&mut cycle)), [2, 3, 0, 2]);
        cycle.known(4, &ledger);
        assert_eq!([0; 4].map(|_| next(&mut cycle)), [3, 4, 0, 2]);
    }
}
