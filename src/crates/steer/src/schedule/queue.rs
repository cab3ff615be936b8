//! Priority queue with changing scores, and a top-k over all pages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{CrawlState, ScoredPage};

/// Page with its score, never NaN. The greatest is read first: ordered by score, then by who was known first.
type QueueEntry = (OrderedScore, Reverse<u32>);

/// Bits of a score, changed so that they have its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OrderedScore(u64);

impl OrderedScore {
    fn of(score: f64) -> OrderedScore {
        // 0 and -0 count as equal.
        let bits = (score + 0.0).to_bits();
        OrderedScore(bits ^ OrderedScore::flipped(bits))
    }

    fn score(self) -> f64 {
        f64::from_bits(self.0 ^ OrderedScore::flipped(!self.0))
    }

    /// Returns the bits that differ: all of a negative number, the sign of another one.
    fn flipped(bits: u64) -> u64 {
        (bits as i64 >> 63) as u64 | 1 << 63
    }
}

/// Returns the `count` open pages of greatest score, best first; ties in the order in which pages became known. Takes
/// memory for `count` pages.
pub fn best_of(crawl: &CrawlState, count: usize, score: impl Fn(u32) -> f64) -> Vec<ScoredPage> {
    let mut best = PageTopK::new(count);
    crawl
        .all_open()
        .for_each(|page| best.offer(page, score(page)));
    best.sorted()
}

/// Top-k of the pages that were offered.
pub(super) struct PageTopK {
    count: usize,
    heap: BinaryHeap<Reverse<QueueEntry>>,
}

impl PageTopK {
    pub fn new(count: usize) -> PageTopK {
        PageTopK {
            count,
            heap: BinaryHeap::new(),
        }
    }

    /// Offers a page with its score.
    pub fn offer(&mut self, page: u32, score: f64) {
        let entry = (OrderedScore::of(score), Reverse(page));
        if self.heap.len() < self.count {
            self.heap.push(Reverse(entry));
        } else if self.heap.peek().is_some_and(|worst| entry > worst.0) {
            self.heap.pop();
            self.heap.push(Reverse(entry));
        }
    }

    /// Returns the pages, best first.
    pub fn sorted(self) -> Vec<ScoredPage> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        let scored = sorted.map(|Reverse((score, Reverse(page)))| ScoredPage {
            page,
            score: score.score(),
        });
        scored.collect()
    }
}

/// Queue of pages whose scores change one by one. The heap is built at the first query: until then a change costs one
/// number and no heap entry.
#[derive(Debug, Default)]
pub struct Queue {
    /// Heap of unread pages by score, with outdated entries; `None` before the first query.
    heap: Option<BinaryHeap<QueueEntry>>,
    /// Score of each page that was ever added; NaN: none.
    scores: Vec<f64>,
}

impl Queue {
    /// Returns the last score of a page.
    pub fn score(&self, page: u32) -> Option<f64> {
        let score = self.scores.get(page as usize).copied();
        score.filter(|score| !score.is_nan())
    }

    /// Sets the score of a page.
    pub fn put(&mut self, page: u32, score: f64) {
        let score = score + 0.0;
        if self.scores.len() <= page as usize {
            self.scores.resize(page as usize + 1, f64::NAN);
        }
        self.scores[page as usize] = score;
        let Some(heap) = &mut self.heap else {
            return;
        };
        heap.push((OrderedScore::of(score), Reverse(page)));
        // Outdated entries are removed once the heap has more than two entries per page.
        if heap.len() > 1024 + 2 * self.scores.len() {
            let scores = &self.scores;
            heap.retain(|(score, page)| scores[page.0 as usize] == score.score());
        }
    }

    /// Raises the scores of the unread ones of some pages to at least `score`.
    pub fn raise(&mut self, crawl: &CrawlState, pages: impl Iterator<Item = u32>, score: f64) {
        for target in pages {
            let is_greater = self.score(target).is_none_or(|known| score > known);
            if is_greater && !crawl.is_read(target) {
                self.put(target, score);
            }
        }
    }

    /// Sets the score of a page that was read, which is not queued.
    pub fn note(&mut self, page: u32, score: f64) {
        if self.scores.len() <= page as usize {
            self.scores.resize(page as usize + 1, f64::NAN);
        }
        self.scores[page as usize] = score;
    }

    /// Returns the best open pages. They stay in the queue.
    pub fn best(&mut self, crawl: &CrawlState, count: usize) -> Vec<ScoredPage> {
        let scores = &self.scores;
        let heap = self.heap.get_or_insert_with(|| in_order(crawl, scores));
        let mut best: Vec<ScoredPage> = Vec::new();
        let mut held = Vec::new();
        while best.len() < count {
            let Some(entry) = heap.pop() else {
                break;
            };
            let (score, page) = (entry.0.score(), entry.1.0);
            let twice = best.last().is_some_and(|last| last.page == page);
            if crawl.is_read(page) || scores[page as usize] != score || twice {
                continue;
            }
            held.push(entry);
            if crawl.is_open(page) {
                best.push(ScoredPage { page, score });
            }
        }
        heap.extend(held);
        best
    }
}

/// Builds the heap of all unread pages that have a score.
fn in_order(crawl: &CrawlState, scores: &[f64]) -> BinaryHeap<QueueEntry> {
    let pages = scores.iter().zip(0..crawl.pages());
    let entries = pages.filter(|&(score, page)| !score.is_nan() && !crawl.is_read(page));
    entries
        .map(|(&score, page)| (OrderedScore::of(score), Reverse(page)))
        .collect::<Vec<_>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_in_order() {
        let scores = [
            f64::NEG_INFINITY,
            -2.5,
            -1e-300,
            0.0,
            1e-300,
            1.0,
            2.5,
            f64::INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(
                OrderedScore::of(pair[0]) < OrderedScore::of(pair[1]),
                "{pair:?}"
            );
        }
        for score in scores {
            assert_eq!(OrderedScore::of(score).score(), score);
        }
        assert_eq!(OrderedScore::of(-0.0), OrderedScore::of(0.0));
    }
}
