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
//!   or same finder) and of those with links.
//! - f is a sum over the r read neighbours: each contributes the sum of the square roots of the scores (relative to
//!   their mean) of the pages that it found. N is taken over fifteen names on each side, S over pages with the same
//!   finder. Important pages of a web are missed more often because they are unknown than because they are underrated.
//! - l' and f' are the means over all pages read; three pages with these means are added to few neighbours.
//!
//! Only pages that may be among the best are adjusted: those of the greatest scores, and then those whose score could
//! rise above the least of the best by the greatest adjustment. Takes 4 bytes per page, 8 per page read, and 32 for each
//! page adjusted.

use prefetch_index::prefetch_index;

use super::history::LATER;
use super::{CrawlState, ScoredPage};
use crate::Result;
use crate::metrics::BestItems;
use crate::rows::Bits;
use crate::threads::{join, par_map};

/// Number of names on each side that count for the unseen share, and for what was found.
const UNSEEN_RADIUS: usize = 7;
const RADIUS: usize = 15;
/// Number of average pages that are added to the neighbours.
const OF_THE_MEAN: f64 = 3.0;
/// Stands for no page in `found_by`.
pub(super) const NO_FINDER: u32 = u32::MAX;
/// Number of pages that are adjusted first, relative to the number of pages that are wanted.
const SPARE: usize = 8;
/// Number of names that a thread takes at a time, and of pages from which on two threads work.
const CHUNK: usize = 1 << 14;
/// Factor above the rounding of scores.
const ROUNDING: f64 = 1.0 + 1e-6;

/// Exponents of the adjustments.
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
    pub powers: Powers,
}

/// Totals over some read pages: their number, the number of those with links, and what they found, in 2^-30. Whole
/// numbers: sums do not depend on their order. What all pages found is at most their number.
type Tally = [u64; 3];

/// Number of units in which what pages found is counted.
const UNITS: f64 = (1u64 << 30) as f64;

fn plus(one: Tally, other: Tally) -> Tally {
    std::array::from_fn(|at| one[at] + other[at])
}

/// Totals over the pages of one finder, in little memory: the first 65,535 count.
#[derive(Debug, Clone, Copy, Default)]
struct SiblingTally {
    read: u16,
    with_links: u16,
    found: f32,
}

impl SiblingTally {
    fn tally(self) -> Tally {
        let found = f64::from(self.found) * UNITS;
        [self.read.into(), self.with_links.into(), found as u64]
    }
}

/// Totals over the neighbours of all pages.
struct Neighbours<'a> {
    near: &'a Near<'a>,
    scores: &'a [f32],
    /// Sum of the square roots of the relative scores of the pages that each page found.
    found: Vec<f32>,
    /// Numbering of the pages read, and totals over what each of them found.
    numbering: Vec<u32>,
    siblings: Vec<SiblingTally>,
    /// Means over all pages read: the share with links, and what a page found, in 2^-30.
    mean: [f64; 2],
    /// (k/(1 + m))^u by k and m. A power for each page would take as long as everything else.
    unseen: [[f64; AROUND + 1]; AROUND + 1],
}

const AROUND: usize = 2 * UNSEEN_RADIUS + 1;

impl Near<'_> {
    /// Returns the best `count` open pages by their adjusted scores.
    pub fn best(&self, scores: &[f32], count: usize) -> Result<Vec<ScoredPage>> {
        let crawl = self.crawl;
        let greatest = |count: usize| {
            let mut greatest = BestItems::new(count);
            for page in crawl.all_open() {
                let score = f64::from(scores[page as usize]);
                greatest.add(ScoredPage::new(page, score), ScoredPage::best_first);
            }
            greatest.finish(ScoredPage::best_first)
        };
        let Powers { unseen, found } = self.powers;
        if crawl.read() == 0 || (unseen == 0.0 && found == 0.0) {
            return Ok(greatest(count));
        }
        let known = || {
            let mut known = Bits::new(crawl.pages().into());
            let first = greatest(count.saturating_mul(SPARE)).into_iter();
            first.for_each(|of| _ = known.set(of.page.into()));
            known
        };
        let parallel = scores.len() > CHUNK;
        let (known, neighbours) = join(parallel, known, || Neighbours::new(self, scores));
        let mut best = neighbours.adjusted(&known)?;
        best.sort_unstable_by(ScoredPage::best_first);
        if let Some(least) = best.get(count.saturating_sub(1)) {
            let others = neighbours.rising(least.score, &known);
            best.extend(neighbours.adjusted(&others)?);
            best.sort_unstable_by(ScoredPage::best_first);
        }
        best.truncate(count);
        Ok(best)
    }

    fn finder(&self, page: u32) -> Option<u32> {
        let by = self.found_by.get(page as usize).copied();
        by.filter(|&by| by != NO_FINDER)
    }
}

impl<'a> Neighbours<'a> {
    fn new(near: &'a Near<'a>, scores: &'a [f32]) -> Neighbours<'a> {
        let sum: f64 = scores.iter().map(|&score| f64::from(score)).sum();
        let mean = sum / scores.len() as f64;
        let unseen = |known: usize, read: usize| {
            libm::pow(known as f64 / (1 + read) as f64, near.powers.unseen)
        };
        let mut all = Neighbours {
            near,
            scores,
            found: vec![0.0; scores.len()],
            numbering: near.crawl.read_pages().numbering(),
            siblings: vec![SiblingTally::default(); near.crawl.read() as usize],
            mean: [0.0; 2],
            unseen: std::array::from_fn(|known| std::array::from_fn(|read| unseen(known, read))),
        };
        if mean > 0.0 {
            for (page, &score) in (0u32..).zip(scores) {
                if let Some(later) = near.finder(page.saturating_add(LATER as u32)) {
                    prefetch_index(&all.found, later as usize);
                }
                if let Some(by) = near.finder(page) {
                    // The root is exactly rounded on every machine.
                    all.found[by as usize] += (f64::from(score) / mean).sqrt() as f32;
                }
            }
        }
        let mut sum = Tally::default();
        for page in (0..near.crawl.pages()).filter(|&page| near.crawl.is_read(page)) {
            if let Some(later) = near.finder(page.saturating_add(LATER as u32)) {
                near.crawl.read_pages().prefetch(later.into());
                prefetch_index(&all.numbering, later as usize / 64);
            }
            let of @ [_, with_links, _] = all.tally(page);
            sum = plus(sum, of);
            if let Some(by) = all.number_of_finder(page)
                && all.siblings[by].read < u16::MAX
            {
                let same = &mut all.siblings[by];
                same.read += 1;
                same.with_links += with_links as u16;
                same.found += all.found[page as usize];
            }
        }
        let [_, with_links, found] = sum;
        all.mean = [with_links, found].map(|sum| sum as f64 / f64::from(near.crawl.read()));
        all
    }

    fn tally(&self, page: u32) -> Tally {
        if !self.near.crawl.is_read(page) {
            return Tally::default();
        }
        let with_links = self.near.with_links.get(page.into());
        let found = f64::from(self.found[page as usize]) * UNITS;
        [1, with_links.into(), found as u64]
    }

    /// Returns the number, among the pages read, of the page that found a page.
    fn number_of_finder(&self, page: u32) -> Option<usize> {
        let read = self.near.crawl.read_pages();
        let by = self.near.finder(page)?;
        Some(read.number(by.into(), &self.numbering))
    }

    /// Returns the totals over the pages that the finder of a page found.
    fn same(&self, page: u32) -> Tally {
        let by = self.number_of_finder(page);
        by.map_or(Tally::default(), |by| self.siblings[by].tally())
    }

    /// Returns what pages found, relative to the mean.
    fn found(&self, [read, _, found]: Tally) -> f64 {
        if self.mean[1] == 0.0 {
            return 1.0;
        }
        (found as f64 / self.mean[1] + OF_THE_MEAN) / (read as f64 + OF_THE_MEAN)
    }

    /// Returns the adjusted score of a page by its neighbours in name order and the unseen share among them.
    fn score(&self, page: u32, unseen: f64, near: Tally) -> ScoredPage {
        let same = self.same(page);
        let [read, with_links, _] = plus(near, same);
        let links = with_links as f64 + OF_THE_MEAN * self.mean[0];
        let links = links / (read as f64 + OF_THE_MEAN);
        let found = self.found(near) * self.found(same);
        let factor = (1.0 + links * (unseen - 1.0)) * libm::pow(found, self.near.powers.found);
        let score = self.scores[page as usize] * factor as f32;
        ScoredPage::new(page, f64::from(score))
    }

    /// Returns the adjusted scores of these pages, in no particular order.
    fn adjusted(&self, pages: &Bits) -> Result<Vec<ScoredPage>> {
        let Some(names) = self.near.names else {
            let score = |page| self.score(page as u32, 1.0, Tally::default());
            return Ok(pages.all().map(score).collect());
        };
        let mut chunks: Vec<usize> = (0..names.len()).step_by(CHUNK).collect();
        let chunks = par_map(&mut chunks, |_, start| {
            let chunk = *start..names.len().min(*start + CHUNK);
            let around = |at: usize, radius: usize| {
                let near = &names[at.saturating_sub(radius)..names.len().min(at + radius + 1)];
                let tallies = near.iter().map(|&page| self.tally(page));
                (near.len(), tallies.fold(Tally::default(), plus))
            };
            let wanted = chunk.filter(|&at| pages.get(names[at].into()));
            let adjusted = wanted.map(|at| {
                let (known, [read, ..]) = around(at, UNSEEN_RADIUS);
                let unseen = self.unseen[known][read as usize];
                self.score(names[at], unseen, around(at, RADIUS).1)
            });
            Ok(adjusted.collect::<Vec<_>>())
        })?;
        let mut adjusted = Vec::with_capacity(chunks.iter().map(Vec::len).sum());
        chunks.into_iter().for_each(|chunk| adjusted.extend(chunk));
        Ok(adjusted)
    }

    /// Returns the open pages except for the `known` ones whose adjusted scores may be `least` or more.
    fn rising(&self, least: f64, known: &Bits) -> Bits {
        let Near { crawl, powers, .. } = self.near;
        let most = self.found.iter().copied().fold(0.0, f32::max);
        let (read, unseen) = match self.near.names {
            Some(_) => (2 * RADIUS, self.unseen[AROUND][0]),
            None => (0, 1.0),
        };
        // The more pages were read near a page, the more they may have found, if some found more than the mean.
        let most = ((read as f64 * f64::from(most) * UNITS) as u64).saturating_add(1);
        let near = self.found([read as u64, 0, most]);
        let factor = |same: f64| unseen * libm::pow(near.max(1.0) * same, powers.found) * ROUNDING;
        let same = self.siblings.iter().map(|of| self.found(of.tally()));
        let any = factor(same.fold(1.0, f64::max));
        let mut rising = Bits::new(crawl.pages().into());
        for page in crawl.all_open() {
            let score = f64::from(self.scores[page as usize]);
            if score * any >= least
                && !known.get(page.into())
                && score * factor(self.found(self.same(page))) >= least
            {
                rising.set(page.into());
            }
        }
        rising
    }
}

#[cfg(test)]
pub(super) struct NoOrder;

#[cfg(test)]
impl super::Strategy for NoOrder {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Row;
    use crate::schedule::CrawlHistory;
    use crate::schedule::tests::numbers;

    /// Returns the scores, all 1 at first, after pages 0, 1, ... were read.
    fn lifted(rows: &[&[u32]], pages: u32, names: bool, powers: Powers) -> Vec<f32> {
        let mut scores = vec![1.0; pages as usize];
        for of in best(rows, &scores, names, powers, 0..pages as usize) {
            scores[of.page as usize] = of.score as f32;
        }
        scores
    }

    /// Returns all open pages from the best on. The best of these numbers of pages are checked to be the first of all,
    /// however few pages are adjusted.
    fn best(
        rows: &[&[u32]],
        scores: &[f32],
        names: bool,
        powers: Powers,
        counts: std::ops::Range<usize>,
    ) -> Vec<ScoredPage> {
        let pages = scores.len() as u32;
        let mut history = CrawlHistory::new(Box::new(NoOrder));
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
        let order = numbers(pages);
        let near = Near {
            crawl: history.crawl(),
            names: names.then_some(&order[..]),
            found_by: &found_by,
            with_links: &with_links,
            powers,
        };
        let all = near.best(scores, usize::MAX).unwrap();
        for count in counts.start..counts.end.min(all.len()) {
            assert_eq!(near.best(scores, count).unwrap(), all[..count], "{count}");
        }
        all
    }

    /// Random webs large enough that short lists adjust few pages, with scores over many powers of ten.
    #[test]
    fn short_lists_begin_like_long_ones() {
        let mut state = 1u64;
        let mut pick = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for web in 0..24 {
            let pages = 3_000;
            let rows: Vec<Vec<u32>> = (0..400)
                .map(|_| {
                    let links = pick(4) * pick(40);
                    (0..links).map(|_| pick(pages) as u32).collect()
                })
                .collect();
            let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
            let spread = [1, 4, 12][web % 3];
            let scores: Vec<f32> = (0..pages)
                .map(|_| (1 + pick(9)) as f32 * 10f32.powi(-(pick(spread) as i32)))
                .collect();
            let powers = Powers {
                unseen: pick(9) as f64 / 2.0,
                found: pick(9) as f64 / 2.0,
            };
            best(&rows, &scores, web % 2 == 0, powers, 1..24);
        }
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
