//! Rows of a page's history: how they are joined and dropped.
//!
//! **Measures**: what each visit distributed, kept separately until no window needs it. Dropped measures of a page leave
//! one row in front, the *base*: their visits, the last fetch, and G at the newest of them.
//!
//! **Groups** (section 3.3: "group several consecutive measures into one"). The clock is cut into intervals; a page's
//! measures of one interval become one, with the sum of their cash and the newest G. A group is kept until the window
//! has left its interval, so it does not matter when measures were joined. It counts in full until then: for it the
//! window begins up to one interval earlier.
//!
//! **Interpolation**: one number per page, for a window of length T. A page's measures, oldest first, are folded into
//! one state.

use super::span::Span;
use crate::engine::ledger::ENDOWMENT;
use crate::engine::row::HistoryRow;
use crate::model::PageId;

/// Policy by which a page's rows are joined, dropped and read. Rows are of one page, oldest first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowPolicy {
    /// Sums between marks: one row per page.
    Sums,
    /// Separate measures.
    Measures(KeptMeasures),
    /// One number, folded for a window of this length.
    Folded(Span),
}

/// Measures of a page that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptMeasures {
    /// Measures since the window's start, and always the last `least`.
    Since {
        /// m of the paper: minimum number of measures.
        least: u32,
    },
    /// k of the paper: number of newest measures.
    Last(u32),
}

impl KeptMeasures {
    /// Returns how many of the newest measures are kept.
    fn kept(self, measures: &[HistoryRow], start: u128) -> usize {
        let kept = match self {
            KeptMeasures::Last(last) => last as usize,
            KeptMeasures::Since { least } => {
                let wanted = measures.iter().position(|measure| end(measure) > start);
                let since = wanted.unwrap_or(measures.len());
                (measures.len() - since).max(least as usize)
            }
        };
        kept.min(measures.len())
    }

    /// Drops the rows in front that no window needs, and leaves a base for them.
    fn forget(self, rows: &mut Vec<HistoryRow>, start: u128) {
        // Rows before a base were dropped with it.
        let base = rows.iter().rposition(|row| row.folded);
        let first = base.map_or(0, |base| base + 1);
        let forgotten = rows.len() - self.kept(&rows[first..], start);
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

/// Returns the length of a group's interval for a window of this many units: a power of two, so that it rarely changes
/// as the number of pages grows.
pub fn stretch(units: u128, groups: u32) -> u128 {
    let most = (units / u128::from(groups)).max(1);
    1 << most.ilog2()
}

/// Returns the G from which no window needs a measure: its own or, in a group, the end of its interval.
fn end(measure: &HistoryRow) -> u128 {
    match measure.span {
        0 => measure.clock,
        stretch => measure.clock.div_ceil(stretch) * stretch,
    }
}

/// Joins `next` into the preceding `row`. A page found unchanged leaves no measure, only its last fetch, which any row
/// may carry.
fn join(row: &mut HistoryRow, next: &HistoryRow) -> bool {
    if next.clock == 0 && !next.folded {
        row.take_visits(next);
        return true;
    }
    if row.clock == 0 && !row.folded {
        let before = std::mem::replace(row, *next);
        row.take_earlier_visits(&before);
        return true;
    }
    if !row.folded && !next.folded && next.span > 0 && end(row) == end(next) {
        row.take_visits(next);
        row.cash += next.cash;
        row.clock = next.clock;
        row.span = next.span;
        return true;
    }
    false
}

impl RowPolicy {
    /// Returns true if measures need the clock.
    pub fn is_timed(self) -> bool {
        !matches!(self, RowPolicy::Sums)
    }

    /// Joins `next` into the preceding `row`. Returns false if both must be kept.
    pub fn join(self, row: &mut HistoryRow, next: &HistoryRow) -> bool {
        match self {
            RowPolicy::Sums => {
                row.cash += next.cash;
                row.take_visits(next);
                true
            }
            RowPolicy::Measures(_) => join(row, next),
            // Measures stay separate until they are folded into a state.
            RowPolicy::Folded(_) if !row.folded => false,
            RowPolicy::Folded(_) => {
                interpolate(row, next);
                true
            }
        }
    }

    /// Opens a state from a page's first measure. `admitted` is (G, pages) at the page's admission.
    pub(in crate::engine) fn open(self, measure: &HistoryRow, admitted: (u128, u64)) -> HistoryRow {
        match self {
            RowPolicy::Folded(_) => open(measure, admitted),
            RowPolicy::Sums | RowPolicy::Measures(_) => *measure,
        }
    }

    /// Drops those of `rows` that no window will need. `start` is G at the start of the window, which never moves back.
    pub(in crate::engine) fn forget(self, rows: &mut Vec<HistoryRow>, start: u128) {
        if let RowPolicy::Measures(kept) = self {
            kept.forget(rows, start);
        }
    }
}

/// Opens a state from a page's first measure. (`clock`, `pages`) are G and the number of pages at its admission.
fn open(measure: &HistoryRow, (clock, pages): (u128, u64)) -> HistoryRow {
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

/// Folds the measure `next` into a state (section 3.3, Interpolation): `H (T - (G - G_i)) / T + C` if `G - G_i < T`,
/// else `C T / (G - G_i)`. H is in whole units, rounded down. Before the first measure H is the default history, "the
/// importance of recently introduced pages". It is known only when an estimate is made, so a state is H = `cash` + w x
/// default with a weight w ([`default_weight`]), to which the formula applies as well: 1 at the admission, then w (T -
/// (G - G_i)) / T, or 0. Between its admission and its first measure a page received C less the endowment. A row
/// without a measure (an unchanged page) changes the last fetch only.
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
/// earlier versions have the number of pages there, which is smaller than the flag, and include the default, then the
/// mean importance, in their cash.
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
