//! A queue in memory: how many URLs it has in which state, and where it stands among the others.

use super::Now;
use super::item::{Item, Order, UrlState};

/// A queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// Its best URL that may be handed out.
    pub(super) head: Option<Order>,
    /// Its place among queues, if it has such a URL.
    pub(super) place: Option<Order>,
    /// URLs that were fetched, or are handed out.
    pub(super) begun: u64,
    /// URLs ready, waiting or handed out.
    pub(crate) active: u64,
    /// URLs handed out.
    pub(crate) leased: u64,
    /// URLs that are not to be fetched again.
    pub(crate) completed: u64,
    /// Seconds between two answers; `None`: the usual.
    pub(crate) delay: Option<u32>,
    /// Nothing is handed out before this time, in seconds since 1970.
    pub(crate) blocked_until: u64,
    /// Nothing is handed out once so many are completed; 0: no limit.
    pub(crate) limit: u32,
    /// When URLs of it were last handed out, as of [`Now::passed_ms`].
    pub(super) served: Option<u64>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.active + self.completed == 0
    }

    /// Where it comes among queues: by its best URL's score, times the URLs known to those fetched. A strategy hands importance
    /// to what was read, so of two sites alike the one that more was read of has the higher scores, whatever else it has;
    /// left to itself, it would be read to its end before the other.
    pub(super) fn place_of(&self, head: Order) -> Order {
        let known = (self.active + self.completed) as f64;
        head.times(known / (1 + self.begun) as f64)
    }

    pub(super) fn is_plain(&self) -> bool {
        self.delay.is_none() && self.blocked_until == 0 && self.limit == 0
    }

    /// Returns whether URLs may be handed out now, at most `most` being handed out at once.
    pub(super) fn serves(&self, now: Now, usual_delay: u32, most: u64) -> bool {
        let delay_ms = u64::from(self.delay.unwrap_or(usual_delay)) * 1_000;
        let rested = self
            .served
            .is_none_or(|at| at.saturating_add(delay_ms) <= now.passed_ms);
        let limited = self.limit > 0 && self.completed >= u64::from(self.limit);
        rested && !limited && self.blocked_until <= now.unix_s && self.leased < most
    }
}

/// Adds an item to the counts of its queue, or takes it off (-1).
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
