//! Windows of measures: what each visit distributed, kept separately until no window needs it.
//!
//! Dropped measures of a page leave one row in front, the *base*: their visits, the last fetch, and G at the newest of
//! them.
//!
//! **Groups** (section 3.3: "group several consecutive measures into one"). The clock is cut into intervals; a page's
//! measures of one interval become one, with the sum of their cash and the newest G. A group is kept until the window
//! has left its interval, so it does not matter when measures were joined. It counts in full until then: for it the
//! window begins up to one interval earlier.

use crate::engine::row::HistoryRow;

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
    pub(super) fn forget(self, rows: &mut Vec<HistoryRow>, start: u128) {
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
pub(super) fn join(row: &mut HistoryRow, next: &HistoryRow) -> bool {
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
