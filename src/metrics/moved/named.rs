//! Moves between two sides that are joined by name.
//!
//! Memory: 24 bytes a page and side for the join, and 8 for the ranks.

use super::{MoveOptions, Movers, Standing};
use crate::Result;
use crate::metrics::scores::Row;
use crate::metrics::{NameHash, Scores, Side, join};

/// Moves from `left` to `right`, with the shares of each side (its scores over their sum). Ties that
/// nothing else decides are in the order of the names' hashes.
///
/// # Errors
/// As [`compare`](crate::metrics::compare).
pub fn moved_by_name(
    left: Scores,
    right: Scores,
    wanted: MoveOptions,
) -> Result<super::Moves<NameHash>> {
    let mut left = Side::new("left", left)?;
    let mut right = Side::new("right", right)?;
    left.sort()?;
    right.sort()?;
    let ranks = [Ranks::of(&left), Ranks::of(&right)];
    let pages = [&left, &right].map(|side| side.rows.len() as u64);
    let mut movers = Movers::new(wanted, pages);
    join(&left.rows, &right.rows, |l, r| {
        let standing = |side: &Side, ranks: &Ranks, row: &Row| Standing {
            importance: side.share(Some(row)),
            rank: ranks.of_score(row.score),
        };
        let Some(name) = l.or(r).map(|row| NameHash(row.name)) else {
            return;
        };
        let l = l.map(|row| standing(&left, &ranks[0], row));
        let r = r.map(|row| standing(&right, &ranks[1], row));
        movers.add(name, l, r);
    });
    Ok(movers.finish())
}

/// All scores, highest first.
struct Ranks(Vec<f64>);

impl Ranks {
    fn of(side: &Side) -> Ranks {
        let mut scores: Vec<f64> = side.rows.iter().map(|row| row.score).collect();
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        Ranks(scores)
    }

    /// 1 + strictly greater scores.
    fn of_score(&self, score: f64) -> u64 {
        1 + self.0.partition_point(|&other| other > score) as u64
    }
}
