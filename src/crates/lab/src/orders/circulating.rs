//! Circulating Greedy: OPIC's Greedy, each page read once, but cash that reaches a page already read is passed on at
//! once over its kept row, as long as it exceeds 0.05 x seeds / pages read. So unread pages hold nearly all of it. What
//! is not passed on (a share of 1 - damping, and the cash of pages without links) is lost; only the order of cash
//! matters.
//!
//! Keeps the rows in memory, in 4 bytes per link (12 if links have weights) and 16 per page read. Cash that reaches a
//! page is passed on before anything else is read, and each such visit needs one arbitrary row. From disk that would be
//! a block of 65,536 links each time, 50 microseconds at the 1,300 M links/s at which they are unpacked.

use std::collections::VecDeque;

use cashrank::Result;
use cashrank_graph::graph::{LinkRows, Links};
use cashrank_graph::rows::Row;
use cashrank_steer::schedule::{CrawlFacts, CrawlState, ScoredPage, Strategy};

use super::queue::Queue;

/// Default damping, higher than in PageRank: what is not passed on is lost.
pub(super) const DAMPING: f64 = 0.99;

/// Cash of a page already read is passed on from this share of the seeds' cash per page read.
const THRESHOLD: f64 = 0.05;

pub(super) struct Circulating {
    damping: f64,
    /// Queue with cash as scores.
    queue: Queue,
    /// Position of each page's row; `NONE` if it was not read.
    places: Vec<u32>,
    /// Rows of pages read, in the order of reading.
    rows: LinkRows<f64>,
    /// Pages read whose cash must be passed on.
    waiting: VecDeque<u32>,
    gone_over: u64,
}

const NONE: u32 = u32::MAX;

impl Circulating {
    pub(super) fn new(damping: f64) -> Circulating {
        Circulating {
            damping,
            queue: Queue::default(),
            places: Vec::new(),
            rows: LinkRows::default(),
            waiting: VecDeque::new(),
            gone_over: 0,
        }
    }

    /// Keeps the row of the page that was just read.
    fn keep(&mut self, row: Row<'_>) {
        let (mut targets, mut weights) = (row.targets, Vec::new());
        let links: Vec<u32>;
        if !row.weights.is_empty() {
            (links, weights) = row.parts().unzip();
            targets = &links;
        }
        let weights = &weights;
        self.rows.push(Links { targets, weights });
    }
}

impl Strategy for Circulating {
    fn found(&mut self, _crawl: &CrawlState, page: u32, by: Option<u32>) {
        self.queue.put(page, if by.is_none() { 1.0 } else { 0.0 });
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        self.places.resize(crawl.pages() as usize, NONE);
        self.places[row.page as usize] = self.rows.nodes() as u32;
        self.keep(row);
        let threshold = THRESHOLD * crawl.seeds().len() as f64 / f64::from(crawl.read());
        self.waiting.push_back(row.page);
        while let Some(page) = self.waiting.pop_front() {
            let cash = self.damping * self.queue.score(page).unwrap_or(0.0);
            self.queue.note(page, 0.0);
            let row = self.rows.at(self.places[page as usize] as usize);
            let each = cash / row.weight();
            self.gone_over += row.targets.len() as u64;
            row.each(|target, part| {
                let had = self.queue.score(target).unwrap_or(0.0);
                let has = had + each * part;
                if !crawl.is_read(target) {
                    self.queue.put(target, has);
                    return;
                }
                self.queue.note(target, has);
                if had <= threshold && has > threshold {
                    self.waiting.push_back(target);
                }
            });
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

    fn links(&self) -> u64 {
        self.gone_over
    }
}

#[cfg(test)]
mod tests {
    use cashrank_steer::schedule::CrawlHistory;

    use super::*;
    use crate::orders::tests::Small;

    /// Returns the open pages after these rows were read, if nothing is lost.
    fn after(rows: &[Row<'_>]) -> Vec<(u32, f64)> {
        let mut history = CrawlHistory::new(Box::new(Circulating::new(1.0)));
        rows.iter().for_each(|&row| history.row(row));
        let best = history.best(&CrawlFacts::of(&Small), 9).unwrap();
        best.iter().map(|of| (of.page, of.score)).collect()
    }

    fn close(found: &[(u32, f64)], expected: &[(u32, f64)]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            let off = (found.1 - expected.1).abs();
            assert!(
                found.0 == expected.0 && off < 1e-12,
                "{found:?} {expected:?}"
            );
        }
    }

    /// All cash is at unread pages, or lost.
    #[test]
    fn circulating_cash_is_passed_on() {
        // 0 -> 1 -> 0 and 2: cash that returns to 0 is passed on again.
        let rows = &[Row::new(0, &[1]), Row::new(1, &[0, 2])];
        // Of 0's cash of 1: 1 holds 1, passes 1/2 to 2 and 1/2 to 0, that goes to 1, and so on, while it exceeds 0.05/2.
        let best = after(rows);
        assert_eq!(best.len(), 1);
        // Halves are passed on from 1/2 down to 1/32 > 0.025: 2 gets 1/2 + ... + 1/64.
        close(&best, &[(2, 1.0 - 1.0 / 64.0)]);
    }

    /// Rows with weights after rows without: page 0 links to 1 and 2 equally, 1 to 0 and 3 in the ratio 3 to 1. Cash that
    /// returns to 0 is passed on while it exceeds 0.05/2: three eighths of the previous amount, three times.
    #[test]
    fn circulating_cash_follows_weights() {
        let rows = [Row::new(0, &[1, 2]), Links::new(&[0, 3], &[3, 1]).of(1)];
        let back: f64 = (1..=3).map(|turn| 0.375f64.powi(turn) / 2.0).sum();
        close(&after(&rows), &[(2, 0.5 + back), (3, 0.125 + back / 4.0)]);
    }
}
