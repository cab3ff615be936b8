//! Circulating Greedy: OPIC's Greedy, each page read once, but cash that reaches a page already read is
//! handed on at once over its kept row, as long as it exceeds 0.05 x seeds / pages read. So the pages not
//! read hold nearly all of it. What is not handed on (a share of 1 - damping, and the cash of pages without
//! links) is lost; only the order of cash matters. Keeps the rows in memory: 8 bytes a link.

use std::collections::VecDeque;

use super::greedy::parts;
use super::queue::Queue;
use super::{Ask, AtATime, Crawl, Names, Registered, Scored, State, Strategy};
use crate::Result;
use crate::rows::Row;

pub(super) const REGISTERED: Registered = Registered {
    name: "circulating",
    about: "most cash first; pages already read pass on again what reaches them",
    parameters: &["damping"],
    at_a_time: AtATime::One,
    without_rows: false,
    names: Names::Unseen,
    goes_on: true,
    keeps: (44, 8),
    make: |parameters| {
        Box::new(Circulating {
            damping: parameters.damping,
            queue: Queue::default(),
            links: Vec::new(),
            ends: Vec::new(),
            waiting: VecDeque::new(),
            gone_over: 0,
        })
    },
};

/// Cash of a page already read is handed on from this share of the seeds' cash a page read.
const THRESHOLD: f64 = 0.05;

struct Circulating {
    damping: f64,
    /// Scores are cash.
    queue: Queue,
    /// The links of pages read, in the order of reading, each with its part.
    links: Vec<(u32, f32)>,
    ends: Vec<usize>,
    /// Pages read whose cash is to be handed on.
    waiting: VecDeque<u32>,
    gone_over: u64,
}

impl Circulating {
    fn row(&self, at: u32) -> std::ops::Range<usize> {
        let start = match at {
            0 => 0,
            at => self.ends[at as usize - 1],
        };
        start..self.ends[at as usize]
    }
}

impl Strategy for Circulating {
    fn found(&mut self, _crawl: &Crawl, page: u32, by: Option<u32>) {
        self.queue.put(page, if by.is_none() { 1.0 } else { 0.0 });
    }

    fn read(&mut self, crawl: &Crawl, row: Row<'_>) {
        self.links
            .extend(parts(row).map(|(target, part)| (target, part as f32)));
        self.ends.push(self.links.len());
        let threshold = THRESHOLD * crawl.seeds().len() as f64 / f64::from(crawl.read());
        self.waiting.push_back(row.page);
        while let Some(page) = self.waiting.pop_front() {
            let State::Read(at) = crawl.state(page) else {
                continue;
            };
            let cash = self.queue.score(page).unwrap_or(0.0);
            self.queue.note(page, 0.0);
            self.gone_over += self.row(at).len() as u64;
            for link in self.row(at) {
                let (target, part) = self.links[link];
                let had = self.queue.score(target).unwrap_or(0.0);
                let has = had + self.damping * cash * f64::from(part);
                if !crawl.is_read(target) {
                    self.queue.put(target, has);
                    continue;
                }
                self.queue.note(target, has);
                if had <= threshold && has > threshold {
                    self.waiting.push_back(target);
                }
            }
        }
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        Ok(self.queue.best(ask.crawl, ask.count))
    }

    fn links(&self) -> u64 {
        self.gone_over
    }
}
