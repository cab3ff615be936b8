//! `interpolation:T`: one number per page, for a window of length T. A page's measures, oldest first, are folded into
//! one state.

use crate::engine::ledger::ENDOWMENT;
use crate::engine::row::HistoryRow;
use crate::model::PageId;

/// Opens a state from a page's first measure. (`clock`, `pages`) are G and the number of pages at its admission.
pub(super) fn open(measure: &HistoryRow, (clock, pages): (u128, u64)) -> HistoryRow {
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
pub(super) fn interpolate(state: &mut HistoryRow, next: &HistoryRow) {
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
