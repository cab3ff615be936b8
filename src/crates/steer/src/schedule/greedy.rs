//! Greedy (OPIC, section 3.1): the page with the largest claim first. A page's claim is its cash in the ledger plus
//! what was recycled from it since its last visit ([`crate::engine::Ledger::end_round`]): the end of a round takes the
//! cash of a page that nobody fetches, but not its turn.
//!
//! For a store, the cash is that of its ledger ([`Ask::cash`]), so pages that were read have some, too, and compete
//! with the others if both are asked for. In a simulated crawl the strategy drives such a ledger over the rows: each
//! page brings an endowment, and links, virtual page and rounds are those of an ingest. Both give the same list if each
//! page was read once.

use std::convert::Infallible;

use super::queue::Queue;
use super::{Ask, Batching, CrawlState, ScoredPage, Strategy, StrategySpec, best_of};
use crate::engine::{Config, ENDOWMENT, Ledger, PageId, TargetLinks, age, damping_units};
use crate::rows::{PAGES_MAX, Row};
use crate::{Error, Result};

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "greedy",
    about: "most cash first, as in OPIC: cash and what was recycled since the last visit",
    parameters: &[],
    batching: Batching::One,
    without_rows: true,
    by_cash: true,
    by_names: false,
    incremental: true,
    bytes_per_page_and_link: (16, 0),
    make: |parameters| {
        Box::new(Greedy(
            (!parameters.of_store).then(|| Replay::new(parameters.damping())),
        ))
    },
};

/// `None` if the cash is that of a store.
struct Greedy(Option<Replay>);

/// Ledger that is driven over the rows.
struct Replay {
    damping: u64,
    /// Created at the first page; an error is reported by the next query.
    ledger: Option<Result<Ledger>>,
    /// Units recycled from each page since its last visit, and included in all that it distributed.
    recycled: Vec<u64>,
    distributed: Vec<u128>,
    /// Queue with claims as scores, minus what the virtual page paid every page, which does not change their order.
    queue: Queue,
    targets: Vec<PageId>,
}

impl Replay {
    fn new(damping: f64) -> Replay {
        Replay {
            damping: damping_units(damping),
            ledger: None,
            recycled: Vec::new(),
            distributed: Vec::new(),
            queue: Queue::default(),
            targets: Vec::new(),
        }
    }

    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        let begin = || Ledger::new(self.damping, Config::default().recycle_after, 1 << 10);
        let ledger = self.ledger.get_or_insert_with(begin);
        let Ok(to) = ledger else {
            return;
        };
        let (known, pages) = (to.totals().pages, u64::from(crawl.pages()));
        let admitted = to.make_room(pages, PAGES_MAX);
        if let Err(error) =
            admitted.and_then(|()| (known..pages).try_for_each(|_| to.admit().map(drop)))
        {
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
        let paid = to.visit(PageId(row.page.into()), links, age);
        self.distributed[row.page as usize] += u128::from(paid.cash);
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
            let ended = to.end_round(|page, paid| {
                self.recycled[page.index()] += paid.cash;
                self.distributed[page.index()] += u128::from(paid.cash);
                Ok::<(), Infallible>(())
            });
            match ended {
                Ok(()) => (),
                Err(never) => match never {},
            }
        }
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        let ledger = match &self.ledger {
            None => return Ok(Vec::new()),
            Some(Ok(ledger)) => ledger,
            Some(Err(error)) => return Err(Error::Usage(error.to_string())),
        };
        let mut best = self.queue.best(ask.crawl, ask.count);
        for of in &mut best {
            let cash = ledger.cash(PageId(of.page.into()));
            let units = u128::from(cash) + u128::from(self.recycled[of.page as usize]);
            of.score = units as f64 / ENDOWMENT as f64;
        }
        Ok(best)
    }

    /// Returns the paper's estimate of a page's importance, H + C, up to a common factor.
    fn importance(&self, page: u32) -> Option<f64> {
        let ledger = self.ledger.as_ref()?.as_ref().ok()?;
        let distributed = *self.distributed.get(page as usize)?;
        let cash = ledger.cash(PageId(page.into()));
        Some((distributed + u128::from(cash)) as f64)
    }
}

impl Strategy for Greedy {
    fn read(&mut self, crawl: &CrawlState, row: Row<'_>) {
        if let Some(replay) = &mut self.0 {
            replay.read(crawl, row);
        }
    }

    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<ScoredPage>> {
        match (ask.cash, &mut self.0) {
            (Some(cash), _) => Ok(best_of(ask.crawl, ask.count, |page| cash[page as usize])),
            (None, Some(replay)) => replay.best(ask),
            (None, None) => Err(Error::internal("greedy was asked without the store's cash")),
        }
    }

    fn links(&self) -> u64 {
        let ledger = self.0.as_ref().and_then(|replay| replay.ledger.as_ref());
        let followed = ledger.and_then(|ledger| ledger.as_ref().ok());
        followed.map_or(0, |ledger| ledger.totals().followed as u64)
    }

    fn importance(&self, page: u32) -> Option<f64> {
        self.0.as_ref()?.importance(page)
    }
}
