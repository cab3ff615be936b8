//! Priority queue of pages whose scores change one by one, for orders that are asked after every page.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use cashrank::Result;
use cashrank_graph::rows::Row;
use cashrank_steer::schedule::{CrawlFacts, CrawlState, ScoredPage, Strategy};

/// Entry of a heap, in which the page to be read first is the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
struct QueueEntry(ScoredPage);

impl Eq for QueueEntry {}

impl Ord for QueueEntry {
    fn cmp(&self, other: &QueueEntry) -> Ordering {
        other.0.best_first(&self.0)
    }
}

impl PartialOrd for QueueEntry {
    fn partial_cmp(&self, other: &QueueEntry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Queue of pages with changing scores. The heap is built at the first query: until then a change costs one number and
/// no heap entry.
#[derive(Debug, Default)]
pub(crate) struct Queue {
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
        let scored = ScoredPage::new(page, score);
        self.note(page, scored.score);
        let Some(heap) = &mut self.heap else {
            return;
        };
        heap.push(QueueEntry(scored));
        // Outdated entries are removed once the heap has more than two entries per page.
        if heap.len() > 1024 + 2 * self.scores.len() {
            let scores = &self.scores;
            heap.retain(|QueueEntry(of)| scores[of.page as usize] == of.score);
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
            let Some(QueueEntry(entry)) = heap.pop() else {
                break;
            };
            let twice = best.last().is_some_and(|last| last.page == entry.page);
            if crawl.is_read(entry.page) || scores[entry.page as usize] != entry.score || twice {
                continue;
            }
            held.push(QueueEntry(entry));
            if crawl.is_open(entry.page) {
                best.push(entry);
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
        .map(|(&score, page)| QueueEntry(ScoredPage { page, score }))
        .collect::<Vec<_>>()
        .into()
}

/// Strategy of `next` with a queue of its open pages, so that asking for the best one does not score all of them. A row
/// may change the scores of its targets alone.
pub(crate) struct QueuedStrategy {
    strategy: Box<dyn Strategy>,
    queue: Queue,
}

impl QueuedStrategy {
    /// Adds a queue to the strategy of this name if rows change the scores of their targets alone.
    pub fn wrap(name: &str, strategy: Box<dyn Strategy>) -> Box<dyn Strategy> {
        match name {
            "breadth-first" | "fica" => Box::new(QueuedStrategy {
                strategy,
                queue: Queue::default(),
            }),
            _ => strategy,
        }
    }
}

impl Strategy for QueuedStrategy {
    fn found(&mut self, crawl: &CrawlState, page: u32, by: Option<u32>) {
        self.strategy.found(crawl, page, by);
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        self.strategy.read(crawl, row);
        for target in row.links().filter(|&target| !crawl.is_read(target)) {
            let score = self.strategy.score(crawl, target);
            if let Some(score) = score.filter(|_| score != self.queue.score(target)) {
                self.queue.put(target, score);
            }
        }
    }

    fn best(
        &mut self,
        crawl: &CrawlState,
        _facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        Ok(self.queue.best(crawl, count))
    }

    fn score(&self, crawl: &CrawlState, page: u32) -> Option<f64> {
        self.strategy.score(crawl, page)
    }
}

#[cfg(test)]
mod tests {
    use cashrank_graph::graph::Graph;
    use cashrank_steer::schedule::{Choice, CrawlHistory};

    use super::*;

    /// A queue lists what scoring all open pages does, after every page.
    #[test]
    fn queues_list_what_scores_do() {
        let none = Graph::default();
        let facts = CrawlFacts::of(&none);
        for name in ["breadth-first", "fica", "fica:k=3"] {
            let choice: Choice = name.parse().unwrap();
            let mut plain = CrawlHistory::new(choice.strategy());
            let wrapped = QueuedStrategy::wrap(choice.spec().name, choice.strategy());
            let mut queued = CrawlHistory::new(wrapped);
            let mut page = 0;
            for _ in 0..500 {
                // Pages are numbered as they become known.
                let known = plain.crawl().pages().max(1);
                let mut targets: Vec<u32> = (0..page * 7 % 5)
                    .map(|at| (page * 3 + at * at) % known)
                    .collect();
                targets.extend(known..known + page % 3);
                targets.sort_unstable();
                targets.dedup();
                plain.row(Row::new(page, &targets));
                queued.row(Row::new(page, &targets));
                let best = plain.best(&facts, 4).unwrap();
                assert_eq!(queued.best(&facts, 4).unwrap(), best, "{name}");
                page = best.first().map_or(plain.crawl().pages(), |of| of.page);
            }
        }
    }
}
