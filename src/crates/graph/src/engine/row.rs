//! Rows of the history: the joined measures of one or more visits of a page, its failed fetches and its changes.
//!
//! Rows of one page are joined in stream order. Joining is associative, so results do not depend on the order in which
//! runs are merged.
//!
//! Two consecutive observations with digests of the same kind, of a page's content or of the set of its links, show whether
//! the page changed between them. A record that says "unchanged" (304, `revisit`) is a comparison by itself.
//!
//! **Measures**: the cash that each visit distributed, kept separately until no window needs it. The dropped measures
//! of a page leave one row in front, the *base*, with their visits, the last fetch, and G at the newest measure.
//!
//! **Interpolation**: a page's measures, oldest first, are folded into one number, for a window of length T.

use super::TargetLinks;
use super::ledger::ENDOWMENT;
use super::window::Span;
use crate::model::{Digest, FetchTotals, Fetches, PageId, Time};
use crate::{Error, Result};

/// Stands for an unknown time.
pub const NO_TIME: Time = Time::MIN;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryRow {
    pub page: u64,
    /// C: sum of the cash distributed; for the state of an interpolation, the history H.
    pub cash: u128,
    /// Number of visits, without recyclings.
    pub visits: u64,
    pub last_fetch: Option<Time>,
    /// G at the measure; 0 if there is no measure or the policy does not need it.
    pub clock: u128,
    /// Number of pages known at the measure; 0 if the policy does not need it. For the state of an interpolation, the
    /// weight of the default history in it.
    pub pages: u64,
    /// Length of the window at the measure in units of G; 0 if the policy does not need it.
    pub span: u128,
    /// True if the row combines older measures: the state of an interpolation, or the base of dropped measures.
    pub folded: bool,
    /// Units recycled from the page by ends of rounds since the row's last visit, or since its admission.
    pub recycled: u64,
    pub fetches: RowFetches,
}

impl HistoryRow {
    /// Returns the place of the row's page among the pages from `first` on.
    #[inline]
    pub fn place(&self, first: u64) -> Result<u64> {
        self.page
            .checked_sub(first)
            .ok_or_else(|| Error::internal(format!("the history goes back to page {}", self.page)))
    }

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

/// Failures and changes observed in fetches of a page. Unknown times are `NO_TIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFetches {
    /// Failed fetches since the page was last reached.
    pub failed: u32,
    pub last_failed: Time,
    /// True if the page was reached: visited, found gone or unchanged.
    pub reached: bool,
    /// Digest of the first observation that has one.
    pub first: Digest,
    pub last: Digest,
    /// Number of comparisons between consecutive observations.
    pub compared: u32,
    pub changed: u32,
    /// Time of the first observation.
    pub since: Time,
}

impl Default for RowFetches {
    fn default() -> RowFetches {
        RowFetches {
            failed: 0,
            last_failed: NO_TIME,
            reached: false,
            first: Digest::NONE,
            last: Digest::NONE,
            compared: 0,
            changed: 0,
            since: NO_TIME,
        }
    }
}

impl RowFetches {
    pub(super) fn failure(at: Option<Time>) -> RowFetches {
        RowFetches {
            failed: 1,
            last_failed: at.unwrap_or(NO_TIME),
            ..RowFetches::default()
        }
    }

    /// Returns the entry for one fetch that reached the page.
    pub(super) fn look(digest: Digest, at: Option<Time>) -> RowFetches {
        let since = at.filter(|_| digest != Digest::NONE);
        RowFetches {
            reached: true,
            first: own(digest),
            last: own(digest),
            compared: u32::from(digest == Digest::UNCHANGED),
            since: since.unwrap_or(NO_TIME),
            ..RowFetches::default()
        }
    }

    /// Returns the entry for all fetches of a page so far; the last reached it at time `last` and left this digest.
    pub(super) fn of(totals: &FetchTotals, digest: Digest, last: Option<Time>) -> RowFetches {
        RowFetches {
            failed: totals.failed,
            last_failed: totals.last_failed.unwrap_or(NO_TIME),
            reached: totals.visits > 0 || last.is_some(),
            first: own(digest),
            last: own(digest),
            compared: totals.compared,
            changed: totals.changed,
            since: last.map_or(NO_TIME, |last| last.saturating_sub(totals.watched_s.into())),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == RowFetches::default()
    }

    /// Summarises the fetches of a page with this many visits, the last of them at time `last`.
    pub fn known(&self, visits: u64, last: Option<Time>) -> Fetches {
        let time = |time| Some(time).filter(|&time| time != NO_TIME);
        // The first observation starts an interval only if there were comparisons.
        let since = time(self.since).filter(|_| self.compared > 0);
        let watched = last
            .zip(since)
            .map(|(last, since)| last.saturating_sub(since));
        Fetches {
            visits,
            last,
            failed: self.failed.into(),
            last_failed: time(self.last_failed),
            compared: self.compared.into(),
            changed: self.changed.into(),
            watched_s: watched.map_or(0, |watched| u64::try_from(watched).unwrap_or(0)),
            // A visit always has a digest, at least of its links, which replaces this one.
            gone: self.last == Digest::GONE,
            recycled: 0,
        }
    }

    pub fn join(&mut self, next: &RowFetches) {
        if next.reached {
            (self.failed, self.last_failed) = (next.failed, next.last_failed);
        } else {
            self.failed = self.failed.saturating_add(next.failed);
            self.last_failed = self.last_failed.max(next.last_failed);
        }
        self.reached |= next.reached;
        if self.since == NO_TIME {
            self.since = next.since;
        }
        if let Some(changed) = self.last.changed(next.first) {
            self.compared = self.compared.saturating_add(1);
            self.changed = self.changed.saturating_add(u32::from(changed));
        }
        self.compared = self.compared.saturating_add(next.compared);
        self.changed = self.changed.saturating_add(next.changed);
        if self.first == Digest::NONE {
            self.first = next.first;
        }
        if next.last != Digest::NONE {
            self.last = next.last;
        }
    }
}

fn own(digest: Digest) -> Digest {
    match digest {
        Digest::UNCHANGED => Digest::NONE,
        digest => digest,
    }
}

/// Returns a digest of a page's set of links, independent of their order and weights.
pub fn digest_of(links: TargetLinks<'_>) -> Digest {
    // The high half of a product depends on all bits of both factors; a sum does not depend on order.
    let mixed = links.targets.iter().map(|page| {
        let page = (page.0 ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (page ^ (page >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
    });
    let sum = mixed.fold(links.targets.len() as u64, u64::wrapping_add);
    Digest::of_links(sum ^ (sum >> 32))
}

/// Policy by which the rows of a page, oldest first, are joined, dropped and read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowPolicy {
    /// Sums between marks: one row per page.
    Sums,
    /// Separate measures since the window's start, and always the last `least`.
    Since {
        /// m of the paper: minimum number of measures.
        least: u32,
    },
    /// Separate measures: the k newest, k as in the paper.
    Last(u32),
    /// One number, folded for a window of this length.
    Folded(Span),
}

/// Joins `next` into the preceding `row`. A page found unchanged leaves no measure, only its last fetch, which any row
/// may carry.
fn join(row: &mut HistoryRow, next: &HistoryRow) -> bool {
    if next.clock == 0 && !next.folded {
        row.take_visits(next);
        return true;
    }
    if row.clock == 0 && !row.folded {
        row.take_visits(next);
        *row = HistoryRow {
            visits: row.visits,
            last_fetch: row.last_fetch,
            recycled: row.recycled,
            fetches: row.fetches,
            ..*next
        };
        return true;
    }
    false
}

impl RowPolicy {
    pub fn is_timed(self) -> bool {
        self != RowPolicy::Sums
    }

    pub fn keeps_measures(self) -> bool {
        matches!(self, RowPolicy::Since { .. } | RowPolicy::Last(_))
    }

    /// Joins `next` into the preceding `row`. Returns false if both must be kept.
    pub fn join(self, row: &mut HistoryRow, next: &HistoryRow) -> bool {
        match self {
            RowPolicy::Sums => {
                row.cash += next.cash;
                row.take_visits(next);
                true
            }
            RowPolicy::Since { .. } | RowPolicy::Last(_) => join(row, next),
            // Measures stay separate until they are folded into a state.
            RowPolicy::Folded(_) if !row.folded => false,
            RowPolicy::Folded(_) => {
                interpolate(row, next);
                true
            }
        }
    }

    /// Opens a state from a page's first measure. `(clock, pages)` is (G, pages) at the page's admission.
    pub(super) fn open(self, measure: &HistoryRow, (clock, pages): (u128, u64)) -> HistoryRow {
        let RowPolicy::Folded(_) = self else {
            return *measure;
        };
        let mut state = HistoryRow {
            page: measure.page,
            clock,
            pages,
            folded: true,
            ..HistoryRow::default()
        };
        interpolate(&mut state, measure);
        state
    }

    /// Drops the rows in front that no window will need, and leaves a base in their place. `start` is G at the start of
    /// the window, which never moves back.
    pub(super) fn forget(self, rows: &mut Vec<HistoryRow>, start: u128) {
        // Rows before a base were dropped with it.
        let base = rows.iter().rposition(|row| row.folded);
        let measures = &rows[base.map_or(0, |base| base + 1)..];
        let kept = match self {
            RowPolicy::Last(last) => last as usize,
            RowPolicy::Since { least } => {
                let wanted = measures.iter().position(|measure| measure.clock > start);
                let since = wanted.map_or(0, |wanted| measures.len() - wanted);
                since.max(least as usize)
            }
            RowPolicy::Sums | RowPolicy::Folded(_) => return,
        };
        let forgotten = rows.len() - kept.min(measures.len());
        if forgotten < 2 && base == forgotten.checked_sub(1) {
            return;
        }
        let mut base = HistoryRow {
            folded: true,
            ..HistoryRow::default()
        };
        for row in rows.drain(..forgotten) {
            base.page = row.page;
            base.clock = row.clock;
            base.take_visits(&row);
        }
        rows.insert(0, base);
    }
}

/// Folds the measure `next` into a state (section 3.3, Interpolation): `H (T - (G - G_i)) / T + C` if `G - G_i < T`,
/// else `C T / (G - G_i)`. H is in whole units, rounded down. Before the first measure H is the default history, "the
/// importance of recently introduced pages", which is known only when an estimate is made. So a state is H = `cash` + w
/// x default; the formula applies to the weight w ([`default_weight`]) as well: 1 at the admission, then w (T - (G -
/// G_i)) / T, or 0. Between its admission and its first measure a page received C less the endowment. A row without a
/// measure (an unchanged page) changes the last fetch only.
fn interpolate(state: &mut HistoryRow, next: &HistoryRow) {
    state.take_visits(next);
    if next.clock == 0 {
        return;
    }
    let (before, weight, added) = match state.span {
        0 => (0, 1.0, next.cash.saturating_sub(ENDOWMENT.into())),
        _ => (state.cash, default_weight(state), next.cash),
    };
    let span = next.span as f64;
    let gone_by = next.clock.saturating_sub(state.clock) as f64;
    let left = if gone_by < span {
        (span - gone_by) / span
    } else {
        0.0
    };
    state.cash = if left > 0.0 {
        (before as f64 * left) as u128 + added
    } else {
        (added as f64 * (span / gone_by)) as u128
    };
    state.clock = next.clock;
    state.pages = match (weight * left * WEIGHT_ONE) as u64 {
        0 => 0,
        weight => WEIGHTED | weight,
    };
    state.span = next.span;
}

/// Flag in a state's `pages`: the rest is the weight of its default history, in units of 1/[`WEIGHT_ONE`]. States of
/// earlier versions have the number of pages there, and include the mean importance in their cash.
const WEIGHTED: u64 = 1 << 34;
const _: () = assert!(WEIGHTED > PageId::LIMIT);
const WEIGHT_ONE: f64 = (1u64 << 32) as f64;

/// Returns the weight of the default history in a page's state; 1 before the first measure.
pub fn default_weight(state: &HistoryRow) -> f64 {
    match state.span {
        0 => 1.0,
        _ if state.pages & WEIGHTED == 0 => 0.0,
        _ => (state.pages & !WEIGHTED) as f64 / WEIGHT_ONE,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates a fetch of some kind.
    fn event() -> impl Strategy<Value = RowFetches> {
        let time = prop_oneof![Just(None), (0i64..100).prop_map(Some)];
        let digest = prop_oneof![
            Just(Digest::NONE),
            Just(Digest::UNCHANGED),
            Just(Digest::GONE),
            (0u64..3).prop_map(Digest::of_links),
            (0u64..3).prop_map(Digest::of_content),
        ];
        prop_oneof![
            time.clone().prop_map(RowFetches::failure),
            (digest, time).prop_map(|(digest, time)| RowFetches::look(digest, time)),
        ]
    }

    fn joined(events: &[RowFetches]) -> RowFetches {
        events.iter().fold(RowFetches::default(), |mut all, next| {
            all.join(next);
            all
        })
    }

    proptest! {
        /// However the events of a page are cut into runs, and whichever are joined first.
        #[test]
        fn joining_is_associative(
            events in proptest::collection::vec(event(), 0..12),
            cut in any::<proptest::sample::Index>(),
            again in any::<proptest::sample::Index>(),
        ) {
            let cut = cut.index(events.len() + 1);
            let (before, after) = events.split_at(cut);
            let (middle, last) = after.split_at(again.index(after.len() + 1));
            let mut right = joined(middle);
            right.join(&joined(last));
            let mut whole = joined(before);
            whole.join(&right);
            prop_assert_eq!(whole, joined(&events));
        }
    }

    #[test]
    fn facts_of_a_page_are_joined() {
        let links = |n| RowFetches::look(Digest::of_links(n), Some(n as i64));
        let fails = |at| RowFetches::failure(Some(at));
        let page = joined(&[fails(1), fails(2), links(10), links(10), fails(12)]);
        assert_eq!((page.failed, page.last_failed), (1, 12));
        assert_eq!((page.compared, page.changed, page.since), (1, 0, 10));
        let unchanged = RowFetches::look(Digest::UNCHANGED, Some(20));
        let gone = RowFetches::look(Digest::GONE, Some(30));
        let page = joined(&[links(1), unchanged, links(2), gone, gone, fails(40)]);
        assert_eq!((page.compared, page.changed, page.failed), (4, 2, 1));
        // Digests of two kinds are not compared.
        let content = RowFetches::look(Digest::of_content(1), Some(2));
        assert_eq!(joined(&[links(1), content]).compared, 0);
    }

    #[test]
    fn links_are_a_set() {
        let digest = |pages: &[u64]| {
            let targets: Vec<PageId> = pages.iter().map(|&page| PageId(page)).collect();
            digest_of((&targets[..]).into())
        };
        assert_eq!(digest(&[1, 2, 3]), digest(&[3, 1, 2]));
        for other in [&[1, 2][..], &[1, 2, 4], &[1, 2, 3, 4], &[]] {
            assert_ne!(digest(&[1, 2, 3]), digest(other));
        }
    }
}
