//! Queues in memory: counts of URLs by state, and the position among the other queues.

use super::Now;
use super::item::{Item, Order, UrlState};

/// Queue of URLs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// Position of its best available URL.
    pub(super) head: Option<Order>,
    /// Position among queues, if a URL is available.
    pub(super) place: Option<Order>,
    /// Number of URLs that were fetched, or are handed out.
    pub(super) begun: u64,
    /// Number of URLs that are ready, waiting or handed out.
    pub(crate) active: u64,
    /// Number of URLs that are handed out.
    pub(crate) leased: u64,
    /// Number of URLs that are not to be fetched again.
    pub(crate) completed: u64,
    /// Minimum number of seconds between two requests; `None`: the default.
    pub(crate) delay: Option<u32>,
    /// Time before which nothing is handed out, in seconds since 1970.
    pub(crate) blocked_until: u64,
    /// Number of completed URLs from which nothing is handed out; 0: no limit.
    pub(crate) limit: u32,
    /// Time at which URLs were last handed out, as in [`Now::passed_ms`].
    pub(super) served: Option<u64>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.active + self.completed == 0
    }

    /// Returns the position among queues: by the score of its best URL, times the number of known URLs divided by one
    /// more than that of fetched ones. A strategy gives importance to pages that were read, so of two similar sites the
    /// one with more pages read has the higher scores; without the correction, one would be read to its end before the
    /// other.
    pub(super) fn place_of(&self, head: Order) -> Order {
        let known = (self.active + self.completed) as f64;
        head.times(known / (1 + self.begun) as f64)
    }

    pub(super) fn is_plain(&self) -> bool {
        self.delay.is_none() && self.blocked_until == 0 && self.limit == 0
    }

    /// Returns whether URLs may be handed out now, if at most `most` may be handed out at the same time.
    pub(super) fn serves(&self, now: Now, usual_delay: u32, most: u64) -> bool {
        let delay_ms = u64::from(self.delay.unwrap_or(usual_delay)) * 1_000;
        let rested = self
            .served
            .is_none_or(|at| at.saturating_add(delay_ms) <= now.passed_ms);
        let limited = self.limit > 0 && self.completed >= u64::from(self.limit);
        rested && !limited && self.blocked_until <= now.unix_s && self.leased < most
    }
}

/// Adds an item to the counts of its queue (1), or removes it (-1).
pub(super) fn count_in(queue: &mut Queue, item: &Item, sign: i64) {
    let add = |count: &mut u64| *count = count.saturating_add_signed(sign);
    if item.fetched || item.place == UrlState::Leased {
        add(&mut queue.begun);
    }
    match item.place {
        UrlState::Completed => add(&mut queue.completed),
        UrlState::Leased => {
            add(&mut queue.leased);
            add(&mut queue.active);
        }
        UrlState::Ready | UrlState::Waiting => add(&mut queue.active),
    }
}
