//! Marks: points in the stream at which windows can begin.
//!
//! A mark is a retained copy of the ledger's cells, with the totals at that point. One is made at the end of every
//! round and after a pass; the start of the stream is mark 0 and costs nothing. Marks are thinned so that their ages,
//! in rounds, grow geometrically.

use serde::{Deserialize, Serialize};

use super::ledger::Totals;

/// A mark; the storage keeps its copy of the cells under `number`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CashMark {
    /// Number of the mark, from 1; 0 is the start of the stream.
    pub number: u64,
    /// The ledger's totals at the mark.
    pub totals: Totals,
}

/// Returns the index of the mark to drop so that at most `limit` remain; `marks` are oldest first and end with the one
/// just made. Never one of the newest two, unless `limit` is below 2.
///
/// The mark dropped is the one whose neighbours' ages are closest in proportion.
pub fn superfluous(marks: &[CashMark], limit: usize) -> Option<usize> {
    if marks.len() <= limit {
        return None;
    }
    let now = marks.last()?.totals.rounds;
    let age = |mark: &CashMark| u128::from(now - mark.totals.rounds);
    let mut best: Option<(usize, u128, u128)> = None;
    for at in 0..marks.len().saturating_sub(2) {
        let older = if at == 0 {
            u128::from(now)
        } else {
            age(&marks[at - 1])
        };
        let newer = age(&marks[at + 1]);
        if best.is_none_or(|(_, o, n)| older * n < o * newer) {
            best = Some((at, older, newer));
        }
    }
    Some(best.map_or(0, |(at, _, _)| at))
}

/// Returns the index of the mark to drop for a window that begins at the mark nearest to G = `start`: one mark before
/// `start` is kept, and the others are kept evenly spaced.
pub fn superfluous_since(marks: &[CashMark], limit: usize, start: u128) -> Option<usize> {
    if marks.len() <= limit {
        return None;
    }
    let clock = |at: usize| marks[at].totals.clock;
    let before = marks.partition_point(|mark| mark.totals.clock <= start);
    if before > 1 {
        return Some(before - 2);
    }
    // Gap between the neighbours if the mark is dropped.
    let apart = |&at: &usize| clock(at + 1) - at.checked_sub(1).map_or(0, clock);
    let least = (0..marks.len() - 1).min_by_key(apart);
    Some(least.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After any number of rounds, the ages of neighbouring marks differ at most by a fixed factor.
    #[test]
    fn ages_grow_geometrically() {
        let mut marks: Vec<CashMark> = Vec::new();
        for round in 1..=5_000u64 {
            let mut mark = CashMark {
                number: round,
                ..CashMark::default()
            };
            mark.totals.rounds = round;
            marks.push(mark);
            if let Some(at) = superfluous(&marks, 6) {
                marks.remove(at);
            }
            assert!(marks.len() <= 6);
            let ages: Vec<u64> = marks.iter().map(|m| round - m.totals.rounds).collect();
            if round >= 2 {
                assert_eq!(ages[ages.len() - 2..], [1, 0], "the newest two are kept");
            }
            // Six marks over R rounds: equal ratios would be R^(1/5); dropping one at a time stays within a factor of 8
            // of that.
            let even = (round as f64).powf(0.2);
            let mut older = round;
            for &age in &ages[..ages.len() - 1] {
                let ratio = older as f64 / age as f64;
                assert!(ratio <= 8.0 * even, "round {round}: ages {ages:?}");
                older = age;
            }
        }
    }

    /// With an evenly running clock, some mark is always within one gap of the window's start, and a gap is at most
    /// twice the even one.
    #[test]
    fn marks_since_a_start_are_evenly_apart() {
        let (limit, length) = (6, 100u128);
        let mut marks: Vec<CashMark> = Vec::new();
        for round in 1..=2_000u64 {
            let mut mark = CashMark::default();
            mark.totals.clock = u128::from(round);
            marks.push(mark);
            let start = u128::from(round).saturating_sub(length);
            if let Some(at) = superfluous_since(&marks, limit, start) {
                marks.remove(at);
            }
            assert!(marks.len() <= limit);
            assert_eq!(marks.last().unwrap().totals.clock, u128::from(round));
            let near = marks.iter().map(|mark| mark.totals.clock.abs_diff(start));
            let nearest = near.min().unwrap().min(start);
            assert!(
                nearest <= 2 * length / (limit as u128 - 2),
                "round {round}: {nearest}"
            );
        }
    }
}
