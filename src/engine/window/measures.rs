//! Windows of measures: what each visit left, kept apart until no window wants it again.
//!
//! The measures of a page that were forgotten leave one row in front, the *base*: their visits, the
//! last fetch, and G at the newest of them.
//!
//! **Groups** (section 3.3: "group several consecutive measures into one"). The clock is cut into
//! stretches; a page's measures of one stretch become one, with the sum of their cash and the newest G. A
//! group is wanted until the window has left its stretch, so that it does not matter when measures
//! met. It counts in full until then: a window begins up to a stretch earlier for it.

use super::policy::Policy;
use crate::engine::row::Row;

/// Which measures of a page are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measures {
    /// Those since the window's start, and the last `least` in any case.
    Since {
        /// The paper's m.
        least: u32,
    },
    /// The last so many: the paper's k.
    Last(u32),
}

impl Measures {
    /// How many of these measures are kept, of the newest.
    fn kept(self, measures: &[Row], start: u128) -> usize {
        let kept = match self {
            Measures::Last(last) => last as usize,
            Measures::Since { least } => {
                let wanted = measures.iter().position(|measure| end(measure) > start);
                let since = wanted.unwrap_or(measures.len());
                (measures.len() - since).max(least as usize)
            }
        };
        kept.min(measures.len())
    }
}

/// How long the stretches of a window of so many units are: a power of two, so that they hardly ever
/// change as pages become known.
pub(crate) fn stretch(units: u128, groups: u32) -> u128 {
    let most = (units / u128::from(groups)).max(1);
    1 << most.ilog2()
}

/// G from which on no window wants a measure: its own or, in a group, the end of its stretch.
fn end(measure: &Row) -> u128 {
    match measure.span {
        0 => measure.clock,
        stretch => measure.clock.div_ceil(stretch) * stretch,
    }
}

impl Policy for Measures {
    fn is_timed(&self) -> bool {
        true
    }

    /// A page found unchanged leaves no measure, only its last fetch, which any row may carry.
    fn join(&self, row: &mut Row, next: &Row) -> bool {
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

    fn forget(&self, rows: &mut Vec<Row>, start: u128) {
        // What is before a base was forgotten with it.
        let base = rows.iter().rposition(|row| row.folded);
        let first = base.map_or(0, |base| base + 1);
        let forgotten = rows.len() - self.kept(&rows[first..], start);
        if forgotten < 2 && base == forgotten.checked_sub(1) {
            return;
        }
        let mut base = Row {
            folded: true,
            ..Row::default()
        };
        for row in rows.drain(..forgotten) {
            base.page = row.page;
            base.clock = row.clock;
            base.take_visits(&row);
        }
        rows.insert(0, base);
    }
}
