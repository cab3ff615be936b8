//! Greedy (OPIC, section 3.1): the page with the largest claim first. A page's claim is its cash in the store's ledger
//! plus what was recycled from it since its last visit ([`crate::engine::Ledger::end_round`]): the end of a round takes
//! the cash of a page that nobody fetches, but not its turn. Pages that were read have claims, too, and compete with the
//! others if both are asked for.

use super::{CrawlFacts, CrawlState, ScoredPage, Strategy, StrategySpec, best_of};
use crate::{Error, Result};

pub(super) const SPEC: StrategySpec = StrategySpec {
    name: "greedy",
    about: "most cash first, as in OPIC: cash and what was recycled since the last visit",
    without_rows: true,
    by_cash: true,
    ..StrategySpec::of(|_| Box::new(Greedy))
};

struct Greedy;

impl Strategy for Greedy {
    fn best(
        &mut self,
        crawl: &CrawlState,
        facts: &CrawlFacts<'_>,
        count: usize,
    ) -> Result<Vec<ScoredPage>> {
        let cash = facts.cash;
        let cash =
            cash.ok_or_else(|| Error::internal("greedy was asked without the store's cash"))?;
        Ok(best_of(crawl, count, |page| cash[page as usize]))
    }
}
