//! Greedy (OPIC, section 3.1) in a simulated crawl: a ledger is driven over the rows. Each page brings an endowment, and
//! links, virtual page and rounds are those of an ingest. So its list is that of a store, if each page was read once.

use std::convert::Infallible;

use cashrank::{Error, Result};
use cashrank_graph::engine::{Config, ENDOWMENT, Ledger, PageId, TargetLinks, age, damping_units};
use cashrank_graph::rows::{PAGES_MAX, Row};
use cashrank_steer::schedule::{CrawlFacts, CrawlState, ScoredPage, Strategy};

use super::queue::Queue;

#[derive(Default)]
pub(super) struct LedgerOrder {
    /// Created at the first page; an error is reported by the next query.
    ledger: Option<Result<Ledger>>,
    /// Units recycled from each page since its last visit, and included in all that it distributed.
    recycled: Vec<u64>,
    distributed: Vec<u128>,
    /// Queue with claims as scores, minus what the virtual page paid every page, which does not change their order.
    queue: Queue,
    targets: Vec<PageId>,
}

impl Strategy for LedgerOrder {
    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        let begin = || {
            Ledger::new(
                damping_units(super::DAMPING),
                Config::default().recycle_after,
                PAGES_MAX,
            )
        };
        let ledger = self.ledger.get_or_insert_with(begin);
        let Ok(to) = ledger else {
            return;
        };
        let (known, pages) = (to.totals().pages, u64::from(crawl.pages()));
        if let Err(error) = (known..pages).try_for_each(|_| to.admit().map(drop)) {
            *ledger = Err(error);
            return;
        }
        self.recycled.resize(pages as usize, 0);
        self.distributed.resize(pages as usize, 0);
        self.targets.clear();
        let pages_of = row.targets.iter().map(|&target| PageId(target.into()));
        self.targets.extend(pages_of);
        let links = TargetLinks {
            targets: &self.targets,
            weights: row.weights,
        };
        let age = if row.gone { age::GONE } else { age::NOW };
        let cash = to.visit(PageId(row.page.into()), links, age);
        self.distributed[row.page as usize] += u128::from(cash);
        self.recycled[row.page as usize] = 0;
        for page in (known as u32..crawl.pages()).chain(row.links()) {
            // A page that was read is not queued.
            if !crawl.is_read(page) {
                let cell = to.cells()[page as usize] as i64;
                let recycled = self.recycled[page as usize] as i64;
                self.queue.put(page, cell.wrapping_add(recycled) as f64);
            }
        }
        if to.count_record() {
            // What a page loses here stays its claim: scores do not change.
            let ended = to.end_round(|page, cash, _| {
                self.recycled[page.index()] += cash;
                self.distributed[page.index()] += u128::from(cash);
                Ok::<(), Infallible>(())
            });
            match ended {
                Ok(()) => (),
                Err(never) => match never {},
            }
        }
    }

    fn best(
        &mut self,
        crawl: &CrawlState,
        _facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        let ledger = match &self.ledger {
            None => return Ok(Vec::new()),
            Some(Ok(ledger)) => ledger,
            Some(Err(error)) => return Err(Error::Usage(error.to_string())),
        };
        let mut best = self.queue.best(crawl, count);
        for of in &mut best {
            let cash = ledger.cash(PageId(of.page.into()));
            let units = u128::from(cash) + u128::from(self.recycled[of.page as usize]);
            of.score = units as f64 / ENDOWMENT as f64;
        }
        Ok(best)
    }

    /// Returns the paper's estimate of a page's importance, H + C, up to a common factor. Lists are ordered by cash ([`Strategy::best`]).
    fn score(&self, _crawl: &CrawlState, page: u32) -> Option<f64> {
        let ledger = self.ledger.as_ref()?.as_ref().ok()?;
        let distributed = *self.distributed.get(page as usize)?;
        let cash = ledger.cash(PageId(page.into()));
        Some((distributed + u128::from(cash)) as f64)
    }

    fn links(&self) -> u64 {
        let ledger = self.ledger.as_ref().and_then(|ledger| ledger.as_ref().ok());
        ledger.map_or(0, |ledger| ledger.totals().followed as u64)
    }
}
