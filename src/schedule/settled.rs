//! Settled importance: PageRank of the known graph, in which pages not read have no links,
//! computed again whenever it is asked for.

use super::surfer::Surfer;
use super::{Ask, Registered, Scored, Strategy, best_of};
use crate::Result;

pub(super) const REGISTERED: Registered = Registered {
    name: "settled",
    about: "PageRank of the known graph, computed again for each request",
    parameters: &[],
    page_by_page: false,
    without_rows: false,
    needs_names: false,
    make: |_| Box::new(Settled),
};

/// After so many sweeps 0.85^30 < 0.8 % is not settled.
pub(super) const SWEEPS: u32 = 30;

struct Settled;

impl Strategy for Settled {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let scores = Surfer::Known.settle(ask.crawl, ask.rows, SWEEPS)?;
        Ok(best_of(ask.crawl, ask.count, |page| scores[page as usize]))
    }
}
