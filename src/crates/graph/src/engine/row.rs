//! Row of the history: the joined measures of one or more visits of a page.

use super::fetches::RowFetches;
use crate::model::{Fetches, Time};

/// Joined measures of one page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryRow {
    pub page: u64,
    /// C: sum of the cash distributed; for the state of an interpolation, the history H.
    pub cash: u128,
    /// Number of visits, without recyclings.
    pub visits: u64,
    /// Time of the last fetch, if times are known.
    pub last_fetch: Option<Time>,
    /// G at the measure; 0 if there is no measure or the policy does not need it.
    pub clock: u128,
    /// Number of pages known at the measure; 0 if the policy does not need it. For the state of an interpolation, the
    /// weight of the default history in it.
    pub pages: u64,
    /// Length of the window at the measure in units of G, or the length of a group's interval; 0 if the policy does not
    /// need it.
    pub span: u128,
    /// True if the row combines older measures: the state of an interpolation, or the base of dropped measures.
    pub folded: bool,
    /// Units recycled from the page by ends of rounds since the last of these visits, or since its admission.
    pub recycled: u64,
    /// Failures and changes observed in fetches.
    pub fetches: RowFetches,
}

impl HistoryRow {
    /// Adds the visits of a later row and takes its last fetch.
    pub fn take_visits(&mut self, next: &HistoryRow) {
        self.recycled = match next.visits {
            0 => self.recycled.saturating_add(next.recycled),
            _ => next.recycled,
        };
        self.visits += next.visits;
        self.last_fetch = self.last_fetch.max(next.last_fetch);
        self.fetches.join(&next.fetches);
    }

    /// Adds the visits of an earlier row.
    pub fn take_earlier_visits(&mut self, before: &HistoryRow) {
        let mut all = *before;
        all.take_visits(self);
        self.visits = all.visits;
        self.last_fetch = all.last_fetch;
        self.recycled = all.recycled;
        self.fetches = all.fetches;
    }

    /// Returns the fetches of the page, if this row joins all its rows.
    pub fn known(&self) -> Fetches {
        Fetches {
            recycled: self.recycled,
            ..self.fetches.known(self.visits, self.last_fetch)
        }
    }

    /// Returns the row as a window sees it: with its cash only if that was distributed inside the window.
    pub fn counted(&self, inside: bool) -> HistoryRow {
        HistoryRow {
            cash: if inside { self.cash } else { 0 },
            ..*self
        }
    }
}
