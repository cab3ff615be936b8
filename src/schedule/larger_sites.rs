//! Larger sites first (Castillo, Marin, Rodriguez, Baeza-Yates 2004): the site with most pages waiting
//! comes next, each of its pages in the order in which they became known. A site is a host.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Ask, Batching, Names, Scored, Strategy, StrategySpec};
use crate::{Error, Result};

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "larger-sites-first",
    about: "a page of the host with most pages waiting",
    parameters: &[],
    batching: Batching::Part(20),
    without_rows: true,
    by_cash: false,
    names: Names::Hosts,
    incremental: true,
    bytes_per_page_and_link: (0, 0),
    make: |_| Box::new(LargerSites),
};

struct LargerSites;

impl Strategy for LargerSites {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let names = ask.names.ok_or_else(|| {
            Error::Usage("larger-sites-first needs the names of pages: their hosts".into())
        })?;
        let crawl = ask.crawl;
        let mut waiting = vec![0u32; names.hosts() as usize];
        for page in crawl.all_open() {
            waiting[names.host(page) as usize] += 1;
        }
        // How many pages each site gives: the largest gives one, and is smaller then. Sites of one size
        // take turns, the one known first before.
        let mut sites: BinaryHeap<(u32, Reverse<u32>)> = waiting
            .iter()
            .enumerate()
            .filter(|(_, waiting)| **waiting > 0)
            .map(|(host, &waiting)| (waiting, Reverse(host as u32)))
            .collect();
        let mut turns: Vec<(u32, u32)> = Vec::new();
        while turns.len() < ask.count {
            let Some((waiting, Reverse(host))) = sites.pop() else {
                break;
            };
            turns.push((host, waiting));
            if waiting > 1 {
                sites.push((waiting - 1, Reverse(host)));
            }
        }
        Ok(fill(ask, names, &turns))
    }
}

/// Gives each turn of a host its next page.
fn fill(ask: &Ask<'_>, names: &super::NameOrder, turns: &[(u32, u32)]) -> Vec<Scored> {
    let mut wanted = vec![Vec::new(); names.hosts() as usize];
    for (turn, &(host, _)) in turns.iter().enumerate().rev() {
        wanted[host as usize].push(turn);
    }
    let mut left = turns.len();
    let mut pages = vec![0; turns.len()];
    for page in ask.crawl.all_open() {
        if left == 0 {
            break;
        }
        if let Some(turn) = wanted[names.host(page) as usize].pop() {
            pages[turn] = page;
            left -= 1;
        }
    }
    let scored = turns.iter().zip(pages).map(|(&(_, waiting), page)| Scored {
        page,
        score: f64::from(waiting),
    });
    scored.collect()
}
