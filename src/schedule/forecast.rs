//! Forecast: importance settled on the known graph, as far as it can be foreseen of pages not read.
//!
//! Three things make it differ from the importance of the known graph ([`super::settled`]):
//!
//! - A page not read is taken to link as the pages do that link to it: of what it receives from a page,
//!   0.98 (damped) goes back there. So what a page has found, and nobody read yet, counts for that page.
//! - The virtual page pays the share (1 - read/known)^2.5 s/(s + 10) to the s seeds, the rest equally to pages
//!   read: early the crawl is about the neighbourhood of the seeds, later about the web. A few seeds say little of
//!   what matters in it.
//! - A page whose neighbours in name order were hardly read has most of its links still to be seen: its
//!   score is what it receives, times (known / (1 + read))^e of the seven names on each side, with e = 0.35 until half of
//!   the pages known were read, then 1.4 (1 - read/known)^2: what was not read until then is poor in links. A parameter,
//!   `unseen`, stands for the 0.35 (and four times it for the 1.4): a larger one spreads the crawl over the parts of a site,
//!   and finds the last of its most important pages sooner.
//!
//! Settled by 20 sweeps over the rows, from scratch whenever it is asked: 20 links a link known, 16 bytes
//! a page beside the crawl's own, 24 with names.

use super::surfer::Surfer;
use super::{Ask, Registered, Scored, Strategy, best_of};
use crate::Result;

pub(super) const REGISTERED: Registered = Registered {
    name: "forecast",
    about: "importance that a page will have in the end, estimated from the links known",
    parameters: &["unseen"],
    page_by_page: false,
    without_rows: false,
    needs_names: true,
    make: |of| {
        Box::new(Forecast {
            unseen: of.unseen,
            scores: Vec::new(),
            settled: (0, 0),
        })
    },
};

/// What comes back of what a page not read receives.
const RETURNED: f64 = 0.98;
/// The power of the share not read that seeds are paid.
const SEEDS: f64 = 2.5;
/// So many seeds are paid half of it.
const FEW_SEEDS: f64 = 10.0;
/// The power of what is unseen near a page, if nothing else is said.
pub(super) const UNSEEN: f64 = 0.35;
const SWEEPS: u32 = 20;
/// Names on each side that are a page's neighbourhood.
const NEAR: usize = 7;

/// The last answer's scores: nothing changes them but a page read.
struct Forecast {
    unseen: f64,
    scores: Vec<f64>,
    /// Pages known and read then.
    settled: (u32, u32),
}

impl Strategy for Forecast {
    fn best(&mut self, ask: &Ask<'_>) -> Result<Vec<Scored>> {
        let now = (ask.crawl.pages(), ask.crawl.read());
        if self.settled != now {
            self.scores = settle(ask, self.unseen)?;
            self.settled = now;
        }
        let scores = &self.scores;
        Ok(best_of(ask.crawl, ask.count, |page| scores[page as usize]))
    }
}

fn settle(ask: &Ask<'_>, unseen: f64) -> Result<Vec<f64>> {
    let crawl = ask.crawl;
    let not_read = 1.0 - f64::from(crawl.read()) / f64::from(crawl.pages().max(1));
    let seeds = crawl.seeds().len() as f64;
    let surfer = Surfer::Forecast {
        returned: RETURNED,
        seeds: libm::pow(not_read, SEEDS) * seeds / (seeds + FEW_SEEDS),
    };
    let mut scores = surfer.settle(crawl, ask.rows, SWEEPS)?;
    if let Some(names) = ask.names {
        let late = (2.0 * not_read).min(1.0);
        let power = unseen * late * late;
        let lift = |page: u32, known: u32, read: u32| {
            let unseen = f64::from(known) / f64::from(1 + read);
            scores[page as usize] *= libm::pow(unseen, power);
        };
        names.around(NEAR, |page| crawl.is_read(page), lift);
    }
    Ok(scores)
}
