//! Settled importance: PageRank of the known graph, in which pages not read have no links,
//! computed again whenever it is asked for.

use super::surfer::settle;
use super::{Ask, AtATime, Registered, Scored, Strategy, best_of};
use crate::Result;

pub(super) const REGISTERED: Registered = Registered {
    name: "settled",
    about: "PageRank of the known graph, computed again for each request",
    parameters: &[],
    at_a_time: AtATime::Part(20),
    without_rows: false,
    needs_names: false,
    make: |_| Box::new(Settled { links: 0 }),
};

/// After so many sweeps 0.85^30 < 0.8 % is not settled.
pub(super) const SWEEPS: u32 = 30;

struct Settled {
    links: u64,
}

impl Strategy for Settled {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let scores = settle(ask.crawl, ask.rows, SWEEPS)?;
        self.links += u64::from(SWEEPS) * ask.rows.links();
        Ok(best_of(ask.crawl, ask.count, |page| scores[page as usize]))
    }

    fn links(&self) -> u64 {
        self.links
    }
}
