//! A row of the history: what one or several visits of a page left.

use super::fetches::RowFetches;
use crate::model::{Fetches, Time};

/// One page's measures, joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    /// The page's number.
    pub page: u64,
    /// Sum of the cash distributed (C); for an interpolation's state the history H.
    pub cash: u128,
    /// Visits, recyclings not counted.
    pub visits: u64,
    /// Time of the last fetch, if times are known.
    pub last_fetch: Option<Time>,
    /// G at the measure; 0: no measure, or the policy does not need it.
    pub clock: u128,
    /// Pages known at the measure; 0 where the policy does not need it. Of an interpolation's state: the weight of the
    /// default history in it.
    pub pages: u64,
    /// The window's length then, in units of G, or that of a group's stretch; 0 where the policy does not
    /// need it.
    pub span: u128,
    /// The row is what older measures left: an interpolation's state, or the base of those that were
    /// forgotten.
    pub folded: bool,
    /// Units that rounds' ends recycled from the page since the last of these visits, or since it was admitted.
    pub recycled: u64,
    /// Failures and changes that fetches showed.
    pub fetches: RowFetches,
}

impl Row {
    /// Adds `next`'s visits and takes its later fetch.
    pub(crate) fn take_visits(&mut self, next: &Row) {
        self.recycled = match next.visits {
            0 => self.recycled.saturating_add(next.recycled),
            _ => next.recycled,
        };
        self.visits += next.visits;
        self.last_fetch = self.last_fetch.max(next.last_fetch);
        self.fetches.join(&next.fetches);
    }

    /// The same of what came before.
    pub(crate) fn take_earlier_visits(&mut self, before: &Row) {
        let mut all = *before;
        all.take_visits(self);
        self.visits = all.visits;
        self.last_fetch = all.last_fetch;
        self.recycled = all.recycled;
        self.fetches = all.fetches;
    }

    /// The fetches of the page, if this is all its rows joined.
    pub(crate) fn known(&self) -> Fetches {
        Fetches {
            recycled: self.recycled,
            ..self.fetches.known(self.visits, self.last_fetch)
        }
    }

    /// The row as seen by a window: with its cash only if that was distributed inside it.
    pub(crate) fn counted(&self, inside: bool) -> Row {
        Row {
            cash: if inside { self.cash } else { 0 },
            ..*self
        }
    }
}
