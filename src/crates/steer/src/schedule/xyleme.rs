//! Xyleme's balance of discovery and refresh (OPIC, section 3.3): like Greedy, but the virtual page receives what is
//! not passed on over links and pays the share `discovery` of it equally to all unread pages, the rest to pages already
//! read. A page that waits long gathers cash until it is read.
//!
//! With a [`super::Focus`], each rule's share of what the virtual page receives is paid to its pages first. A payment
//! to all pages of a rule is one addition: a page's cash is its own cell plus what was paid to every page, and to every
//! page of its rule.
//!
//! **Law.** Cash is in whole units: the cash of unread pages and of the virtual page, and what went to pages already
//! read, sum exactly to what the seeds brought, after every page.

use super::{CrawlState, Strategy, StrategySpec};
use crate::rows::Row;

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "xyleme",
    about: "most cash first; the virtual page pays only pages not read yet",
    parameters: &["damping", "discovery"],
    ..StrategySpec::of(|parameters| {
        Box::new(Xyleme {
            damping: fixed(parameters.damping()),
            discovery: fixed(parameters.discovery),
            ..Xyleme::default()
        })
    })
};

/// Units that a seed brings.
const SEED: u128 = 1 << 60;
/// Number of fractional bits of a share.
const BITS: u32 = 52;

/// Converts a share to units of 1/2^52.
fn fixed(share: f64) -> u128 {
    (share * (1u64 << BITS) as f64).round() as u128
}

/// Returns the part `share` of some units, rounded down, in two steps so that nothing overflows.
fn part(units: u128, share: u128) -> u128 {
    let low = units & ((1 << BITS) - 1);
    (units >> BITS) * share + ((low * share) >> BITS)
}

/// Pages that are paid together.
#[derive(Default)]
struct PaidGroup {
    members: u128,
    /// Units that each was paid since the start.
    each: u128,
    /// Units not paid out yet.
    pot: u128,
}

impl PaidGroup {
    fn receive(&mut self, units: u128) {
        self.pot += units;
        if let Some(each) = self.pot.checked_div(self.members) {
            self.each += each;
            self.pot -= each * self.members;
        }
    }
}

#[derive(Default)]
struct Xyleme {
    damping: u128,
    discovery: u128,
    /// All unread pages, then those of each rule.
    groups: Vec<PaidGroup>,
    /// Cash of each unread page minus the payments to it since the start, wrapping; `None` for others.
    cells: Vec<Option<u128>>,
    /// Units that went to pages already read.
    spent: u128,
}

impl Xyleme {
    /// Returns the groups of a page: that of all unread pages, and that of its rule, if it has one.
    fn groups_of(crawl: &CrawlState, page: u32) -> impl Iterator<Item = usize> {
        let rule = crawl.focus().rule(page);
        std::iter::once(0).chain(rule.map(|rule| rule + 1))
    }

    fn paid(&self, crawl: &CrawlState, page: u32) -> u128 {
        let groups = Xyleme::groups_of(crawl, page);
        groups.map(|group| self.groups[group].each).sum()
    }

    fn make_room(&mut self, crawl: &CrawlState) {
        let groups = crawl.focus().shares().len() + 1;
        self.groups.resize_with(groups, PaidGroup::default);
        self.cells.resize(crawl.pages() as usize, None);
    }

    /// Adds to the cash of an unread page, and makes it a member of its groups if it is not.
    fn add(&mut self, crawl: &CrawlState, page: u32, units: u128) {
        let cell = match self.cells[page as usize] {
            Some(cell) => cell,
            None => {
                let groups = Xyleme::groups_of(crawl, page);
                groups.for_each(|group| self.groups[group].members += 1);
                0u128.wrapping_sub(self.paid(crawl, page))
            }
        };
        self.cells[page as usize] = Some(cell.wrapping_add(units));
    }

    /// Takes the cash of a page that was read, and removes the page from its groups.
    fn take(&mut self, crawl: &CrawlState, page: u32) -> u128 {
        let Some(cell) = self.cells[page as usize].take() else {
            return 0;
        };
        let groups = Xyleme::groups_of(crawl, page);
        groups.for_each(|group| self.groups[group].members -= 1);
        cell.wrapping_add(self.paid(crawl, page))
    }
}

impl Strategy for Xyleme {
    fn found(&mut self, crawl: &CrawlState, page: u32, by: Option<u32>) {
        self.make_room(crawl);
        self.add(crawl, page, if by.is_none() { SEED } else { 0 });
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        self.make_room(crawl);
        let cash = self.take(crawl, row.page);
        let damped = part(cash, self.damping);
        let all = u128::from(row.total());
        let mut rest = cash;
        for (target, weight) in row.links.linked() {
            let weight = u128::from(weight);
            let share = damped / all * weight + damped % all * weight / all;
            rest -= share;
            if crawl.is_read(target) {
                self.spent += share
            } else {
                self.add(crawl, target, share)
            }
        }
        let kept = rest;
        for (group, share) in self.groups[1..].iter_mut().zip(crawl.focus().shares()) {
            let units = part(kept, fixed(share)).min(rest);
            rest -= units;
            group.receive(units);
        }
        let discovery = part(rest, self.discovery);
        self.groups[0].receive(discovery);
        self.spent += rest - discovery;
    }

    fn score(&self, crawl: &CrawlState, page: u32) -> Option<f64> {
        let cell = (*self.cells.get(page as usize)?)?;
        Some(cell.wrapping_add(self.paid(crawl, page)) as f64 / SEED as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Choice, CrawlHistory, Focus, Strategy as _};

    impl Xyleme {
        /// Returns the sum of all units.
        fn units(&self) -> u128 {
            self.spent + self.groups.iter().map(|group| group.pot).sum::<u128>()
        }
    }

    proptest! {
        /// The law holds whatever is read, with and without a focus.
        #[test]
        fn no_unit_is_lost(
            rows in proptest::collection::vec((0u32..40, proptest::collection::vec(0u32..40, 0..6)), 1..60),
            focused in any::<bool>(),
        ) {
            let mut xyleme = Xyleme {
                damping: fixed(0.85),
                discovery: fixed(0.3),
                ..Xyleme::default()
            };
            let mut crawl = CrawlHistory::new((SPEC.make)(&Choice::default()));
            let rules = ["host:h1.example=0.25", "url:*/7=0.1", "url:*=0.2"];
            let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
            if focused {
                let names = |visit: &mut dyn FnMut(&[u8])| {
                    (0..40).for_each(|page| visit(format!("http://h{}.example/{page}", page % 4).as_bytes()));
                    Ok::<_, ()>(())
                };
                crawl.set_focus(Focus::of(rules).unwrap().places(names).unwrap());
            }
            let mut seeds = 0;
            for (page, mut targets) in rows {
                targets.sort_unstable();
                targets.dedup();
                targets.retain(|&target| target != page);
                let crawl_before = crawl.crawl();
                if crawl_before.pages() > page && crawl_before.is_read(page) {
                    continue;
                }
                let is_seed = xyleme.cells.get(page as usize).copied().flatten().is_none();
                let row = Row::new(page, &targets);
                crawl.row(row);
                if is_seed {
                    seeds += 1;
                    xyleme.found(crawl.crawl(), page, None);
                }
                xyleme.read(crawl.crawl(), row);
                let open: u128 = (0..xyleme.cells.len() as u32)
                    .filter_map(|page| {
                        let paid = xyleme.paid(crawl.crawl(), page);
                        Some(xyleme.cells[page as usize]?.wrapping_add(paid))
                    })
                    .sum();
                prop_assert_eq!(open + xyleme.units(), seeds * SEED);
            }
        }
    }
}
