//! Adjusts scores by neighbouring pages: how much is still to be found near a page.
//!
//! Neighbours of a page are the names on each side in name order, and the pages found by the same page. For an unread
//! page of score y:
//!
//! ```text
//! score = y (1 + q ((k/(1 + m))^u - 1)) (N S)^g
//! q = (l + 3 l')/(n + 3)                         the share of pages near, read, that have links
//! N = (f + 3 f')/(r + 3)/f',   S the same        what a page near leads to that is found by it
//! ```
//!
//! - k of the seven names on each side of a page are known, itself included, and m were read: where few were read, most
//!   of the links to the page are still unseen. n and l are the number of read neighbours (fifteen names on each side,
//!   or same finder) and of those with links. If no read page has links, none are expected of the others.
//! - f is a sum over the r read neighbours: each contributes the sum of the square roots of the scores (relative to
//!   their mean) of the pages that it found. N is taken over fifteen names on each side, S over pages with the same
//!   finder. A page is worth more than its own score if its neighbours led to many unknown pages: important pages of a
//!   web are missed more often because they are unknown than because they are underrated.
//! - l' and f' are the means over all pages read; three pages with these means are added, so that few neighbours have
//!   little influence.
//!
//! Neighbours by name are counted a chunk of names at a time, on several threads: the result does not depend on their
//! number. Takes 16 bytes per page.

use super::CrawlState;
use crate::Result;
use crate::rows::Bits;
use crate::threads::par_map;

/// Number of names on each side that count for the unseen share, and for what was found.
const UNSEEN_RADIUS: usize = 7;
const RADIUS: usize = 15;
/// Number of average pages that are added to the neighbours.
const OF_THE_MEAN: f64 = 3.0;
/// Stands for no page in `found_by`.
pub(super) const NO_FINDER: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct Powers {
    /// u: exponent of the unseen share around a page.
    pub unseen: f64,
    /// g: exponent of what neighbours found.
    pub found: f64,
}

/// Crawl data that neighbours are taken from.
pub(super) struct Near<'a> {
    pub crawl: &'a CrawlState,
    /// Name order; if absent, only pages of the same finder are neighbours.
    pub names: Option<&'a [u32]>,
    /// The page that found each page; [`NO_FINDER`] if none.
    pub found_by: &'a [u32],
    /// Bitmap of the pages that were read and have links.
    pub with_links: &'a Bits,
}

/// Number of names whose neighbours are counted together.
const CHUNK: usize = 1 << 14;

/// Totals over some read pages: their number, the number of those with links, and what they found. Floats count
/// exactly up to 2^53.
type Tally = [f64; 3];

fn plus(one: Tally, other: Tally) -> Tally {
    std::array::from_fn(|at| one[at] + other[at])
}

/// Totals over the pages of one finder, in little memory.
#[derive(Debug, Clone, Copy, Default)]
struct SiblingTally {
    read: u16,
    with_links: u16,
    found: f32,
}

impl SiblingTally {
    /// Adds a page. The first 65,535 count.
    fn add(&mut self, [read, with_links, found]: Tally) {
        if self.read < u16::MAX {
            self.read += read as u16;
            self.with_links += with_links as u16;
            self.found += found as f32;
        }
    }

    fn tally(self) -> Tally {
        [self.read.into(), self.with_links.into(), self.found.into()]
    }
}

struct NeighbourMeans {
    with_links: f64,
    found: f64,
}

impl NeighbourMeans {
    fn share_with_links(&self, near: Tally, same: Tally) -> f64 {
        let [read, with_links, _] = plus(near, same);
        (with_links + OF_THE_MEAN * self.with_links) / (read + OF_THE_MEAN)
    }

    /// Returns what pages found, relative to the mean.
    fn found(&self, [read, _, found]: Tally) -> f64 {
        if self.found == 0.0 {
            return 1.0;
        }
        // A difference of sums may be slightly below zero.
        (found.max(0.0) / self.found + OF_THE_MEAN) / (read + OF_THE_MEAN)
    }
}

impl Near<'_> {
    pub fn lift(&self, scores: &mut [f32], powers: Powers) -> Result<()> {
        let read = f64::from(self.crawl.read());
        if read == 0.0 || powers.unseen == 0.0 && powers.found == 0.0 {
            return Ok(());
        }
        let found = self.found(scores);
        let mut siblings = vec![SiblingTally::default(); scores.len()];
        let mut all = Tally::default();
        for page in (0..scores.len() as u32).filter(|&page| self.crawl.is_read(page)) {
            let of = self.tally(page, &found);
            all = plus(all, of);
            if let Some(by) = self.finder(page) {
                siblings[by].add(of);
            }
        }
        let means = NeighbourMeans {
            with_links: all[1] / read,
            found: all[2] / read,
        };
        let factor = |page: u32, unseen: f64, near: Tally| {
            let same = self.finder(page).map(|by| siblings[by].tally());
            let same = same.unwrap_or_default();
            let links = means.share_with_links(near, same);
            let found = means.found(near) * means.found(same);
            ((1.0 + links * (unseen - 1.0)) * libm::pow(found, powers.found)) as f32
        };
        let Some(names) = self.names else {
            for page in (0..self.crawl.pages()).filter(|&page| !self.crawl.is_read(page)) {
                scores[page as usize] *= factor(page, 1.0, Tally::default());
            }
            return Ok(());
        };
        let unseen = unseen_factors(powers.unseen);
        let mut factors = vec![1.0; names.len()];
        let mut chunks: Vec<&mut [f32]> = factors.chunks_mut(CHUNK).collect();
        par_map(&mut chunks, |at, factors| {
            let first = at * CHUNK;
            let begin = first.saturating_sub(RADIUS);
            let end = (first + CHUNK + RADIUS).min(names.len());
            // Totals of the names before each.
            let mut before = vec![Tally::default()];
            let mut sum = Tally::default();
            before.extend(names[begin..end].iter().map(|&page| {
                sum = plus(sum, self.tally(page, &found));
                sum
            }));
            let around = |at: usize, radius: usize| {
                let from = at.saturating_sub(radius).max(begin);
                let until = (at + radius + 1).min(end);
                let (until_there, until_here) = (before[until - begin], before[from - begin]);
                let tally: Tally = std::array::from_fn(|at| until_there[at] - until_here[at]);
                (until - from, tally)
            };
            for (at, factor_of) in (first..).zip(&mut **factors) {
                let page = names[at];
                if !self.crawl.is_read(page) {
                    let (known, [read, ..]) = around(at, UNSEEN_RADIUS);
                    let unseen = unseen[known][read as usize];
                    *factor_of = factor(page, unseen, around(at, RADIUS).1);
                }
            }
            Ok(())
        })?;
        for (&page, factor) in names.iter().zip(&factors) {
            scores[page as usize] *= factor;
        }
        Ok(())
    }

    fn finder(&self, page: u32) -> Option<usize> {
        let by = self.found_by.get(page as usize).copied();
        by.filter(|&by| by != NO_FINDER).map(|by| by as usize)
    }

    /// Returns for each page the sum of the square roots of the relative scores of the pages that it found.
    fn found(&self, scores: &[f32]) -> Vec<f32> {
        let sum: f64 = scores.iter().map(|&score| f64::from(score)).sum();
        let mean = sum / scores.len().max(1) as f64;
        let mut found = vec![0.0; scores.len()];
        if mean > 0.0 {
            for (page, &score) in (0..).zip(scores) {
                if let Some(by) = self.finder(page) {
                    // The root is exactly rounded on every machine.
                    found[by] += (f64::from(score) / mean).sqrt() as f32;
                }
            }
        }
        found
    }

    fn tally(&self, page: u32, found: &[f32]) -> Tally {
        if !self.crawl.is_read(page) {
            return Tally::default();
        }
        let with_links = self.with_links.get(page.into());
        [1.0, with_links.into(), found[page as usize].into()]
    }
}

const AROUND: usize = 2 * UNSEEN_RADIUS + 1;

/// Returns (known/(1 + read))^u by the numbers of known and read names around a page. A power for each page would take
/// as long as everything else.
fn unseen_factors(power: f64) -> [[f64; AROUND + 1]; AROUND + 1] {
    let of = |known: usize, read: usize| libm::pow(known as f64 / (1 + read) as f64, power);
    std::array::from_fn(|known| std::array::from_fn(|read| of(known, read)))
}

#[cfg(test)]
pub(super) struct Nothing;

#[cfg(test)]
impl super::Strategy for Nothing {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Row;
    use crate::schedule::{CrawlHistory, by_key, name_key};

    /// Returns the scores, all 1 at first, after pages 0, 1, ... were read.
    fn lifted(rows: &[&[u32]], pages: u32, names: bool, powers: Powers) -> Vec<f32> {
        let mut history = CrawlHistory::new(Box::new(Nothing));
        let mut with_links = Bits::new(pages.into());
        let mut found_by = Vec::new();
        for (page, row) in (0u32..).zip(rows) {
            let known = history.crawl().pages().max(page + 1);
            found_by.resize(known as usize, NO_FINDER);
            history.row(Row::new(page, row));
            found_by.resize(history.crawl().pages() as usize, page);
            if !row.is_empty() {
                with_links.set(page.into());
            }
        }
        history.known_below(pages);
        let keys = (0..pages).map(|page| name_key(page.to_string().as_bytes()));
        let order = by_key(keys.zip(0..).collect());
        let near = Near {
            crawl: history.crawl(),
            names: names.then_some(&order[..]),
            found_by: &found_by,
            with_links: &with_links,
        };
        let mut scores = vec![1.0; pages as usize];
        near.lift(&mut scores, powers).unwrap();
        scores
    }

    fn close(found: &[f32], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (one, other) in found.iter().zip(expected) {
            assert!(
                (f64::from(*one) - other).abs() < 1e-6,
                "{found:?} {expected:?}"
            );
        }
    }

    /// Page 0 found 1 to 4, page 1 found 5; page 2 has no links. Of three read, two have links, and they found 5/3 on
    /// average.
    #[test]
    fn what_is_near_is_counted() {
        let rows: &[&[u32]] = &[&[1, 2, 3, 4], &[5], &[]];
        let both = Powers {
            unseen: 1.0,
            found: 0.5,
        };
        // By name, all six are neighbours, three of them read: k/(1 + r) is 3/2, and N the mean. Finder 0: of 1 and 2,
        // one has links; they found 1. q = (2 + 1 + 2)/(3 + 2 + 3), S = (1 + 5)/5 by 5/3.
        let of_first = (1.0 + 5.0 / 8.0 / 2.0) * (18.0 / 25.0f64).sqrt();
        // Finder 1: none was read. q = (2 + 2)/(3 + 3).
        let of_second = 1.0 + 2.0 / 3.0 / 2.0;
        close(
            &lifted(rows, 6, true, both),
            &[1.0, 1.0, 1.0, of_first, of_first, of_second],
        );
        let root = (18.0 / 25.0f64).sqrt();
        close(
            &lifted(rows, 6, false, both),
            &[1.0, 1.0, 1.0, root, root, 1.0],
        );
        let none = Powers {
            unseen: 0.0,
            found: 0.0,
        };
        close(&lifted(rows, 6, true, none), &[1.0; 6]);
    }

    /// Of twenty names, page 0 is near the first eight; names left behind no longer count.
    #[test]
    fn only_what_is_near_counts() {
        let unseen = Powers {
            unseen: 1.0,
            found: 0.0,
        };
        let row: Vec<u32> = (1..20).collect();
        let lifted = lifted(&[&row], 20, true, unseen);
        for (page, score) in (0..20).zip(lifted).skip(1) {
            let known = (page + 8).min(20) - (page - 7).max(0);
            let read = i32::from(page < 8);
            assert_eq!(score, known as f32 / (1 + read) as f32, "page {page}");
        }
    }

    /// If no read page has links, none are expected of the others.
    #[test]
    fn nothing_is_expected_of_pages_without_links() {
        let powers = Powers {
            unseen: 1.0,
            found: 1.0,
        };
        close(&lifted(&[&[], &[]], 5, true, powers), &[1.0; 5]);
        close(&lifted(&[], 5, true, powers), &[1.0; 5]);
    }
}
